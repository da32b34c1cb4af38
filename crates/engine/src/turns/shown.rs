//! The attestations of turns that a session has, as people and scripts are shown them.

use serde::Serialize;
use writ_core::{Digest, SessionId, Timestamp};
use writ_store::{Store, StoreError, regular_file};

use super::FOLDER;
use super::gathered::agent;
use super::named::Named;
use super::predicate::PREDICATE_TYPE;

/// Largest statement.
const MAX: u64 = 16 << 20;

/// One of them.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// Its predicate's type.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The session.
    pub session: String,
    /// Its file.
    pub name: String,
    /// The turn.
    pub turn: u64,
    /// Which statement about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<u64>,
    /// `main`, or a sub-agent's id.
    pub agent: String,
    /// The row that names it.
    pub row: u64,
    /// When that was written.
    pub timestamp: Timestamp,
    /// Digest of the file.
    pub digest: Digest,
}

/// Those of a session, in the order of its rows.
pub fn shown(store: &Store, id: &SessionId) -> Result<Vec<Shown>, StoreError> {
    let mut all = Vec::new();
    store.each_row(id, |row| {
        if let Some(Ok(named)) = Named::of(&row) {
            all.push(Shown {
                kind: PREDICATE_TYPE,
                session: id.to_string(),
                name: named.name,
                turn: named.turn,
                part: named.part,
                agent: agent(&row).to_owned(),
                row: row.sequence,
                timestamp: row.timestamp,
                digest: named.attestation,
            });
        }
    })?;
    Ok(all)
}

/// The file that one of them is, where it is still what its row names.
pub fn file(store: &Store, id: &SessionId, shown: &Shown) -> Option<Vec<u8>> {
    let path = store.folder(id).join(FOLDER).join(&shown.name);
    regular_file::read(&path, MAX).ok().filter(|bytes| Digest::of(bytes) == shown.digest)
}
