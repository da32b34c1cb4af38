//! The notary's door for clients that post their hooks: HTTP on loopback.
//!
//! Owns the listener; every answer is the engine's. Refuses whoever does not show the token, and says so as a client understands it: a client
//! takes any other status than success for a hook that failed, and lets the tool run. Invariant: each post to a hook's address is answered
//! with success and one JSON object. Page: `spec/notary.md`.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use tokio::time::timeout;
use writ_clients::{Client, named};
use writ_core::{Answer, Digest};

/// Largest payload.
const MAX_BYTES: usize = 16 << 20;
/// How long a payload may take.
const TIME: Duration = Duration::from_secs(5);

/// Answers a payload of a client.
pub type Answers = dyn Fn(&'static dyn Client, &[u8]) -> String + Send + Sync;

/// What an answer needs.
struct Door {
    /// Digest of the token, so that comparing takes the same time whatever is shown.
    token: Digest,
    answers: Box<Answers>,
}

/// Serves until the process ends.
pub fn serve(listener: TcpListener, token: &str, answers: Box<Answers>) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let door = Arc::new(Door { token: Digest::of(token.as_bytes()), answers });
    let routes = Router::new().route("/hook/{client}", post(hook)).with_state(door);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async { axum::serve(tokio::net::TcpListener::from_std(listener)?, routes).await })
}

async fn hook(State(door): State<Arc<Door>>, Path(name): Path<String>, headers: HeaderMap, body: Body) -> Response {
    let Some(client) = named(&name) else {
        // It speaks a form that is not known, so nothing can be denied in it.
        return StatusCode::NOT_FOUND.into_response();
    };
    let payload = match timeout(TIME, to_bytes(body, MAX_BYTES)).await {
        Ok(Ok(payload)) => payload,
        Ok(Err(_)) | Err(_) => return told(refused(client, b"", "the payload is too long, cut off, or too slow")),
    };
    let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let shown = shown.and_then(|value| value.strip_prefix("Bearer ")).map(|token| Digest::of(token.as_bytes()));
    if shown != Some(door.token) {
        let why = "the token of `notary.token` is not in the header `Authorization: Bearer …` (spec/notary.md)";
        return told(refused(client, &payload, why));
    }
    let answered = tokio::task::spawn_blocking(move || (door.answers)(client, &payload)).await;
    told(answered.unwrap_or_else(|error| refused(client, b"", &format!("the notary failed: {error}"))))
}

fn refused(client: &dyn Client, payload: &[u8], why: &str) -> String {
    client.render(&Answer::refuse(client.hints(payload).event.as_deref(), &format!("writ denies: {why}")))
}

fn told(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}
