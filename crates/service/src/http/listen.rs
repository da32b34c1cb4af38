//! Connections: accepting, TLS, and the end.
//!
//! Owns every open connection. Refuses more than [`CONNECTIONS`] at a time, a quarter of them from one address, and whoever takes too long over a handshake or a head.
//! Invariant: a request whose head was read before the end is answered before it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fs, io};

use hyper::Request;
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
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::log::{Field, Log};
use super::{ServeError, Service, handle, rate_limit};

/// Most connections at a time.
const CONNECTIONS: usize = 1024;
/// Most of them from one address: the others are not kept out by it.
const PER_PEER: usize = CONNECTIONS / 4;
/// How long a handshake, and how long the head of a request may take; so long may a connection be idle.
const HEAD_TIME: Duration = Duration::from_secs(15);
/// Largest head of a request. What is read of it at once may be more, so it is counted again when it is there.
pub const HEAD_BYTES: usize = 32 << 10;

/// The certificate chain and its key, as files.
pub fn tls(certificate: &Path, key: &Path) -> Result<TlsAcceptor, ServeError> {
    let wrong = |path: &Path, why: String| ServeError::Tls { path: path.to_owned(), why };
    if exposed(key).map_err(|error| wrong(key, error.to_string()))? {
        return Err(wrong(key, "others can read it: `chmod 600` it".to_owned()));
    }
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| wrong(certificate, error.to_string()))?;
    // The parser's own words are not repeated for a private key.
    let private = PrivateKeyDer::from_pem_file(key).map_err(|_error| wrong(key, "no private key in PEM".to_owned()))?;
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.and_then(|config| config.with_no_client_auth().with_single_cert(chain, private));
    let mut config = config.map_err(|error| wrong(certificate, error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn exposed(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::metadata(PathBuf::from(path))?.permissions().mode() & 0o077 != 0)
}

/// How many bytes the head of a request has.
pub fn head_bytes<T>(request: &Request<T>) -> usize {
    let uri = request.uri();
    let line = request.method().as_str().len() + uri.path_and_query().map_or(1, |path| path.as_str().len()) + 12;
    let fields = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    fields.fold(line + 2, usize::saturating_add)
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
    service: Arc<Service>,
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
                    service.metrics.limited();
                    continue;
                };
                let (service, acceptor, watcher) = (Arc::clone(&service), acceptor.clone(), connections.watcher());
                tokio::spawn(async move {
                    service.metrics.connections(1);
                    connection(&service, stream, address, acceptor, watcher).await;
                    service.metrics.connections(-1);
                    drop((permit, place));
                });
            }
            Err(error) => failed(&error, &service.log).await,
        }
    }
    drop(listener);
    service.log.event("stopping", &[]);
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
async fn failed(error: &io::Error, log: &Log) {
    if !matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) {
        log.event("accept_failed", &[("why", Field::Text(&error.to_string()))]);
        sleep(Duration::from_millis(100)).await;
    }
}

async fn connection(
    service: &Arc<Service>,
    stream: TcpStream,
    address: SocketAddr,
    acceptor: Option<TlsAcceptor>,
    watcher: Watcher,
) {
    // Without it answers wait for the peer's delayed acknowledgement; where it fails they do.
    drop(stream.set_nodelay(true));
    let peer = rate_limit::peer(address.ip());
    match acceptor {
        None => serve(service, stream, peer, watcher).await,
        Some(acceptor) => {
            if let Ok(Ok(stream)) = timeout(HEAD_TIME, acceptor.accept(stream)).await {
                serve(service, stream, peer, watcher).await;
            }
        }
    }
}

async fn serve(
    service: &Arc<Service>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: u128,
    watcher: Watcher,
) {
    let answers = service_fn(|request| {
        let service = Arc::clone(service);
        async move { Ok::<_, Infallible>(handle(&service, peer, request).await) }
    });
    // What is no HTTP is answered with 400 or 431 and no body, unless answers wait for the rest of what was sent.
    let mut http = Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(HEAD_BYTES);
    let connection = http.serve_connection(TokioIo::new(stream), answers);
    // A peer that breaks off or speaks no HTTP ends its own connection and nothing else.
    drop(watcher.watch(connection).await);
}
