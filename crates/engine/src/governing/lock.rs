//! The lock file beside a policy: what the policies that it names were when a human looked, and the bytes of those from elsewhere.
//!
//! Reads and writes `<policy file>.lock`; fetches nothing. Invariant: what is taken from it has the digest that stands there.
//! Page: `spec/layers.md`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use writ_core::{Digest, json};
use writ_store::regular_file;

/// Largest lock file.
const MAX_BYTES: u64 = 8 << 20;
/// The version of its format.
const VERSION: u32 = 1;

/// What a policy's references were resolved to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    version: u32,
    /// In the order of the references.
    pub references: Vec<Locked>,
}

/// One reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locked {
    /// As the policy names it; a path from the root policy's folder.
    pub reference: String,
    /// Digest of the file.
    pub digest: Digest,
    /// The very bytes, of one from elsewhere. A file is read where it lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
}

/// A lock file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lock {} {why}: a human runs `writ policy lock`", path.display())]
pub struct LockError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub why: String,
}

impl Lock {
    /// One with these references.
    pub const fn of(references: Vec<Locked>) -> Self {
        Self { version: VERSION, references }
    }

    /// Where the lock of a policy is.
    pub fn path(policy: &Path) -> PathBuf {
        let mut name = policy.as_os_str().to_owned();
        name.push(".lock");
        PathBuf::from(name)
    }

    /// Reads the lock of a policy, if there is one.
    pub fn read(policy: &Path) -> Result<Option<Self>, LockError> {
        let path = Self::path(policy);
        if writ_sandbox::is_reserve(&path) {
            return Ok(None);
        }
        let bytes = match regular_file::read(&path, MAX_BYTES) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(LockError { path, why: format!("cannot be read ({error})") }),
            Ok(bytes) => bytes,
        };
        Self::parse(&bytes).map(Some).map_err(|why| LockError { path, why })
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let lock: Self = json::from_slice(bytes).map_err(|error| format!("does not read ({error})"))?;
        if lock.version != VERSION {
            return Err(format!("has version {}, and this Writ knows {VERSION}", lock.version));
        }
        for one in &lock.references {
            let found = one.document.as_ref().map(|text| Digest::of(text.as_bytes()));
            if found.is_some_and(|found| found != one.digest) {
                return Err(format!("was changed: what it holds for `{}` is not {}", one.reference, one.digest));
            }
        }
        Ok(lock)
    }

    /// What a reference is locked to.
    pub fn get(&self, reference: &str) -> Option<&Locked> {
        self.references.iter().find(|one| one.reference == reference)
    }

    /// The file's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = json::pretty(&json::to_value(self));
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.into_bytes()
    }
}
