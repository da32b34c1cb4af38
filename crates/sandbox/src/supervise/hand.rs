//! What is made outside while the first process builds what it is in.
//!
//! Owns what that needs before it mounts anything, and nothing sooner: names on record, folders that it works in, trees that it could not take
//! itself. Its invariant: whoever hears [`Message::Lent`] finds all of it there.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::identity::Who;
use super::prepare::Prepared;
use super::reserved::Names;
use super::temporary::MANY_WORKS;
use super::{RunError, identity, temporary};
use crate::confinement::{Confinement, Layered};
use crate::inside::Orders;
use crate::message::{self, DESCRIPTORS, Message};
use crate::plan::CHANGES;

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
    if !plan.layers.is_empty() {
        make_works(&confinement.layered, who, &prepared.work)?;
    }
    temporary::make_grounds(&plan.grounds, who)?;
    let trees = identity::lend_trees(who, plan, &orders.lent, prepared.owners.as_ref())?;
    Ok(send_trees(&trees, socket))
}

/// Makes what the kernel works in.
pub fn make_works(layered: &[Layered], who: &Who, work: &str) -> Result<(), RunError> {
    layered.iter().try_for_each(|layered| {
        let layer = layered.layer.as_path();
        temporary::sweep_works(layer, MANY_WORKS);
        temporary::put_work_aside(layer, work);
        temporary::make(layer, who, &[CHANGES, work])
    })
}

/// Hands over trees, in the order of their slots.
pub fn send_trees(trees: &[OwnedFd], socket: &OwnedFd) -> Result<(), Errno> {
    let trees: Vec<BorrowedFd<'_>> = trees.iter().map(AsFd::as_fd).collect();
    let (first, more) = trees.split_at(trees.len().min(DESCRIPTORS));
    let mut packets = std::iter::once(first).chain(more.chunks(DESCRIPTORS));
    packets.try_for_each(|trees| message::send(socket, Message::Lent, trees))
}
