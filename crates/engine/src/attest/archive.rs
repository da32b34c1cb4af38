//! The archive: reads what an instance published, without its keys.
//!
//! Owns one connection to the instance's database. Refuses to say who an instance is that never published anything. Invariant: the
//! registry it gives has no rotation that was due before. Page: `spec/attestation.md`.

use std::path::Path;

use writ_core::Timestamp;
use writ_evidence::registry::Registry;
use writ_store::instance::{Database, Record};

use super::issuer::{IssuerError, rotated};

/// One connection to what an instance published.
pub struct Archive {
    database: Box<dyn Database>,
}

impl std::fmt::Debug for Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Archive")
    }
}

impl Archive {
    /// Opens the database of a state folder, or another one.
    pub fn open(state: &Path, database: Option<&str>) -> Result<Self, IssuerError> {
        Ok(Self { database: writ_store::instance::open(state, database)? })
    }

    /// The newest registry's version; 0 when there is none.
    pub fn version(&mut self) -> Result<u64, IssuerError> {
        Ok(self.database.version()?)
    }

    /// The registry as it is now; a rotation that is due happens first.
    pub fn registry(&mut self, now: Timestamp) -> Result<Option<Registry>, IssuerError> {
        let registry = self.database.registry()?;
        registry.map(|registry| rotated(self.database.as_mut(), registry, now)).transpose()
    }

    /// An attestation by its id.
    pub fn find(&mut self, id: &str) -> Result<Option<Record>, IssuerError> {
        Ok(self.database.find(id)?)
    }

    /// Shows every attestation until `see` has seen enough.
    pub fn each(&mut self, see: &mut dyn FnMut(Record) -> bool) -> Result<(), IssuerError> {
        Ok(self.database.each(see)?)
    }

    /// Forgets attestations by their ids. Returns how many there were.
    pub fn forget(&mut self, ids: &[String]) -> Result<usize, IssuerError> {
        Ok(self.database.forget(ids)?)
    }

    /// Work that can be done beside the signing, so that no signature waits for it.
    pub fn tidy(&mut self) -> Result<(), IssuerError> {
        Ok(self.database.tidy()?)
    }
}
