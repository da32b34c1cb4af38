//! The approval passphrase: human presence as a secret that the agent does not have (R71).
//!
//! Owns one file in the keys folder, which the agent may neither read nor write. Where it is there, a human's word needs it;
//! where it is not, the caller looks at where that word comes from. A file that does not read refuses everybody.

use std::path::PathBuf;

use writ_core::regular_file;
use writ_evidence::passphrase::{Passphrase, PassphraseError};
use writ_store::Store;

use crate::home::{Home, NoStateDir};

/// Largest file.
const MAX: u64 = 4096;

/// Why the passphrase cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PassphraseUnusable {
    /// There is no state folder.
    #[error(transparent)]
    NoStateDir(#[from] NoStateDir),
    /// The file.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file holds something else.
    #[error("{} holds no passphrase: remove it, then run `writ keys approval`", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The new passphrase.
    #[error(transparent)]
    Passphrase(#[from] PassphraseError),
    /// The store.
    #[error(transparent)]
    Store(#[from] writ_store::StoreError),
}

fn path(home: &Home) -> Result<PathBuf, NoStateDir> {
    Ok(home.state()?.join("keys").join("approval.json"))
}

/// The passphrase that was set, if one was.
pub fn read(home: &Home) -> Result<Option<Passphrase>, PassphraseUnusable> {
    let path = path(home)?;
    match regular_file::read(&path, MAX) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(PassphraseUnusable::Io { path, source }),
        Ok(bytes) => Passphrase::from_json(&bytes).map(Some).ok_or(PassphraseUnusable::Damaged { path }),
    }
}

/// Sets it. Durable on return.
pub fn set(home: &Home, text: &str) -> Result<(), PassphraseUnusable> {
    let kept = Passphrase::new(text)?;
    let store = Store::open(home.state()?.to_owned())?;
    Ok(store.keep_in_keys("approval.json", kept.to_json().as_bytes())?)
}
