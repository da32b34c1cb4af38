//! `landlock_add_rule(2)` and `landlock_restrict_self(2)`, for a rule set that was made before the `clone`.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use super::check;

#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: i32,
}

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
