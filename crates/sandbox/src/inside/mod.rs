//! What runs inside, from the first process to the command's own program.
//!
//! Owns the first process: it builds the sandbox, starts the command, waits, and tells the supervisor what it saw. Refuses to allocate, and
//! knows nothing but what was laid out for it. Its invariant: any step that fails ends everything inside before the command has run.

mod again;
mod bare;
mod command;
mod join;
mod lend;
mod mounts;
mod network;
mod shared;

use std::ffi::CString;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, WaitStatus, getpid, set_child_subreaper, set_dumpable_behavior,
    set_parent_process_death_signal, wait,
};
use rustix::thread::{Gid, Uid, set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use seccompiler::sock_filter;

use crate::confinement::{Network, Session, Survivors};
use crate::message::{self, DESCRIPTORS, Failure, Message, Step};
use crate::plan::Plan;
use crate::sys::process::{Child, Stack, Texts, exit, forget_environment, keep_only, run_within};
use crate::sys::signal::{Ignored, Mask};
pub use again::{Fate, Target, protect_again};
pub use join::{Join, join};
pub use lend::{Lending, lend};
pub use shared::{Base, hold};

/// Everything that is needed inside, made before.
pub struct Orders {
    /// Mounts and rights.
    pub plan: Plan,
    /// Room for trees that are taken, as many as the plan says.
    pub slots: Vec<Option<OwnedFd>>,
    /// Slots of those that come with [`Message::Lent`].
    pub lent: Vec<usize>,
    /// The same for overlays.
    pub layers: Vec<Option<OwnedFd>>,
    /// The tree of its own, where it was made before.
    pub tree: Option<OwnedFd>,
    /// The user and group to become, for a caller that is root.
    pub become_user: Option<(u32, u32)>,
    /// Whether it is in namespaces of its own.
    pub namespaces: bool,
    /// Namespaces that it shares with other runs.
    pub join: Option<Join>,
    /// Whether `/proc` is mounted fresh.
    pub fresh_proc: bool,
    /// What it reaches by network.
    pub network: Network,
    /// Whose session.
    pub session: Session,
    /// What becomes of children.
    pub survivors: Survivors,
    /// Limits of each process: which, and how much.
    pub limits: Vec<(rustix::process::Resource, u64)>,
    /// Landlock's rule set, still without rules.
    pub rules: Option<OwnedFd>,
    /// The filter that hands over calls that name files, if they are watched.
    pub watched: Option<Vec<sock_filter>>,
    /// Filters on system calls, in order.
    pub filters: Vec<Vec<sock_filter>>,
    /// Signals held back before the supervisor held its own back.
    pub mask: Mask,
    /// Signals that the caller ignored.
    pub ignored: Ignored,
    /// Where the program may lie.
    pub programs: Vec<CString>,
    /// Or it itself.
    pub descriptor: Option<OwnedFd>,
    /// Where its standard output goes instead of the caller's.
    pub output: Option<OwnedFd>,
    /// One that it gets beside the first three, under its own number.
    pub kept: Option<Arc<OwnedFd>>,
    /// Its arguments.
    pub arguments: Texts,
    /// Its environment.
    pub environment: Texts,
    /// The stack it has until it is its program.
    pub stack: Option<Stack>,
}

/// The code with which the first process ends when the sandbox could not be built.
const NOT_BUILT: i32 = 125;

type Failed = (Step, Errno, usize);

/// A step's error, with its name.
trait At<T> {
    fn at(self, step: Step) -> Result<T, Failed>;
    fn item(self, step: Step, item: usize) -> Result<T, Failed>;
}

impl<T> At<T> for Result<T, Errno> {
    fn at(self, step: Step) -> Result<T, Failed> {
        self.item(step, 0)
    }

    fn item(self, step: Step, item: usize) -> Result<T, Failed> {
        self.map_err(|error| (step, error, item))
    }
}

/// The first process inside.
pub fn first(orders: &mut Orders, socket: &OwnedFd) -> ! {
    // Everything that is needed was laid out before. What the caller's variables say is nobody's inside.
    forget_environment();
    let (step, error, item) = match live(orders, socket) {
        Ok(code) => exit(code),
        Err(failed) => failed,
    };
    tell_failure(socket.as_fd(), step, error, item);
    exit(NOT_BUILT)
}

fn tell_failure(socket: BorrowedFd<'_>, step: Step, error: Errno, item: usize) {
    let item = u32::try_from(item).unwrap_or(u32::MAX);
    let failure = Failure { step, error: error.raw_os_error(), item };
    // Nobody is left to be told when this fails; the exit code says it as well.
    message::send(socket, Message::Failed(failure), &[]).unwrap_or_default();
}

fn live(orders: &mut Orders, socket: &OwnedFd) -> Result<i32, Failed> {
    if orders.join.is_none() {
        expect(socket, Message::Mapped)?;
    }
    become_user(orders.become_user).at(Step::Identity)?;
    let mut spent = None;
    let listeners = if orders.namespaces {
        set_parent_process_death_signal(Some(Signal::KILL)).at(Step::Tie)?;
        let listeners = match &orders.join {
            None => network::open(&orders.network)?,
            Some(_) => join::mounts().at(Step::Join)?,
        };
        spent = Some(mounts::build(orders, socket, || command::narrow(true).at(Step::Capabilities))?);
        listeners
    } else {
        // It has to outlive the supervisor until all that came from it has ended.
        set_child_subreaper(Some(getpid())).at(Step::Tie)?;
        [const { None }; DESCRIPTORS]
    };
    tell_ready(socket, &mut listeners.iter())?;
    drop(listeners);
    // Nobody of the same user inside can look into this process, or the command's before it is another program.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at(Step::Identity)?;
    if !orders.namespaces {
        command::narrow(false).at(Step::Capabilities)?;
    }
    // Half the time of a copy: this process has nothing else to do until the command is its program.
    let stack = orders.stack.take().ok_or(Errno::NOMEM).at(Step::Start)?;
    let mut stack = ManuallyDrop::new(stack);
    let child = run_within(&mut stack, || {
        let (step, error, item) = command::become_command(orders, socket);
        tell_failure(socket.as_fd(), step, error, item);
        NOT_BUILT
    });
    // Descriptors are closed with all others while it watches, so nothing may close them again.
    let (_spent, child) = (ManuallyDrop::new(spent), ManuallyDrop::new(child.at(Step::Start)?));
    watch(orders, socket, &child)
}

/// Says that what was to be made stands, and hands it over.
fn tell_ready(socket: &OwnedFd, made: &mut dyn Iterator<Item = &Option<OwnedFd>>) -> Result<(), Failed> {
    let mut handles = [socket.as_fd(); DESCRIPTORS];
    let mut count = 0;
    for (handle, made) in handles.iter_mut().zip(made.flatten()) {
        *handle = made.as_fd();
        count += 1;
    }
    message::send(socket, Message::Ready, handles.get(..count).unwrap_or_default()).at(Step::Tell)
}

/// Waits for one message; anything else, or nobody there, ends the process.
fn expect(socket: &OwnedFd, message: Message) -> Result<(), Failed> {
    match message::receive(socket, RecvFlags::empty(), drop).at(Step::Map)? {
        Some(received) if received == message => Ok(()),
        Some(_) | None => exit(NOT_BUILT),
    }
}

fn become_user(user: Option<(u32, u32)>) -> Result<(), Errno> {
    let Some((uid, gid)) = user else { return Ok(()) };
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)
}

