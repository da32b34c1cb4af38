//! Who holds the private keys that sign attestations.

use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;

use writ_evidence::keys::SigningKey;

use crate::error::io;
use crate::{StoreError, durable, key};

/// A key that can sign and nothing else.
pub trait Signer: Send + Sync {
    /// The Ed25519 signature over `payload`.
    fn sign(&self, payload: &[u8]) -> Result<[u8; 64], StoreError>;
}

/// Keeps private keys.
// EXTENSION POINT: a hardware module or a key service makes keys and signs without ever giving one out.
pub trait Custodian: Send + Sync {
    /// What `custody` says in evidence: `file`.
    fn custody(&self) -> &'static str;
    /// Makes the key of that id, durably, and returns its public half. A key that is there already stays: a process may have died
    /// after making it and before publishing it.
    fn make(&self, id: &str) -> Result<[u8; 32], StoreError>;
    /// A key that attests, named `{instance}-{n}`; of any instance when none is given, and never `but`.
    fn held(&self, instance: Option<&str>, but: Option<&str>) -> Result<Option<PathBuf>, StoreError>;
    /// The key of that id, whose public half must be `public`: what another signed would verify nowhere.
    fn signer(&self, id: &str, public: &[u8; 32]) -> Result<Option<Box<dyn Signer>>, StoreError>;
}

/// Keys in files that their owner alone can read. Whoever runs as that user can read them.
#[derive(Clone, Debug)]
pub struct FileCustodian {
    folder: PathBuf,
}

impl FileCustodian {
    /// Keys in `folder`, made on first use.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Whoever can write to the folder, or to the one it is in, can put another key in the place of one.
    fn guarded(&self) -> Result<(), StoreError> {
        self.folder.parent().map_or(Ok(()), durable::guarded)?;
        durable::guarded(&self.folder)
    }
}

impl Custodian for FileCustodian {
    fn custody(&self) -> &'static str {
        "file"
    }

    fn make(&self, id: &str) -> Result<[u8; 32], StoreError> {
        self.guarded()?;
        let key = key::load_or_make(&self.folder, named(id)?)?;
        key.public().raw().try_into().map_err(|_never| writ_evidence::keys::KeyError::Unsupported.into())
    }

    fn held(&self, instance: Option<&str>, but: Option<&str>) -> Result<Option<PathBuf>, StoreError> {
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            other => other.map_err(io("list", &self.folder))?,
        };
        for entry in entries {
            let path = entry.map_err(io("list", &self.folder))?.path();
            let id = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".pem"));
            let named = id.and_then(|id| id.rsplit_once('-')).filter(|(_, number)| number.parse::<u64>().is_ok());
            let wanted = |(of, _): (&str, &str)| instance.is_none_or(|instance| instance == of);
            if named.is_some_and(wanted) && id != but {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    fn signer(&self, id: &str, public: &[u8; 32]) -> Result<Option<Box<dyn Signer>>, StoreError> {
        self.guarded()?;
        let Some(key) = key::load(&self.folder, named(id)?)? else { return Ok(None) };
        if key.public().raw() != public {
            return Err(StoreError::OtherKey { path: self.folder.join(format!("{id}.pem")) });
        }
        Ok(Some(Box::new(FileKey(key))))
    }
}

/// A key id is a file's name here.
fn named(id: &str) -> Result<&str, StoreError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    let good = !id.is_empty() && id.len() <= 128 && id != key::LEDGER && !id.starts_with('.') && id.bytes().all(plain);
    if good { Ok(id) } else { Err(StoreError::Name { name: id.to_owned() }) }
}

struct FileKey(SigningKey);

impl fmt::Debug for FileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Signer for FileKey {
    fn sign(&self, payload: &[u8]) -> Result<[u8; 64], StoreError> {
        let signature = self.0.sign(payload)?;
        signature.try_into().map_err(|_never| writ_evidence::keys::KeyError::Library.into())
    }
}
