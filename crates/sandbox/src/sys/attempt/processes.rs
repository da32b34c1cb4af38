//! Attempts on a process by its number.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;

use super::super::check;

/// Traces it, and lets go.
pub fn trace(pid: i32) -> Result<(), Errno> {
    // SAFETY: this request takes numbers alone; the tracing ends with this process.
    check(unsafe { libc::syscall(libc::SYS_ptrace, libc::PTRACE_SEIZE, pid, 0usize, 0usize) }).map(drop)
}

/// Changes a byte of its memory, at an address it told.
pub fn change(pid: i32, address: usize) -> Result<(), Errno> {
    let mut byte = [1u8; 1];
    let local = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: 1 };
    // SAFETY: one byte is read from `byte`; the other address is of another process and only a number here.
    let written = unsafe { libc::process_vm_writev(pid, &raw const local, 1, &raw const remote, 1, 0) };
    check(written as libc::c_long).map(drop)
}

/// Lowers its limit on core files to nothing.
pub fn lower(pid: i32) -> Result<(), Errno> {
    let nothing = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the new limit outlives the call; no old one is asked for.
    check(libc::c_long::from(unsafe {
        libc::prlimit(pid, libc::RLIMIT_CORE, &raw const nothing, std::ptr::null_mut())
    }))
    .map(drop)
}

/// Makes it wait for others.
pub fn slow(pid: i32) -> Result<(), Errno> {
    let pid = libc::id_t::try_from(pid).ok().ok_or(Errno::SRCH)?;
    // SAFETY: it touches no memory.
    check(libc::c_long::from(unsafe { libc::setpriority(libc::PRIO_PROCESS, pid, 5) })).map(drop)
}

/// Ties it to the first processor that this one may use.
pub fn tie(pid: i32) -> Result<(), Errno> {
    let mut set = [0u64; 16];
    // SAFETY: both calls read or write at most the 128 bytes of `set`.
    check(unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&set), set.as_mut_ptr()) })?;
    // SAFETY: as above.
    check(unsafe { libc::syscall(libc::SYS_sched_setaffinity, pid, size_of_val(&set), set.as_ptr()) }).map(drop)
}

/// Has it scheduled after all others.
pub fn schedule(pid: i32) -> Result<(), Errno> {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameter outlives the call.
    check(libc::c_long::from(unsafe { libc::sched_setscheduler(pid, libc::SCHED_BATCH, &raw const none) })).map(drop)
}

/// Lowers its share of disks.
pub fn disks(pid: i32) -> Result<(), Errno> {
    let (process, best_effort_last) = (1, 2 << 13 | 7);
    // SAFETY: it touches no memory.
    check(unsafe { libc::syscall(libc::SYS_ioprio_set, process, pid, best_effort_last) }).map(drop)
}

/// Compares what it has open with what this process has.
pub fn compare(pid: i32) -> Result<(), Errno> {
    let files = 2;
    // SAFETY: it touches no memory.
    check(unsafe { libc::syscall(libc::SYS_kcmp, std::process::id(), pid, files, 0, 0) }).map(drop)
}

/// Where its list of locks lies.
pub fn locks(pid: i32) -> Result<(), Errno> {
    let (mut head, mut length) = (0usize, 0usize);
    // SAFETY: the kernel writes a pointer and a length, for which there is room.
    check(unsafe { libc::syscall(libc::SYS_get_robust_list, pid, &raw mut head, &raw mut length) }).map(drop)
}

/// A signal that only asks, by a descriptor.
pub fn signal(process: &OwnedFd) -> Result<(), Errno> {
    // SAFETY: it touches no memory; no details of the signal are given.
    check(unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), 0, 0usize, 0) }).map(drop)
}

/// Enters its namespaces by a descriptor.
pub fn enter(process: &OwnedFd) -> Result<(), Errno> {
    // SAFETY: it touches no memory; this process ends after it.
    check(libc::c_long::from(unsafe { libc::setns(process.as_raw_fd(), libc::CLONE_NEWNS | libc::CLONE_NEWNET) }))
        .map(drop)
}
