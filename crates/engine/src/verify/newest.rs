//! Which session `writ verify` means when none is named: never an older one than the newest that is known.

use std::path::Path;
use std::time::SystemTime;

use writ_core::json::Value;
use writ_core::{SessionId, Timestamp};
use writ_store::{Known, Store};

use super::VerifyError;
use crate::governing;

/// The newest session that began in this repository. An error where a newer one is known and its rows are gone.
pub fn newest(store: &Store, repository: &Path) -> Result<SessionId, VerifyError> {
    let known: Vec<Known> = store.known()?;
    let here = |cwd: &str| governing::repository(Path::new(cwd)) == repository;
    let mut found = None;
    for id in store.sessions()? {
        let Some(genesis) = store.first_row(&id)? else { continue };
        // What was remembered apart from the record cannot be changed with it.
        let apart = known.iter().find(|known| known.id.as_ref() == Some(&id)).and_then(|known| known.cwd.as_deref());
        let cwd = apart.or_else(|| genesis.detail.get("cwd").and_then(Value::as_str));
        if cwd.is_some_and(here) {
            let last = store.last_row(&id)?.map_or(genesis.timestamp, |row| row.timestamp);
            found = Some((id, genesis.timestamp, last));
            break;
        }
    }
    let newer = |lost: &&Known| {
        let Some((_, began, last)) = &found else { return true };
        let sealed = lost.sealed.and_then(moment);
        match lost.started {
            Some(started) => started > *began || sealed.is_some_and(|sealed| sealed > *last),
            None => sealed.is_none_or(|sealed| sealed > *began),
        }
    };
    let gone = known.iter().filter(|known| !known.has_rows() && known.cwd.as_deref().is_none_or(here));
    if let Some(lost) = gone.filter(newer).max_by_key(|lost| (lost.started, lost.sealed)) {
        let name = lost.folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let session = lost.id.as_ref().map(ToString::to_string).or(name).unwrap_or_default();
        return Err(VerifyError::Lost { session, path: lost.folder.clone() });
    }
    found.map(|(id, ..)| id).ok_or_else(|| VerifyError::NoSession { path: repository.to_owned() })
}

fn moment(at: SystemTime) -> Option<Timestamp> {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok().map(Timestamp::from_millis)
}
