//! Outside: what a confined command's caller does while it runs.
//!
//! Owns a run from its preparation to its end. Refuses to start what cannot be held. Its invariant: however `run` ends, no process of the
//! run is left, and with the supervisor's own death (even by `SIGKILL`) the kernel ends them.

mod alone;
mod environment;
mod group;
mod identity;
mod prepare;
mod reserved;
mod shared;
mod temporary;
mod watch;

use std::ffi::OsString;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};

use writ_policy::Grant;

use crate::confinement::{Confinement, Network};
use crate::features::{Features, Layer};
use crate::inside;
use crate::message::{self, Failure, Message, Step};
use crate::plan::PlanError;
use crate::sys::process::{Child, Forked, clone};
use crate::sys::signal::{Ignored, Mask};
pub use alone::{close_to_others, detach};
use group::Group;
pub use identity::STAND_IN;
use reserved::Names;
pub use reserved::sweep;
pub use shared::{Book, Joined, Lease, Shared, listen};
pub use watch::End;

/// What is run.
#[derive(Debug)]
pub struct Command {
    /// Its name, sought in `PATH`, or its path.
    pub program: OsString,
    /// The program itself, where it is open already; then `program` is only what it is called.
    pub descriptor: Option<OwnedFd>,
    /// What follows the program.
    pub arguments: Vec<OsString>,
    /// Where its standard output goes instead of the caller's.
    pub output: Option<OwnedFd>,
    /// A descriptor that it gets beside the first three, under its own number.
    pub kept: Option<OwnedFd>,
    /// Namespaces of a [`Shared`] to run in.
    pub shared: Option<Joined>,
}

impl Command {
    /// A program by its name or path.
    pub fn new(program: impl Into<OsString>, arguments: impl IntoIterator<Item = OsString>) -> Self {
        Self {
            program: program.into(),
            descriptor: None,
            arguments: arguments.into_iter().collect(),
            output: None,
            kept: None,
            shared: None,
        }
    }
}

/// Sockets that listen inside the sandbox, and are answered outside. To be dropped when the run ends: they keep its network alive.
#[derive(Debug, Default)]
pub struct Listeners {
    /// For programs that know a proxy.
    pub http: Option<TcpListener>,
    /// For those that do not, in the order of [`crate::Ports::direct`].
    pub direct: Vec<TcpListener>,
    /// For names.
    pub dns: Option<UdpSocket>,
    /// Where namespaces are shared, what stands for the run's own mounts: all its processes have them, and no others.
    pub mounts: Option<OwnedFd>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How the command itself ended.
    pub end: End,
    /// From the start of its process.
    pub took: Duration,
    /// What held the limit on memory, if there was one.
    pub memory: Option<MemoryHeldBy>,
}

/// What holds a limit on memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryHeldBy {
    /// A control group: all processes together.
    Group,
    /// A limit of each process, whose sum nothing limits.
    EachProcess,
}

/// Why a run did not take place.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The confinement cannot be carried out here.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The command would have been uid 0.
    #[error("the command would run as root, who owns `{}`", .0.display())]
    Root(std::path::PathBuf),
    /// Only root can become somebody else.
    #[error("only root can run a command as another user")]
    OtherUser,
    /// This kernel or container does not allow a layer.
    #[error("{0} cannot be had here")]
    Layer(Layer),
    /// A step inside failed.
    #[error("could not {}: {}{}", .step.words(), .error, .about.as_ref().map(|about| format!(" (`{about}`)")).unwrap_or_default())]
    Inside {
        /// Which.
        step: Step,
        /// What the kernel said.
        error: io::Error,
        /// Of what.
        about: Option<String>,
    },
    /// The program could not be executed.
    #[error("could not execute `{}`: {error}", program.display())]
    Program {
        /// Which.
        program: OsString,
        /// What the kernel said.
        error: io::Error,
    },
    /// What should answer outside could not.
    #[error("the caller did not get ready: {0}")]
    Caller(io::Error),
    /// The supervisor could not do its part.
    #[error("could not {0}: {1}")]
    Outside(&'static str, io::Error),
    /// The first process inside ended without a word.
    #[error("the sandbox ended before the command began")]
    Silent,
}

impl RunError {
    /// The code with which a shell would end: 127 for a program that is not there, 126 for one that cannot be executed, else 125.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Program { error, .. } if error.kind() == io::ErrorKind::NotFound => 127,
            Self::Program { .. } => 126,
            Self::Plan(_)
            | Self::Root(_)
            | Self::OtherUser
            | Self::Layer(_)
            | Self::Inside { .. }
            | Self::Caller(_)
            | Self::Outside(..)
            | Self::Silent => 125,
        }
    }
}

fn outside(doing: &'static str) -> impl FnOnce(Errno) -> RunError {
    move |error| RunError::Outside(doing, error.into())
}

