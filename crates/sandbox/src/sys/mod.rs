//! System calls that have no wrapper.
//!
//! Owns every `unsafe` block of the workspace, each as small as can be and with its reason. Refuses to allocate: what is here runs between a
//! `clone` and an `execve` too, where another thread may have held the allocator's lock. Its invariant: no error of a call is lost.

#![expect(unsafe_code, reason = "system calls without a wrapper")]

pub mod attempt;
pub mod filter;
pub mod landlock;
pub mod memory;
pub mod mount;
pub mod network;
pub mod notify;
pub mod process;
pub mod signal;

use rustix::io::Errno;

/// The result of a call that answers -1 and `errno`.
fn check(result: libc::c_long) -> Result<libc::c_long, Errno> {
    if result == -1 { Err(last()) } else { Ok(result) }
}

fn last() -> Errno {
    // SAFETY: the address that is given is this thread's own `errno`, always readable.
    Errno::from_raw_os_error(unsafe { *libc::__errno_location() })
}
