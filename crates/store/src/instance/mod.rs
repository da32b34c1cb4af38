//! What an attesting instance keeps: its registry in every version, and every attestation it issued.
//!
//! Owns the small interface that SQLite (one machine) and PostgreSQL (several replicas) both stand behind. Refuses to keep an
//! attestation that was signed under a registry that is no longer the newest: that is what makes a key's state take effect at once,
//! everywhere. Invariant: what [`Database::keep`] and [`Database::change`] returned survives the death of process and machine.
//! Page: `spec/attestation.md`.

mod custody;
mod postgres;
mod sqlite;

use std::path::Path;

use rusqlite::ErrorCode;
use writ_evidence::registry::{ChangeError, Registry, RegistryError};

use crate::StoreError;

pub use custody::{Custodian, FileCustodian, Signer};
pub use postgres::Postgres;
pub use sqlite::Sqlite;

/// The database's name in the state folder.
pub const FILE: &str = "attestations.db";

/// Where an instance is reached unless told otherwise: where `writ serve` listens.
pub const DEFAULT_URL: &str = "http://127.0.0.1:7411";

/// Who an instance is. Written once; the registry and the URLs rest on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Its name: the keys' names begin with it.
    pub id: String,
    /// Scheme, host and port that its URLs begin with; none as long as nobody chose one.
    pub url: Option<String>,
}

impl Identity {
    /// Scheme, host and port that its URLs begin with.
    pub fn url(&self) -> &str {
        self.url.as_deref().unwrap_or(DEFAULT_URL)
    }
}

/// One attestation to keep.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its id.
    pub id: String,
    /// The key that signed it.
    pub key_id: String,
    /// Its canonical document.
    pub document: String,
}

/// What became of a batch. All of it is kept, or nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// It is durable.
    Whole,
    /// The registry has changed since it was signed: sign again.
    Stale,
    /// An id is taken: sign again, with other timestamps.
    Taken,
}

/// Why the database could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// SQLite.
    #[error("the attestations in {path} cannot be used: {source}{}", remedy(source))]
    Sqlite {
        /// The file.
        path: String,
        /// What it said.
        source: rusqlite::Error,
    },
    /// PostgreSQL. Its address is not repeated: it may hold a password.
    #[error("PostgreSQL: {0}")]
    Postgres(String),
    /// The state folder.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What is kept is no registry.
    #[error("the kept registry is damaged: {0}")]
    Registry(#[from] RegistryError),
    /// Not a legal change.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The instance is another than was asked for.
    #[error("the database belongs to the instance `{kept}` at {url}, not to `{wanted}`")]
    OtherInstance {
        /// Whose it is.
        kept: String,
        /// Where that is.
        url: String,
        /// Who asked.
        wanted: String,
    },
    /// An instance's name must be usable as a file's name and in a key's.
    #[error("`{0}` is not an instance name: 1 to 64 letters, digits, `.`, `-` and `_`, the first a letter or digit")]
    Name(String),
    /// Not a base URL.
    #[error("`{0}` is not a base URL: write `https://host` or `https://host:port`, without a path")]
    Url(String),
}

/// What a person can do about what SQLite said.
fn remedy(source: &rusqlite::Error) -> &'static str {
    match source.sqlite_error_code() {
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            ": make it and its folder yours (`chown`) and writable (`chmod u+rwX`), or set WRIT_STATE_DIR to one that is"
        }
        Some(ErrorCode::DiskFull) => ": free some space, then try again",
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => ": put a copy of it back",
        _ => "",
    }
}

/// A change of the registry, given the newest one. Returns `None` to leave it as it is.
pub type Changer<'a> = &'a mut dyn FnMut(&Registry) -> Result<Option<Registry>, ChangeError>;

/// Where an instance keeps what it published.
pub trait Database: Send {
    /// Who the instance is, if anybody is there yet.
    fn known(&mut self) -> Result<Option<Identity>, DatabaseError>;
    /// Who the instance is; written when nobody was there yet.
    fn identity(&mut self, first: &Identity) -> Result<Identity, DatabaseError>;
    /// Moves the instance to another base URL.
    fn move_to(&mut self, url: &str) -> Result<(), DatabaseError>;
    /// The newest registry's version; 0 when there is none.
    fn version(&mut self) -> Result<u64, DatabaseError>;
    /// The newest registry.
    fn registry(&mut self) -> Result<Option<Registry>, DatabaseError>;
    /// Every version of the registry's document, oldest first.
    fn history(&mut self) -> Result<Vec<String>, DatabaseError>;
    /// Changes the registry, alone among all processes. `first` is what an empty database begins with.
    fn change(&mut self, first: &Registry, changer: Changer<'_>) -> Result<Registry, DatabaseError>;
    /// Keeps a batch that was signed under the registry of this version.
    fn keep(&mut self, version: u64, batch: &[Record]) -> Result<Kept, DatabaseError>;
    /// The attestation of that id.
    fn find(&mut self, id: &str) -> Result<Option<Record>, DatabaseError>;
    /// Shows every attestation, in no certain order, until `see` has seen enough.
    fn each(&mut self, see: &mut dyn FnMut(Record) -> bool) -> Result<(), DatabaseError>;
    /// Forgets attestations by their ids, in one step. Returns how many there were.
    fn forget(&mut self, ids: &[String]) -> Result<usize, DatabaseError>;
    /// Work that can be done beside the writing, so that no write has to do it.
    fn tidy(&mut self) -> Result<(), DatabaseError> {
        Ok(())
    }
}

/// Opens the database: `postgres://…`, or the file in the state folder.
pub fn open(state: &Path, url: Option<&str>) -> Result<Box<dyn Database>, DatabaseError> {
    match url {
        Some(url) => Ok(Box::new(Postgres::connect(url)?)),
        None => Ok(Box::new(Sqlite::open(&state.join(FILE))?)),
    }
}

/// Refuses names and URLs that would not do.
pub fn check(identity: &Identity) -> Result<(), DatabaseError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    let named = (1..=64).contains(&identity.id.len())
        && identity.id.bytes().all(plain)
        && identity.id.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !named {
        return Err(DatabaseError::Name(identity.id.clone()));
    }
    match &identity.url {
        Some(url) if !writ_evidence::attestation::is_instance(url) => Err(DatabaseError::Url(url.clone())),
        _ => Ok(()),
    }
}

/// The kept URL: an empty one stands for none.
fn chosen(url: String) -> Option<String> {
    Some(url).filter(|url| !url.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sqlite_says_has_a_remedy() {
        for (code, remedy) in [(14, "chmod u+rwX"), (8, "WRIT_STATE_DIR"), (13, "free some space"), (11, "put a copy")]
        {
            let source = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
            let said = DatabaseError::Sqlite { path: "a.db".to_owned(), source }.to_string();
            assert!(said.contains(remedy), "{said}");
        }
    }
}
