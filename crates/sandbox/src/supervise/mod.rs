//! Outside: what a confined command's caller does while it runs.
//!
//! Owns a run from its preparation to its end. Refuses to start what cannot be held. Its invariant: however `run` ends, no process of the
//! run is left, and with the supervisor's own death (even by `SIGKILL`) the kernel ends them.

mod alone;
mod connected;
mod environment;
mod error;
mod group;
mod guard;
mod hand;
mod hear;
mod identity;
mod landing;
mod named;
mod noted;
mod prepare;
mod refusals;
mod reserved;
mod shared;
mod temporary;
mod unconnected;
mod watch;

use std::ffi::OsString;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};

use writ_policy::Grant;

use crate::confinement::{Confinement, Network, Shown};
use crate::features::Features;
use crate::inside::{self, Join, Orders, Target};
use crate::message::{self, Message};
use crate::sys::process::{Child, Forked, Stack, clone, close_here, run_within};
use crate::sys::signal::{Ignored, Mask};
use alone::Closed;
pub use alone::{COPY, become_reader, begin_closed, close_to_others, detach, is_open_to_others};
use connected::Sockets;
pub use connected::{Asked, Connected};
pub use environment::dropped;
pub use error::RunError;
use error::outside;
use group::Group;
pub use guard::Replaced;
use guard::{Guard, Mounts};
use hear::Hearing;
pub use identity::STAND_IN;
pub use noted::{Act, Noted, Use};
use prepare::Prepared;
use refusals::{Given, Seeing, Seen, Watch};
pub use refusals::{Observer, Refused, Told};
use reserved::Names;
pub use reserved::sweep;
pub use shared::{Awaited, Book, Lease, Shared, listen};
use shared::{Joined, Overlays};
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
    pub kept: Option<Arc<OwnedFd>>,
    /// Whether it is told which files it was refused, where the kernel can say so. It costs some microseconds for each file it names.
    pub watched: bool,
    /// Whether all paths that it uses are noted, too: for that it has to be watched, and each path costs more.
    pub noted: bool,
    /// Who is told of what it changes: for that it has to be watched.
    pub observer: Option<Observer>,
    /// Variables over those of the confinement: what is another in each run, and is kept nowhere.
    pub environment: Vec<(OsString, OsString)>,
    /// Texts that are made for this run alone, each shown in a place.
    pub shown: Vec<Shown>,
    /// Namespaces of a [`Shared`] to run in.
    pub shared: Option<Awaited>,
}

impl Command {
    /// The same once more, for a run that did not take place. What is shared and shown is another's.
    pub fn again(&self) -> io::Result<Self> {
        let copy = |descriptor: &Option<OwnedFd>| descriptor.as_ref().map(OwnedFd::try_clone).transpose();
        Ok(Self {
            program: self.program.clone(),
            descriptor: copy(&self.descriptor)?,
            arguments: self.arguments.clone(),
            output: copy(&self.output)?,
            // It is known inside by its number, so it is the same.
            kept: self.kept.clone(),
            watched: self.watched,
            noted: self.noted,
            observer: self.observer.clone(),
            environment: self.environment.clone(),
            shown: Vec::new(),
            shared: None,
        })
    }

    /// A program by its name or path.
    pub fn new(program: impl Into<OsString>, arguments: impl IntoIterator<Item = OsString>) -> Self {
        Self {
            program: program.into(),
            descriptor: None,
            arguments: arguments.into_iter().collect(),
            output: None,
            kept: None,
            watched: false,
            noted: false,
            observer: None,
            environment: Vec::new(),
            shown: Vec::new(),
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
    /// For a client's hooks.
    pub hooks: Option<TcpListener>,
    /// Where there are no namespaces, what the run asks for instead.
    pub connected: Option<Connected>,
    /// Where namespaces are shared, what stands for the run's own mounts: all its processes have them, and no others.
    pub mounts: Option<OwnedFd>,
    /// There, its record of the names that it keeps.
    pub names: Option<OwnedFd>,
    /// There, what has mounts of its own that protect it.
    protected: Vec<Target>,
    /// There, the tree that it had to make itself, in words.
    tree: Option<Vec<u8>>,
}

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// How the command itself ended.
    pub end: End,
    /// From the start of its process.
    pub took: Duration,
    /// What became of the limit on memory, if there was one.
    pub memory: Option<Memory>,
    /// Files that it was refused, each once; only of a command that was watched.
    pub refused: Vec<Refused>,
    /// Protected files that somebody outside replaced meanwhile.
    pub replaced: Replaced,
    /// Files that it used, of a command whose paths were noted; nothing where the kernel cannot tell.
    pub noted: Option<Noted>,
    /// Where calls of what is left running in shared namespaces wait for an answer: for [`Lease::end`].
    pub watched: Option<OwnedFd>,
    /// Where processes are shared, the end of the run's first process and its mounts, which nobody needs to wait for before this is dropped.
    pub ending: Option<Ending>,
}

/// A first process whose command has ended. Dropped, it is gone.
pub struct Ending {
    _sandbox: Sandbox,
}

impl std::fmt::Debug for Ending {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Ending")
    }
}

