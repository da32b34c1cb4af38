//! `SECCOMP_IOCTL_NOTIF_*`: system calls that a filter hands over, their answers, and the memory of who made them.

use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use rustix::io::Errno;
use rustix::process::Pid;

use super::check;

/// Both sides run on one processor, one after the other: less than half the time.
const SYNCHRONOUS: libc::c_ulong = 1;
/// `SECCOMP_IOCTL_NOTIF_SET_FLAGS`, Linux 6.6.
const SET_FLAGS: libc::Ioctl = libc::_IOW::<u64>(b'!' as u32, 4);

/// The smallest page there is.
const PAGE: usize = 4096;

/// A call that somebody waits in.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Which, for the answer.
    pub id: u64,
    /// Who, as seen from here.
    pub process: Option<Pid>,
    /// Its number.
    pub number: i64,
    /// Its arguments.
    pub arguments: [u64; 6],
}

/// Has the kernel hand over on one processor; one before Linux 6.6 cannot, and is only slower.
pub fn hurry(listener: BorrowedFd<'_>) {
    // SAFETY: it takes a number and touches no memory.
    unsafe { libc::ioctl(listener.as_raw_fd(), SET_FLAGS, SYNCHRONOUS) };
}

/// The next call. To be asked when there is one: it waits.
pub fn next(listener: BorrowedFd<'_>) -> Result<Call, Errno> {
    let mut call = MaybeUninit::<libc::seccomp_notif>::zeroed();
    // SAFETY: the kernel writes one `seccomp_notif`, which has to be zero before, to a place of that size.
    check(libc::c_long::from(unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, call.as_mut_ptr())
    }))?;
    // SAFETY: zeros are a value of it, and the kernel has written all its fields.
    let call = unsafe { call.assume_init() };
    let process = i32::try_from(call.pid).ok().and_then(Pid::from_raw);
    Ok(Call { id: call.id, process, number: call.data.nr.into(), arguments: call.data.args })
}

/// Has it go on as if nobody had been asked. It may have ended meanwhile.
pub fn proceed(listener: BorrowedFd<'_>, call: &Call) -> Result<(), Errno> {
    let proceed = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
    let answer = libc::seccomp_notif_resp { id: call.id, val: 0, error: 0, flags: proceed };
    // SAFETY: the kernel reads one `seccomp_notif_resp`, which outlives the call.
    check(libc::c_long::from(unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer)
    }))
    .map(drop)
}

/// Answers it in the kernel's place: with a number, or an error. It may have ended meanwhile.
pub fn answer(listener: BorrowedFd<'_>, call: &Call, answer: Result<i64, Errno>) -> Result<(), Errno> {
    let (val, error) = answer.map_or_else(|error| (0, -error.raw_os_error()), |number| (number, 0));
    let answer = libc::seccomp_notif_resp { id: call.id, val, error, flags: 0 };
    // SAFETY: the kernel reads one `seccomp_notif_resp`, which outlives the call.
    check(libc::c_long::from(unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer)
    }))
    .map(drop)
}

/// Answers it with a descriptor, which becomes the caller's own under the lowest number that is free.
pub fn give(listener: BorrowedFd<'_>, call: &Call, given: BorrowedFd<'_>, close: bool) -> Result<(), Errno> {
    add(listener, call, given, libc::SECCOMP_ADDFD_FLAG_SEND, 0, close)
}

/// Puts a descriptor in the place of one that the caller has. The call still waits for its answer.
pub fn replace(listener: BorrowedFd<'_>, call: &Call, given: BorrowedFd<'_>, place: u32) -> Result<(), Errno> {
    add(listener, call, given, libc::SECCOMP_ADDFD_FLAG_SETFD, place, true)
}

fn add(
    listener: BorrowedFd<'_>,
    call: &Call,
    given: BorrowedFd<'_>,
    flags: libc::c_ulong,
    place: u32,
    close: bool,
) -> Result<(), Errno> {
    let added = libc::seccomp_notif_addfd {
        id: call.id,
        flags: u32::try_from(flags).ok().ok_or(Errno::INVAL)?,
        srcfd: given.as_raw_fd().cast_unsigned(),
        newfd: place,
        newfd_flags: if close { libc::O_CLOEXEC.cast_unsigned() } else { 0 },
    };
    // SAFETY: the kernel reads one `seccomp_notif_addfd`, which outlives the call.
    check(libc::c_long::from(unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const added)
    }))
    .map(drop)
}

/// Reads the memory of a process, as much of it as is there. Gives how many bytes were.
pub fn read_memory(process: Pid, address: u64, to: &mut [u8]) -> Result<usize, Errno> {
    let start = usize::try_from(address).ok().ok_or(Errno::FAULT)?;
    let local = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    // Where one piece is not there, none of it is read: the first ends with its page.
    let first = (PAGE - start % PAGE).min(to.len());
    let piece = |offset: usize, length| libc::iovec {
        // The addresses are the other process's, and never looked at here.
        iov_base: std::ptr::without_provenance_mut(start.wrapping_add(offset)),
        iov_len: length,
    };
    let remote = [piece(0, first), piece(first, to.len() - first)];
    // SAFETY: the kernel writes at most `to.len()` bytes to `to`, and checks the other addresses in the other process.
    let read =
        unsafe { libc::process_vm_readv(process.as_raw_nonzero().get(), &raw const local, 1, remote.as_ptr(), 2, 0) };
    match check(libc::c_long::try_from(read).unwrap_or(-1)) {
        // Some containers refuse this call and not the file, which is the same memory under the same rules.
        Err(Errno::PERM | Errno::NOSYS) => {
            let memory = File::open(format!("/proc/{}/mem", process.as_raw_nonzero()));
            let read = memory.and_then(|memory| memory.read_at(to, address));
            read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::FAULT))
        }
        read => usize::try_from(read?).ok().ok_or(Errno::FAULT),
    }
}
