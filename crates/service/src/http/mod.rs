//! `writ serve`: evaluations and attestations over HTTP/1.1.
//!
//! Owns the routes and everything around them: tokens, limits, time, log, metrics, spans. Refuses to listen beyond loopback without
//! tokens, and to answer a verdict without its attestation where it attests. Invariant: an attestation that was answered is durable
//! and can be fetched by its URL. Pages: `docs/service.md`, `spec/attestation.md`.

mod admission;
mod archive_pool;
mod body;
mod connections;
mod disk_check;
mod documents;
mod error;
mod evaluate;
mod health;
mod instance;
mod options;
mod rate_limit;
mod response;
mod route;
mod router;
mod signer_queue;
mod telemetry;
mod tls;
pub(crate) mod tokens;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use writ_engine::attest::archive::Archive;
use writ_engine::attest::issuer::IssuerError;
use writ_store::instance::Identity;

pub use documents::OPENAPI;
pub use options::{Options, ServeError};
pub use telemetry::{Otlp, OtlpError, Style};
pub use tokens::TokenError;

use archive_pool::ArchivePool;
use disk_check::DiskCheck;
use error::ApiError;
use rate_limit::{Client, RateLimit};
use signer_queue::SignerQueue;
use telemetry::{Metrics, Telemetry};
use tokens::AccessTokens;

/// How long what is still at work after the end may take.
const END_TIME: Duration = Duration::from_secs(2);
/// Connections to the database for reads.
const READERS: usize = 2;
/// Memory for long bodies under way, at least.
const ROOM: usize = 128 << 20;

/// What every request uses.
struct Service {
    signer: Option<SignerQueue>,
    archives: ArchivePool,
    disk: Option<DiskCheck>,
    tokens: Option<AccessTokens>,
    rate_limit: Option<RateLimit>,
    metrics: Metrics,
    shelf_life: i64,
    timeout: Duration,
    max_body: usize,
    /// Room for long bodies, in KiB.
    room: Semaphore,
    room_kib: u32,
    long_evaluations: Semaphore,
}

impl Service {
    /// Counts a request against the rate limit.
    fn count(&self, client: Client) -> Result<(), ApiError> {
        let counted = self.rate_limit.as_ref().map_or(Ok(()), |limit| limit.take(client));
        counted.inspect_err(|_seconds| self.metrics.limited()).map_err(ApiError::TooMany)
    }

    fn new(
        options: &Options,
        tokens: Option<AccessTokens>,
        signer: Option<SignerQueue>,
        archives: ArchivePool,
        metrics: Metrics,
    ) -> Self {
        let room_kib = u32::try_from(ROOM.max(options.max_body.saturating_mul(2)) / 1024).unwrap_or(u32::MAX >> 4);
        Self {
            disk: (signer.is_some() && options.database.is_none()).then(|| DiskCheck::of(&options.state)),
            signer,
            archives,
            tokens,
            rate_limit: options.rate.map(RateLimit::new),
            metrics,
            shelf_life: options.shelf_life,
            timeout: options.timeout,
            max_body: options.max_body,
            room: Semaphore::new(usize::try_from(room_kib).unwrap_or(usize::MAX >> 4)),
            room_kib,
            long_evaluations: Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from)),
        }
    }
}

/// Serves until SIGTERM or SIGINT; requests under way are answered first.
pub fn serve(mut options: Options) -> Result<(), ServeError> {
    let local = options.listen.ip().to_canonical().is_loopback();
    if !local && options.tokens.is_none() {
        return Err(ServeError::Open(options.listen));
    }
    if !local && options.attest && options.base_url.is_none() {
        return Err(ServeError::BaseUrl(options.listen));
    }
    let tokens = options.tokens.as_deref().map(AccessTokens::read).transpose()?;
    let acceptor = options.tls.as_ref().map(|(chain, key)| tls::acceptor(chain, key)).transpose()?;
    let refused = |source| ServeError::Listen { address: options.listen, source };
    let listener = std::net::TcpListener::bind(options.listen).map_err(refused)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let issuer = options.attest.then(|| instance::open(&options, address)).transpose()?;
    let archive = || Archive::open(&options.state, options.database.as_deref());
    let archives = (0..READERS).map(|_| archive()).collect::<Result<Vec<_>, _>>()?;
    let identity = issuer.as_ref().map(|issuer| issuer.identity().clone());
    let attesting = issuer.map(|issuer| Ok::<_, IssuerError>((issuer, archive()?))).transpose()?;

    let sink = std::mem::replace(&mut options.sink, Box::new(std::io::sink()));
    let id = identity.as_ref().map_or("", |identity| &identity.id);
    let (telemetry, metrics) = Telemetry::start(options.log, sink, options.otlp.as_ref(), id)?;
    announce(&options, address, identity.as_ref());
    let signer = attesting.map(|(issuer, archive)| SignerQueue::open(issuer, archive, metrics.clone()));
    let (signer, signer_threads) = signer.transpose()?.unzip();
    let (pool, mut threads) = ArchivePool::open(archives, &metrics)?;
    threads.extend(signer_threads.into_iter().flatten());
    let service = Arc::new(Service::new(&options, tokens, signer, pool, metrics.clone()));

    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        let (listener, end) = (TcpListener::from_std(listener)?, connections::End::awaited()?);
        let routes = router::router(service);
        connections::run(routes, &metrics, listener, acceptor, end, options.timeout).await;
        Ok::<_, std::io::Error>(())
    });
    // Drops what outlived the grace, so that the threads below see their last sender go.
    runtime.shutdown_timeout(END_TIME);
    threads.into_iter().for_each(|thread: JoinHandle<()>| drop(thread.join()));
    telemetry.end();
    Ok(ended?)
}

fn announce(options: &Options, address: SocketAddr, identity: Option<&Identity>) {
    let url = format!("{}://{address}", if options.tls.is_some() { "https" } else { "http" });
    let Some(identity) = identity else {
        tracing::info!(event = "listening", address = url, attestation = "off");
        return;
    };
    tracing::info!(event = "listening", address = url, instance = identity.id, url = identity.url());
    if options.base_url.is_none() && instance::port(identity.url()) != address.port() {
        let why = "attestations name a port that this service does not listen on: give `--base-url`";
        tracing::warn!(event = "base_url", url = identity.url(), why);
    }
}

#[cfg(test)]
impl Service {
    /// One that signs nothing and gives an answer little time.
    fn idle(state: &std::path::Path) -> Arc<Self> {
        let options = Options {
            listen: ([127, 0, 0, 1], 0).into(),
            state: state.to_owned(),
            database: None,
            attest: false,
            instance: None,
            base_url: None,
            shelf_life: 900,
            tokens: None,
            tls: None,
            rate: None,
            max_body: 1 << 20,
            timeout: Duration::from_millis(500),
            otlp: None,
            log: Style::Text,
            sink: Box::new(std::io::sink()),
        };
        let metrics = Metrics::default();
        let archive = Archive::open(state, None).unwrap();
        let pool = ArchivePool::open(vec![archive], &metrics).unwrap().0;
        Arc::new(Self::new(&options, None, None, pool, metrics))
    }
}
