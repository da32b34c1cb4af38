//! The routes, and what stands around all of them: the log, the spans, time, and a head that says what it means.
//!
//! `axum` finds the route, `tower-http` holds time and makes spans; what it refuses gets the form of all refusals here. Two of its layers
//! are left out: panics, because what ships is built with `panic = "abort"`, where nothing catches them; and size (see `body`). The
//! layers stand around the router and not inside it (`Router::layer`), where each request would pay for boxes between them. Invariant:
//! everything that is answered is counted, logged and, where spans are sent, a span.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use axum::http::{Response as HttpResponse, StatusCode, Version};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tower::{Service as TowerService, ServiceBuilder, service_fn};
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;
use writ_evidence::registry::PATH as REGISTRY;

use super::connections::{Answers, HEAD_BYTES, head_bytes};
use super::error::ApiError;
use super::response::JSON;
use super::route::{ATTESTATION, EVALUATE, HEALTH, METRICS, OPENAPI, method, name};
use super::telemetry::{Verdict, spans};
use super::{Service, documents, evaluate, health};

/// What answers every request.
pub fn router(service: Arc<Service>) -> impl Answers {
    let routes = Router::new()
        .route(EVALUATE, post(evaluate::answer))
        .route(HEALTH, get(health::answer))
        .route(OPENAPI, get(documents::openapi))
        .route(METRICS, get(documents::metrics))
        .route(REGISTRY, get(documents::registry))
        .route(ATTESTATION, get(documents::attestation));
    surrounded(routes, service)
}

/// The first layer is the outermost.
fn surrounded(routes: Router<Arc<Service>>, service: Arc<Service>) -> impl Answers {
    let routes = routes.fallback(async || ApiError::NO_ROUTE).method_not_allowed_fallback(other_method);
    let routes = ServiceBuilder::new()
        .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, service.timeout))
        .service(routes.with_state(Arc::clone(&service)));
    let noted = service_fn(move |request| noted(Arc::clone(&service), routes.clone(), request));
    let set = |name, value| SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value));
    let spans = TraceLayer::new_for_http().make_span_with(spans::request);
    let spans = spans.on_request(()).on_response(spans::answered).on_body_chunk(()).on_eos(()).on_failure(());
    ServiceBuilder::new()
        .map_response(|response: HttpResponse<_>| response.map(Body::new))
        .layer(spans)
        .layer(set(CACHE_CONTROL, "no-store"))
        .layer(set(X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .service(noted)
}

/// Counts and logs what is answered.
async fn noted<S>(service: Arc<Service>, mut routes: S, request: Request) -> Result<Response, Infallible>
where
    S: TowerService<Request, Response = Response, Error = Infallible>,
{
    let start = Instant::now();
    let (route, method) = (name(request.uri().path()).unwrap_or("none"), method(request.method()));
    let response = match well_formed(&request) {
        Ok(()) => as_api_error(routes.call(request).await?),
        Err(refusal) => refusal.into_response(),
    };
    let (took, status) = (start.elapsed(), response.status().as_u16());
    service.metrics.answered(route, method, status, took);
    let verdict = response.extensions().get().map_or("-", |verdict: &Verdict| verdict.verdict);
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    tracing::info!(event = "answered", method, route, status, micros, verdict);
    Ok(response)
}

/// A head of bearable size that names one host.
fn well_formed(request: &Request) -> Result<(), ApiError> {
    if head_bytes(request) > HEAD_BYTES {
        return Err(ApiError::Head(HEAD_BYTES));
    }
    // A request that names no host, or two, means nobody in particular (RFC 9112, section 3.2).
    let hosts = request.headers().get_all(HOST).iter().count();
    if hosts > 1 || hosts == 0 && request.version() == Version::HTTP_11 {
        return Err(ApiError::Malformed("exactly one `Host` is needed".to_owned()));
    }
    Ok(())
}

/// A route does not take the method; a path that only looks like an attestation's is no route.
async fn other_method(request: Request) -> ApiError {
    match name(request.uri().path()) {
        Some(EVALUATE) => ApiError::Method("POST"),
        Some(_) => ApiError::Method("GET, HEAD"),
        None => ApiError::NO_ROUTE,
    }
}

/// What the layer for time refused, in the form of all refusals.
fn as_api_error(response: Response) -> Response {
    let ours = || response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == JSON);
    if response.status() == StatusCode::SERVICE_UNAVAILABLE && !ours() {
        return ApiError::Timeout.into_response();
    }
    response
}

