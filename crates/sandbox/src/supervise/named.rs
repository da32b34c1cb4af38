//! The paths that a call names, and what it does with them.
//!
//! Owns how each call has them in its arguments. Refuses to follow anything: links and `..` stand as they are. Invariant: what is read was
//! there when it was read, and may be another text when the kernel reads it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::process::Pid;

use super::noted::Act;
use crate::sys::notify::{self, Call};

/// Longest path.
const LONGEST: usize = 4096;

/// A path in a call, absolute, links and `..` as they stand.
pub struct Named {
    pub process: Pid,
    pub path: PathBuf,
    pub act: Act,
}

/// The paths that a call names; what it does with one that cannot be read.
pub fn named(call: &Call) -> [Option<Result<Named, Act>>; 2] {
    let [first, second, third, fourth, ..] = call.arguments;
    let here = i64::from(libc::AT_FDCWD).cast_unsigned();
    let at = |folder, address, act| match path(call, folder, address, act) {
        Ok(found) => found.map(|(process, path)| Ok(Named { process, path, act })),
        Err(Unread) => Some(Err(act)),
    };
    match call.number {
        libc::SYS_openat => [at(first, second, opening(third)), None],
        libc::SYS_mkdirat | libc::SYS_mknodat => [at(first, second, Act::Make), None],
        libc::SYS_unlinkat => [at(first, second, Act::Remove), None],
        libc::SYS_fchmodat => [at(first, second, Act::Change), None],
        libc::SYS_renameat2 => [at(first, second, Act::Remove), at(third, fourth, Act::Replace)],
        libc::SYS_linkat => [at(first, second, Act::Link), at(third, fourth, Act::Make)],
        libc::SYS_symlinkat => [at(second, third, Act::Make), None],
        libc::SYS_truncate => [at(here, first, Act::Change), None],
        libc::SYS_newfstatat | libc::SYS_statx | libc::SYS_faccessat | libc::SYS_faccessat2 | libc::SYS_readlinkat => {
            [at(first, second, Act::Ask), None]
        }
        libc::SYS_execve | libc::SYS_chdir => [at(here, first, Act::Read), None],
        libc::SYS_execveat => [at(first, second, Act::Read), None],
        number => old(number, [first, second, third, fourth], at),
    }
}

/// The same of calls that only x86-64 has.
#[cfg(target_arch = "x86_64")]
fn old(
    number: i64,
    [first, second, third, fourth]: [u64; 4],
    at: impl Fn(u64, u64, Act) -> Option<Result<Named, Act>>,
) -> [Option<Result<Named, Act>>; 2] {
    let here = i64::from(libc::AT_FDCWD).cast_unsigned();
    match number {
        libc::SYS_open => [at(here, first, opening(second)), None],
        libc::SYS_creat | libc::SYS_chmod => [at(here, first, Act::Change), None],
        libc::SYS_mkdir => [at(here, first, Act::Make), None],
        libc::SYS_rmdir | libc::SYS_unlink => [at(here, first, Act::Remove), None],
        libc::SYS_rename => [at(here, first, Act::Remove), at(here, second, Act::Replace)],
        libc::SYS_renameat => [at(first, second, Act::Remove), at(third, fourth, Act::Replace)],
        libc::SYS_link => [at(here, first, Act::Link), at(here, second, Act::Make)],
        libc::SYS_symlink => [None, at(here, second, Act::Make)],
        libc::SYS_stat | libc::SYS_lstat | libc::SYS_access | libc::SYS_readlink => [at(here, first, Act::Ask), None],
        _ => [None, None],
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn old(
    _: i64,
    _: [u64; 4],
    _: impl Fn(u64, u64, Act) -> Option<Result<Named, Act>>,
) -> [Option<Result<Named, Act>>; 2] {
    [None, None]
}

/// What opening with these flags does.
fn opening(flags: u64) -> Act {
    let has = |flag: libc::c_int| flags & u64::from(flag.cast_unsigned()) != 0;
    if has(libc::O_PATH) {
        Act::Ask
    } else if has(libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC) {
        Act::Change
    } else {
        Act::Read
    }
}

/// What cannot be read of a process.
struct Unread;

/// The path at an address, absolute; nothing where there is none.
fn path(call: &Call, folder: u64, address: u64, act: Act) -> Result<Option<(Pid, PathBuf)>, Unread> {
    let process = call.process.ok_or(Unread)?;
    let mut bytes = [0; LONGEST];
    let read = notify::read_memory(process, address, &mut bytes).ok().ok_or(Unread)?;
    let Some(text) = bytes.get(..read).and_then(|bytes| bytes.split(|byte| *byte == 0).next()) else { return Ok(None) };
    if text.len() >= read {
        // Longer than the kernel takes.
        return Ok(None);
    }
    let path = Path::new(OsStr::from_bytes(text));
    if path.is_absolute() {
        return Ok(Some((process, path.to_owned())));
    }
    if text.is_empty() && act != Act::Link {
        return Ok(None);
    }
    let number = process.as_raw_nonzero();
    // A descriptor is a number of 32 bits, whatever stands above them.
    let link = match folder as i32 {
        libc::AT_FDCWD => format!("/proc/{number}/cwd"),
        descriptor => format!("/proc/{number}/fd/{descriptor}"),
    };
    let from = fs::read_link(link).ok().ok_or(Unread)?;
    if text.is_empty() {
        // What the descriptor itself is.
        return Ok(Some((process, from)));
    }
    Ok(Some((process, from.join(path))))
}
