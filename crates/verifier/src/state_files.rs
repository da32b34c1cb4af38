//! The verifier's files: private, replaced whole, changed under a lock.
//!
//! Owns locking, replacing and appending. Refuses a file that is no plain file, that others may write, or that is too large. Invariant:
//! when a function here returns `Ok`, what it wrote survives a crash, and a reader sees the old file or the new one.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::entry::Damage;

/// How long a file may be locked by others before this process gives up.
const PATIENCE: Duration = Duration::from_secs(10);
/// `O_NONBLOCK` on Linux: a pipe put where a file should be does not hold the reader up.
const NONBLOCK: i32 = 0o4000;
/// Write access for the group and for others.
const OTHERS_WRITE: u32 = 0o022;

/// Why the verifier's own files could not be used. Nothing is verified then: no answer is better than one without rollback protection.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Other processes held the file for as long as this one would wait.
    #[error("{} was locked for {} s: look for a hanging process, then try again", path.display(), PATIENCE.as_secs())]
    Busy {
        /// The lock's file.
        path: PathBuf,
    },
    /// The file is not what this crate wrote. A new one would forget what must not come back, so an operator decides.
    #[error("{} is damaged ({damage}): put it back as it was, or {remedy}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        damage: Damage,
        /// What else an operator can do.
        remedy: String,
    },
    /// Others may write the file.
    #[error("{} can be written by others: see who did, then run `chmod 600` on it", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// The clock shows a year that RFC 3339 cannot write.
    #[error("the clock is beyond the year 9999: set it")]
    Clock,
    /// What must be recorded first could not be.
    #[error("cannot be recorded: {0}")]
    Log(String),
}

fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StateError {
    move |source| StateError::Io { action, path: path.to_owned(), source }
}

/// The lock on `path`, which is made with its folder if it is not there. It goes with the handle, and with the process.
pub fn lock(path: &Path) -> Result<File, StateError> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(io("create", folder))?;
    }
    let file = private().create(true).truncate(false).write(true).open(path).map_err(io("open", path))?;
    let start = Instant::now();
    let mut pause = Duration::from_micros(50);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(io("lock", path)(error)),
            Err(TryLockError::WouldBlock) if start.elapsed() > PATIENCE => {
                return Err(StateError::Busy { path: path.to_owned() });
            }
            Err(TryLockError::WouldBlock) => thread::sleep(pause),
        }
        pause = (pause * 2).min(Duration::from_millis(2));
    }
}

/// Puts `bytes` under `path` at once. The caller holds the lock that goes with `path`, so the draft has one name and none is left over.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), StateError> {
    let draft = path.with_extension("draft");
    let mut file = private().write(true).create(true).truncate(true).open(&draft).map_err(io("create", &draft))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(io("write", &draft))?;
    fs::rename(&draft, path).map_err(io("write", path))?;
    sync_parent(path)
}

/// Makes a file that was not there. Returns whether it did. The caller holds the lock of its folder.
pub fn create(path: &Path, bytes: &[u8]) -> Result<bool, StateError> {
    match private().write(true).create_new(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(io("create", path)(error)),
        Ok(mut file) => {
            file.write_all(bytes).and_then(|()| file.sync_all()).map_err(io("write", path))?;
            sync_parent(path).map(|()| true)
        }
    }
}

/// Adds a line to a file. A line that a crash cut off is ended first, so that it stays apart.
pub fn append(path: &Path, line: &str) -> Result<(), StateError> {
    let _guard = lock(&path.with_extension("lock"))?;
    let fresh = !path.exists();
    let mut file = private().read(true).create(true).append(true).open(path).map_err(io("open", path))?;
    let mut last = [b'\n'];
    if file.metadata().map_err(io("read", path))?.len() > 0 {
        file.seek(SeekFrom::End(-1)).and_then(|_| file.read_exact(&mut last)).map_err(io("read", path))?;
    }
    let line = if last == [b'\n'] { format!("{line}\n") } else { format!("\n{line}\n") };
    file.write_all(line.as_bytes()).and_then(|()| file.sync_data()).map_err(io("append to", path))?;
    if fresh { sync_parent(path) } else { Ok(()) }
}

/// The bytes of a file, `None` when there is none. A longer one than `limit` comes back cut, one byte too long.
pub fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, StateError> {
    let file = match OpenOptions::new().read(true).custom_flags(NONBLOCK).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other.map_err(io("open", path))?,
    };
    let metadata = file.metadata().map_err(io("read", path))?;
    if !metadata.is_file() {
        return Err(io("read", path)(io::Error::new(ErrorKind::InvalidInput, "not a plain file")));
    }
    if metadata.mode() & OTHERS_WRITE != 0 {
        return Err(StateError::Exposed { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(io("read", path))?;
    Ok(Some(bytes))
}

/// Takes a file away. That it comes back after a crash must do no harm.
pub fn remove(path: &Path) -> Result<(), StateError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// The names in a folder, those that are UTF-8.
pub fn names(folder: &Path) -> Result<Vec<String>, StateError> {
    let entries = fs::read_dir(folder).map_err(io("read", folder))?;
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry.map_err(io("read", folder))?.file_name().into_string().ok());
    }
    Ok(names)
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

fn sync_parent(path: &Path) -> Result<(), StateError> {
    let Some(folder) = path.parent() else { return Ok(()) };
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(io("flush", folder))
}
