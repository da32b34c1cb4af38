//! Files and folders that are still there after a power cut.
//!
//! Owns creating folders and replacing small files. Refuses to leave a half-written file under its final name. Invariant: when
//! a function here returns `Ok`, what it made survives a crash of the machine.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use writ_core::regular_file;

use crate::error::{StoreError, io};

/// Mode of every file: the owner's alone.
const FILE_MODE: u32 = 0o600;
/// Mode of every folder.
const FOLDER_MODE: u32 = 0o700;

/// Creates a folder and its missing parents for the owner alone. Folders that exist keep their mode.
pub fn make_folder(path: &Path) -> Result<(), StoreError> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path).map_err(io("create", path))
}

/// Refuses a file or folder that others than its owner may write to. One that is not there is made for the owner alone.
pub fn guarded(path: &Path) -> Result<(), StoreError> {
    match path.metadata() {
        Ok(found) if found.permissions().mode() & 0o022 != 0 => {
            let mode = if found.is_dir() { FOLDER_MODE } else { FILE_MODE };
            Err(StoreError::Writable { path: path.to_owned(), mode })
        }
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io("read", path)(error)),
        _ => Ok(()),
    }
}

/// Makes the names in a folder durable.
pub fn sync_folder(path: &Path) -> Result<(), StoreError> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(io("flush", path))
}

/// Options for a file that others cannot read.
pub fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// Puts `bytes` under `path` at once: a reader sees the old file or the new one, never a part.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let draft = write_draft(path, bytes)?;
    let renamed = fs::rename(&draft, path).map_err(io("write", path));
    if renamed.is_err() {
        discard(&draft)?;
    }
    renamed?;
    sync_parent(path)
}

/// The same for what can be made again: at once, and after a crash perhaps the old file, none, or one without its bytes.
pub fn replace_soon(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let draft = draft_of(path);
    let written =
        private().write(true).create(true).truncate(true).open(&draft).and_then(|mut file| file.write_all(bytes));
    written.and_then(|()| fs::rename(&draft, path)).map_err(io("write", path))
}

/// Puts `bytes` under `path` unless something is there already. Returns whether it did.
pub fn create(path: &Path, bytes: &[u8]) -> Result<bool, StoreError> {
    let draft = write_draft(path, bytes)?;
    // A link, unlike a rename, fails when the name is taken: of several processes exactly one wins.
    let linked = fs::hard_link(&draft, path);
    discard(&draft)?;
    match linked {
        Ok(()) => sync_parent(path).map(|()| true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(io("create", path)(error)),
    }
}

/// The file's bytes, `None` when there is none.
pub fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, StoreError> {
    let file = match regular_file::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other.map_err(io("open", path))?,
    };
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).map_err(io("read", path))?;
    Ok(Some(bytes))
}

/// A name beside `path` that no other process uses.
fn draft_of(path: &Path) -> PathBuf {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    path.with_file_name(format!(".draft-{}-{number}", process::id()))
}

/// Writes and flushes a file beside `path`, under a name no other process uses.
fn write_draft(path: &Path, bytes: &[u8]) -> Result<PathBuf, StoreError> {
    make_folder(path.parent().unwrap_or(Path::new("/")))?;
    let draft = draft_of(path);
    // Only a crashed process with the same id can have left this name behind.
    discard(&draft)?;
    let mut file = private().write(true).create_new(true).open(&draft).map_err(io("create", &draft))?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all()).map_err(io("write", &draft));
    if written.is_err() {
        discard(&draft)?;
    }
    written.map(|()| draft)
}

fn discard(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io("remove", path)(error)),
        _ => Ok(()),
    }
}

fn sync_parent(path: &Path) -> Result<(), StoreError> {
    path.parent().map_or(Ok(()), sync_folder)
}
