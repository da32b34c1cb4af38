//! `writ serve`: evaluations and attestations over HTTP/1.1.
//!
//! Owns the routes and everything around them: tokens, limits, time, log, metrics, spans. Refuses to listen beyond loopback without
//! tokens, and to answer a verdict without its attestation where it attests. Invariant: an attestation that was answered is durable
//! and can be fetched by its URL. Pages: `docs/service.md`, `spec/attestation.md`.

mod answer;
mod disk;
mod evaluate;
mod listen;
mod log;
mod metrics;
mod otlp;
mod rate_limit;
mod reader;
mod route;
mod signer_queue;
mod span;
pub(crate) mod tokens;

use std::io::Write;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::{Method, Request};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;
use writ_core::Timestamp;
use writ_engine::archive::Archive;
use writ_engine::notary::{Notary, NotaryError};
use writ_evidence::attestation::is_instance;
use writ_store::instance::{DatabaseError, Identity};

pub use log::Style;
pub use route::OPENAPI;
pub use tokens::TokenError;

use answer::{Refusal, Reply};
use disk::Disk;
use log::{Field, Log};
use metrics::Metrics;
use otlp::Collector;
use rate_limit::{Client, RateLimit};
use reader::Reader;
use route::Route;
use signer_queue::SignerQueue;
use span::{Parent, Spans, Trail};
use tokens::AccessTokens;

/// How long a body may take.
const BODY_TIME: Duration = Duration::from_secs(15);
/// How long the database may take before the service calls itself unwell.
const HEALTH_TIME: Duration = Duration::from_secs(2);
/// Connections to the database for reads.
const READERS: usize = 2;
/// Memory for long bodies under way, at least.
const ROOM: usize = 128 << 20;
/// Most spans that wait for the collector.
const SPANS: usize = 4096;

