//! Why a policy cannot be used.
//!
//! Owns the causes, each with its file and what to do. Refuses nothing itself. Invariant: whoever gets one of these denies, where a policy
//! governs (R6). Page: `spec/policy.md`.

use std::path::PathBuf;

use writ_policy::PolicyError;

use super::lock::LockError;
use super::trust::TrustError;

/// Why a policy that is there cannot be used. Under R6 this denies.
#[derive(Debug, thiserror::Error)]
pub enum GoverningError {
    /// The file cannot be read.
    #[error("cannot read the policy {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is larger than 4 MiB.
    #[error("the policy {} is larger than 4 MiB", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The envelope is malformed or a pinned key's signature in it is wrong.
    #[error("the signed policy {} does not verify: {why}", path.display())]
    Envelope {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The inner document is no valid policy.
    #[error("the policy {} is not valid: {source}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The inner document, for showing the places.
        text: String,
        /// What is wrong.
        source: Box<PolicyError>,
    },
    /// A policy that it names, or one that those name, cannot be used.
    #[error("{}: {pointer}: {why}", path.display())]
    Layer {
        /// The policy that names it.
        path: PathBuf,
        /// Where it does.
        pointer: String,
        /// The kind of error.
        rule: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The lock file cannot be used.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The copy of the accepted policy is not what it was.
    #[error("the accepted policy's copy {} is not what it was: start a new session", path.display())]
    KeptChanged {
        /// The copy.
        path: PathBuf,
    },
    /// The trust settings want a signature by somebody trusted.
    #[error("the policy {} is {why}, and your settings require that it is trusted", path.display())]
    NotTrusted {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        why: String,
    },
    /// The pinned keys cannot be read.
    #[error(transparent)]
    Trust(#[from] TrustError),
}

/// What could not be had, and what kind of error that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The kind.
    pub rule: &'static str,
    /// In words.
    pub why: String,
}
