//! Listeners served until the run ends: one thread, one runtime.
//!
//! Owns the thread. Refuses to begin with rules that cannot be kept. Invariant: when [`Serving::end`] returns, every connection is
//! closed and every record is kept, or the error says that one is not.

mod handed;

use std::collections::HashSet;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::context::Context;
use crate::dns::{self, Answer, Packet, Question};
use crate::host::HostName;
use crate::record::{Entry, Reporter, Road, Sink, SinkError, Whose};
use crate::refusal::Refusal;
use crate::relay::{self, Connection};
use crate::resolve::Resolve;
use crate::rules::{Rules, RulesError};
use crate::secret::{SecretError, SecretValue, Secrets};
use crate::tls::authority::Authority;
pub use handed::Hand;
use handed::Handed;
use handed::handed;

/// Most connections of which it is not known yet who asks; more wait.
const COMING: usize = 256;
/// How long nothing is accepted after that failed: descriptors may have run out.
const PAUSE: Duration = Duration::from_millis(50);
/// Most names of refused questions that are recorded one by one.
const NAMES: usize = 1024;

/// Sockets inside the run's network, handed out.
#[derive(Debug, Default)]
pub struct Listeners {
    /// The proxy's port.
    pub proxy: Option<TcpListener>,
    /// Ports for programs that know no proxy: [`Rules::listening_ports`].
    pub direct: Vec<Direct>,
    /// The name server's socket.
    pub dns: Option<UdpSocket>,
}

/// A port for programs that know no proxy.
#[derive(Debug)]
pub struct Direct {
    /// The port that programs mean when they connect here.
    pub port: u16,
    /// Its listener, on every address.
    pub listener: TcpListener,
}

/// What a run may reach, and with what.
pub struct Setup {
    /// What may be reached.
    pub rules: Rules,
    /// A value for each secret of the rules.
    pub secrets: Vec<SecretValue>,
    /// Who vouches for terminated hosts; needed where [`Rules::needs_authority`] says so.
    pub authority: Option<Arc<Authority>>,
    /// Who finds addresses.
    pub resolver: Arc<dyn Resolve>,
    /// Authorities to trust beside the machine's, PEM.
    pub extra_authorities: Vec<u8>,
    /// Where records go.
    pub sink: Sink,
}

/// A run that cannot be served.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum ServeError {
    #[error(transparent)]
    Rules(#[from] RulesError),
    #[error(transparent)]
    Secrets(#[from] SecretError),
    #[error("the rules terminate hosts, and there is no authority for it")]
    NoAuthority,
    #[error("the extra authorities are no PEM")]
    Authorities,
    #[error("the egress proxy cannot be started: {0}")]
    Start(#[from] io::Error),
}

/// Listeners that are being served.
#[derive(Debug)]
pub struct Serving {
    ended: CancellationToken,
    hand: Hand,
    thread: Option<JoinHandle<Result<(), SinkError>>>,
}

/// Serves `listeners` on a thread of its own. On return they are served.
pub fn serve(listeners: Listeners, setup: Setup) -> Result<Serving, ServeError> {
    serve_all(listeners, setup, None)
}

/// The same for several runs, whose connections are told apart by who has them.
pub fn serve_all(listeners: Listeners, setup: Setup, whose: Option<Whose>) -> Result<Serving, ServeError> {
    setup.rules.check()?;
    if setup.rules.needs_authority() && setup.authority.is_none() {
        return Err(ServeError::NoAuthority);
    }
    let secrets = Secrets::new(&setup.rules.secrets, setup.secrets)?;
    let extra = CertificateDer::pem_slice_iter(&setup.extra_authorities).collect::<Result<Vec<_>, _>>();
    let extra = extra.map_err(|_error| ServeError::Authorities)?;
    for listener in listeners.proxy.iter().chain(listeners.direct.iter().map(|direct| &direct.listener)) {
        listener.set_nonblocking(true)?;
    }
    listeners.dns.iter().try_for_each(|socket| socket.set_nonblocking(true))?;
    let ended = CancellationToken::new();
    let reporter = Reporter::new(setup.sink, ended.clone());
    let shared = (reporter, ended.clone(), whose);
    let context = Context::new(setup.rules, secrets, setup.authority, setup.resolver, extra, shared);
    let (started, wait) = mpsc::sync_channel(1);
    let (hand, streams) = Hand::new();
    let thread =
        thread::Builder::new().name("egress".to_owned()).spawn(move || run(listeners, streams, context, &started))?;
    let serving = Serving { ended, hand, thread: Some(thread) };
    match wait.recv() {
        Ok(Ok(())) => Ok(serving),
        Ok(Err(error)) => Err(error.into()),
        Err(_gone) => Err(io::Error::other("its thread ended").into()),
    }
}

impl Serving {
    /// Whether it still serves: a sink that fails ends it.
    pub fn is_serving(&self) -> bool {
        !self.ended.is_cancelled()
    }

    /// By which connections come that no listener takes.
    pub fn hand(&self) -> Hand {
        self.hand.clone()
    }

    /// Ends every connection, and returns when each has its record.
    pub fn end(mut self) -> Result<(), SinkError> {
        self.finish()
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        self.ended.cancel();
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|_panic| Err(SinkError("the proxy's thread panicked".to_owned())))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Who wants to know calls `end`.
        self.finish().ok();
    }
}

/// The thread.
fn run(
    listeners: Listeners,
    streams: UnboundedReceiver<Handed>,
    context: Context,
    started: &mpsc::SyncSender<io::Result<()>>,
) -> Result<(), SinkError> {
    let context = Arc::new(context);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            started.send(Err(error)).ok();
            return Ok(());
        }
    };
    runtime.block_on(accept(listeners, streams, &context, started));
    // A name that is still being looked up is waited for by nobody.
    runtime.shutdown_background();
    match Arc::try_unwrap(context) {
        Ok(context) => context.reporter.finish(),
        Err(_shared) => Err(SinkError("a connection outlived the run".to_owned())),
    }
}