#[cfg(test)]
mod tests {
    use writ_core::json::{self, Value};
    use writ_evidence::attestation::FOLDER;

    use super::super::admission::Peer;
    use super::super::route::ATTESTATION_NAME;
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef";

    fn request(method: &str, path: &str) -> Request {
        let mut request = Request::builder().method(method).uri(path).header(HOST, "x").body(Body::empty()).unwrap();
        request.extensions_mut().insert(Peer(1));
        request
    }

    /// Status and code of an answer.
    async fn asked(router: &mut impl Answers, method: &str, path: &str) -> (u16, String) {
        let response = router.call(request(method, path)).await.unwrap();
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        let body = json::parse(&body).ok();
        let error = body.as_ref().and_then(|body| body.get("error")?.get("code")?.as_str());
        (status, error.unwrap_or_default().to_owned())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn only_ids_are_attestations() {
        let folder = tempfile::tempdir().unwrap();
        let mut router = router(Service::idle(folder.path()));
        let not_found = || (404, "not_found".to_owned());
        assert_eq!(
            asked(&mut router, "POST", &format!("{FOLDER}{ID}.json")).await,
            (405, "method_not_allowed".to_owned())
        );
        for path in [
            "/".to_owned(),
            format!("{FOLDER}{ID}"),
            format!("{FOLDER}{}.json", ID.to_uppercase()),
            format!("{FOLDER}{ID}0.json"),
            format!("{FOLDER}../{ID}.json"),
            format!("{FOLDER}..%2f..%2fkeys%2fwrit-1.pem"),
            format!("{FOLDER}%30{}.json", ID.trim_start_matches('0')),
            format!("/{FOLDER}{ID}.json"),
            "/.well-known/../api/health".to_owned(),
            "/api/evaluate/".to_owned(),
            "*".to_owned(),
        ] {
            for method in ["GET", "POST"] {
                assert_eq!(asked(&mut router, method, &path).await, not_found(), "{method} {path}");
            }
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_document_names_every_route() {
        let folder = tempfile::tempdir().unwrap();
        let mut router = router(Service::idle(folder.path()));
        let document = json::parse(documents::OPENAPI.as_bytes()).unwrap();
        let paths = document.get("paths").and_then(Value::as_object).unwrap();
        let names = [EVALUATE, HEALTH, OPENAPI, METRICS, REGISTRY, ATTESTATION_NAME];
        assert_eq!(paths.len(), names.len());
        for name in names {
            let operations = paths.get(name).and_then(Value::as_object).unwrap_or_else(|| panic!("{name}"));
            let documented: Vec<String> = operations.iter().map(|(method, _)| method.to_uppercase()).collect();
            let mut taken = Vec::new();
            for method in ["GET", "POST", "PUT", "DELETE", "PATCH"] {
                if asked(&mut router, method, &name.replace("{id}", ID)).await.0 != 405 {
                    taken.push(method);
                }
            }
            assert_eq!(documented, taken, "{name}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_the_layers_refuse_looks_like_every_refusal() {
        let folder = tempfile::tempdir().unwrap();
        let slow = async || tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        let routes = Router::new().route("/slow", get(slow));
        let mut router = surrounded(routes, Service::idle(folder.path()));
        assert_eq!(asked(&mut router, "GET", "/slow").await, (503, "timeout".to_owned()));
        assert_eq!(asked(&mut router, "GET", "/neither").await, (404, "not_found".to_owned()), "it goes on");
    }
}
