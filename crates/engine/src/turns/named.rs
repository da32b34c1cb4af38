//! The row that names a turn's statement.
//!
//! Owns what it says. Invariant: it names the file by its digest, so that nothing can take its place. Page: `spec/turns.md`.

use serde::{Deserialize, Serialize};
use writ_core::{Digest, json};
use writ_evidence::row::Row;

use super::TURN;
use super::predicate::Cumulative;
use crate::session::rows::event;

/// What a row says of an attestation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Named {
    /// The turn's number, from 1.
    pub turn: u64,
    /// Which statement about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<u64>,
    /// The file's name.
    pub name: String,
    /// Digest of the file.
    #[serde(rename = "statement")]
    pub attestation: Digest,
    /// The rows that it speaks for.
    pub rows: [u64; 2],
    /// Up to which byte of the transcript it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// What was used up to then.
    pub cumulative: Cumulative,
    /// Why the copy for others could not be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpublished: Option<String>,
    /// Digest of the prices that it counts money with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Digest>,
}

impl Named {
    /// What a row says, where it names an attestation of a turn.
    pub fn of(row: &Row) -> Option<Result<Self, json::FormatError>> {
        (event(row) == TURN).then(|| json::from_value(&row.detail))
    }
}
