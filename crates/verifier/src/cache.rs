//! The registries that were fetched, on disk, one file per instance.
//!
//! Owns reading, advancing and forcing an entry. Refuses to start afresh over a damaged file. Invariant: under any number of processes,
//! an entry only ever gives way to one that may follow it, or to a forced one that was recorded first.

use std::path::PathBuf;

use writ_core::{Digest, Timestamp};
use writ_evidence::attestation::Failure;
use writ_evidence::registry::Registry;

use crate::entry::{Damage, Entry};
use crate::event::Discarded;
use crate::{Instance, StateError, state_files};

/// Largest cache file, in bytes: what [`Entry::parse`] reads.
const MAX_FILE: usize = 16 << 20;

/// A folder of registries. Any number of processes and threads may use one.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

/// What became of a fetched registry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Advance {
    /// It was taken, and is on disk.
    Taken(Entry),
    /// It may not follow what is known: a rollback.
    Refused(Failure),
    /// It may not follow what another process stored since `seen` was read. That one is newer; look at it before judging.
    Overtaken(Failure),
}

impl Cache {
    /// The cache in `folder`, which is made when there is something to keep.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Where an instance's entry is: `<folder>/<SHA-256 of the instance>.json`.
    pub fn path(&self, instance: &Instance) -> PathBuf {
        self.folder.join(format!("{}.json", Digest::of(instance.as_str().as_bytes()).hex()))
    }

    /// What is known of an instance, `None` before the first registry. A damaged file is an error, never `None`.
    pub fn load(&self, instance: &Instance) -> Result<Option<Entry>, StateError> {
        let path = self.path(instance);
        let Some(bytes) = state_files::read(&path, MAX_FILE as u64)? else { return Ok(None) };
        let entry = Entry::parse(&bytes).and_then(|entry| {
            let own = entry.instance() == instance;
            own.then_some(entry).ok_or_else(|| Damage("it belongs to another instance".to_owned()))
        });
        let remedy = format!("force a refresh for {instance}");
        entry.map(Some).map_err(|damage| StateError::Damaged { path, damage, remedy })
    }

    /// Takes a registry that was asked for at `now`, when the entry was `seen`, if it may follow what is known by now. Durable on
    /// return.
    pub fn advance(
        &self,
        instance: &Instance,
        fetched: Registry,
        now: Timestamp,
        seen: Option<&Entry>,
    ) -> Result<Advance, StateError> {
        writable(now)?;
        // INVARIANT: what is compared is what is replaced, because both happen under the lock.
        let _guard = self.lock(instance)?;
        let known = self.load(instance)?;
        let next = match &known {
            None => Ok(Entry::first(instance.clone(), fetched, now)),
            Some(known) => known.followed_by(&fetched, now),
        };
        match next {
            Ok(next) => self.store(&next).map(|()| Advance::Taken(next)),
            Err(failure) if known.as_ref() == seen => Ok(Advance::Refused(failure)),
            Err(failure) => Ok(Advance::Overtaken(failure)),
        }
    }

    /// Takes a registry whatever is known (§5.5, force refresh). `record` is told what is discarded, and runs before anything changes; when
    /// it fails, nothing does.
    pub(crate) fn force(
        &self,
        instance: &Instance,
        fetched: Registry,
        now: Timestamp,
        record: impl FnOnce(Discarded) -> Result<(), StateError>,
    ) -> Result<Discarded, StateError> {
        writable(now)?;
        let _guard = self.lock(instance)?;
        let discarded = match self.load(instance) {
            Ok(None) => Discarded::None,
            Ok(Some(entry)) => Discarded::Version(entry.registry().version()),
            Err(StateError::Damaged { .. } | StateError::Exposed { .. }) => Discarded::Unreadable,
            Err(error) => return Err(error),
        };
        record(discarded)?;
        self.store(&Entry::first(instance.clone(), fetched, now)).map(|()| discarded)
    }

    fn store(&self, entry: &Entry) -> Result<(), StateError> {
        state_files::replace(&self.path(entry.instance()), &entry.to_bytes())
    }

    fn lock(&self, instance: &Instance) -> Result<std::fs::File, StateError> {
        state_files::lock(&self.path(instance).with_extension("lock"))
    }
}

/// A moment that could not be read back would damage the file it is written to.
fn writable(now: Timestamp) -> Result<(), StateError> {
    if Timestamp::parse(&now.to_string()) == Ok(now) { Ok(()) } else { Err(StateError::Clock) }
}
