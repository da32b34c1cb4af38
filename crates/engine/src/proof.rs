//! An attestation and the registry it was verified with, as a session keeps them: rows name both by digest.

use writ_core::Digest;
use writ_core::json::{Object, Value};

use crate::session::{Session, SessionError};

/// Both documents and their digests.
#[derive(Clone, Debug)]
pub struct Proof {
    /// The attestation's digest.
    pub attestation: Digest,
    /// The registry's.
    pub registry: Digest,
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

    /// What a row says of it.
    pub fn to_json(&self) -> Value {
        let mut out = Object::new();
        out.push("digest", Value::from(self.attestation.to_string()));
        out.push("registry", Value::from(self.registry.to_string()));
        Value::Object(out)
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
