//! What is made outside while the first process builds what it is in.
//!
//! Owns what that needs before it mounts anything, and nothing sooner: names on record, folders that it works in, trees that it could not take
//! itself. Its invariant: whoever hears [`Message::Lent`] finds all of it there.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::prepare::Prepared;
use super::reserved::Names;
use super::{RunError, identity, temporary};
use crate::confinement::Confinement;
use crate::inside::Orders;
use crate::message::{self, DESCRIPTORS, Message};
use crate::plan::work;

/// Makes it, and hands it over. Inside is that nobody was there to take it.
pub fn hand_over(
    prepared: &Prepared,
    orders: &Orders,
    confinement: &Confinement,
    names: &mut Names,
    socket: &OwnedFd,
) -> Result<Result<(), Errno>, RunError> {
    let who = &prepared.identity;
    let plan = &orders.plan;
    names.record(&plan.reserved).map_err(|error| RunError::Outside("record reserved names", error))?;
    if !who.other || who.mapped {
        names.link(&plan.reserved);
    }
    for layered in &confinement.layered {
        temporary::put_work_aside(layered.layer.as_path());
        temporary::make(layered.layer.as_path(), who, &[&work()])?;
    }
    temporary::make_grounds(&plan.grounds, who)?;
    let trees = identity::lend_trees(who, plan, &orders.lent, prepared.owners.as_ref())?;
    let trees: Vec<BorrowedFd<'_>> = trees.iter().map(AsFd::as_fd).collect();
    let (first, more) = trees.split_at(trees.len().min(DESCRIPTORS));
    let packets = std::iter::once(first).chain(more.chunks(DESCRIPTORS));
    Ok(packets.into_iter().try_for_each(|trees| message::send(socket, Message::Lent, trees)))
}
