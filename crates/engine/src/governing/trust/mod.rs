//! Whose policies the user accepts: pinned public keys, authorities, and the switch that makes a signature mandatory (R11).
//!
//! `trust/*.pem` are the pinned keys, `trust/require-signed` is the switch, both in the state folder that the agent may
//! not write (R19). A key that cannot be read is an error, never a key less. Page: `spec/signing.md`, "Trust".

mod authorities;

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use writ_core::Digest;
use writ_evidence::keys::PublicKey;
use writ_store::regular_file;

pub use authorities::{Authority, TrustedIdentity};

/// Largest pinned key.
const MAX_KEY: u64 = 1 << 20;

/// The trust settings in a state folder. Nothing is read before it is asked for.
#[derive(Clone, Debug)]
pub struct Trust {
    dir: Option<PathBuf>,
}

/// Trust settings that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The folder or a file in it.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A pinned file holds no public key.
    #[error("{} holds no public key: {why}", path.display())]
    NotAKey {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A file holds no authority to trust.
    #[error("{} holds nobody to trust: {why}", path.display())]
    NotAnAuthority {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Nothing that is trusted, or more than one thing, starts with the given id.
    #[error("{matches} pinned keys and authorities match `{id}`")]
    NoSuchKey {
        /// What was asked for.
        id: String,
        /// How many keys match.
        matches: usize,
    },
    /// There is no state folder to keep trust in.
    #[error(transparent)]
    NoStateDir(#[from] crate::home::NoStateDir),
}

impl Trust {
    /// The settings under `state`; without a state folder nothing is pinned.
    pub fn open(state: Option<&Path>) -> Self {
        Self { dir: state.map(|state| state.join("trust")) }
    }

    /// The state folder that they are in.
    pub(super) fn state(&self) -> Option<&Path> {
        self.dir.as_deref().and_then(Path::parent)
    }

    /// Whether only policies signed by a pinned key may govern.
    pub fn require_signed(&self) -> bool {
        self.dir.as_ref().is_some_and(|dir| dir.join("require-signed").symlink_metadata().is_ok())
    }

    /// The pinned keys.
    pub fn keys(&self) -> Result<Vec<PublicKey>, TrustError> {
        Ok(self.files()?.into_iter().map(|(_, key)| key).collect())
    }

    /// Pins a key given as PEM. Pinning a key twice is fine.
    pub fn pin(&self, pem: &str, from: &Path) -> Result<PublicKey, TrustError> {
        let key = read_key(pem, from)?;
        let dir = self.make()?;
        let hex = key.key_id().hex();
        write(&dir.join(format!("{hex}.pem")), key.to_pem().as_bytes())?;
        Ok(key)
    }

    /// Takes back the one pinned key or authority whose id starts with `id` (with or without `sha256:`).
    pub fn unpin(&self, id: &str) -> Result<Digest, TrustError> {
        let wanted = id.strip_prefix("sha256:").unwrap_or(id);
        let keys = self.files()?.into_iter().map(|(path, key)| (path, key.key_id()));
        let mut hits: Vec<(PathBuf, Digest)> = keys.filter(|(_, id)| id.hex().starts_with(wanted)).collect();
        hits.extend(self.records_like(wanted)?);
        match (hits.pop(), hits.len()) {
            (Some((path, found)), 0) => {
                fs::remove_file(&path).map_err(|source| TrustError::Io { path, source })?;
                Ok(found)
            }
            (hit, more) => Err(TrustError::NoSuchKey { id: id.to_owned(), matches: more + usize::from(hit.is_some()) }),
        }
    }

    /// Turns the switch.
    pub fn set_require_signed(&self, on: bool) -> Result<(), TrustError> {
        let path = self.make()?.join("require-signed");
        if on {
            return write(&path, b"");
        }
        match fs::remove_file(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => Err(TrustError::Io { path, source }),
            _ => Ok(()),
        }
    }

    fn files(&self) -> Result<Vec<(PathBuf, PublicKey)>, TrustError> {
        let Some(dir) = &self.dir else { return Ok(Vec::new()) };
        let io = |path: &Path, source| TrustError::Io { path: path.to_owned(), source };
        let entries = match fs::read_dir(dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(|source| io(dir, source))?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(|source| io(dir, source))?.path();
            if path.extension().is_some_and(|extension| extension == "pem") {
                let pem = regular_file::text(&path, MAX_KEY).map_err(|source| io(&path, source))?;
                let key = read_key(&pem, &path)?;
                files.push((path, key));
            }
        }
        files.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(files)
    }

    fn make(&self) -> Result<PathBuf, TrustError> {
        let dir = self.dir.clone().ok_or(crate::home::NoStateDir)?;
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir);
        made.map_err(|source| TrustError::Io { path: dir.clone(), source })?;
        Ok(dir)
    }
}

fn read_key(pem: &str, path: &Path) -> Result<PublicKey, TrustError> {
    PublicKey::from_pem(pem).map_err(|error| TrustError::NotAKey { path: path.to_owned(), why: error.to_string() })
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), TrustError> {
    let io = |source| TrustError::Io { path: path.to_owned(), source };
    let file = fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(path);
    let mut file = file.map_err(io)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(io)
}
