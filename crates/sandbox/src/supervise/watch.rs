//! From the command's start to its end.
//!
//! Owns signals, stops and the clock. Refuses to die of a signal that is meant for the command: it passes it on and ends when the command
//! does, as a shell waits for its child. Its invariant: this process stops only after the command has, so a shell sees one job.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{Signal, pidfd_send_signal};

use super::Sandbox;
use crate::confinement::Session;
use crate::message::{self, Failure, Message};
use crate::sys::signal;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// Its time was up.
    TimeUp,
    /// The first process inside was killed, and all with it.
    Killed,
}

/// Signals that are the command's.
pub const FORWARDED: &[i32] = &[
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGTSTP,
    libc::SIGCONT,
    libc::SIGWINCH,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
];

/// A command that runs.
pub struct Run<'a> {
    pub socket: &'a OwnedFd,
    pub signals: &'a OwnedFd,
    pub sandbox: &'a Sandbox,
    pub command: OwnedFd,
    pub deadline: Option<Instant>,
    /// Whether the command's end is all that is waited for: what it has left, and its mounts, are another's.
    pub alone: bool,
}

impl Run<'_> {
    /// Waits for the end of the command, and of its children where they may stay.
    pub fn until_end(&self, session: Session) -> Result<Result<End, Failure>, Errno> {
        let (mut end, mut hung_up) = (None, false);
        loop {
            let mut sources = [
                PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.sandbox.handle().as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN),
            ];
            // A socket whose other end is closed is always ready: asked on, it would take a processor until the sandbox is gone.
            let asked = if hung_up { &mut sources[..2] } else { &mut sources[..] };
            match poll(asked, self.remaining().as_ref()) {
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error),
                Ok(_) => {}
            }
            let [signaled, gone, told] = sources.map(|source| source.revents());
            hung_up |= told.contains(PollFlags::HUP);
            let [signaled, gone, told] = [signaled, gone, told].map(|events| !events.is_empty());
            if signaled {
                while let Some(arrived) = signal::next(self.signals)? {
                    self.forward(arrived, session);
                }
            }
            if told {
                while let Some(message) = self.message()? {
                    match message {
                        Message::Exited(code) => end = Some(End::Exited(code)),
                        Message::Signaled(signal) => end = Some(End::Signaled(signal)),
                        Message::Failed(failure) => return Ok(Err(failure)),
                        Message::Stopped(stop) => self.stop(stop)?,
                        Message::Continued
                        | Message::Mapped
                        | Message::Lent
                        | Message::Go
                        | Message::Ready
                        | Message::Started
                        | Message::Watched
                        | Message::Joined(_) => {}
                    }
                }
            }
            if let Some(end) = end.filter(|_| self.alone) {
                return Ok(Ok(end));
            }
            if gone {
                return Ok(Ok(end.unwrap_or(End::Killed)));
            }
            if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                self.sandbox.kill();
                return Ok(Ok(end.unwrap_or(End::TimeUp)));
            }
        }
    }

    fn remaining(&self) -> Option<Timespec> {
        let left = self.deadline?.saturating_duration_since(Instant::now());
        Timespec::try_from(left).ok()
    }

    fn message(&self) -> Result<Option<Message>, Errno> {
        match message::receive(self.socket, RecvFlags::DONTWAIT, drop) {
            Err(Errno::AGAIN) => Ok(None),
            other => other,
        }
    }

    fn forward(&self, arrived: signal::Arrived, session: Session) {
        // What the terminal sends, it sends to the whole process group: the command has it already.
        if session == Session::Terminal && arrived.by_kernel {
            return;
        }
        // Whoever ends a shell ends its group: what the command started there too, as it would without a supervisor between them.
        if session == Session::Own && signal::send_to_group(&self.command, arrived.signal).is_ok() {
            return;
        }
        if let Some(signal) = Signal::from_named_raw(arrived.signal) {
            // The command may have ended meanwhile.
            pidfd_send_signal(&self.command, signal).unwrap_or_default();
        }
    }

    /// Stops as the command did, until somebody continues this process, and the command with it.
    fn stop(&self, stop: i32) -> Result<(), Errno> {
        if self.continued_meanwhile()? {
            return Ok(());
        }
        // `SIGSTOP` cannot be held back, and whoever waits for this process sees a stop all the same.
        let _ = stop;
        signal::raise(libc::SIGSTOP)
    }

    fn continued_meanwhile(&self) -> Result<bool, Errno> {
        Ok(matches!(self.message()?, Some(Message::Continued)))
    }
}
