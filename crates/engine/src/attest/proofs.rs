//! An attestation and the registry it was verified with, as a session keeps them: rows name both by digest.

use serde::Serialize;
use writ_core::Digest;

use crate::session::{Session, SessionError};

/// Both documents and their digests. A row names the digests.
#[derive(Clone, Debug, Serialize)]
pub struct Proof {
    /// The attestation's digest.
    #[serde(rename = "digest")]
    pub attestation: Digest,
    /// The registry's.
    pub registry: Digest,
    #[serde(skip)]
    documents: (String, String),
}

impl Proof {
    /// The proof that these two documents are.
    pub fn new(attestation: String, registry: String) -> Self {
        let (named, known) = (Digest::of(attestation.as_bytes()), Digest::of(registry.as_bytes()));
        Self { attestation: named, registry: known, documents: (attestation, registry) }
    }

    /// Keeps both in the session's folder; durable on return.
    pub fn keep(&self, session: &Session<'_>) -> Result<(), SessionError> {
        session.keep(&attestation_file(self.attestation), self.documents.0.as_bytes())?;
        session.keep(&registry_file(self.registry), self.documents.1.as_bytes())
    }
}

/// An attestation's name in a session's folder.
pub fn attestation_file(digest: Digest) -> String {
    format!("attestations/{}.json", digest.hex())
}

/// A registry's name in a session's folder.
pub fn registry_file(digest: Digest) -> String {
    format!("registries/{}.json", digest.hex())
}
