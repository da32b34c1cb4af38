//! Spans: what a request did and when, for OpenTelemetry collectors (OTLP over HTTP, as JSON).
//!
//! Refuses to hold up a request: spans that find no room, or no collector, are counted and thrown away. Invariant: a span names the
//! route, the status and the verdict, never a path, a query, a header or a body.

use std::time::{Duration, Instant, SystemTime};

use hyper::HeaderMap;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::mpsc;
use writ_core::json::Value;

use super::metrics::Metrics;

/// What is noted while a request is answered.
#[derive(Debug)]
pub struct Trail {
    on: bool,
    /// Name, start, end.
    steps: Vec<(&'static str, Instant, Instant)>,
    /// Source and verdict.
    pub verdict: Option<(&'static str, &'static str)>,
}

impl Trail {
    /// Notes steps when `on`.
    pub const fn new(on: bool) -> Self {
        Self { on, steps: Vec::new(), verdict: None }
    }

    /// When a step begins.
    pub fn now(&self) -> Option<Instant> {
        self.on.then(Instant::now)
    }

    /// A step ends.
    pub fn step(&mut self, name: &'static str, start: Option<Instant>) {
        if let Some(start) = start {
            self.steps.push((name, start, Instant::now()));
        }
    }
}

/// A request that was answered.
#[derive(Debug)]
pub struct Request {
    /// The route.
    pub route: &'static str,
    /// The method.
    pub method: &'static str,
    /// The status.
    pub status: u16,
    /// When it came.
    pub start: Instant,
    /// When it was answered.
    pub end: Instant,
    /// Its steps.
    pub trail: Trail,
    /// The trace it belongs to.
    pub parent: Option<Parent>,
}

/// The caller's `traceparent` (W3C Trace Context).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parent {
    trace: u128,
    span: u64,
    sampled: bool,
}

impl Parent {
    /// Reads the header; one that is not in its form is as if absent.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get("traceparent")?.to_str().ok()?;
        let mut parts = text.split('-');
        let mut hex = |digits: usize| {
            let lower = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            let part = parts.next().filter(|part| part.len() == digits && part.bytes().all(lower))?;
            u128::from_str_radix(part, 16).ok()
        };
        let (version, trace, span, flags) = (hex(2)?, hex(32)?, hex(16)?, hex(2)?);
        let good = version != 0xff && trace != 0 && span != 0 && (version != 0 || text.len() == 55);
        good.then_some(Self { trace, span: u64::try_from(span).ok()?, sampled: flags & 1 == 1 })
    }
}

/// Where spans wait for the collector.
#[derive(Clone, Debug)]
pub struct Spans {
    waiting: mpsc::Sender<Request>,
    metrics: Metrics,
}

impl Spans {
    /// Spans that `waiting` takes.
    pub const fn new(waiting: mpsc::Sender<Request>, metrics: Metrics) -> Self {
        Self { waiting, metrics }
    }

    /// Gives one away. What the caller does not sample is left out.
    pub fn send(&self, request: Request) {
        if request.parent.is_none_or(|parent| parent.sampled) && self.waiting.try_send(request).is_err() {
            self.metrics.spans_lost(1);
        }
    }
}

/// The request of an export (`ExportTraceServiceRequest`).
pub fn export(service: &str, requests: &[Request]) -> Value {
    let clock = Clock { instant: Instant::now(), system: SystemTime::now() };
    let spans = requests.iter().flat_map(|request| spans(request, &clock)).collect::<Vec<_>>();
    let resource = object([(
        "attributes",
        Value::Array(vec![
            attribute("service.name", Value::from("writ")),
            attribute("service.version", Value::from(env!("CARGO_PKG_VERSION"))),
            attribute("service.instance.id", Value::from(service)),
        ]),
    )]);
    let scope = object([("scope", object([("name", Value::from("writ.serve"))])), ("spans", Value::Array(spans))]);
    let whole = object([("resource", resource), ("scopeSpans", Value::Array(vec![scope]))]);
    object([("resourceSpans", Value::Array(vec![whole]))])
}

fn spans(request: &Request, clock: &Clock) -> Vec<Value> {
    let trace = format!("{:032x}", request.parent.map_or_else(random::<16>, |parent| parent.trace));
    let id = format!("{:016x}", random::<8>());
    let mut attributes = vec![
        attribute("http.request.method", Value::from(request.method)),
        attribute("http.route", Value::from(request.route)),
    ];
    if let Some((source, verdict)) = request.trail.verdict {
        attributes.push(attribute("writ.source", Value::from(source)));
        attributes.push(attribute("writ.verdict", Value::from(verdict)));
    }
    let number = object([("intValue", Value::from(request.status.to_string()))]);
    attributes.push(object([("key", Value::from("http.response.status_code")), ("value", number)]));
    let steps = request.trail.steps.iter();
    let mut out: Vec<Value> = steps
        .map(|(name, start, stop)| {
            let mut span = object([
                ("traceId", Value::from(trace.as_str())),
                ("spanId", Value::from(format!("{:016x}", random::<8>()))),
                ("parentSpanId", Value::from(id.as_str())),
                ("name", Value::from(*name)),
                ("kind", Value::from(1_u64)),
            ]);
            times(&mut span, clock.nanos(*start), clock.nanos(*stop));
            span
        })
        .collect();
    let mut span = object([
        ("traceId", Value::from(trace)),
        ("spanId", Value::from(id)),
        ("name", Value::from(format!("{} {}", request.method, request.route))),
        ("kind", Value::from(2_u64)),
        ("attributes", Value::Array(attributes)),
    ]);
    times(&mut span, clock.nanos(request.start), clock.nanos(request.end));
    if let Value::Object(members) = &mut span {
        if let Some(parent) = request.parent {
            members.push("parentSpanId", Value::from(format!("{:016x}", parent.span)));
        }
        if request.status >= 500 {
            members.push("status", object([("code", Value::from(2_u64))]));
        }
    }
    out.push(span);
    out
}

/// What ties the monotonic clock to the calendar.
struct Clock {
    instant: Instant,
    system: SystemTime,
}

impl Clock {
    fn nanos(&self, moment: Instant) -> u128 {
        let then = self.system.checked_sub(self.instant.saturating_duration_since(moment)).unwrap_or(self.system);
        then.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_nanos()
    }
}

fn times(span: &mut Value, start: u128, end: u128) {
    if let Value::Object(members) = span {
        members.push("startTimeUnixNano", Value::from(start.to_string()));
        members.push("endTimeUnixNano", Value::from(end.to_string()));
    }
}

fn attribute(key: &str, text: Value) -> Value {
    object([("key", Value::from(key)), ("value", object([("stringValue", text)]))])
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// So many random bytes; an id of zeros is no id, and only a broken generator gives one.
fn random<const N: usize>() -> u128 {
    let mut bytes = [0; 16];
    let drawn = bytes.get_mut(16_usize.saturating_sub(N)..).map(|bytes| SystemRandom::new().fill(bytes));
    if drawn.is_some_and(|drawn| drawn.is_ok()) { u128::from_be_bytes(bytes).max(1) } else { 1 }
}
