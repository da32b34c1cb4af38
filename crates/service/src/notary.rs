//! The notary's door for clients that post their hooks: HTTP on loopback.
//!
//! Owns the listener; every answer is the engine's. Refuses other users before it reads what they say, and whoever does not show the token
//! before it reads the payload; and says so as a client understands it: a client takes any other status than success for a hook that failed,
//! and lets the tool run. Invariant: each post of this user to a hook's address is answered with success and one JSON object. Page:
//! `spec/notary.md`.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Extension, Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tower::Service;
use writ_clients::{Client, named};
use writ_core::{Answer, Digest};
use writ_engine::notary::peer::{self, Peer};

/// Largest payload.
const MAX_BYTES: usize = 16 << 20;
/// How long the head of a request, and how long a payload may take; so long may a connection be idle.
const TIME: Duration = Duration::from_secs(5);
/// Largest head.
const HEAD_BYTES: usize = 32 << 10;
/// Most connections at a time.
const CONNECTIONS: usize = 128;
/// Most payloads that are read and answered at a time.
const PAYLOADS: usize = 16;
/// Most processes of clients that are remembered.
const CLIENTS: usize = 8;

/// Answers a payload of a client, which a process posted.
pub type Answers = dyn Fn(&'static dyn Client, &[u8], Option<u32>) -> String + Send + Sync;

/// What an answer needs.
struct Door {
    /// Digest of the token, so that comparing takes the same time whatever is shown.
    token: Digest,
    /// The user that is answered.
    uid: u32,
    answers: Box<Answers>,
    payloads: Semaphore,
    /// Processes that posted lately.
    clients: Mutex<Vec<u32>>,
}

/// Who is at the other end of a connection, and its process once somebody asked for it.
#[derive(Clone)]
struct Connection {
    peer: Peer,
    process: Arc<OnceLock<Option<u32>>>,
}

/// Serves a user's clients until the process ends.
pub fn serve(listener: TcpListener, token: &str, uid: u32, answers: Box<Answers>) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let payloads = Semaphore::new(PAYLOADS);
    let token = Digest::of(token.as_bytes());
    let door = Arc::new(Door { token, uid, answers, payloads, clients: Mutex::default() });
    let routes = Router::new().route("/hook/{client}", post(hook)).with_state(Arc::clone(&door));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async { accept(tokio::net::TcpListener::from_std(listener)?, &door, routes).await })
}

async fn accept(listener: tokio::net::TcpListener, door: &Door, routes: Router) -> io::Result<()> {
    let (ours, room) = (listener.local_addr()?, Arc::new(Semaphore::new(CONNECTIONS)));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return Ok(()) };
        let (stream, theirs) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(_) => {
                sleep(Duration::from_millis(20)).await;
                continue;
            }
        };
        // Whose it is stands in the kernel's tables before a byte is read: other users cannot hold up this one.
        if let Some(peer) = own(theirs, ours, door.uid) {
            let routes = routes.clone();
            tokio::spawn(async move {
                connection(stream, peer, routes).await;
                drop(permit);
            });
        }
    }
}

fn own(theirs: SocketAddr, ours: SocketAddr, uid: u32) -> Option<Peer> {
    peer::of(theirs, ours).ok().flatten().filter(|peer| peer.uid == uid)
}

async fn connection(stream: TcpStream, peer: Peer, routes: Router) {
    drop(stream.set_nodelay(true));
    let connection = Connection { peer, process: Arc::default() };
    let answers = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(connection.clone());
        let answered = routes.clone().call(request.map(Body::new));
        async move { Ok::<Response, Infallible>(answered.await.into_response()) }
    });
    let mut http = Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(TIME).max_buf_size(HEAD_BYTES);
    // A peer that breaks off or speaks no HTTP ends its own connection and nothing else.
    drop(http.serve_connection(TokioIo::new(stream), answers).await);
}

async fn hook(
    State(door): State<Arc<Door>>,
    Extension(from): Extension<Connection>,
    Path(name): Path<String>,
    headers: HeaderMap,
    request: Request,
) -> Response {
    let Some(client) = named(&name) else {
        // It speaks a form that is not known, so nothing can be denied in it.
        return StatusCode::NOT_FOUND.into_response();
    };
    let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let shown = shown.and_then(|value| value.strip_prefix("Bearer ")).map(|token| Digest::of(token.as_bytes()));
    if shown != Some(door.token) {
        let why = "the token of `notary.token` is not in the header `Authorization: Bearer …` (spec/notary.md)";
        return told(refused(client, b"", why));
    }
    let Ok(permit) = door.payloads.acquire().await else { return told(refused(client, b"", "the notary ends")) };
    let payload = match timeout(TIME, to_bytes(request.into_body(), MAX_BYTES)).await {
        Ok(Ok(payload)) => payload,
        Ok(Err(_)) | Err(_) => return told(refused(client, b"", "the payload is too long, cut off, or too slow")),
    };
    let answering = Arc::clone(&door);
    let answered = tokio::task::spawn_blocking(move || {
        let process = *from.process.get_or_init(|| answering.process(&from.peer));
        (answering.answers)(client, &payload, process)
    });
    let answered = answered.await;
    drop(permit);
    told(answered.unwrap_or_else(|error| refused(client, b"", &format!("the notary failed: {error}"))))
}

impl Door {
    /// The process at the other end. Clients post again and again, so those are looked at first that did.
    fn process(&self, peer: &Peer) -> Option<u32> {
        let known = self.clients.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let found = peer.process(&known)?;
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|client| *client != found);
        clients.insert(0, found);
        clients.truncate(CLIENTS);
        Some(found)
    }
}

fn refused(client: &dyn Client, payload: &[u8], why: &str) -> String {
    client.render(&Answer::refuse(client.hints(payload).event.as_deref(), &format!("writ denies: {why}")))
}

fn told(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}
