//! `landlock_add_rule(2)` and `landlock_restrict_self(2)`, for a rule set that was made before the `clone`.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

use super::check;

#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: i32,
}

/// The right to read and execute a file.
pub const EXECUTE: u64 = 1 | 1 << 2;

const RULE_PATH_BENEATH: i32 = 1;

/// Allows these rights on a file, or on a folder and all below it.
pub fn allow(rules: BorrowedFd<'_>, place: BorrowedFd<'_>, rights: u64) -> Result<(), Errno> {
    let rule = PathBeneath { allowed: rights, parent: place.as_raw_fd() };
    // SAFETY: `rule` has the kernel's packed form for this kind of rule and outlives the call.
    check(unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, rules.as_raw_fd(), RULE_PATH_BENEATH, &raw const rule, 0)
    })
    .map(drop)
}

/// Holds this process and all that come from it to the rules. `no_new_privs` is set before.
pub fn restrict(rules: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: it touches no memory.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0) }).map(drop)
}

const VERSION: u32 = 1;
const ERRATA: u32 = 2;

/// Its version; 0 where there is none.
pub fn version() -> u32 {
    ask(VERSION)
}

/// Its corrections.
pub fn errata() -> u32 {
    ask(ERRATA)
}

fn ask(flag: u32) -> u32 {
    // SAFETY: with these flags there is no attribute, so the pointer is null and the size 0.
    let answer = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0usize, flag) };
    u32::try_from(answer).unwrap_or(0)
}

/// A rule set that handles these rights on files, and allows none yet.
pub fn rules(handled: u64) -> Result<OwnedFd, Errno> {
    // SAFETY: the first version of the attribute is this one number; its size is given and it outlives the call.
    let rules = check(unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, &raw const handled, size_of_val(&handled), 0)
    })?;
    let rules = i32::try_from(rules).ok().ok_or(Errno::BADF)?;
    // SAFETY: the kernel has just made it, and nothing else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(rules) })
}
