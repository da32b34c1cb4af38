//! Files that took the place of protected ones, protected as those were.
//!
//! Owns what a process that is sent into the sandbox's mounts does there. Refuses to allocate, and leaves alone what is still protected. Its
//! invariant: what is looked at is what is mounted on, by one descriptor.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{CWD, FileType, OFlags, StatVfsMountFlags, fstat, fstatvfs};
use rustix::io::Errno;
use rustix::mount::OpenTreeFlags;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::mounts::{change, copy, find_now, part_of, put_on};
use crate::sys::mount::{NO_DEVICES, READ_ONLY};

/// A file whose own mount protects it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Where.
    pub path: CString,
    /// Whether it cannot be read either.
    pub masked: bool,
}

/// What became of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is protected still, or not there.
    Kept,
    /// It is protected again.
    Again,
    /// It could not be.
    Lost,
}

/// Protects them again, where that is needed, and says what became of each in `fates`, which begin as [`Fate::Lost`].
pub fn protect_again(
    user: Option<BorrowedFd<'_>>,
    mounts: BorrowedFd<'_>,
    targets: &[&Target],
    fates: &mut [Fate],
) -> i32 {
    let entered = user.map_or(Ok(()), |user| move_into_link_name_space(user, Some(LinkNameSpaceType::User)));
    if entered.and_then(|()| move_into_link_name_space(mounts, Some(LinkNameSpaceType::Mount))).is_err() {
        return 1;
    }
    for (target, fate) in targets.iter().zip(fates) {
        *fate = protect(target).unwrap_or(Fate::Lost);
    }
    0
}

fn protect(target: &Target) -> Result<Fate, Errno> {
    let found = match find_now(&target.path, OFlags::NOFOLLOW) {
        // What comes there later is told as well.
        Err(Errno::NOENT) => return Ok(Fate::Kept),
        found => found?,
    };
    if fstatvfs(&found)?.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Ok(Fate::Kept);
    }
    let is_file = FileType::from_raw_mode(fstat(&found)?.st_mode) == FileType::RegularFile;
    let tree = if target.masked && is_file {
        // A device that cannot be opened.
        let tree = part_of(CWD, c"/dev/null", OpenTreeFlags::empty())?;
        change(tree.as_fd(), READ_ONLY | NO_DEVICES)?;
        tree
    } else {
        let tree = copy(found.as_fd())?;
        change(tree.as_fd(), READ_ONLY)?;
        tree
    };
    put_on(tree.as_fd(), found.as_fd()).map(|()| Fate::Again)
}
