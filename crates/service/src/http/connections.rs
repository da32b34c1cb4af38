//! Connections: accepting, TLS, and the end.
//!
//! Owns every open connection. Refuses more than [`CONNECTIONS`] at a time, a quarter of them from one address, and whoever takes too
//! long over a handshake or a head. Invariant: a request whose head was read before the end is answered before it. By hand, because
//! `axum::serve` has no limits for a head and no TLS, and `axum-server` accepts without end: neither stops accepting at a number of
//! connections, nor knows how many one address has.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower::Service;

use super::admission::Peer;
use super::rate_limit;
use super::telemetry::Metrics;

/// Most connections at a time.
const CONNECTIONS: usize = 1024;
/// Most of them from one address: the others are not kept out by it.
const PER_PEER: usize = CONNECTIONS / 4;
/// How long a handshake, and how long the head of a request may take; so long may a connection be idle.
const HEAD_TIME: Duration = Duration::from_secs(15);
/// Largest head of a request. What is read of it at once may be more, so it is counted again when it is there.
pub const HEAD_BYTES: usize = 32 << 10;

/// How many bytes the head of a request has.
pub fn head_bytes<T>(request: &Request<T>) -> usize {
    let uri = request.uri();
    let line = request.method().as_str().len() + uri.path_and_query().map_or(1, |path| path.as_str().len()) + 12;
    let fields = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    fields.fold(line + 2, usize::saturating_add)
}

/// What answers requests, whatever it is made of. Every connection has a clone.
pub trait Answers:
    Service<Request, Response = Response, Error = Infallible, Future: Send + 'static> + Clone + Send + 'static
{
}

impl<S> Answers for S where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send + 'static> + Clone + Send + 'static
{
}

/// The signals that end the service.
pub struct End {
    terminate: Signal,
    interrupt: Signal,
}

impl End {
    /// From now on the signals do not kill the process.
    pub fn awaited() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn come(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Accepts until the end, and then waits for what is under way, but not longer than `grace`.
pub async fn run(
    routes: impl Answers,
    metrics: &Metrics,
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    mut end: End,
    grace: Duration,
) {
    let connections = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let peers = Peers::default();
    loop {
        let accepted = async {
            let permit = Arc::clone(&room).acquire_owned().await.ok();
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            accepted = accepted => accepted,
            () = end.come() => break,
        };
        match accepted {
            Ok((stream, address)) => {
                let Some(place) = Place::take(&peers, rate_limit::peer(address.ip())) else {
                    metrics.limited();
                    continue;
                };
                let (routes, metrics) = (routes.clone(), metrics.clone());
                let (acceptor, watcher) = (acceptor.clone(), connections.watcher());
                tokio::spawn(async move {
                    metrics.connections(1);
                    connection(routes, stream, address, acceptor, watcher).await;
                    metrics.connections(-1);
                    drop((permit, place));
                });
            }
            Err(error) => failed(&error).await,
        }
    }
    drop(listener);
    tracing::info!(event = "stopping");
    // What is still under way after the grace, or at a second signal, is dropped with the runtime.
    tokio::select! {
        _ = timeout(grace, connections.shutdown()) => {}
        () = end.come() => {}
    }
}

/// How many connections each peer has.
type Peers = Arc<Mutex<HashMap<u128, usize>>>;

/// One connection of a peer; it ends when this is dropped.
struct Place {
    peers: Peers,
    peer: u128,
}

impl Place {
    /// None where the peer has as many as one may have.
    fn take(peers: &Peers, peer: u128) -> Option<Self> {
        let mut counts = peers.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(peer).or_default();
        if *count >= PER_PEER {
            return None;
        }
        *count += 1;
        Some(Self { peers: Arc::clone(peers), peer })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut count) = counts.entry(self.peer) {
            *count.get_mut() = count.get().saturating_sub(1);
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

/// A peer that went away again is nothing; everything else (no more files) takes a moment to get better.
async fn failed(error: &io::Error) {
    if !matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) {
        tracing::warn!(event = "accept_failed", why = error.to_string());
        sleep(Duration::from_millis(100)).await;
    }
}

async fn connection(
    routes: impl Answers,
    stream: TcpStream,
    address: SocketAddr,
    acceptor: Option<TlsAcceptor>,
    watcher: Watcher,
) {
    // Without it answers wait for the peer's delayed acknowledgement; where it fails they do.
    drop(stream.set_nodelay(true));
    let peer = Peer(rate_limit::peer(address.ip()));
    match acceptor {
        None => serve(routes, stream, peer, watcher).await,
        Some(acceptor) => {
            if let Ok(Ok(stream)) = timeout(HEAD_TIME, acceptor.accept(stream)).await {
                serve(routes, stream, peer, watcher).await;
            }
        }
    }
}

async fn serve(
    routes: impl Answers,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    watcher: Watcher,
) {
    let answers = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        routes.clone().call(request.map(Body::new))
    });
    // What is no HTTP is answered with 400 or 431 and no body, unless answers wait for the rest of what was sent.
    let mut http = Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(HEAD_BYTES);
    let connection = http.serve_connection(TokioIo::new(stream), answers);
    // A peer that breaks off or speaks no HTTP ends its own connection and nothing else.
    drop(watcher.watch(connection).await);
}