/// A limit on memory, after the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What held it.
    pub held_by: MemoryHeldBy,
    /// How many processes the kernel killed for it; none where each process was held, whose allocations fail.
    pub killed: u64,
}

/// What holds a limit on memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryHeldBy {
    /// A control group: all processes together.
    Group,
    /// A limit of each process, whose sum nothing limits.
    EachProcess,
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
/// kept until the run has ended. `meanwhile` is done once the command runs. Whoever has no grant cannot call it; that the grant covers this
/// run is for the holder to have seen, who knows what else it was granted with.
pub fn run<T>(
    _grant: &Grant,
    confinement: &Confinement,
    command: Command,
    host: Host<'_>,
    ready: impl FnOnce(Listeners) -> io::Result<T>,
    meanwhile: impl FnOnce(),
) -> Result<Outcome, RunError> {
    prepare::without_folders()?;
    carry_out(confinement, command, host, ready, meanwhile)
}

/// The same without a grant, for this crate's own programs.
pub fn carry_out<T>(
    confinement: &Confinement,
    command: Command,
    host: Host<'_>,
    ready: impl FnOnce(Listeners) -> io::Result<T>,
    meanwhile: impl FnOnce(),
) -> Result<Outcome, RunError> {
    let (program, observer) = (command.program.clone(), command.observer.clone());
    let (telling, noting) = (command.watched, command.noted);
    let forwarded = Mask::of(watch::FORWARDED);
    let ignored = Ignored::now();
    // Held back from here on, so that threads the caller starts in `ready` leave them to this one.
    let before = forwarded.block().map_err(outside("hold signals back"))?;
    let restore = Restore(before);
    let (mut prepared, mut orders, mut names) = prepare::prepare(confinement, command, host, (before, ignored))?;
    let signals = forwarded.descriptor().map_err(outside("receive signals"))?;
    let group = Group::new(&confinement.limits)?;
    let started = Instant::now();
    let at_once = orders.join.is_some() && group.is_none();
    let (ours, between) = start(&prepared, &mut orders, at_once)?;
    group.join(between.pid()).map_err(|error| RunError::Outside("enter the control group", error))?;
    if orders.join.is_some() && !at_once {
        // Not before it is in its group: what it starts is where it is.
        message::send(&ours, Message::Mapped, &[]).map_err(outside("begin"))?;
    }
    let plan = &orders.plan;
    let explain = |failure| prepare::explain(failure, plan, &program);
    // As long as it waits, it lets itself be looked into.
    let mounts = (orders.namespaces && orders.join.is_none()).then(|| Mounts::of(between.pid())).transpose();
    let mounts = mounts.map_err(|error| RunError::Outside("open the namespace of mounts", error))?;
    // While the first process builds what it is in.
    let mut protected = guard::protected(plan);
    let given = telling.then(|| Given::of(confinement));
    let mut hearing = Hearing::new(&ours, &explain);
    let (sandbox, mut listeners) =
        stand(&mut hearing, &ours, between, (&prepared, &orders), (confinement, &mut names))?;
    let sockets = Sockets::begin(&orders, &mut listeners).map_err(|error| RunError::Outside("make sockets", error))?;
    names.placed();
    if let Some(mounts) = &listeners.mounts {
        if !orders.plan.layers.is_empty() {
            note_mounts(confinement, &prepared.work, mounts)?;
        }
        listeners.names = names.shared().map_err(|error| RunError::Outside("share the record of names", error))?;
        listeners.protected = std::mem::take(&mut protected);
        listeners.tree = prepared.tree.take();
    }
    // What the caller holds from here on is in no core and in nobody's reach.
    let closed = Closed::now().map_err(outside("close this process"))?;
    let kept = ready(listeners).map_err(RunError::Caller)?;
    // Where nobody hears it, what was said last tells why.
    let told = message::send(&ours, Message::Go, &[]).map_err(outside("begin"));
    let (handle, listener) = hearing.started(orders.watched.is_some())?;
    told?;
    let guard = mounts.map(|mounts| Guard::begin(mounts, protected)).transpose();
    let guard = guard.map_err(|error| RunError::Outside("start a thread", error))?;
    let seeing = Seeing { given, noting, observer, sockets };
    let watch = listener.map(|listener| Watch::begin(listener, seeing)).transpose();
    let watch = watch.map_err(|error| RunError::Outside("start a thread", error))?;
    meanwhile();
    let deadline = confinement.limits.wall_time.map(|limit| started + Duration::from_millis(limit));
    let alone = orders.join.as_ref().is_some_and(Join::shares_processes);
    let run = watch::Run { socket: &ours, signals: &signals, sandbox: &sandbox, command: handle, deadline, alone };
    let ended = run.until_end(confinement.session);
    let replaced = guard.map(Guard::end).unwrap_or_default();
    let ending = if alone && matches!(ended, Ok(Ok(End::Exited(_) | End::Signaled(_)))) {
        Some(Ending { _sandbox: sandbox })
    } else {
        drop(sandbox);
        None
    };
    let (Seen { refused, noted }, watched) = match watch {
        // What is left running in shared namespaces goes on to be answered.
        Some(watch) if orders.join.is_some() => watch.hand_over(),
        Some(watch) => (watch.seen(), None),
        None => (Seen::default(), None),
    };
    let memory = group.memory(&confinement.limits);
    drop(group);
    drop(kept);
    drop(closed);
    if orders.join.is_some() {
        names.hand_over();
    }
    if !alone {
        // What is left running in shared namespaces may still have it.
        confinement.layered.iter().for_each(|layered| temporary::end_work(layered.layer.as_path(), &prepared.work));
    }
    drop(names);
    drop(restore);
    match ended {
        Ok(Ok(end)) => Ok(Outcome { end, took: started.elapsed(), memory, refused, replaced, noted, watched, ending }),
        Ok(Err(failure)) => Err(explain(failure)),
        Err(error) => Err(RunError::Outside("watch the command", error.into())),
    }
}

