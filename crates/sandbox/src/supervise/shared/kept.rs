//! Names that runs keep, as long as anything they started has their mounts.
//!
//! Owns the records that runs hand over. Refuses to give a name back to the host while a process lives that is kept from it by a mount on
//! it. Its invariant: between the calls of a session only folders stay, which git and most programs do not see, and those for a while.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::super::reserved::{Names, folders_of, sweep};
use super::kill;
use crate::plan::{Reserve, Reserved};

/// What is kept.
pub struct Kept {
    state: PathBuf,
    runs: Mutex<Vec<Run>>,
    /// Making and removing folders for every call is dear, and they are in nobody's way.
    folders: Mutex<Option<(BTreeSet<PathBuf>, Names)>>,
}

/// A run whose processes may still be there.
struct Run {
    /// While it is open, no other mounts get the same number.
    mounts: File,
    /// As long as it is open the names are on record.
    names: File,
}

impl Run {
    fn has(&self, mounts: u64) -> bool {
        self.mounts.metadata().is_ok_and(|found| found.ino() == mounts)
    }
}

impl Kept {
    /// Nothing yet.
    pub fn new(state: PathBuf) -> Self {
        Self { state, runs: Mutex::default(), folders: Mutex::default() }
    }

    /// Takes a run's record over.
    pub fn take(&self, mounts: &File, names: File) -> io::Result<()> {
        let run = Run { mounts: mounts.try_clone()?, names };
        lock(&self.runs).push(run);
        Ok(())
    }

    /// Nothing has these mounts any more.
    pub fn give_back(&self, mounts: u64) {
        self.end(|run| run.has(mounts));
    }

    /// Gives back what nothing has any more that nobody tells of.
    pub fn look(&self) {
        if lock(&self.runs).is_empty() {
            return;
        }
        // Where nobody can say who is there, everything stays.
        if let Ok(there) = kill::all_mounts() {
            self.end(|run| run.mounts.metadata().is_ok_and(|found| !there.contains(&found.ino())));
        }
    }

    /// Gives back all that no run has.
    pub fn rest(&self) {
        // With it, whoever holds it last removes them.
        drop(lock(&self.folders).take());
    }

    /// Gives back everything: nothing is left that has any of it.
    pub fn finish(&self) {
        lock(&self.runs).clear();
        self.rest();
        drop(sweep(&self.state));
    }

    fn end(&self, ended: impl Fn(&Run) -> bool) {
        let (over, left) = std::mem::take(&mut *lock(&self.runs)).into_iter().partition(ended);
        lock(&self.runs).extend::<Vec<Run>>(left);
        let mut over: Vec<Run> = over;
        for run in &mut over {
            // What cannot be kept longer is made anew the next time.
            drop(self.keep_folders(&mut run.names));
        }
        // A name that something is mounted on is dear to remove: with the last descriptor the mounts go.
        drop(over);
        // What cannot be removed now stays on record, and is tried again by the next run.
        drop(sweep(&self.state));
    }

    fn keep_folders(&self, names: &mut File) -> io::Result<()> {
        let mut more = folders_of(names)?;
        let mut folders = lock(&self.folders);
        let known = folders.as_ref().map(|(known, _)| known);
        if more.is_empty() || known.is_some_and(|known| more.is_subset(known)) {
            return Ok(());
        }
        more.extend(known.into_iter().flatten().cloned());
        let reserved: Vec<Reserved> =
            more.iter().map(|path| Reserved { path: path.clone(), by: Reserve::Folder }).collect();
        let mut record = Names::begin(&self.state)?;
        record.record(&reserved)?;
        record.placed();
        // The record before is dropped with what it held on this one.
        *folders = Some((more, record));
        Ok(())
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