/// How to serve.
pub struct Options {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The state folder: keys, and the database unless there is another.
    pub state: PathBuf,
    /// `postgres://…`
    pub database: Option<String>,
    /// Whether verdicts are attested.
    pub attest: bool,
    /// The instance's name, which holds from its first start on.
    pub instance: Option<String>,
    /// Scheme, host and port that its attestations are found at.
    pub base_url: Option<String>,
    /// How long a verdict holds, in seconds.
    pub shelf_life: i64,
    /// The file of access tokens.
    pub tokens: Option<PathBuf>,
    /// The certificate chain and its key.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Requests a second of each token or peer.
    pub rate: Option<NonZeroU32>,
    /// Largest body, in bytes.
    pub max_body: usize,
    /// How long an answer may take.
    pub timeout: Duration,
    /// Where spans go: an OTLP endpoint.
    pub otlp: Option<String>,
    /// How the log looks.
    pub log: Style,
    /// Where it goes.
    pub sink: Box<dyn Write + Send>,
}

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Anybody could ask.
    #[error("{0} is not loopback: give `--token-file`, so that not everybody who reaches it can ask")]
    Open(SocketAddr),
    /// Nobody could find the attestations.
    #[error("{0} is not loopback: give `--base-url`, where others reach it")]
    BaseUrl(SocketAddr),
    /// Not an endpoint that spans can be sent to.
    #[error(
        "`{0}` is no OTLP endpoint: write `http://127.0.0.1:4318`; a name or https goes through a collector on this machine"
    )]
    Otlp(String),
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The system gave no threads or signals.
    #[error("cannot start: {0}")]
    Start(#[from] std::io::Error),
    /// The tokens.
    #[error(transparent)]
    Tokens(#[from] TokenError),
    /// The certificate or its key.
    #[error("{path} cannot be used for TLS: {why}")]
    Tls {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Keys or database.
    #[error(transparent)]
    Notary(#[from] NotaryError),
}

impl ServeError {
    /// Whether other arguments would help.
    pub const fn is_usage(&self) -> bool {
        matches!(self, Self::Open(_) | Self::BaseUrl(_) | Self::Otlp(_))
    }
}

/// What every request uses.
struct Service {
    signer: Option<SignerQueue>,
    reader: Reader,
    disk: Option<Disk>,
    tokens: Option<AccessTokens>,
    rate_limit: Option<RateLimit>,
    metrics: Metrics,
    spans: Option<Spans>,
    log: Log,
    shelf_life: i64,
    timeout: Duration,
    max_body: usize,
    /// Room for long bodies, in KiB.
    room: Semaphore,
    room_kib: u32,
    /// Long evaluations at a time.
    judges: Semaphore,
}

impl Service {
    /// Counts a request against the rate limit.
    fn count(&self, client: Client) -> Result<(), Refusal> {
        let counted = self.rate_limit.as_ref().map_or(Ok(()), |limit| limit.take(client));
        counted.inspect_err(|_seconds| self.metrics.limited()).map_err(Refusal::TooMany)
    }
}

/// Serves until SIGTERM or SIGINT; requests under way are answered first.
pub fn serve(options: Options) -> Result<(), ServeError> {
    let local = options.listen.ip().to_canonical().is_loopback();
    if !local && options.tokens.is_none() {
        return Err(ServeError::Open(options.listen));
    }
    if !local && options.attest && options.base_url.is_none() {
        return Err(ServeError::BaseUrl(options.listen));
    }
    let collector = options.otlp.as_ref().map(|otlp| Collector::of(otlp).ok_or_else(|| ServeError::Otlp(otlp.clone())));
    let collector = collector.transpose()?;
    let tokens = options.tokens.as_deref().map(AccessTokens::read).transpose()?;
    let acceptor = options.tls.as_ref().map(|(chain, key)| listen::tls(chain, key)).transpose()?;
    let refused = |source| ServeError::Listen { address: options.listen, source };
    let listener = std::net::TcpListener::bind(options.listen).map_err(refused)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let notary = options.attest.then(|| notary(&options, address)).transpose()?;
    let archive = || Archive::open(&options.state, options.database.as_deref());
    let archives = (0..READERS).map(|_| archive()).collect::<Result<Vec<_>, _>>()?;
    let identity = notary.as_ref().map(|notary| notary.identity().clone());
    let strayed =
        identity.as_ref().filter(|identity| options.base_url.is_none() && port(identity.url()) != address.port());
    let strayed = strayed.map(|identity| identity.url().to_owned());
    let attesting = notary.map(|notary| Ok::<_, NotaryError>((notary, archive()?))).transpose()?;

    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (log, log_thread) = Log::open(options.log, options.sink)?;
    let (metrics, end) = (Metrics::default(), log.clone());
    announce(&log, address, acceptor.is_some(), identity.as_ref());
    if let Some(url) = &strayed {
        let why = "attestations name a port that this service does not listen on: give `--base-url`";
        log.event("base_url", &[("url", Field::Text(url)), ("why", Field::Text(why))]);
    }
    let instance = identity.map_or(String::new(), |identity| identity.id);
    let signer = attesting.map(|(notary, archive)| SignerQueue::open(notary, archive, metrics.clone(), log.clone()));
    let (signer, signer_threads) = signer.transpose()?.unzip();
    let (reader, mut threads) = Reader::open(archives, &metrics, &log)?;
    threads.extend(signer_threads.into_iter().flatten());
    let (spans, exporter) = collector.map(|to| exporter(&runtime, to, instance, &metrics, &log)).unzip();
    let room_kib = u32::try_from(ROOM.max(options.max_body.saturating_mul(2)) / 1024).unwrap_or(u32::MAX >> 4);
    let service = Arc::new(Service {
        disk: signer.is_some().then(|| options.database.is_none().then(|| Disk::of(&options.state))).flatten(),
        signer,
        reader,
        tokens,
        rate_limit: options.rate.map(RateLimit::new),
        metrics,
        spans,
        log,
        shelf_life: options.shelf_life,
        timeout: options.timeout,
        max_body: options.max_body,
        room: Semaphore::new(usize::try_from(room_kib).unwrap_or(usize::MAX >> 4)),
        room_kib,
        judges: Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from)),
    });
    let ended = runtime.block_on(async {
        let (listener, end) = (TcpListener::from_std(listener)?, listen::End::awaited()?);
        listen::run(service, listener, acceptor, end, options.timeout).await;
        // The connections are gone and with them the last who sent spans.
        if let Some(exporter) = exporter {
            drop(timeout(HEALTH_TIME, exporter).await);
        }
        Ok::<_, std::io::Error>(())
    });
    // Drops what outlived the grace, so that the threads below see their last sender go.
    runtime.shutdown_timeout(HEALTH_TIME);
    threads.into_iter().for_each(|thread: JoinHandle<()>| drop(thread.join()));
    end.end();
    drop(log_thread.join());
    Ok(ended?)
}

/// The notary of this instance, able to sign.
fn notary(options: &Options, address: SocketAddr) -> Result<Notary, NotaryError> {
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let url = options.base_url.clone().unwrap_or_else(|| format!("{scheme}://{address}"));
    let url = url.trim_end_matches('/').to_owned();
    if !is_instance(&url) {
        return Err(DatabaseError::Url(url).into());
    }
    let first = match &options.instance {
        Some(id) => Identity { id: id.clone(), url: Some(url.clone()) },
        None => Identity { url: Some(url.clone()), ..Notary::newcomer()? },
    };
    let mut notary = Notary::open(&options.state, options.database.as_deref(), Some(first))?;
    let kept = notary.identity().clone();
    if let Some(wanted) = options.instance.as_ref().filter(|wanted| **wanted != kept.id) {
        return Err(DatabaseError::OtherInstance {
            kept: kept.id.clone(),
            url: kept.url().to_owned(),
            wanted: wanted.clone(),
        }
        .into());
    }
    if options.base_url.is_some() || kept.url.is_none() {
        notary.move_to(&url)?;
    }
    // Makes the first key now: what is wrong with keys or database shows before anybody asks.
    notary.registry(Timestamp::now())?;
    Ok(notary)
}

/// The port of a base URL.
fn port(url: &str) -> u16 {
    let named = url.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    named.unwrap_or(if url.starts_with("https:") { 443 } else { 80 })
}

fn announce(log: &Log, address: SocketAddr, tls: bool, identity: Option<&Identity>) {
    let address = format!("{}://{address}", if tls { "https" } else { "http" });
    let mut fields = vec![("address", Field::Text(&address))];
    match identity {
        Some(identity) => {
            fields.push(("instance", Field::Text(&identity.id)));
            fields.push(("url", Field::Text(identity.url())));
        }
        None => fields.push(("attestation", Field::Text("off"))),
    }
    log.event("listening", &fields);
}

fn exporter(
    runtime: &Runtime,
    collector: Collector,
    instance: String,
    metrics: &Metrics,
    log: &Log,
) -> (Spans, tokio::task::JoinHandle<()>) {
    let (sender, waiting) = mpsc::channel(SPANS);
    let work = otlp::work(collector, instance, waiting, metrics.clone(), log.clone());
    (Spans::new(sender, metrics.clone()), runtime.spawn(work))
}

/// Answers one request, and notes that it did.
async fn handle(service: &Arc<Service>, peer: u128, request: Request<Incoming>) -> Reply {
    let start = Instant::now();
    let (uri, method) = (request.uri().clone(), known(request.method()));
    let parent = service.spans.as_ref().and_then(|_| Parent::of(request.headers()));
    let route = Route::of(uri.path());
    let mut trail = Trail::new(service.spans.is_some());
    let answered = timeout(service.timeout, answered(service, route, request, peer, &mut trail)).await;
    let reply = answered.unwrap_or(Err(Refusal::Timeout)).unwrap_or_else(|refusal| refusal.reply());
    let (end, status) = (Instant::now(), reply.status().as_u16());
    let route = route.map_or("none", Route::name);
    service.metrics.answered(route, method, status, end.saturating_duration_since(start));
    let micros = u64::try_from(end.saturating_duration_since(start).as_micros()).unwrap_or(u64::MAX);
    let fields = [
        ("method", Field::Text(method)),
        ("route", Field::Text(route)),
        ("status", Field::Number(status.into())),
        ("micros", Field::Number(micros)),
        ("verdict", Field::Text(trail.verdict.map_or("-", |(_, verdict)| verdict))),
    ];
    service.log.event("answered", &fields);
    if let Some(spans) = &service.spans {
        spans.send(span::Request { route, method, status, start, end, trail, parent });
    }
    reply
}

async fn answered(
    service: &Service,
    route: Option<Route<'_>>,
    request: Request<Incoming>,
    peer: u128,
    trail: &mut Trail,
) -> Result<Reply, Refusal> {
    if listen::head_bytes(&request) > listen::HEAD_BYTES {
        return Err(Refusal::Head(listen::HEAD_BYTES));
    }
    // A request that names no host, or two, means nobody in particular (RFC 9112, section 3.2).
    let hosts = request.headers().get_all(hyper::header::HOST).iter().count();
    if hosts > 1 || hosts == 0 && request.version() == hyper::Version::HTTP_11 {
        return Err(Refusal::Malformed("exactly one `Host` is needed".to_owned()));
    }
    let route = route.ok_or(Refusal::NotFound("no such route"))?;
    if !route.takes(request.method()) {
        return Err(Refusal::Method(route.allow()));
    }
    match route {
        Route::Evaluate => evaluate::answer(service, request, peer, trail).await,
        Route::Health => route::read(service, route, request.headers()).await,
        Route::OpenApi | Route::Metrics | Route::Registry | Route::Attestation(_) => {
            service.count(Client::Reading(peer))?;
            route::read(service, route, request.headers()).await
        }
    }
}

/// The method as it is counted: nobody can make up labels.
fn known(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        "PATCH" => "PATCH",
        _ => "other",
    }
}
