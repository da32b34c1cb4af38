//! Spans and metrics on their way to a collector: OTLP over HTTP, as JSON or protobuf, over TLS or not.
//!
//! `opentelemetry-otlp` makes the requests and reads the `OTEL_*` variables; they are sent by the HTTP client that is here anyway, on
//! the threads of OpenTelemetry's SDK, which may block. Refuses to hold up a request: spans that find no room, or no collector, are
//! counted and thrown away.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use axum::http::Uri;
use opentelemetry::metrics::MeterProvider;
use opentelemetry::trace::TracerProvider;
use opentelemetry::{Context, Key, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider, Temporality};
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SdkTracer, SdkTracerProvider, Span, SpanData, SpanProcessor,
};
use prometheus_client::metrics::counter::Counter;
use ureq::Agent;

use super::Metrics;
use crate::network;

/// The name of what makes spans and metrics here.
const SCOPE: &str = "writ.serve";
/// Most spans that wait for the collector.
const WAITING: usize = 1 << 14;
/// How long the spans that wait at the end may take to be sent.
const END: Duration = Duration::from_secs(2);
/// Largest answer of a collector.
const ANSWER: u64 = 1 << 20;

/// Where spans and metrics go, and how.
#[derive(Clone, Debug)]
pub struct Otlp {
    /// The whole URL that takes spans.
    pub spans: Option<String>,
    /// The whole URL that takes metrics.
    pub metrics: Option<String>,
    /// How long a request to the collector may take.
    pub timeout: Duration,
    /// The authorities that the collector's certificate may be from, as PEM; the machine's own where there is no such file.
    pub authorities: Option<PathBuf>,
}

impl Otlp {
    /// How long a request may take where nobody says (OpenTelemetry's own default).
    pub const TIMEOUT: Duration = Duration::from_secs(10);
}

