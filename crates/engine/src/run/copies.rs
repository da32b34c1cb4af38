//! Where what a client has of its own lies while it runs.
//!
//! Owns one folder a run in Writ's state, removed when the run ends. Refuses nothing. Invariant: what a run left that was killed is
//! removed when the next one begins, since nobody holds its lock any more, and so is what it wrote beside its work.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use writ_core::SessionId;
use writ_store::Store;

use crate::confine::{folders, layers};

const FOLDER: &str = "runs";
const LOCK: &str = "lock";

/// A run's folder, until it is dropped.
#[derive(Debug)]
pub struct Copies {
    folder: PathBuf,
    lock: PathBuf,
    /// Held while the run lasts.
    _held: File,
}

impl Copies {
    /// Makes it, and removes those of runs that are over.
    pub fn begin(store: &Store, session: &SessionId) -> io::Result<Self> {
        let (all, run) = (store.root().join(FOLDER), session.as_str());
        DirBuilder::new().recursive(true).mode(0o700).create(&all)?;
        // Held until this one's lock is: nobody takes it for one that is over.
        let one_at_a_time = open(&all.join(LOCK))?;
        one_at_a_time.lock()?;
        sweep(&all, store)?;
        let (folder, lock) = (all.join(run), all.join(format!("{run}.{LOCK}")));
        let held = open(&lock)?;
        held.try_lock()?;
        DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Self { folder, lock, _held: held })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        // What cannot be removed now, the next run tries again.
        if folders::remove(&self.folder).is_ok() {
            fs::remove_file(&self.lock).unwrap_or_default();
        }
    }
}

/// Whether a run is going on.
pub fn is_running(state: &Path, run: &str) -> bool {
    let lock = File::open(state.join(FOLDER).join(format!("{run}.{LOCK}")));
    lock.is_ok_and(|lock| lock.try_lock_shared().is_err())
}

fn open(path: &Path) -> io::Result<File> {
    File::options().create(true).truncate(false).write(true).mode(0o600).open(path)
}

fn sweep(all: &Path, store: &Store) -> io::Result<()> {
    for entry in fs::read_dir(all)? {
        let lock = entry?.path();
        let name = lock.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".lock"));
        let Some(name) = name else { continue };
        if open(&lock)?.try_lock().is_ok() && folders::remove(&all.join(name)).is_ok() {
            layers::remove(store, &SessionId::new(name));
            fs::remove_file(&lock)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_killed_leaves_nothing_to_the_next() {
        let state = tempfile::tempdir().unwrap();
        let store = Store::open(state.path().to_owned()).unwrap();
        let begin = |run: &str| Copies::begin(&store, &SessionId::new(run)).unwrap();
        let (first, killed) = (begin("first"), begin("killed"));
        let written = ["first", "killed"].map(|run| store.folder(&SessionId::new(run)).join("layer-/changes"));
        written.iter().for_each(|written| fs::create_dir_all(written).unwrap());
        fs::write(killed.folder().join("0"), "left").unwrap();
        assert!(first.folder().is_dir());
        let all = state.path().join(FOLDER);
        // As the kernel leaves it: the lock is gone, and nothing else.
        let Copies { folder, .. } = &killed;
        let folder = folder.clone();
        fs::rename(&folder, all.join("aside")).unwrap();
        drop(killed);
        fs::rename(all.join("aside"), &folder).unwrap();
        drop(open(&all.join("killed.lock")).unwrap());
        let _third = begin("third");
        assert!(!folder.exists() && first.folder().is_dir());
        assert!(written[0].is_dir() && !written[1].exists(), "what it wrote beside its work");
        drop(first);
        let left = fs::read_dir(&all).unwrap().count();
        assert_eq!(left, 3, "the third, its lock, and that of all");
    }
}