/// Tells what becomes of the command, and buries every orphan.
fn watch(orders: &Orders, socket: &OwnedFd, child: &Child) -> Result<i32, Failed> {
    // The caller's files are of no use here, and neither is any right.
    let socket = keep_only(socket.as_fd()).at(Step::Descriptors)?;
    let watched = command::drop_capabilities().at(Step::Capabilities).and_then(|()| {
        if orders.namespaces {
            watch_all(socket, child.pid, orders.survivors, orders.join.as_ref().is_some_and(Join::shares_processes))
        } else {
            bare::watch(socket, child.pid, orders.survivors)
        }
    });
    if let Err((step, error, item)) = watched {
        tell_failure(socket, step, error, item);
        exit(NOT_BUILT);
    }
    watched
}

/// In a namespace of processes, which ends with this one; one that is shared goes on, with what the command has left.
fn watch_all(socket: BorrowedFd<'_>, command: Pid, survivors: Survivors, shared: bool) -> Result<i32, Failed> {
    let mut ended = false;
    loop {
        let options = if ended { WaitOptions::empty() } else { WaitOptions::UNTRACED | WaitOptions::CONTINUED };
        let (pid, status) = match wait(options) {
            Ok(Some(told)) => told,
            Ok(None) | Err(Errno::INTR) => continue,
            // No child is left.
            Err(Errno::CHILD) => return Ok(0),
            Err(error) => return Err((Step::Start, error, 0)),
        };
        if ended || pid != command {
            continue;
        }
        let message = told(status);
        ended = matches!(message, Message::Exited(_) | Message::Signaled(_));
        message::send(socket, message, &[]).at(Step::Tell)?;
        if ended && (shared || survivors == Survivors::End) {
            // With the first process every other in its namespace ends.
            return Ok(0);
        }
    }
}

/// What became of the command.
fn told(status: WaitStatus) -> Message {
    if let Some(signal) = status.stopping_signal() {
        Message::Stopped(signal)
    } else if status.continued() {
        Message::Continued
    } else {
        status.terminating_signal().map_or(Message::Exited(status.exit_status().unwrap_or(0)), Message::Signaled)
    }
}
