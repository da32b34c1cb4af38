//! Metrics: what Prometheus and its like read at `/metrics`, and what goes to a collector where there is one.
//!
//! Counted once, by `prometheus-client`; OpenTelemetry reads its plain counters when it exports. Only what has labels or buckets is
//! written down twice, because neither library shows the other its own.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::Verdict;

/// What the metrics' text is.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Labels<const N: usize> = [(&'static str, &'static str); N];

/// Every number of the service. Clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Registry>,
    requests: Family<Labels<3>, Counter>,
    seconds: Family<Labels<1>, Histogram, fn() -> Histogram>,
    verdicts: Family<Labels<2>, Counter>,
    attested: Counter,
    not_attested: Counter,
    batches: Histogram,
    connections: Gauge,
    limited: Counter,
    spans_lost: Counter,
    version: Gauge<u64, AtomicU64>,
    exported: Option<Arc<Exported>>,
}

/// What OpenTelemetry cannot read from the above.
#[derive(Debug)]
struct Exported {
    seconds: opentelemetry::metrics::Histogram<f64>,
    verdicts: opentelemetry::metrics::Counter<u64>,
    batches: opentelemetry::metrics::Histogram<u64>,
}

/// Half a millisecond to eight seconds.
fn second_buckets() -> impl Iterator<Item = f64> {
    exponential_buckets(0.0005, 2.0, 15)
}

/// One to 256.
fn batch_buckets() -> impl Iterator<Item = f64> {
    exponential_buckets(1.0, 2.0, 9)
}

impl Default for Metrics {
    fn default() -> Self {
        let seconds: fn() -> Histogram = || Histogram::new(second_buckets());
        let mut metrics = Self {
            registry: Arc::default(),
            requests: Family::default(),
            seconds: Family::new_with_constructor(seconds),
            verdicts: Family::default(),
            attested: Counter::default(),
            not_attested: Counter::default(),
            batches: Histogram::new(batch_buckets()),
            connections: Gauge::default(),
            limited: Counter::default(),
            spans_lost: Counter::default(),
            version: Gauge::default(),
            exported: None,
        };
        let mut registry = Registry::with_prefix("writ");
        registry.register("http_requests", "Requests answered", metrics.requests.clone());
        registry.register("http_request_seconds", "How long an answer took", metrics.seconds.clone());
        registry.register("verdicts", "Verdicts given", metrics.verdicts.clone());
        registry.register("attestations", "Attestations signed and kept", metrics.attested.clone());
        registry.register("attestation_failures", "Verdicts not attested and so refused", metrics.not_attested.clone());
        registry.register("attestation_batch", "Attestations of one durable step", metrics.batches.clone());
        registry.register("connections", "Open connections", metrics.connections.clone());
        registry.register("rate_limited", "Requests above the rate limit", metrics.limited.clone());
        registry.register("spans_lost", "Spans that reached no collector", metrics.spans_lost.clone());
        registry.register("registry_version", "Version of the key registry", metrics.version.clone());
        metrics.registry = Arc::new(registry);
        metrics
    }
}

impl Metrics {
    /// From now on everything goes to OpenTelemetry too.
    pub fn export(&mut self, meter: &Meter) {
        for (name, about, counter) in [
            ("writ.attestations", "Attestations signed and kept", &self.attested),
            ("writ.attestation.failures", "Verdicts not attested and so refused", &self.not_attested),
            ("writ.rate_limited", "Requests above the rate limit", &self.limited),
            ("writ.spans.lost", "Spans that reached no collector", &self.spans_lost),
        ] {
            let counter = counter.clone();
            let observed = meter.u64_observable_counter(name).with_description(about);
            observed.with_callback(move |out| out.observe(counter.get(), &[])).build();
        }
        let (connections, version) = (self.connections.clone(), self.version.clone());
        let observed = meter.i64_observable_up_down_counter("writ.connections").with_description("Open connections");
        observed.with_callback(move |out| out.observe(connections.get(), &[])).build();
        let observed =
            meter.u64_observable_gauge("writ.registry.version").with_description("Version of the key registry");
        observed.with_callback(move |out| out.observe(version.get(), &[])).build();
        self.exported = Some(Arc::new(Exported {
            seconds: meter
                .f64_histogram("http.server.request.duration")
                .with_unit("s")
                .with_description("How long an answer took")
                .with_boundaries(second_buckets().collect())
                .build(),
            verdicts: meter.u64_counter("writ.verdicts").with_description("Verdicts given").build(),
            batches: meter
                .u64_histogram("writ.attestation.batch")
                .with_description("Attestations of one durable step")
                .with_boundaries(batch_buckets().collect())
                .build(),
        }));
    }

    /// A request was answered.
    pub fn answered(&self, route: &'static str, method: &'static str, status: u16, took: Duration) {
        self.requests.get_or_create(&[("route", route), ("method", method), ("status", spelled(status))]).inc();
        self.seconds.get_or_create(&[("route", route)]).observe(took.as_secs_f64());
        if let Some(exported) = &self.exported {
            let of = [
                KeyValue::new("http.route", route),
                KeyValue::new("http.request.method", method),
                KeyValue::new("http.response.status_code", i64::from(status)),
            ];
            exported.seconds.record(took.as_secs_f64(), &of);
        }
    }

    /// A verdict was given.
    pub fn verdict(&self, Verdict { source, verdict }: Verdict) {
        self.verdicts.get_or_create(&[("source", source), ("verdict", verdict)]).inc();
        if let Some(exported) = &self.exported {
            exported.verdicts.add(1, &[KeyValue::new("writ.source", source), KeyValue::new("writ.verdict", verdict)]);
        }
    }

    /// So many were signed in one step.
    #[expect(clippy::cast_precision_loss, reason = "at most 256")]
    pub fn batch(&self, count: usize) {
        self.batches.observe(count as f64);
        if let Some(exported) = &self.exported {
            exported.batches.record(count as u64, &[]);
        }
    }

    /// So many attestations are durable.
    pub fn attested(&self, count: usize) {
        self.attested.inc_by(count as u64);
    }

    /// So many were refused because they could not be attested.
    pub fn not_attested(&self, count: usize) {
        self.not_attested.inc_by(count as u64);
    }

    /// Connections came or went.
    pub fn connections(&self, change: i64) {
        self.connections.inc_by(change);
    }

    /// A request was above the limit.
    pub fn limited(&self) {
        self.limited.inc();
    }

    /// Counts the spans that are thrown away.
    pub fn lost_spans(&self) -> Counter {
        self.spans_lost.clone()
    }

    /// The registry's version.
    pub fn registry(&self, version: u64) {
        self.version.set(version);
    }

    /// The text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        match encode(&mut out, &self.registry) {
            Ok(()) => out,
            // Writing into a string does not fail.
            Err(std::fmt::Error) => String::new(),
        }
    }
}

/// The statuses that are answered.
const fn spelled(status: u16) -> &'static str {
    match status {
        200 => "200",
        304 => "304",
        400 => "400",
        401 => "401",
        403 => "403",
        404 => "404",
        405 => "405",
        408 => "408",
        410 => "410",
        413 => "413",
        415 => "415",
        422 => "422",
        429 => "429",
        503 => "503",
        _ => "other",
    }
}
