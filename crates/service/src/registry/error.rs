//! Why a registry does not give or take something.

use std::path::PathBuf;

use writ_core::{secret, visible};
use writ_package::manifest::DocumentError;
use writ_package::{LayoutError, ReferenceError};

/// Why a registry does not give or take something.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// It cannot be reached, or stops in the middle.
    #[error("{url}: {why}")]
    Network {
        /// What was asked.
        url: String,
        /// Why there is no answer.
        why: String,
    },
    /// It wants credentials, or others.
    #[error("{registry} does not let this happen{said}: `writ login {registry}` keeps credentials for it")]
    Unauthorized {
        /// The registry.
        registry: String,
        /// What it says.
        said: String,
    },
    /// It does not have it.
    #[error("{what} is not there")]
    NotFound {
        /// What.
        what: String,
    },
    /// Any other answer.
    #[error("{url} answers {status}{said}")]
    Status {
        /// What was asked.
        url: String,
        /// The HTTP status.
        status: u16,
        /// What it says.
        said: String,
    },
    /// Something else than what was asked for.
    #[error("{registry} gives {found} for {wanted}: it was tampered with, or is broken")]
    Other {
        /// The registry.
        registry: String,
        /// What was asked for.
        wanted: String,
        /// What came.
        found: String,
    },
    /// It leads where nothing is sent.
    #[error("{url} leads to `{to}`, {why}")]
    Leads {
        /// What was asked.
        url: String,
        /// Where it leads.
        to: String,
        /// Why that is not followed.
        why: &'static str,
    },
    /// A manifest.
    #[error("{what}: {source}")]
    Document {
        /// Which.
        what: String,
        /// Why.
        source: DocumentError,
    },
    /// Credentials that cannot be had.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The folder.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A name.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// A file.
    #[error("cannot write {}: {source}", path.display())]
    File {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

/// Why credentials cannot be had or kept.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The file.
    #[error("{}: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A helper.
    #[error("`docker-credential-{name}` {why}")]
    Helper {
        /// Its name.
        name: String,
        /// What it did.
        why: String,
    },
    /// Nowhere to keep them.
    #[error("nowhere to keep credentials: set HOME or DOCKER_CONFIG")]
    Nowhere,
}

/// What somebody else says, fit to be shown: short, visible, without secrets.
pub(super) fn foreign(text: &str) -> String {
    let short: String = text.chars().take(300).collect();
    visible::line(&secret::hide(&short)).into_owned()
}
