//! The ledger key: one Ed25519 key a machine and user, in `keys/ledger.pem`.
//!
//! Owns making it once and reading it. Refuses a key that others can read. Invariant: no two processes ever use different
//! keys for one state folder.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use writ_evidence::keys::{Algorithm, KeyError, SigningKey};

use crate::error::{StoreError, io};
use crate::{MAX_SMALL, durable};

const NAME: &str = "ledger.pem";

/// The key in `folder`; a new one when there is none.
pub fn load_or_make(folder: &Path) -> Result<SigningKey, StoreError> {
    if let Some(key) = load(folder)? {
        return Ok(key);
    }
    let key = SigningKey::generate(Algorithm::Ed25519)?;
    let path = folder.join(NAME);
    if durable::create(&path, key.to_pem().as_bytes())? {
        return Ok(key);
    }
    // Another process was first; its key is the machine's.
    load(folder)?.ok_or_else(|| io("open", path)(ErrorKind::NotFound.into()))
}

/// The key in `folder`, if there is one.
pub fn load(folder: &Path) -> Result<Option<SigningKey>, StoreError> {
    let path = folder.join(NAME);
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
