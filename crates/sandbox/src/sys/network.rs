//! The loopback device of a network namespace.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use super::check;

/// Switches `lo` on, in the namespace of `socket`.
pub fn loopback_up(socket: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: plain bytes and numbers, for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo\0") {
        *to = (*from).cast_signed();
    }
    request.ifr_ifru.ifru_flags = libc::IFF_UP as i16 | libc::IFF_RUNNING as i16;
    // SAFETY: this request reads one `ifreq`, which lives.
    check(unsafe { libc::c_long::from(libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request)) })
        .map(drop)
}
