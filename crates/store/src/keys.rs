//! The machine's ledger key: made once, race-free, readable by its owner only.

use std::path::PathBuf;

use writ_evidence::keys::{Algorithm, PublicKey, SigningKey};

use crate::error::StoreError;
use crate::files::{read_optional, write_once};
use crate::Store;

impl Store {
    /// The key that signs checkpoints; made on first use. When several processes make one at once, the first wins and all
    /// use it.
    pub fn ledger_key(&self) -> Result<SigningKey, StoreError> {
        let path = self.key_path();
        if let Some(pem) = read_optional(&path)? {
            return self.read_key(&pem);
        }
        let fresh = SigningKey::generate(Algorithm::Ed25519).map_err(|source| StoreError::Key { path: path.clone(), source })?;
        write_once(&path, fresh.to_pem().as_bytes())?;
        let pem = read_optional(&path)?.unwrap_or_default();
        self.read_key(&pem)
    }

    /// The public half of the ledger key, if there is one yet.
    pub fn public_key(&self) -> Option<PublicKey> {
        let pem = read_optional(&self.key_path()).ok().flatten()?;
        self.read_key(&pem).ok().map(|key| key.public().clone())
    }

    fn read_key(&self, pem: &[u8]) -> Result<SigningKey, StoreError> {
        SigningKey::from_pem(&String::from_utf8_lossy(pem)).map_err(|source| StoreError::Key { path: self.key_path(), source })
    }

    fn key_path(&self) -> PathBuf {
        self.root.join("keys").join("ledger.pem")
    }
}