async fn accept(
    listeners: Listeners,
    streams: UnboundedReceiver<Handed>,
    context: &Arc<Context>,
    started: &mpsc::SyncSender<io::Result<()>>,
) {
    let (tasks, slots) = (TaskTracker::new(), Arc::new(Semaphore::new(COMING)));
    let begun = begin(listeners, context, &tasks, &slots);
    tasks.spawn(handed(streams, Arc::clone(context), tasks.clone(), slots));
    // The caller waits for it.
    started.send(begun).ok();
    context.ended.cancelled().await;
    tasks.close();
    tasks.wait().await;
}

fn begin(listeners: Listeners, context: &Arc<Context>, tasks: &TaskTracker, slots: &Arc<Semaphore>) -> io::Result<()> {
    if let Some(listener) = listeners.proxy {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        tasks.spawn(listen(listener, None, Arc::clone(context), tasks.clone(), Arc::clone(slots)));
    }
    for direct in listeners.direct {
        let listener = tokio::net::TcpListener::from_std(direct.listener)?;
        tasks.spawn(listen(listener, Some(direct.port), Arc::clone(context), tasks.clone(), Arc::clone(slots)));
    }
    if let Some(socket) = listeners.dns {
        let socket = tokio::net::UdpSocket::from_std(socket)?;
        tasks.spawn(names(socket, Arc::clone(context)));
    }
    Ok(())
}

/// Takes connections at one port; `port` is the one programs mean, `None` the proxy's own.
async fn listen(
    listener: tokio::net::TcpListener,
    port: Option<u16>,
    context: Arc<Context>,
    tasks: TaskTracker,
    slots: Arc<Semaphore>,
) {
    let ended = context.ended.clone();
    let take = async {
        loop {
            let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            tasks.spawn(connection(stream, port, Arc::clone(&context), slot));
        }
    };
    tokio::select! {
        () = ended.cancelled() => {}
        () = take => {}
    }
}

async fn connection(
    stream: tokio::net::TcpStream,
    port: Option<u16>,
    context: Arc<Context>,
    slot: OwnedSemaphorePermit,
) {
    // Answers are written as they come; where the socket cannot be told, they only come later.
    stream.set_nodelay(true).ok();
    let asker = match stream.peer_addr() {
        Ok(peer) => context.asker(peer, true).await,
        Err(_) => None,
    };
    match port {
        None => {
            let work = async |connection: Arc<Connection>| relay::proxy(&connection, stream).await;
            Connection::serve(context, (Road::Connect, asker), slot, work).await;
        }
        Some(port) => {
            let road = if port == 80 { Road::Http } else { Road::Tls };
            let work = async |connection: Arc<Connection>| relay::direct(&connection, stream, port).await;
            Connection::serve(context, (road, asker), slot, work).await;
        }
    }
}

/// Answers questions for names. Each name that is refused is recorded once for each who asks; of very many, the first.
async fn names(socket: tokio::net::UdpSocket, context: Arc<Context>) {
    let mut refused: HashSet<(Option<u64>, Vec<u8>)> = HashSet::new();
    let mut more = 0_u64;
    let mut packet = vec![0; 4096];
    loop {
        let received = tokio::select! {
            () = context.ended.cancelled() => break,
            received = socket.recv_from(&mut packet) => received,
        };
        // An error is about an earlier answer that nobody took.
        let Ok((length, from)) = received else { continue };
        let answer = match dns::read(packet.get(..length).unwrap_or_default()) {
            Packet::Ignored => continue,
            Packet::Odd(answer) => answer,
            Packet::Question(question) => match known(&context, &question) {
                Ok(answer) => question.answered(answer),
                Err((refusal, host)) => {
                    let asker = context.asker(from, false).await;
                    let asked = (asker, question.name.clone());
                    if refused.len() >= NAMES && !refused.contains(&asked) {
                        more += 1;
                    } else if refused.insert(asked) {
                        record_name(&context, refusal, host, (1, asker)).await;
                    }
                    question.answered(Answer::NoName)
                }
            },
        };
        send(&socket, &answer, from).await;
    }
    if more > 0 {
        record_name(&context, Refusal::Name("more names were asked for than are recorded"), None, (more, None)).await;
    }
}

async fn send(socket: &tokio::net::UdpSocket, answer: &[u8], to: SocketAddr) {
    // Who does not get an answer asks again.
    socket.send_to(answer, to).await.ok();
}

/// What is said of a name.
fn known(context: &Context, question: &Question) -> Result<Answer, (Refusal, Option<String>)> {
    let host = HostName::read(&question.name).map_err(|refusal| (refusal, None))?;
    if host.as_str() == "localhost" {
        return Ok(Answer::Address(std::net::Ipv4Addr::LOCALHOST));
    }
    if host.address().is_some() {
        return Ok(Answer::NoName);
    }
    context.rules.host(&host).map_err(|refusal| (refusal, Some(host.to_string())))?;
    Ok(context.table.address(&host).map_or(Answer::Failed, Answer::Address))
}

async fn record_name(
    context: &Context,
    refusal: Refusal,
    host: Option<String>,
    (questions, asker): (u64, Option<u64>),
) {
    let entry = Entry::new(context.reporter.next_id(), Road::Dns);
    entry.note(|record| {
        record.host = host;
        record.requests = questions;
        record.asker = asker;
    });
    // A reporter that fails has ended everything already.
    context.reporter.close(entry.last(&Err(refusal))).await.ok();
}
