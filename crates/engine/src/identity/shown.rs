//! The identities that a session has on record, as people and scripts are shown them.

use serde::Serialize;
use writ_clients::transcript::MAIN;
use writ_core::json::Value;
use writ_core::{Digest, SessionId};
use writ_store::{Store, StoreError, regular_file};

use super::workload::{self, Told};
use super::{Document, file_name};
use crate::session::rows::IdentityRef;

/// Largest document.
const MAX: u64 = 1 << 20;
/// Most agents that are shown.
const MOST: usize = 1000;

/// The newest identity of an agent.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// The agent: `main`, or a sub-agent's id.
    pub agent: String,
    /// Its type, where its client says it.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The identity.
    pub hash: Digest,
    /// The same as a SPIFFE id.
    pub spiffe: String,
    /// The row that names it.
    pub row: u64,
    /// What a Workload API says of the client's processes, and the row that has it; the main agent's alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<(u64, Told)>,
    /// Its parts and how each is known.
    #[serde(flatten)]
    pub document: Document,
}

/// Why they cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ShownError {
    /// The ledger.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A document is gone, or is not what its row names.
    #[error("the parts of the identity that row {row} names are not there, or were changed")]
    Document {
        /// The row.
        row: u64,
    },
}

/// The newest identity of each agent of a session, in the order in which they were first seen.
pub fn shown(store: &Store, id: &SessionId, domain: &str) -> Result<Vec<Shown>, ShownError> {
    let mut newest: Vec<(String, Option<String>, IdentityRef, u64)> = Vec::new();
    store.each_row(id, |row| {
        let Some(named) = IdentityRef::of(&row.detail) else { return };
        let agent = row.detail.get("agent");
        let text = |name: &str| agent.and_then(|agent| agent.get(name)).and_then(Value::as_str).map(str::to_owned);
        let name = text("id").unwrap_or_else(|| MAIN.to_owned());
        if let Some(known) = newest.iter_mut().find(|(known, ..)| *known == name) {
            (known.2, known.3) = (named, row.sequence);
        } else if newest.len() < MOST {
            newest.push((name, text("type"), named, row.sequence));
        }
    })?;
    let folder = store.folder(id);
    let workload = workload::recorded(store, id)?;
    let one = |(agent, kind, named, row): (String, Option<String>, IdentityRef, u64)| {
        let bytes = regular_file::read(&folder.join(file_name(named.document)), MAX).ok();
        let document = bytes.and_then(|bytes| Document::parse(&bytes, named.document));
        let document = document.filter(|document| document.parts.hash() == named.hash);
        let document = document.ok_or(ShownError::Document { row })?;
        let workload = if agent == MAIN { workload.clone() } else { None };
        Ok(Shown { agent, kind, hash: named.hash, spiffe: document.parts.spiffe(domain), row, workload, document })
    };
    newest.into_iter().map(one).collect()
}
