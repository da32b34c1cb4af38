//! The nonces that were used up: one small file each.
//!
//! Owns that an attestation with a nonce is acted on once. Refuses a nonce that is there, and one whose file may have been cleared away.
//! Invariant: of all processes that use one nonce of one instance, at any time and under any clock, one is told [`Use::First`].

use std::path::{Path, PathBuf};

use writ_core::{Digest, Timestamp};

use crate::entry::Damage;
use crate::{Instance, StateError, state_files};

/// Name of the file that holds the latest end of any nonce cleared away.
const CLEARED: &str = "cleared.txt";
/// Largest file here.
const MAX_FILE: u64 = 64;

/// A folder of nonces. Any number of processes and threads may use one.
#[derive(Clone, Debug)]
pub struct Nonces {
    folder: PathBuf,
}

/// What became of a nonce.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// It was not used before. After [`Nonces::use_up`] it is.
    First,
    /// It was used before.
    Again,
    /// It ends no later than nonces that were cleared away: whether it was used is not known any more.
    Unknown,
}

impl Nonces {
    /// The nonces in `folder`, which is made with the first.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Whether a nonce was used up before. Uses up nothing.
    pub fn look(&self, instance: &Instance, nonce: &str, expires_at: Option<Timestamp>) -> Result<Use, StateError> {
        let folder = self.folder(instance);
        // The latest end is written before the files it stands for are removed, so without a lock the file is what to look at first.
        if state_files::read(&used(&folder, nonce), MAX_FILE)?.is_some() {
            return Ok(Use::Again);
        }
        Ok(if was_cleared(&folder, expires_at)? { Use::Unknown } else { Use::First })
    }

    /// Uses up a nonce. One without an end is kept for ever. Durable on return.
    pub fn use_up(
        &self,
        instance: &Instance,
        nonce: &str,
        expires_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Use, StateError> {
        let folder = self.folder(instance);
        // INVARIANT: clearing away and looking up exclude each other, or a nonce could be used between its end and its removal.
        let _guard = state_files::lock(&folder.join("nonces.lock"))?;
        // Nonces are random, so this spreads the work of clearing away over one use in sixteen, with nothing to remember.
        if nonce.starts_with('0') {
            clear(&folder, now)?;
        }
        if was_cleared(&folder, expires_at)? {
            return Ok(Use::Unknown);
        }
        let end = expires_at.map(|end| end.to_string()).unwrap_or_default();
        Ok(if state_files::create(&used(&folder, nonce), end.as_bytes())? { Use::First } else { Use::Again })
    }

    fn folder(&self, instance: &Instance) -> PathBuf {
        self.folder.join(Digest::of(instance.as_str().as_bytes()).hex())
    }
}

fn used(folder: &Path, nonce: &str) -> PathBuf {
    folder.join(format!("{}.used", Digest::of(nonce.as_bytes()).hex()))
}

/// Whether nonces with this end were cleared away.
fn was_cleared(folder: &Path, expires_at: Option<Timestamp>) -> Result<bool, StateError> {
    let cleared = moment(&folder.join(CLEARED))?;
    Ok(expires_at.is_some_and(|end| cleared.is_some_and(|cleared| end <= cleared)))
}

/// Removes the nonces whose end is over. A clock that is set back later does not make them usable: their ends are remembered first.
fn clear(folder: &Path, now: Timestamp) -> Result<(), StateError> {
    let mut over = Vec::new();
    for name in state_files::names(folder)?.iter().filter(|name| name.ends_with(".used")) {
        let path = folder.join(name);
        // A file that does not say when it ends stays.
        let end = state_files::read(&path, MAX_FILE)?
            .and_then(|bytes| Timestamp::parse(std::str::from_utf8(&bytes).ok()?).ok());
        over.extend(end.filter(|end| *end <= now).map(|end| (end, path)));
    }
    let Some(latest) = over.iter().map(|(end, _)| *end).max() else { return Ok(()) };
    let path = folder.join(CLEARED);
    let known = moment(&path)?;
    if known.is_none_or(|known| known < latest) {
        state_files::replace(&path, latest.to_string().as_bytes())?;
    }
    over.iter().try_for_each(|(_, path)| state_files::remove(path))
}

fn moment(path: &Path) -> Result<Option<Timestamp>, StateError> {
    let Some(bytes) = state_files::read(path, MAX_FILE)? else { return Ok(None) };
    let damaged = |error: writ_core::TimeError| StateError::Damaged {
        path: path.to_owned(),
        damage: Damage(error.to_string()),
        remedy: "remove it, and trust no attestation that was issued before".to_owned(),
    };
    Timestamp::parse(&String::from_utf8_lossy(&bytes)).map(Some).map_err(damaged)
}
