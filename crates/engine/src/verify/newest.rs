//! Which session `writ verify` means when none is named: never an older one than the newest that is known.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::SystemTime;

use writ_core::json::Value;
use writ_core::{SessionId, Timestamp};
use writ_store::{Known, Store};

use super::{VerifyError, session_id};
use crate::confine::tracked::identity;
use crate::decide::requests::DECISIONS;

/// A session of the repository.
struct Candidate {
    id: SessionId,
    started: Timestamp,
    /// When something was last heard of it: a row, a checkpoint, its beginning.
    last: Timestamp,
}

/// The newest session that began in this repository. An error where a newer one is known and its rows are gone, or are not its own.
pub fn newest(store: &Store, repository: &Path) -> Result<SessionId, VerifyError> {
    let own = identity(repository);
    let here = |cwd: &str| identity(Path::new(cwd)) == own;
    let known: Vec<Known> = store.known()?.into_iter().filter(|known| known.cwd.as_deref().is_none_or(here)).collect();
    let mut found: Option<Candidate> = None;
    let on_record = store.sessions()?.into_iter().chain(known.iter().filter_map(|known| known.id.clone()));
    for id in on_record.collect::<BTreeSet<_>>() {
        if id.as_str().starts_with(DECISIONS) {
            continue;
        }
        let apart = known.iter().find(|known| known.id.as_ref() == Some(&id));
        if apart.is_none() && store.is_known(&id) {
            continue;
        }
        let Some(candidate) = candidate(store, id, apart, here) else { continue };
        if found.as_ref().is_none_or(|found| candidate.last > found.last) {
            found = Some(candidate);
        }
    }
    let newer = |lost: &&Known| {
        let Some(found) = &found else { return true };
        let sealed = lost.sealed.and_then(moment);
        match lost.started {
            Some(started) => started > found.started || sealed.is_some_and(|sealed| sealed > found.last),
            None => sealed.is_none_or(|sealed| sealed > found.started),
        }
    };
    let gone = known.iter().filter(newer).filter(|known| !has_own_rows(store, known));
    if let Some(lost) = gone.max_by_key(|lost| (lost.started, lost.sealed)) {
        let name = lost.folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let session = lost.id.as_ref().map(ToString::to_string).or(name).unwrap_or_default();
        return Err(VerifyError::Lost { session, path: lost.folder.clone() });
    }
    found.map(|found| found.id).ok_or_else(|| VerifyError::NoSession { path: repository.to_owned() })
}

/// The sessions that began in this repository from a moment on, and the names of those whose rows are gone.
pub fn since(store: &Store, repository: &Path, from: Timestamp) -> Result<(Vec<SessionId>, Vec<String>), VerifyError> {
    let own = identity(repository);
    let here = |cwd: &str| identity(Path::new(cwd)) == own;
    let known: Vec<Known> = store.known()?.into_iter().filter(|known| known.cwd.as_deref().is_none_or(here)).collect();
    let on_record = store.sessions()?.into_iter().chain(known.iter().filter_map(|known| known.id.clone()));
    let mut found = Vec::new();
    for id in on_record.collect::<BTreeSet<_>>() {
        let apart = known.iter().find(|known| known.id.as_ref() == Some(&id));
        let Some(candidate) = candidate(store, id, apart, here) else { continue };
        // One that was under way already, and goes on, is of the run too.
        if candidate.last >= from {
            found.push((candidate.started, candidate.id));
        }
    }
    found.sort_unstable();
    let gone = |lost: &&Known| {
        let sealed = lost.sealed.and_then(moment);
        let last = lost.started.max(sealed);
        !has_own_rows(store, lost) && last.is_none_or(|last| last >= from)
    };
    let name = |lost: &Known| lost.folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let lost =
        known.iter().filter(gone).filter_map(|lost| lost.id.as_ref().map(ToString::to_string).or_else(|| name(lost)));
    Ok((found.into_iter().map(|(_, id)| id).collect(), lost.collect()))
}

/// What is remembered apart from a record counts before what stands in it: it cannot be changed with it.
fn candidate(store: &Store, id: SessionId, apart: Option<&Known>, here: impl Fn(&str) -> bool) -> Option<Candidate> {
    if !store.exists(&id) {
        return None;
    }
    // A row that does not read is the record's own trouble, which its verification tells.
    let genesis = store.first_row(&id).ok().flatten();
    let cwd = genesis.as_ref().and_then(|genesis| genesis.detail.get("cwd")).and_then(Value::as_str);
    // One that was sealed here, and does not say where it began any more, may have begun here.
    if !apart.and_then(|known| known.cwd.as_deref()).or(cwd).map_or(apart.is_some(), here) {
        return None;
    }
    let began = genesis.as_ref().map(|genesis| genesis.timestamp);
    let row = store.last_row(&id).ok().flatten().map(|row| row.timestamp);
    let sealed = apart.and_then(|known| known.sealed).and_then(moment);
    let started = apart.and_then(|known| known.started).or(began).or(sealed)?;
    let last = [row, sealed].into_iter().flatten().fold(started, Timestamp::max);
    Some(Candidate { id, started, last })
}

/// Whether its rows are there, and are its own: another session's in their place are none.
fn has_own_rows(store: &Store, known: &Known) -> bool {
    let Some(id) = known.id.as_ref().filter(|_| known.has_rows()) else { return known.has_rows() };
    store.first_row(id).map_or(true, |row| row.is_some_and(|row| session_id(&row).as_ref() == Some(id)))
}

fn moment(at: SystemTime) -> Option<Timestamp> {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok().map(Timestamp::from_millis)
}
