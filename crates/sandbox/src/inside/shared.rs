//! The process that holds namespaces which several runs share.
//!
//! Owns the first place in the namespace of processes: what runs leave behind becomes its child, and is buried by it. Refuses to start
//! anything. Its invariant: everything in the namespace ends with it, and it ends with the keeper, whatever becomes of that.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Signal, WaitOptions, chdir, set_dumpable_behavior, set_parent_process_death_signal, wait,
};

use super::{At, Failed, NOT_BUILT, become_user, command, expect, network, tell_failure, tell_ready};
use crate::confinement::Network;
use crate::message::{Message, Step};
use crate::sys::process::{exit, forget_environment, keep_only};
use crate::sys::signal::{self, Mask};

/// What it is made with.
pub struct Base {
    /// The user and group to become, for a caller that is root.
    pub become_user: Option<(u32, u32)>,
    /// What is reached by network.
    pub network: Network,
}

/// Holds them until nobody is left at the socket.
pub fn hold(base: &Base, socket: &OwnedFd) -> ! {
    match live(base, socket) {
        Ok(()) => exit(0),
        Err((step, error, item)) => {
            tell_failure(socket.as_fd(), step, error, item);
            exit(NOT_BUILT)
        }
    }
}

fn live(base: &Base, socket: &OwnedFd) -> Result<(), Failed> {
    // Whoever shares its processes is not to find the caller's variables here.
    forget_environment();
    expect(socket, Message::Mapped)?;
    become_user(base.become_user).at(Step::Identity)?;
    set_parent_process_death_signal(Some(Signal::KILL)).at(Step::Tie)?;
    chdir(c"/").at(Step::Root)?;
    let listeners = network::open(&base.network)?;
    tell_ready(socket, &mut listeners.iter())?;
    drop(listeners);
    // Until then the keeper opens what stands for the namespaces.
    expect(socket, Message::Go)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at(Step::Identity)?;
    command::narrow(true).at(Step::Capabilities)?;
    command::drop_capabilities().at(Step::Capabilities)?;
    let socket = keep_only(socket.as_fd()).at(Step::Descriptors)?;
    let child = Mask::of(&[libc::SIGCHLD]);
    child.block().at(Step::Start)?;
    let signals = child.descriptor().at(Step::Start)?;
    loop {
        while matches!(wait(WaitOptions::NOHANG), Ok(Some(_)) | Err(Errno::INTR)) {}
        let mut sources =
            [PollFd::from_borrowed_fd(socket, PollFlags::IN), PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)];
        match poll(&mut sources, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err((Step::Start, error, 0)),
        }
        let [outside, child] = sources.map(|source| !source.revents().is_empty());
        if outside {
            return Ok(());
        }
        if child {
            while signal::next(&signals).at(Step::Start)?.is_some() {}
        }
    }
}
