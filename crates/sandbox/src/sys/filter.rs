//! `seccomp(2)`: a filter on the system calls of this process and all that come from it.

use std::os::fd::{FromRawFd, OwnedFd};

use rustix::io::Errno;
use seccompiler::sock_filter;

use super::check;

#[repr(C)]
struct Program {
    length: u16,
    instructions: *const sock_filter,
}

/// Puts a filter on. `no_new_privs` is set before.
pub fn install(filter: &[sock_filter]) -> Result<(), Errno> {
    apply(filter, 0).map(drop)
}

/// Puts a filter on, and gives the descriptor on which calls that it hands over are answered.
pub fn install_with_listener(filter: &[sock_filter]) -> Result<OwnedFd, Errno> {
    // Before Linux 5.19 a signal can end a call that is being answered, and the program sees it as interrupted.
    let killable = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let descriptor = match apply(filter, killable) {
        Err(Errno::INVAL) => apply(filter, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER)?,
        other => other?,
    };
    let descriptor = i32::try_from(descriptor).ok().ok_or(Errno::BADF)?;
    // SAFETY: the kernel has just made it, and nothing else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn apply(filter: &[sock_filter], flags: libc::c_ulong) -> Result<libc::c_long, Errno> {
    let length = u16::try_from(filter.len()).ok().ok_or(Errno::TOOBIG)?;
    let program = Program { length, instructions: filter.as_ptr() };
    // SAFETY: `program` has the form of `sock_fprog`, its pointer stands for `length` instructions of `repr(C)`, and both outlive the call.
    check(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) })
}
