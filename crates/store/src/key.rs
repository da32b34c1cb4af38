//! Private Ed25519 keys in `keys/`, a file each: the ledger's (`ledger.pem`), and those that sign attestations.
//!
//! Owns making a key once and reading it. Refuses a key that others can read. Invariant: no two processes ever use different
//! keys for one name.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use writ_evidence::keys::{Algorithm, KeyError, SigningKey};

use crate::error::{StoreError, io};
use crate::{MAX_SMALL, durable};

/// The ledger key's name.
pub const LEDGER: &str = "ledger";

/// The key `name` in `folder`; a new one when there is none.
pub fn load_or_make(folder: &Path, name: &str) -> Result<SigningKey, StoreError> {
    if let Some(key) = load(folder, name)? {
        return Ok(key);
    }
    let key = SigningKey::generate(Algorithm::Ed25519)?;
    let path = folder.join(format!("{name}.pem"));
    if durable::create(&path, key.to_pem().as_bytes())? {
        return Ok(key);
    }
    // Another process was first; its key is the machine's.
    load(folder, name)?.ok_or_else(|| io("open", path)(ErrorKind::NotFound.into()))
}

/// The key `name` in `folder`, if there is one.
pub fn load(folder: &Path, name: &str) -> Result<Option<SigningKey>, StoreError> {
    let path = folder.join(format!("{name}.pem"));
    let Some(pem) = durable::read(&path, MAX_SMALL)? else { return Ok(None) };
    let pem = String::from_utf8_lossy(&pem).into_owned();
    let mode = path.metadata().map_err(io("read", &path))?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(StoreError::KeyExposed { path });
    }
    match SigningKey::from_pem(&pem) {
        Ok(key) if key.public().algorithm() == Algorithm::Ed25519 => Ok(Some(key)),
        Ok(_) => Err(StoreError::KeyFile { path, source: KeyError::Unsupported }),
        Err(source) => Err(StoreError::KeyFile { path, source }),
    }
}
