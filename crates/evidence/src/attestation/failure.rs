//! The failure codes of R32.

use std::fmt;

use serde::{Deserialize, Serialize};
use writ_core::json;

/// Why an attestation does not verify. The codes are part of the protocol; what happened in detail stands beside them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// The signature does not belong to these bytes and this key.
    SignatureInvalid,
    /// No registry entry has the key's id.
    KeyNotFound,
    /// The key is compromised: nothing it ever signed counts.
    KeyCompromised,
    /// The key is published, and may not sign yet.
    KeyPending,
    /// The instance is none of the trusted ones.
    InstanceNotTrusted,
    /// The copy behind the URL is another.
    CrossCheckMismatch,
    /// The registry or the copy could not be fetched. The only failure that may be tried again.
    NetworkError,
    /// The fetched registry is older than the known one, or contradicts it.
    RegistryRollback,
    /// There is no attestation where one is required.
    AttestationAbsent,
    /// Not an attestation in the form of the specification.
    InvalidAttestation,
    /// Its time is over.
    Expired,
    /// Its nonce was seen before.
    NonceReused,
}

impl FailureCode {
    /// The code as the protocol spells it.
    pub fn as_str(self) -> &'static str {
        json::word(&self)
    }

    /// Whether trying again may help.
    pub const fn may_retry(self) -> bool {
        matches!(self, Self::NetworkError)
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failure: its code, and what a reader should know of it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{code}: {detail}")]
pub struct Failure {
    /// The code.
    pub code: FailureCode,
    /// What happened.
    pub detail: String,
}

impl Failure {
    /// A failure with its detail.
    pub fn new(code: FailureCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}
