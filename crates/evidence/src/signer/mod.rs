//! Who signed: a key, the holder of a certificate, or an identity that Sigstore vouches for.
//!
//! Owns what each of them is once it is verified, and the checks of certificates and bundles against roots that the caller gives. Refuses
//! whatever it cannot check in full, each failure with a reason of its own. Invariant: no network, no clock and no store of roots is asked:
//! the same bytes give the same answer. Page: `spec/signing.md`, "Signers".

pub mod keyless;
mod name;
mod provider;
pub mod x509;

use std::fmt;

use serde::{Deserialize, Serialize};
use writ_core::Digest;

pub use name::{Name, NameError};

/// A verified signer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Signer {
    /// The holder of a key that is trusted itself.
    Key {
        /// The key's id.
        id: Digest,
    },
    /// The holder of a certificate.
    X509 {
        /// The certificate's subject.
        subject: Name,
        /// Who issued it.
        issuer: Name,
        /// The root that it chains to: SHA-256 of its DER.
        root: Digest,
    },
    /// An identity that Sigstore vouches for.
    Keyless {
        /// The identity: an address, a workflow's URI.
        identity: String,
        /// Who vouched for it to Sigstore.
        issuer: String,
        /// The entry's index in the log.
        #[serde(rename = "logIndex")]
        log_index: i64,
        /// The trusted root: SHA-256 of its canonical form.
        root: Digest,
    },
}

impl fmt::Display for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key { id } => id.fmt(f),
            Self::X509 { subject, issuer, .. } => write!(f, "`{subject}` (certificate of `{issuer}`)"),
            Self::Keyless { identity, issuer, log_index, .. } => {
                write!(f, "`{identity}` (keyless, by {issuer}, log index {log_index})")
            }
        }
    }
}
