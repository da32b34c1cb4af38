//! What the first process inside says before the command runs.
//!
//! Owns the order in which it is heard. Refuses any other word, and descriptors of another number. Its invariant: what failed inside comes
//! back as that failure.

use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;

use rustix::net::RecvFlags;
use rustix::process::Pid;

use super::{Listeners, RunError, Sandbox, outside};
use crate::confinement::Network;
use crate::message::{self, Failure, Message};
use crate::sys::process::Child;

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

/// What stands for the mounts of a run in shared namespaces.
pub fn await_mounts(socket: &OwnedFd, explain: impl Fn(Failure) -> RunError) -> Result<Listeners, RunError> {
    let mounts = await_descriptors(socket, explain)?.pop().ok_or(RunError::Silent)?;
    Ok(Listeners { mounts: Some(mounts), ..Listeners::default() })
}

/// Listening sockets, where the sandbox has a network of its own.
pub fn await_ready(
    socket: &OwnedFd,
    network: &Network,
    explain: impl Fn(Failure) -> RunError,
) -> Result<Listeners, RunError> {
    let sockets = await_descriptors(socket, explain)?;
    let Network::Proxied(ports) = network else { return Ok(Listeners::default()) };
    let wanted = 1 + ports.direct.len() + usize::from(ports.dns.is_some()) + usize::from(ports.hooks.is_some());
    if sockets.len() != wanted {
        return Err(RunError::Silent);
    }
    let mut sockets = sockets.into_iter();
    let http = sockets.next().map(TcpListener::from);
    let direct = sockets.by_ref().take(ports.direct.len()).map(TcpListener::from).collect();
    let hooks = ports.hooks.and_then(|_| sockets.next()).map(TcpListener::from);
    let dns = sockets.next().map(UdpSocket::from);
    Ok(Listeners { http, direct, dns, hooks, ..Listeners::default() })
}

/// The first process, where another started it for this one.
pub fn await_joined(socket: &OwnedFd, explain: impl Fn(Failure) -> RunError) -> Result<Sandbox, RunError> {
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

/// Waits for the command's handle, and for its listener where it is watched: which of them comes first is open.
pub fn await_started(
    socket: &OwnedFd,
    watched: bool,
    explain: impl Fn(Failure) -> RunError,
) -> Result<(OwnedFd, Option<OwnedFd>), RunError> {
    let (mut handle, mut listener) = (None, None);
    loop {
        match (handle, listener) {
            (Some(handle), listener) if listener.is_some() || !watched => return Ok((handle, listener)),
            not_yet => (handle, listener) = not_yet,
        }
        let mut beside = None;
        let message = message::receive(socket, RecvFlags::empty(), |descriptor| beside = Some(descriptor));
        match message.map_err(outside("hear from the sandbox"))? {
            Some(Message::Started) if beside.is_some() => handle = beside,
            Some(Message::Watched) if beside.is_some() => listener = beside,
            Some(Message::Failed(failure)) => return Err(explain(failure)),
            Some(_) | None => return Err(RunError::Silent),
        }
    }
}
