//! The process that makes mounts for runs which share namespaces.
//!
//! Owns mounts in which nothing runs: what is made there is handed over detached, and they end with it. Refuses to start anything. Its
//! invariant: they are made by the same steps as where the run's first process makes them.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::CWD;
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::mounts::OwnTree;
use super::{At, Failed, NOT_BUILT, become_user, mounts, tell_failure, tell_ready};
use crate::message::Step;
use crate::plan::Plan;
use crate::sys::mount::{Attributes, set_recursively};
use crate::sys::process::{exit, forget_environment, own_mounts};

/// What they are made with.
pub struct Lending {
    /// Overlays, and what those need.
    pub plan: Plan,
    /// Room for trees that are taken, as many as the plan says.
    pub slots: Vec<Option<OwnedFd>>,
    /// Slots of those that come with [`crate::message::Message::Lent`].
    pub lent: Vec<usize>,
    /// Room for overlays.
    pub layers: Vec<Option<OwnedFd>>,
    /// Room for what is taken for a tree of a run's own, and that.
    pub tree: Option<(Vec<Option<OwnedFd>>, Plan)>,
    /// The user and group to become, for a caller that is root.
    pub become_user: Option<(u32, u32)>,
}

/// Makes them in this namespace of users, and ends.
pub fn lend(lending: &mut Lending, user: &OwnedFd, socket: &OwnedFd) -> ! {
    // What the caller's variables say is nobody's here.
    forget_environment();
    match make(lending, user, socket) {
        Ok(()) => exit(0),
        Err((step, error, item)) => {
            tell_failure(socket.as_fd(), step, error, item);
            exit(NOT_BUILT)
        }
    }
}

fn make(lending: &mut Lending, user: &OwnedFd, socket: &OwnedFd) -> Result<(), Failed> {
    set_parent_process_death_signal(Some(Signal::KILL)).at(Step::Tie)?;
    move_into_link_name_space(user.as_fd(), Some(LinkNameSpaceType::User)).at(Step::Join)?;
    own_mounts().at(Step::Private)?;
    become_user(lending.become_user).at(Step::Identity)?;
    // Becoming another takes it back.
    set_parent_process_death_signal(Some(Signal::KILL)).at(Step::Tie)?;
    let private = Attributes { propagation: libc::MS_PRIVATE, ..Attributes::default() };
    set_recursively(CWD, c"/", private).at(Step::Private)?;
    let Lending { plan, slots, lent, layers, tree, become_user } = lending;
    let own = OwnTree::new(plan, become_user.is_some())?;
    mounts::take_all(plan, lent, slots, socket)?;
    mounts::overlays(plan, slots, layers, (own.tree.as_fd(), own.attached))?;
    // Where that fails, the run's first process makes it, and says what it could not do.
    let tree = tree.as_mut().and_then(|(slots, plan)| mounts::furnished_tree(plan, slots).ok());
    tell_ready(socket, &mut layers.iter().chain([&tree]))
}
