//! Sockets that a program has made and not connected yet.
//!
//! Owns their other ends, by the numbers that the kernel gives sockets. Refuses more than it can hold. Invariant: each is taken once, by
//! whoever connects it first.

use std::io;
use std::net::TcpStream;
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::fstat;

/// Most at a time.
const MOST: usize = 512;
/// From how many on those that nobody has any more are looked for.
const MANY: usize = 32;

/// The other ends.
#[derive(Default)]
pub struct Unconnected(Vec<(u64, TcpStream)>);

impl Unconnected {
    /// Keeps the other end of the socket with this number.
    pub fn keep(&mut self, number: u64, other: TcpStream) -> io::Result<()> {
        if self.0.len() >= MANY {
            self.0.retain(|(_, other)| is_open(other));
        }
        // The kernel gives a number again once its socket is gone.
        self.0.retain(|(had, _)| *had != number);
        if self.0.len() >= MOST {
            return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
        }
        self.0.push((number, other));
        Ok(())
    }

    /// Whether the socket with this number is not connected yet.
    pub fn has(&self, number: Option<u64>) -> bool {
        self.0.iter().any(|(had, _)| Some(*had) == number)
    }

    /// Its other end, for good.
    pub fn take(&mut self, number: Option<u64>) -> Option<TcpStream> {
        let place = self.0.iter().position(|(had, _)| Some(*had) == number)?;
        Some(self.0.swap_remove(place).1)
    }
}

/// The number that the kernel gives a socket.
pub fn number(socket: BorrowedFd<'_>) -> io::Result<u64> {
    Ok(fstat(socket)?.st_ino)
}

/// Whether somebody still has the socket.
fn is_open(other: &TcpStream) -> bool {
    let mut source = [PollFd::new(other, PollFlags::RDHUP)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    !matches!(poll(&mut source, Some(&at_once)), Ok(1..))
}
