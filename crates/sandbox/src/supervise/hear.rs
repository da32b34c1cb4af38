//! What is said inside before the command runs, by whoever leads there, the first process and the command's.
//!
//! Owns the order in which they are heard. Refuses any other word, and descriptors of another number. Its invariant: what failed inside comes
//! back as that failure, and what one says sooner than another is kept.

use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;

use rustix::net::RecvFlags;
use rustix::process::Pid;

use super::{Listeners, RunError, Sandbox, outside};
use crate::confinement::Network;
use crate::message::{self, Failure, Message};
use crate::sys::process::Child;

/// What was heard so far.
pub struct Hearing<'a> {
    socket: &'a OwnedFd,
    explain: &'a dyn Fn(Failure) -> RunError,
    first: Option<Sandbox>,
    ready: Option<Vec<OwnedFd>>,
    command: Option<OwnedFd>,
    listener: Option<OwnedFd>,
}

impl<'a> Hearing<'a> {
    /// Nothing yet. `explain` says what a failure inside is.
    pub fn new(socket: &'a OwnedFd, explain: &'a dyn Fn(Failure) -> RunError) -> Self {
        Self { socket, explain, first: None, ready: None, command: None, listener: None }
    }

    /// Waits for a word, or takes one that is there.
    fn hear(&mut self, flags: RecvFlags) -> Result<(), RunError> {
        let mut beside = Vec::new();
        let message = message::receive(self.socket, flags, |descriptor| beside.push(descriptor));
        match (message.map_err(outside("hear from the sandbox"))?, beside.pop()) {
            (Some(Message::Failed(failure)), _) => return Err((self.explain)(failure)),
            (Some(Message::Joined(pid)), Some(handle)) => {
                let pid = Pid::from_raw(pid).ok_or(RunError::Silent)?;
                self.first = Some(Sandbox::new(Child { pid, handle }));
            }
            (Some(Message::Ready), last) => self.ready = Some(beside.into_iter().chain(last).collect()),
            (Some(Message::Started), handle @ Some(_)) => self.command = handle,
            (Some(Message::Watched), listener @ Some(_)) => self.listener = listener,
            _ => return Err(RunError::Silent),
        }
        Ok(())
    }

    /// Waits until the sandbox stands: listening sockets, where it has a network of its own.
    pub fn ready(&mut self, network: &Network) -> Result<Listeners, RunError> {
        let sockets = self.await_ready()?;
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

    /// The same in shared namespaces: the first process, which another has started, and what stands for its mounts. That other has ended.
    pub fn joined(&mut self) -> Result<(Sandbox, Listeners), RunError> {
        let mounts = Some(self.await_ready()?.pop().ok_or(RunError::Silent)?);
        loop {
            if let Some(first) = self.first.take() {
                return Ok((first, Listeners { mounts, ..Listeners::default() }));
            }
            // Whoever leads there has said by now what it had to say.
            self.hear(RecvFlags::DONTWAIT)?;
        }
    }

    pub fn await_ready(&mut self) -> Result<Vec<OwnedFd>, RunError> {
        loop {
            if let Some(ready) = self.ready.take() {
                return Ok(ready);
            }
            self.hear(RecvFlags::empty())?;
        }
    }

    /// Waits for the command's handle, and for its listener where it is watched.
    pub fn started(&mut self, watched: bool) -> Result<(OwnedFd, Option<OwnedFd>), RunError> {
        loop {
            if (!watched || self.listener.is_some())
                && let Some(command) = self.command.take()
            {
                return Ok((command, self.listener.take()));
            }
            self.hear(RecvFlags::empty())?;
        }
    }
}
