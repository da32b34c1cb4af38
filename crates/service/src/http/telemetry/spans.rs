//! Spans: one for the request, below it what the handlers open.
//!
//! Invariant: a span names the route, the status and the verdict, never a path, a query, a header or a body. Where no spans are sent
//! nobody asks for them, and `tracing` makes none.

use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry_http::HeaderExtractor;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracer;
use tracing::field::Empty;
use tracing::{Span, Subscriber, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, filter};

use super::super::route;
use super::{Verdict, is_ours};

/// What hands spans to OpenTelemetry.
pub fn layer<S>(tracer: SdkTracer) -> impl Layer<S> + Send + Sync + 'static
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_threads(false)
        .with_level(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        .with_filter(filter::filter_fn(|metadata| metadata.is_span() && is_ours(metadata)))
}

/// The span of a request, below the caller's own (W3C Trace Context). What the caller does not sample is left out.
pub fn request(request: &Request) -> Span {
    let (method, route) = (route::method(request.method()), route::name(request.uri().path()).unwrap_or("none"));
    let span = info_span!(
        "request",
        otel.name = format!("{method} {route}"),
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = method,
        http.route = route,
        http.response.status_code = Empty,
        writ.source = Empty,
        writ.verdict = Empty,
    );
    if !span.is_disabled() {
        let parent = TraceContextPropagator::new().extract(&HeaderExtractor(request.headers()));
        // It fails where the span has begun, which it has not.
        drop(span.set_parent(parent));
    }
    span
}

/// What is known of it at its end.
pub fn answered(response: &Response, _took: Duration, span: &Span) {
    if span.is_disabled() {
        return;
    }
    span.record("http.response.status_code", response.status().as_u16());
    if response.status().is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
    if let Some(Verdict { source, verdict }) = response.extensions().get() {
        span.record("writ.source", source);
        span.record("writ.verdict", verdict);
    }
}