/// Who has to own what the command may write, if not the caller.
pub fn owner(confinement: &Confinement, features: &Features) -> Result<Option<(u32, u32)>, RunError> {
    identity::of(confinement, features).map(|who| (who.other && !who.mapped).then_some((who.uid, who.gid)))
}

/// The host, as far as it matters to a run.
#[derive(Clone, Copy, Debug)]
pub struct Host<'a> {
    /// What it allows.
    pub features: &'a Features,
    /// A folder for what outlives a supervisor that was killed. Nothing confined may write there.
    pub state: &'a Path,
}

/// What lies in a pipe now, up to `most` bytes: who waits for its end waits for everybody who has it.
pub fn read_now(pipe: impl AsFd, most: usize) -> io::Result<Vec<u8>> {
    let flags = fcntl_getfl(&pipe)?;
    fcntl_setfl(&pipe, flags | OFlags::NONBLOCK)?;
    let mut bytes = vec![0; most];
    match rustix::io::read(&pipe, &mut bytes) {
        Ok(length) => bytes.truncate(length),
        Err(Errno::AGAIN) => bytes.clear(),
        Err(error) => return Err(error.into()),
    }
    Ok(bytes)
}

/// Runs a command in a confinement and waits for its end. `ready` gets the listening sockets before the command starts; what it gives is
/// kept until the run has ended. Whoever has no grant cannot call it; that the grant covers this run is for the holder to have seen, who
/// knows what else it was granted with.
pub fn run<T>(
    _grant: &Grant,
    confinement: &Confinement,
    command: Command,
    host: Host<'_>,
    ready: impl FnOnce(Listeners) -> io::Result<T>,
) -> Result<Outcome, RunError> {
    carry_out(confinement, command, host, ready)
}

/// The same without a grant, for this crate's own programs.
pub fn carry_out<T>(
    confinement: &Confinement,
    command: Command,
    host: Host<'_>,
    ready: impl FnOnce(Listeners) -> io::Result<T>,
) -> Result<Outcome, RunError> {
    let program = command.program.clone();
    let forwarded = Mask::of(watch::FORWARDED);
    let ignored = Ignored::now();
    // Held back from here on, so that threads the caller starts in `ready` leave them to this one.
    let before = forwarded.block().map_err(outside("hold signals back"))?;
    let restore = Restore(before);
    let mut names = Names::begin(host.state).map_err(|error| RunError::Outside("keep the record of names", error))?;
    let (prepared, mut orders) = prepare::prepare(confinement, command, host.features, before, ignored)?;
    names.record(&orders.plan.reserved).map_err(|error| RunError::Outside("record reserved names", error))?;
    let signals = forwarded.descriptor().map_err(outside("receive signals"))?;
    let flags = SocketFlags::CLOEXEC;
    let group = Group::new(&confinement.limits, &host.features.cgroups)
        .map_err(|error| RunError::Outside("make a control group", error))?;
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).map_err(outside("make a socket"))?;
    let started = Instant::now();
    let sandbox = match clone(prepared.namespaces).map_err(outside("start a process in namespaces of its own"))? {
        Forked::Child => {
            drop(ours);
            match orders.join {
                None => inside::first(&mut orders, &theirs),
                Some(_) => inside::join(&mut orders, &theirs),
            }
        }
        Forked::Parent(child) => Sandbox::new(child),
    };
    drop(theirs);
    let sandbox = if orders.namespaces { sandbox } else { sandbox.ended_by(&ours)? };
    let plan = &orders.plan;
    group.join(sandbox.pid()).map_err(|error| RunError::Outside("enter the control group", error))?;
    if orders.namespaces && orders.join.is_none() {
        identity::map(sandbox.pid(), &prepared.identity)?;
    }
    message::send(&ours, Message::Mapped, &[]).map_err(outside("begin"))?;
    let explain = |failure| prepare::explain(failure, plan, &program);
    let (sandbox, listeners) = match &orders.join {
        None => (sandbox, await_ready(&ours, &confinement.network, explain)?),
        Some(_) => {
            let first = await_joined(&ours, explain)?;
            let listeners = await_mounts(&ours, explain)?;
            // It has done its part.
            drop(sandbox);
            (first, listeners)
        }
    };
    names.placed();
    let kept = ready(listeners).map_err(RunError::Caller)?;
    message::send(&ours, Message::Go, &[]).map_err(outside("begin"))?;
    let handle = await_started(&ours, explain)?;
    let deadline = confinement.limits.wall_time.map(|limit| started + Duration::from_millis(limit));
    let run = watch::Run { socket: &ours, signals: &signals, sandbox: &sandbox, command: handle, deadline };
    let ended = run.until_end(confinement.session);
    drop(sandbox);
    let memory = confinement.limits.memory.map(|_| group.holds_memory());
    drop(group);
    drop(kept);
    if orders.join.is_some() {
        names.hand_over();
    }
    drop(names);
    drop(restore);
    match ended {
        Ok(Ok(end)) => Ok(Outcome { end, took: started.elapsed(), memory }),
        Ok(Err(failure)) => Err(explain(failure)),
        Err(error) => Err(RunError::Outside("watch the command", error.into())),
    }
}

