//! The first process where there is no namespace of processes.
//!
//! Owns every process that comes from the command: orphans become its children, and it ends them all before it ends. Refuses to go on when
//! nobody is left outside. Its invariant: it ends only when it has no child left.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{self, Errno};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

use super::{At, Failed};
use crate::confinement::Survivors;
use crate::message::{self, Message, Step};
use crate::sys::signal::{self, Mask};

/// Tells what becomes of the command, and ends all that came from it.
pub fn watch(socket: BorrowedFd<'_>, command: Pid, survivors: Survivors) -> Result<i32, Failed> {
    let child = Mask::of(&[libc::SIGCHLD]);
    child.block().at(Step::Start)?;
    let signals = child.descriptor().at(Step::Start)?;
    let mut ended = false;
    loop {
        while let Some((pid, status)) = next().at(Step::Start)? {
            if pid != command || ended {
                continue;
            }
            let message = super::told(status);
            ended = matches!(message, Message::Exited(_) | Message::Signaled(_));
            message::send(socket, message, &[]).at(Step::Tell)?;
        }
        if ended && (survivors == Survivors::End || alone()) {
            break;
        }
        // What is said there is the command's to hear; here it matters only that nobody is left outside.
        let mut sources = [
            PollFd::from_borrowed_fd(socket, PollFlags::empty()),
            PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN),
        ];
        match poll(&mut sources, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err((Step::Start, error, 0)),
        }
        let [outside, child] = sources.map(|source| !source.revents().is_empty());
        if outside {
            break;
        }
        if child {
            while signal::next(&signals).at(Step::Start)?.is_some() {}
        }
    }
    end_all().at(Step::Start)?;
    Ok(0)
}

/// A child of which there is news.
fn next() -> Result<Option<(Pid, rustix::process::WaitStatus)>, Errno> {
    loop {
        match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED | WaitOptions::CONTINUED) {
            Err(Errno::INTR) => {}
            Err(Errno::CHILD) => return Ok(None),
            other => return other,
        }
    }
}

fn alone() -> bool {
    matches!(wait(WaitOptions::NOHANG), Err(Errno::CHILD))
}

/// Kills children until there are none: those of a child that is gone have become children here.
fn end_all() -> Result<(), Errno> {
    loop {
        let list = open(c"/proc/thread-self/children", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut bytes = [0u8; 4096];
        let length = io::read(&list, &mut bytes)?;
        // A number at the end may be cut short; it comes whole next time.
        let whole = bytes.get(..length).unwrap_or_default();
        let whole = whole.iter().rposition(|byte| *byte == b' ').and_then(|end| whole.get(..end)).unwrap_or_default();
        for number in whole.split(|byte| *byte == b' ') {
            if let Some(pid) = std::str::from_utf8(number).ok().and_then(|text| Pid::from_raw(text.parse().ok()?)) {
                // It may have ended by itself.
                kill_process(pid, Signal::KILL).unwrap_or_default();
            }
        }
        match wait(WaitOptions::empty()) {
            Err(Errno::CHILD) => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}
