//! The server over streamable HTTP, without sessions: every request stands for itself.
//!
//! Refuses a `Host` and an `Origin` that are not its own, so that a web page cannot reach it through a name it has made point here.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Version, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::incoming::{Incoming, parse, too_long};
use super::server::Server;
use super::well_known;
use super::{MAX_MESSAGE, ServeError, asked_to_stop, runtime};
use crate::http::tokens::AccessTokens;

/// Where it is served.
pub const PATH: &str = "/mcp";
/// How long requests in flight have when the process is asked to stop.
const GRACE: Duration = Duration::from_secs(5);

/// How it is reached.
#[derive(Clone, Debug, Default)]
pub struct HttpSetting {
    /// Names besides the loopback ones and the bound address, as `host` or `host:port`.
    pub names: Vec<String>,
    /// Who may call tools; anybody who reaches it where there is none.
    pub tokens: Option<AccessTokens>,
}

/// Serves on a bound socket until the process is asked to stop.
pub fn serve(server: Server, listener: TcpListener, setting: &HttpSetting) -> Result<(), ServeError> {
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let runtime = runtime()?;
    let served = runtime.block_on(async {
        let stop = CancellationToken::new();
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let app = router(server, address, setting);
        let serving = axum::serve(listener, app).with_graceful_shutdown(stop.clone().cancelled_owned());
        let told = async {
            let stopped = asked_to_stop().await;
            stop.cancel();
            tokio::time::sleep(GRACE).await;
            stopped
        };
        tokio::select! {
            ended = serving => ended,
            stopped = told => stopped,
        }
    });
    runtime.shutdown_background();
    Ok(served?)
}

/// The routes, to be served at `address`.
pub fn router(server: Server, address: SocketAddr, setting: &HttpSetting) -> Router {
    let (hosts, origins) = names(address, setting);
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_allowed_hosts(hosts)
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_max_request_body_bytes(MAX_MESSAGE);
    let gate = Arc::new(setting.tokens.clone());
    let documents = well_known::routes(server.clone());
    let service =
        StreamableHttpService::new(move || Ok(server.clone()), Arc::new(NeverSessionManager::default()), config);
    let tools = Router::new().route_service(PATH, service).layer(from_fn_with_state(gate, known));
    tools.merge(documents).layer(from_fn(strict))
}

/// The hosts and the origins that are its own.
fn names(address: SocketAddr, setting: &HttpSetting) -> (Vec<String>, Vec<String>) {
    let port = address.port();
    let mut hosts: Vec<String> = Vec::new();
    if address.ip().is_loopback() || address.ip().is_unspecified() {
        hosts.extend(["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{port}")));
    }
    if !address.ip().is_unspecified() {
        hosts.push(address.to_string());
    }
    hosts.extend(setting.names.iter().cloned());
    let origins = hosts.iter().flat_map(|host| [format!("http://{host}"), format!("https://{host}")]).collect();
    (hosts, origins)
}

/// The strict parser in front of the library's: what is no message is answered as JSON-RPC wants it.
async fn strict(request: Request, next: Next) -> Response {
    let nowhere = request.version() == Version::HTTP_11 && !request.headers().contains_key(header::HOST);
    if nowhere || [header::HOST, header::ORIGIN].into_iter().any(|name| is_twice(request.headers(), name)) {
        return StatusCode::BAD_REQUEST.into_response();
    }
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, MAX_MESSAGE).await else {
        return wrong(StatusCode::PAYLOAD_TOO_LARGE, too_long());
    };
    match parse(&bytes) {
        Incoming::Message(_) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Incoming::Nothing => StatusCode::ACCEPTED.into_response(),
        Incoming::Wrong(answer) => wrong(StatusCode::BAD_REQUEST, answer),
    }
}

/// Lets in who has a token, where tokens are asked for.
async fn known(State(gate): State<Arc<Option<AccessTokens>>>, request: Request, next: Next) -> Response {
    match gate.as_ref() {
        Some(tokens) if tokens.find(request.headers()).is_none() => {
            (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")]).into_response()
        }
        Some(_) | None => next.run(request).await,
    }
}

/// Only the first of several would be looked at.
fn is_twice(headers: &HeaderMap, name: HeaderName) -> bool {
    headers.get_all(name).iter().nth(1).is_some()
}

fn wrong(status: StatusCode, answer: String) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], answer).into_response()
}