/// The signals that were held back before.
struct Restore(Mask);

impl Drop for Restore {
    fn drop(&mut self) {
        self.0.restore();
    }
}

/// The first process inside. Everything inside ends with this value.
pub struct Sandbox {
    child: Child,
    /// Without a namespace of processes: by its closing the first process ends the others, and itself.
    socket: Option<OwnedFd>,
}

impl Sandbox {
    fn new(child: Child) -> Self {
        Self { child, socket: None }
    }

    fn ended_by(mut self, socket: &OwnedFd) -> Result<Self, RunError> {
        self.socket = Some(socket.try_clone().map_err(|error| RunError::Outside("keep a socket", error))?);
        Ok(self)
    }

    fn pid(&self) -> Pid {
        self.child.pid
    }

    fn handle(&self) -> &OwnedFd {
        &self.child.handle
    }

    fn kill(&self) {
        // It may have ended by itself.
        match &self.socket {
            None => pidfd_send_signal(&self.child.handle, Signal::KILL).unwrap_or_default(),
            Some(socket) => shutdown(socket, Shutdown::Both).unwrap_or_default(),
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.kill();
        // In a namespace the kernel answers once every process of it is gone; without, the first process does.
        while let Err(Errno::INTR) = waitid(WaitId::PidFd(self.child.handle.as_fd()), WaitIdOptions::EXITED) {}
    }
}

/// Descriptors beside the word that the sandbox stands.
fn await_descriptors(socket: &OwnedFd, explain: impl Fn(Failure) -> RunError) -> Result<Vec<OwnedFd>, RunError> {
    let mut descriptors = Vec::new();
    let message = message::receive(socket, RecvFlags::empty(), |descriptor| descriptors.push(descriptor));
    match message.map_err(outside("hear from the sandbox"))? {
        Some(Message::Ready) => Ok(descriptors),
        Some(Message::Failed(failure)) => Err(explain(failure)),
        Some(_) | None => Err(RunError::Silent),
    }
}

fn await_mounts(socket: &OwnedFd, explain: impl Fn(Failure) -> RunError) -> Result<Listeners, RunError> {
    let mounts = await_descriptors(socket, explain)?.pop().ok_or(RunError::Silent)?;
    Ok(Listeners { mounts: Some(mounts), ..Listeners::default() })
}

fn await_ready(
    socket: &OwnedFd,
    network: &Network,
    explain: impl Fn(Failure) -> RunError,
) -> Result<Listeners, RunError> {
    let sockets = await_descriptors(socket, explain)?;
    let Network::Proxied(ports) = network else { return Ok(Listeners::default()) };
    let wanted = 1 + ports.direct.len() + usize::from(ports.dns.is_some());
    if sockets.len() != wanted {
        return Err(RunError::Silent);
    }
    let mut sockets = sockets.into_iter();
    let http = sockets.next().map(TcpListener::from);
    let direct = sockets.by_ref().take(ports.direct.len()).map(TcpListener::from).collect();
    Ok(Listeners { http, direct, dns: sockets.next().map(UdpSocket::from), mounts: None })
}

/// The first process, where another started it for this one.
fn await_joined(socket: &OwnedFd, explain: impl Fn(Failure) -> RunError) -> Result<Sandbox, RunError> {
    let mut handle = None;
    let message = message::receive(socket, RecvFlags::empty(), |descriptor| handle = Some(descriptor));
    match (message.map_err(outside("hear from the sandbox"))?, handle) {
        (Some(Message::Joined(pid)), Some(handle)) => {
            Ok(Sandbox::new(Child { pid: Pid::from_raw(pid).ok_or(RunError::Silent)?, handle }))
        }
        (Some(Message::Failed(failure)), _) => Err(explain(failure)),
        _ => Err(RunError::Silent),
    }
}

fn await_started(socket: &OwnedFd, explain: impl Fn(Failure) -> RunError) -> Result<OwnedFd, RunError> {
    let mut handle = None;
    let message = message::receive(socket, RecvFlags::empty(), |descriptor| handle = Some(descriptor));
    match (message.map_err(outside("hear from the sandbox"))?, handle) {
        (Some(Message::Started), Some(handle)) => Ok(handle),
        (Some(Message::Failed(failure)), _) => Err(explain(failure)),
        _ => Err(RunError::Silent),
    }
}
