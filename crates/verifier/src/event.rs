//! What a relying party records: what it was shown, what it refused, what an operator overrode.
//!
//! Owns the entries and one place to keep them. Refuses nothing. Invariant: an entry is recorded before what it tells of takes effect.

use std::path::PathBuf;

use writ_core::json::{self, Object, Value};
use writ_core::{Digest, Timestamp};
use writ_evidence::attestation::FailureCode;
use writ_evidence::registry::KeyState;

use crate::{Instance, Mode, StateError, disk};

/// One entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// An attestation came in `log` mode (§7.3): not verified.
    Seen {
        /// SHA-256 of what stood under `attestation`, canonical.
        digest: Digest,
        /// Its `attestation_uri`, if that is a text.
        uri: Option<String>,
    },
    /// No attestation came (§7.7).
    Absent {
        /// In which mode. In `require` it was refused.
        mode: Mode,
    },
    /// An attestation verified.
    Verified {
        /// SHA-256 of the attestation, canonical.
        digest: Digest,
        /// Its URL.
        uri: String,
        /// The key that signed it.
        key_id: String,
        /// That key's state.
        state: KeyState,
        /// The registry it was checked against.
        registry_version: u64,
    },
    /// An attestation did not verify (§7.6).
    Failed {
        /// SHA-256 of what stood under `attestation`, canonical.
        digest: Digest,
        /// Its `attestation_uri`, if that is a text.
        uri: Option<String>,
        /// The code, `None` when the verifier's own files failed.
        code: Option<FailureCode>,
        /// What happened in detail.
        detail: String,
    },
    /// An operator had a registry taken whatever was known (§5.5).
    ForceRefresh {
        /// Whose.
        instance: Instance,
        /// Who, where that is known.
        operator: Option<String>,
        /// What was known.
        discarded: Discarded,
        /// Version of the registry that was taken.
        accepted: u64,
        /// Why, where the operator said so.
        justification: Option<String>,
    },
}

/// What a forced refresh threw away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Discarded {
    /// Nothing was known.
    None,
    /// A registry of this version.
    Version(u64),
    /// A file that was damaged, or that others could write: what it says of a version is worth nothing.
    Unreadable,
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

    /// The entry as an object: `timestamp`, `event`, `security`, then what belongs to it.
    pub fn to_json(&self) -> Value {
        let mut out = Object::new();
        out.push("timestamp", Value::from(self.at.to_string()));
        out.push("event", Value::from(self.what.name()));
        out.push("security", Value::from(self.is_security()));
        let mut text = |name: &str, value: &str| out.push(name, Value::from(value));
        match &self.what {
            What::Absent { mode } => text("attestation_mode", mode.as_str()),
            What::Seen { digest, uri } => {
                text("attestation_hash", &digest.to_string());
                uri.iter().for_each(|uri| text("attestation_uri", uri));
            }
            What::Verified { digest, uri, key_id, state, registry_version } => {
                text("attestation_hash", &digest.to_string());
                text("attestation_uri", uri);
                text("key_id", key_id);
                text("key_state", state.as_str());
                out.push("registry_version", Value::from(*registry_version));
            }
            What::Failed { digest, uri, code, detail } => {
                text("attestation_hash", &digest.to_string());
                uri.iter().for_each(|uri| text("attestation_uri", uri));
                code.iter().for_each(|code| text("code", code.as_str()));
                text("detail", detail);
            }
            What::ForceRefresh { instance, operator, discarded, accepted, justification } => {
                text("instance", instance.as_str());
                operator.iter().for_each(|operator| text("operator", operator));
                justification.iter().for_each(|reason| text("justification", reason));
                out.push("discarded_version", discarded.to_json());
                out.push("accepted_version", Value::from(*accepted));
            }
        }
        Value::Object(out)
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

impl Discarded {
    fn to_json(self) -> Value {
        match self {
            Self::None => Value::from("none"),
            Self::Version(version) => Value::from(version),
            Self::Unreadable => Value::from("unreadable"),
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
        disk::append(&self.path, &json::compact(&event.to_json()))
    }
}
