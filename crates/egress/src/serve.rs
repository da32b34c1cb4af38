//! Listeners served until the run ends: one thread, one runtime.
//!
//! Owns the thread. Refuses to begin with rules that cannot be kept. Invariant: when [`Serving::end`] returns, every connection is
//! closed and every record is kept, or the error says that one is not.

mod handed;
mod names;

use std::io;
use std::net::{IpAddr, TcpListener, UdpSocket};
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
use crate::record::{Reporter, Road, Sink, SinkError, Whose};
use crate::relay::{self, Connection};
use crate::resolve::Resolve;
use crate::rules::{Rules, RulesError};
use crate::secret::{SecretError, SecretValue, Secrets};
use crate::tls::authority::Authority;
pub use handed::Hand;
use handed::{Handed, handed};
use names::Questions;

/// Most connections of which it is not known yet who asks; more wait.
const COMING: usize = 256;
/// How long nothing is accepted after that failed: descriptors may have run out.
const PAUSE: Duration = Duration::from_millis(50);

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
    let questions = Arc::new(Questions::default());
    let begun = begin(listeners, context, &tasks, &slots, &questions);
    tasks.spawn(handed(streams, Arc::clone(context), tasks.clone(), slots, Arc::clone(&questions)));
    // The caller waits for it.
    started.send(begun).ok();
    context.ended.cancelled().await;
    tasks.close();
    tasks.wait().await;
    questions.end(context).await;
}

fn begin(
    listeners: Listeners,
    context: &Arc<Context>,
    tasks: &TaskTracker,
    slots: &Arc<Semaphore>,
    questions: &Arc<Questions>,
) -> io::Result<()> {
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
        let (context, questions) = (Arc::clone(context), Arc::clone(questions));
        tasks.spawn(async move { names::serve(socket, &context, &questions).await });
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
            let meant = port.map(|port| Meant { port, address: stream.local_addr().ok().map(|local| local.ip()) });
            tasks.spawn(connection(stream, meant, Arc::clone(&context), slot));
        }
    };
    tokio::select! {
        () = ended.cancelled() => {}
        () = take => {}
    }
}

/// What a program that knows no proxy connected to.
#[derive(Clone, Copy, Debug)]
struct Meant {
    /// The port.
    port: u16,
    /// The address, where it is known.
    address: Option<IpAddr>,
}

/// Serves a connection; to the proxy's own port where none is meant.
async fn connection(
    stream: tokio::net::TcpStream,
    meant: Option<Meant>,
    context: Arc<Context>,
    slot: OwnedSemaphorePermit,
) {
    // Answers are written as they come; where the socket cannot be told, they only come later.
    stream.set_nodelay(true).ok();
    let asker = match stream.peer_addr() {
        Ok(peer) => context.asker(peer, true).await,
        Err(_) => None,
    };
    match meant {
        None => {
            let work = async |connection: Arc<Connection>| relay::proxy(&connection, stream).await;
            Connection::serve(context, (Road::Connect, asker), slot, work).await;
        }
        Some(Meant { port, address }) => {
            let road = if port == 80 { Road::Http } else { Road::Tls };
            let work = async |connection: Arc<Connection>| relay::direct(&connection, stream, (address, port)).await;
            Connection::serve(context, (road, asker), slot, work).await;
        }
    }
}
