//! The few file operations the store is made of.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::StoreError;

/// `O_NOFOLLOW` on Linux; a symlink in a ledger's place is an error, not a way elsewhere.
#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
const NO_FOLLOW: i32 = 0o40_0000;
/// The same, where the kernel numbers it otherwise.
#[cfg(any(target_arch = "aarch64", target_arch = "arm"))]
const NO_FOLLOW: i32 = 0o10_0000;

/// Opens a file for reading and appending that only its owner may touch; never through a symlink.
pub fn open_private(path: &Path) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600).custom_flags(NO_FOLLOW);
    options.open(path).map_err(|source| StoreError::io("open", path, source))
}

/// Makes a folder and its parents; new ones are their owner's alone.
pub fn make_private_dir(path: &Path) -> Result<(), StoreError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|source| StoreError::io("create", path, source))
}

/// A file's bytes, or `None` when there is no such file.
pub fn read_optional(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io("read", path, error)),
    }
}

/// A folder's entries, or `None` when there is no such folder.
pub fn read_dir_optional(path: &Path) -> Result<Option<fs::ReadDir>, StoreError> {
    match fs::read_dir(path) {
        Ok(entries) => Ok(Some(entries)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io("list", path, error)),
    }
}

/// Puts a whole file in place of whatever was there; durable on return.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let fresh = fresh_file(path, bytes)?;
    fs::rename(&fresh, path).map_err(|source| StoreError::io("rename", &fresh, source))?;
    sync_parent(path)
}

/// Puts a whole file where none was; the first of several writers wins and the others are content. Durable on return.
pub fn write_once(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    let fresh = fresh_file(path, bytes)?;
    let linked = fs::hard_link(&fresh, path);
    drop(fs::remove_file(&fresh));
    match linked {
        Err(source) if source.kind() != ErrorKind::AlreadyExists => Err(StoreError::io("create", path, source)),
        _ => sync_parent(path),
    }
}

/// Makes a folder's new names durable.
pub fn sync_parent(path: &Path) -> Result<(), StoreError> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    File::open(parent).and_then(|dir| dir.sync_all()).map_err(|source| StoreError::io("sync", parent, source))
}

/// A file of this process's own beside `path`, written and synced.
fn fresh_file(path: &Path, bytes: &[u8]) -> Result<PathBuf, StoreError> {
    if let Some(parent) = path.parent() {
        make_private_dir(parent)?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let fresh = PathBuf::from(name);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).custom_flags(NO_FOLLOW);
    let written = options.open(&fresh).and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
    written.map_err(|source| StoreError::io("write", &fresh, source))?;
    Ok(fresh)
}