/// Layers are in the hands of all that have these mounts.
fn note_mounts(confinement: &Confinement, work: &str, mounts: &OwnedFd) -> Result<(), RunError> {
    let number = rustix::fs::fstat(mounts).map_err(outside("look at mounts"))?.st_ino;
    confinement.layered.iter().try_for_each(|layered| temporary::note_mounts(layered.layer.as_path(), work, number))
}

/// How many milliseconds what failed is waited for.
const PATIENCE: u32 = 500;

/// The first process of a run, or the one that leads to it, and the socket on which it is talked with. `at_once` says that it is the latter,
/// and that nothing is to be done with it before it starts the first.
fn start(prepared: &Prepared, orders: &mut Orders, at_once: bool) -> Result<(OwnedFd, Sandbox), RunError> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .map_err(outside("make a socket"))?;
    if at_once {
        // There is nothing to map: the namespaces are there.
        message::send(&ours, Message::Mapped, &[]).map_err(outside("begin"))?;
        let between = run_within(&mut Stack::new(), || -> i32 {
            close_here(ours.as_fd());
            inside::join(orders, &theirs)
        });
        return Ok((ours, Sandbox::new(between.map_err(outside("start a process"))?)));
    }
    let sandbox = match clone(prepared.namespaces).map_err(outside("start a process in namespaces of its own"))? {
        Forked::Child => {
            drop(ours);
            match orders.join {
                None => inside::first(orders, &theirs),
                Some(_) => inside::join(orders, &theirs),
            }
        }
        Forked::Parent(child) => Sandbox::new(child),
    };
    let sandbox = if orders.namespaces { sandbox } else { sandbox.ended_by(&ours)? };
    Ok((ours, sandbox))
}

/// Has it build the sandbox: the first process inside, and what listens there.
fn stand(
    hearing: &mut Hearing<'_>,
    socket: &OwnedFd,
    between: Sandbox,
    (prepared, orders): (&Prepared, &Orders),
    (confinement, names): (&Confinement, &mut Names),
) -> Result<(Sandbox, Listeners), RunError> {
    if orders.namespaces && orders.join.is_none() {
        identity::map(between.pid(), &prepared.identity)?;
    }
    if orders.join.is_none() {
        message::send(socket, Message::Mapped, &[]).map_err(outside("begin"))?;
        if !orders.namespaces {
            return Ok((between, hearing.ready(&Network::Open)?));
        }
        // Where nobody takes it, what was said last tells why.
        let _lent = hand::hand_over(prepared, orders, confinement, names, socket)?.is_ok();
        return Ok((between, hearing.ready(&confinement.network)?));
    }
    // It says who was started, and ends.
    between.wait();
    let stands = match hand::hand_over(prepared, orders, confinement, names, socket) {
        Ok(_) => hearing.joined(),
        Err(error) => {
            // Whoever waits for it ends.
            shutdown(socket, Shutdown::Both).unwrap_or_default();
            Err(error)
        }
    };
    if stands.is_err() {
        bury();
    }
    stands
}

/// Waits for children that failed before they were known: until then their namespace cannot end, nor can who holds it.
fn bury() {
    for _ in 0..PATIENCE {
        match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            // There are none.
            Err(_) => return,
        }
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

    /// Ends it, and returns when everything inside has ended.
    fn end(&self) {
        self.kill();
        self.wait();
    }

    /// In a namespace the kernel answers once every process of it is gone; without, the first process does.
    fn wait(&self) {
        while let Err(Errno::INTR) = waitid(WaitId::PidFd(self.child.handle.as_fd()), WaitIdOptions::EXITED) {}
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.end();
    }
}
