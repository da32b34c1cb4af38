//! From the caller's namespaces to those that runs share.
//!
//! Owns the process between: it enters them, starts the first process there and ends. Refuses to start it anywhere else. Its invariant: the
//! first process is the supervisor's own child, so it ends with the supervisor.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::{At, Failed, NOT_BUILT, Orders, expect, first, tell_failure};
use crate::message::{self, DESCRIPTORS, Message, Step};
use crate::sys::process::{Forked, clone, exit};

/// Namespaces that others are in, and those that are made anew.
pub struct Join {
    /// The users' namespace, which owns the others.
    pub user: OwnedFd,
    /// The network, unless it is the host's.
    pub network: Option<OwnedFd>,
    /// Processes, unless the run has its own.
    pub processes: Option<OwnedFd>,
    /// `CLONE_NEW*` of those that are the run's own.
    pub own: i32,
}

impl Join {
    /// Whether what the command leaves running can go on.
    pub fn shares_processes(&self) -> bool {
        self.processes.is_some()
    }
}

/// The process between.
pub fn join(orders: &mut Orders, socket: &OwnedFd) -> ! {
    match enter(orders, socket) {
        Ok(Forked::Child) => first(orders, socket),
        Ok(Forked::Parent(_)) => exit(0),
        Err((step, error, item)) => {
            tell_failure(socket.as_fd(), step, error, item);
            exit(NOT_BUILT)
        }
    }
}

fn enter(orders: &Orders, socket: &OwnedFd) -> Result<Forked, Failed> {
    let Some(join) = &orders.join else { return Err((Step::Join, Errno::INVAL, 0)) };
    expect(socket, Message::Mapped)?;
    // The users' first: what follows needs rights in it.
    let all = [
        (Some(&join.user), LinkNameSpaceType::User),
        (join.network.as_ref(), LinkNameSpaceType::Network),
        (join.processes.as_ref(), LinkNameSpaceType::ProcessID),
    ];
    for (item, (namespace, kind)) in all.into_iter().enumerate() {
        if let Some(namespace) = namespace {
            move_into_link_name_space(namespace.as_fd(), Some(kind)).item(Step::Join, item)?;
        }
    }
    let forked = clone(join.own | libc::CLONE_PARENT).at(Step::Start)?;
    if let Forked::Parent(child) = &forked {
        let joined = Message::Joined(child.pid.as_raw_nonzero().get());
        message::send(socket, joined, &[child.handle.as_fd()]).at(Step::Tell)?;
    }
    Ok(forked)
}

/// What stands for this process's mounts, which no process inside can leave: by it all that came from the command are known.
pub fn mounts() -> Result<[Option<OwnedFd>; DESCRIPTORS], Errno> {
    let mut descriptors = [const { None }; DESCRIPTORS];
    if let Some(first) = descriptors.first_mut() {
        *first = Some(open(c"/proc/self/ns/mnt", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?);
    }
    Ok(descriptors)
}