/// Why spans and metrics cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum OtlpError {
    /// Not an endpoint.
    #[error("`{0}` is not an OTLP endpoint: write `http://localhost:4318` or `https://collector.example:4318`")]
    Endpoint(String),
    /// The variables say something that cannot be done.
    #[error("OTLP: {0}")]
    Settings(#[from] opentelemetry_otlp::ExporterBuildError),
    /// The file of authorities.
    #[error("{path} holds no certificates: {why}")]
    Authorities {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// What sends spans and metrics while the service runs.
pub struct Exporters {
    spans: Option<SdkTracerProvider>,
    metrics: Option<SdkMeterProvider>,
}

impl Exporters {
    /// Starts the SDK's threads. From then on the metrics are exported too.
    pub fn start(otlp: &Otlp, instance: &str, metrics: &mut Metrics) -> Result<Self, OtlpError> {
        let client = Client::new(otlp)?;
        let (mut spans, mut exported) = (None, None);
        if let Some(url) = &otlp.spans {
            let exporter = SpanExporter::builder().with_http().with_http_client(client.clone());
            let exporter = exporter.with_endpoint(checked(url)?).build()?;
            let processor = processor(exporter, client.clone(), metrics.lost_spans());
            let provider = SdkTracerProvider::builder().with_span_processor(processor);
            spans = Some(provider.with_resource(resource(instance)).build());
        }
        if let Some(url) = &otlp.metrics {
            let exporter = MetricExporter::builder().with_http().with_http_client(client.clone());
            let exporter = exporter.with_endpoint(checked(url)?).build()?;
            let reader = PeriodicReader::builder(Reporting { inner: exporter, client }).build();
            let provider = SdkMeterProvider::builder().with_reader(reader);
            let provider = provider.with_resource(resource(instance)).build();
            metrics.export(&provider.meter(SCOPE));
            exported = Some(provider);
        }
        Ok(Self { spans, metrics: exported })
    }

    /// What makes the spans.
    pub fn tracer(&self) -> Option<SdkTracer> {
        self.spans.as_ref().map(|provider| provider.tracer(SCOPE))
    }

    /// Sends what waits, and stops; the SDK gives metrics five seconds, whatever it is told.
    pub fn end(self) {
        if let Some(spans) = self.spans {
            drop(spans.shutdown_with_timeout(END));
        }
        if let Some(metrics) = self.metrics {
            drop(metrics.shutdown());
        }
    }
}

/// The exporter takes everything for a URL.
fn checked(url: &str) -> Result<&str, OtlpError> {
    let uri: Option<Uri> = url.parse().ok();
    let known = uri.filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.authority().is_some());
    known.map(|_uri| url).ok_or_else(|| OtlpError::Endpoint(url.to_owned()))
}

/// Who the spans and metrics are of; the `OTEL_*` variables may say more, and another name.
fn resource(instance: &str) -> Resource {
    let detected = Resource::builder().build();
    let unnamed = |name: opentelemetry::Value| name.as_str().starts_with("unknown_service");
    let mut resource = Resource::builder();
    if detected.get(&Key::new("service.name")).is_none_or(unnamed) {
        resource = resource.with_service_name("writ");
    }
    let own = [("service.version", env!("CARGO_PKG_VERSION")), ("service.instance.id", instance)];
    let own = own.into_iter().filter(|(key, value)| !value.is_empty() && detected.get(&Key::new(*key)).is_none());
    resource.with_attributes(own.map(|(key, value)| KeyValue::new(key, value.to_owned()))).build()
}

/// The HTTP client; it remembers why the last request failed, which the exporter does not tell.
#[derive(Clone, Debug)]
struct Client {
    agent: Agent,
    failure: Arc<Mutex<Option<String>>>,
}

impl Client {
    fn new(otlp: &Otlp) -> Result<Self, OtlpError> {
        let roots = match &otlp.authorities {
            None => network::authorities(),
            Some(path) => {
                network::authorities_in(path).map_err(|why| OtlpError::Authorities { path: path.clone(), why })?
            }
        };
        Ok(Self { agent: network::agent(roots, otlp.timeout), failure: Arc::default() })
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ureq::Error> {
        let (parts, body) = request.into_parts();
        let response = self.agent.run(Request::from_parts(parts, body.as_ref()))?;
        let (parts, mut body) = response.into_parts();
        let body = body.with_config().limit(ANSWER).read_to_vec()?;
        Ok(Response::from_parts(parts, body.into()))
    }

    /// Tells that something did not arrive, and why.
    fn report(&self, event: &str, count: usize, error: &dyn std::error::Error) {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        tracing::warn!(event, why = failure.unwrap_or_else(|| error.to_string()), count);
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        Ok(self.send(request).inspect_err(|error| {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        })?)
    }
}

/// Batches spans, and counts those that are lost: the SDK drops what finds no room without a word that could be counted.
fn processor(exporter: SpanExporter, client: Client, lost: Counter) -> Bounded {
    let waiting = Arc::new(AtomicUsize::new(0));
    let counted =
        Counted { reporting: Reporting { inner: exporter, client }, waiting: Arc::clone(&waiting), lost: lost.clone() };
    let config = BatchConfigBuilder::default().with_max_queue_size(WAITING).build();
    let inner = BatchSpanProcessor::builder(counted).with_batch_config(config).build();
    Bounded { inner, waiting, lost }
}

#[derive(Debug)]
struct Bounded {
    inner: BatchSpanProcessor,
    waiting: Arc<AtomicUsize>,
    lost: Counter,
}

impl SpanProcessor for Bounded {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.inner.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if self.waiting.fetch_add(1, Ordering::Relaxed) < WAITING {
            self.inner.on_end(span);
        } else {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            self.lost.inc();
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

/// An exporter whose failures are told.
#[derive(Debug)]
struct Reporting<E> {
    inner: E,
    client: Client,
}

#[derive(Debug)]
struct Counted {
    reporting: Reporting<SpanExporter>,
    waiting: Arc<AtomicUsize>,
    lost: Counter,
}

impl opentelemetry_sdk::trace::SpanExporter for Counted {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len();
        self.waiting.fetch_sub(count, Ordering::Relaxed);
        let Reporting { inner, client } = &self.reporting;
        inner.export(batch).await.inspect_err(|error| {
            self.lost.inc_by(count as u64);
            client.report("spans_lost", count, error);
        })
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.reporting.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.reporting.inner.set_resource(resource);
    }
}

impl PushMetricExporter for Reporting<MetricExporter> {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let sent = self.inner.export(metrics).await;
        sent.inspect_err(|error| self.client.report("metrics_not_sent", 1, error))
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.inner.temporality()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints() {
        for url in ["http://localhost:4318/v1/traces", "http://[::1]:9/otlp", "https://collector.example/v1/traces"] {
            assert_eq!(checked(url).unwrap(), url);
        }
        for other in ["127.0.0.1:4318", "collector.example/v1/traces", "ftp://127.0.0.1", "http://", ""] {
            assert!(checked(other).is_err(), "{other}");
        }
    }
}
