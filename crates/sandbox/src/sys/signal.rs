//! Which signals reach a process, and how.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::io::{self, Errno};

use super::{check, last};

/// Signals that are held back from a thread.
#[derive(Clone, Copy)]
pub struct Mask(libc::sigset_t);

/// What came with a signal.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// Which.
    pub signal: i32,
    /// Whether the kernel sent it (a key on the terminal, its new size), not a process.
    pub by_kernel: bool,
}

impl Mask {
    /// Exactly these.
    pub fn of(signals: &[i32]) -> Self {
        // SAFETY: a `sigset_t` is plain bits, and `sigemptyset` sets all of them.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: `set` is a valid set that lives.
        unsafe { libc::sigemptyset(&raw mut set) };
        for signal in signals {
            // SAFETY: as above; a number that is no signal is answered with an error and changes nothing.
            unsafe { libc::sigaddset(&raw mut set, *signal) };
        }
        Self(set)
    }

    /// Holds these back as well, from this thread and those it starts, and gives what was held back before.
    pub fn block(&self) -> Result<Self, Errno> {
        let mut before = Self::of(&[]);
        // SAFETY: both sets are valid and live.
        match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const self.0, &raw mut before.0) } {
            0 => Ok(before),
            error => Err(Errno::from_raw_os_error(error)),
        }
    }

    /// Holds back exactly these.
    pub fn restore(&self) {
        // SAFETY: the set is valid and lives; nothing is written back.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut()) };
    }

    /// A descriptor from which these are read, with [`next`].
    pub fn descriptor(&self) -> Result<OwnedFd, Errno> {
        // SAFETY: the set is valid and lives.
        let descriptor = unsafe { libc::signalfd(-1, &raw const self.0, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if descriptor == -1 {
            return Err(last());
        }
        // SAFETY: the kernel has just made it, and nothing else knows it.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }
}

/// The next signal of a [`Mask::descriptor`], if one has come.
pub fn next(descriptor: &OwnedFd) -> Result<Option<Arrived>, Errno> {
    let mut bytes = [0u8; size_of::<libc::signalfd_siginfo>()];
    match io::read(descriptor, &mut bytes) {
        Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
        Err(error) => return Err(error),
        Ok(read) if read != bytes.len() => return Err(Errno::IO),
        Ok(_) => {}
    }
    // SAFETY: the kernel has filled all bytes of one `signalfd_siginfo`, which is plain numbers; the array needs no alignment.
    let info: libc::signalfd_siginfo = unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) };
    let signal = i32::try_from(info.ssi_signo).ok().ok_or(Errno::IO)?;
    Ok(Some(Arrived { signal, by_kernel: info.ssi_code == libc::SI_KERNEL }))
}

/// Every signal does again what it does by default, `SIGPIPE` too, which Rust's start ignores; those that the caller's caller ignored
/// stay ignored.
pub fn reset(kept: &Ignored) {
    for signal in 1..=64 {
        let ignored = kept.0 & (1 << (signal - 1)) != 0 && signal != libc::SIGPIPE;
        let action = if ignored { libc::SIG_IGN } else { libc::SIG_DFL };
        // SAFETY: the action is a constant, so no function of ours is called; signals that cannot be changed answer with an error.
        unsafe { libc::signal(signal, action) };
    }
}

/// Which signals this process ignores.
#[derive(Clone, Copy, Debug)]
pub struct Ignored(u64);

impl Ignored {
    /// Asks the kernel.
    pub fn now() -> Self {
        let mut ignored = 0;
        for signal in 1..=64 {
            // SAFETY: plain numbers, for which all zeros is a value.
            let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
            // SAFETY: the new action is null, so nothing changes; the old one is written to `action`, which lives.
            let known = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) } == 0;
            if known && action.sa_sigaction == libc::SIG_IGN {
                ignored |= 1 << (signal - 1);
            }
        }
        Self(ignored)
    }
}

/// Sends a signal to all of the group that the process of a descriptor leads. Linux 6.9.
pub fn send_to_group(leader: &OwnedFd, signal: i32) -> Result<(), Errno> {
    let (nothing, group) = (std::ptr::null::<libc::siginfo_t>(), libc::PIDFD_SIGNAL_PROCESS_GROUP);
    // SAFETY: the third argument may be null, and the others are plain numbers.
    check(unsafe { libc::syscall(libc::SYS_pidfd_send_signal, leader.as_raw_fd(), signal, nothing, group) }).map(drop)
}

/// Sends a signal to this very process.
pub fn raise(signal: i32) -> Result<(), Errno> {
    // SAFETY: it touches no memory.
    check(unsafe { libc::c_long::from(libc::kill(libc::getpid(), signal)) }).map(drop)
}
