//! What a relying party records: what it was shown, what it refused, what an operator overrode.
//!
//! Owns the entries and one place to keep them. Refuses nothing. Invariant: an entry is recorded before what it tells of takes effect.

use std::path::PathBuf;

use serde::Serialize;
use writ_core::{Digest, Timestamp, json};
use writ_evidence::attestation::FailureCode;
use writ_evidence::registry::KeyState;

use crate::{Instance, Mode, StateError, state_files};

/// One entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum What {
    /// An attestation came in `log` mode (§7.3): not verified.
    Seen {
        /// SHA-256 of what stood under `attestation`, canonical.
        #[serde(rename = "attestation_hash")]
        digest: Digest,
        /// Its `attestation_uri`, if that is a text.
        #[serde(rename = "attestation_uri", skip_serializing_if = "Option::is_none")]
        uri: Option<String>,
    },
    /// No attestation came (§7.7).
    Absent {
        /// In which mode. In `require` it was refused.
        #[serde(rename = "attestation_mode")]
        mode: Mode,
    },
    /// An attestation verified.
    Verified {
        /// SHA-256 of the attestation, canonical.
        #[serde(rename = "attestation_hash")]
        digest: Digest,
        /// Its URL.
        #[serde(rename = "attestation_uri")]
        uri: String,
        /// The key that signed it.
        key_id: String,
        /// That key's state.
        #[serde(rename = "key_state")]
        state: KeyState,
        /// The registry it was checked against.
        registry_version: u64,
    },
    /// An attestation did not verify (§7.6).
    Failed {
        /// SHA-256 of what stood under `attestation`, canonical.
        #[serde(rename = "attestation_hash")]
        digest: Digest,
        /// Its `attestation_uri`, if that is a text.
        #[serde(rename = "attestation_uri", skip_serializing_if = "Option::is_none")]
        uri: Option<String>,
        /// The code, `None` when the verifier's own files failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<FailureCode>,
        /// What happened in detail.
        detail: String,
    },
    /// An operator had a registry taken whatever was known (§5.5).
    ForceRefresh {
        /// Whose.
        instance: Instance,
        /// Who, where that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        operator: Option<String>,
        /// Why, where the operator said so.
        #[serde(skip_serializing_if = "Option::is_none")]
        justification: Option<String>,
        /// What was known.
        #[serde(rename = "discarded_version")]
        discarded: Discarded,
        /// Version of the registry that was taken.
        #[serde(rename = "accepted_version")]
        accepted: u64,
    },
}

/// What a forced refresh threw away.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Discarded {
    /// Nothing was known.
    None,
    /// A file that was damaged, or that others could write: what it says of a version is worth nothing.
    Unreadable,
    /// A registry of this version.
    #[serde(untagged)]
    Version(u64),
}

impl Event {
    /// Whether it belongs into a security log: a refusal, or an override (§5.5, §7.6, §7.7).
    pub const fn is_security(&self) -> bool {
        match self.what {
            What::Absent { mode } => matches!(mode, Mode::Require),
            What::Failed { .. } | What::ForceRefresh { .. } => true,
            What::Seen { .. } | What::Verified { .. } => false,
        }
    }
}

/// An entry as it is written: `timestamp`, `event`, `security`, then what belongs to it.
#[derive(Serialize)]
struct Line<'a> {
    timestamp: Timestamp,
    event: &'static str,
    security: bool,
    #[serde(flatten)]
    what: &'a What,
}

impl Serialize for Event {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let line = Line { timestamp: self.at, event: self.what.name(), security: self.is_security(), what: &self.what };
        line.serialize(serializer)
    }
}

impl What {
    const fn name(&self) -> &'static str {
        match self {
            Self::Seen { .. } => "attestation_seen",
            Self::Absent { .. } => "attestation_absent",
            Self::Verified { .. } => "attestation_verified",
            Self::Failed { .. } => "attestation_failed",
            Self::ForceRefresh { .. } => "registry_force_refresh",
        }
    }
}

/// Where entries go.
// EXTENSION POINT: a session has its ledger for this; a command without a session keeps a `Journal`.
pub trait Log {
    /// Records an entry. Durable on return; whoever gets an error does not go on.
    fn record(&self, event: &Event) -> Result<(), StateError>;
}

impl<L: Log + ?Sized> Log for &L {
    fn record(&self, event: &Event) -> Result<(), StateError> {
        (**self).record(event)
    }
}

/// A file of entries, one JSON object a line. Any number of processes and threads may use one.
#[derive(Clone, Debug)]
pub struct Journal {
    path: PathBuf,
}

impl Journal {
    /// The journal in the file `path`, which is made with the first entry. Beside it stands a file `.lock`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }
}

impl Log for Journal {
    fn record(&self, event: &Event) -> Result<(), StateError> {
        state_files::append(&self.path, &json::to_compact(event))
    }
}
