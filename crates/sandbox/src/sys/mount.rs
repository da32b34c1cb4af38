//! `mount_setattr(2)`, which changes a whole tree of mounts in one call.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use super::check;

/// What is set on a mount.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attributes {
    /// `MOUNT_ATTR_*` that are set.
    pub set: u64,
    /// `MOUNT_ATTR_*` that are cleared.
    pub clear: u64,
    /// `MS_PRIVATE` and its like; 0 leaves it.
    pub propagation: u64,
}

/// Nothing can be written.
pub const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
/// Setuid bits and file capabilities give nothing.
pub const NO_SETUID: u64 = libc::MOUNT_ATTR_NOSUID;
/// Device nodes cannot be opened.
pub const NO_DEVICES: u64 = libc::MOUNT_ATTR_NODEV;
/// Nothing can be executed.
pub const NO_EXECUTION: u64 = libc::MOUNT_ATTR_NOEXEC;

/// Changes the mount at `path` and all below it; with an empty path the one that `folder` stands for.
pub fn set_recursively(folder: BorrowedFd<'_>, path: &CStr, attributes: Attributes) -> Result<(), Errno> {
    let attributes = libc::mount_attr {
        attr_set: attributes.set,
        attr_clr: attributes.clear,
        propagation: attributes.propagation,
        userns_fd: 0,
    };
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    // SAFETY: `path` ends with a zero byte, and `attributes` is a `mount_attr` of the size given; both outlive the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            folder.as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of_val(&attributes),
        )
    })
    .map(drop)
}

/// Shows the files of a detached mount with other owners: those of the user namespace `owners` (`MOUNT_ATTR_IDMAP`).
pub fn map_owners(tree: BorrowedFd<'_>, owners: BorrowedFd<'_>) -> Result<(), Errno> {
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_IDMAP,
        attr_clr: 0,
        propagation: 0,
        userns_fd: u64::try_from(owners.as_raw_fd()).ok().ok_or(Errno::BADF)?,
    };
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    // SAFETY: the path is a literal that ends with a zero byte, and `attributes` is a `mount_attr` of the size given; both outlive the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of_val(&attributes),
        )
    })
    .map(drop)
}
