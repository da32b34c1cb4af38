//! One instance's cache file.
//!
//! Owns what is remembered of a registry: the last one taken, when it was fetched, and every key that was published once and is no more.
//! Refuses bytes that are not exactly what [`Entry::to_bytes`] writes. Invariant: an entry follows the one it was made from by
//! [`Registry::may_follow`], and no id it ever held names another key.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use writ_core::{Digest, Timestamp, json};
use writ_evidence::attestation::{Failure, FailureCode, is_key_id};
use writ_evidence::b64url;
use writ_evidence::registry::{Key, KeyState, Registry};

use crate::Instance;

/// Most keys that are remembered beyond the published ones.
pub const MAX_GONE: usize = 16_384;

/// A key that was published and is no more. Every key but a compromised one must be published (§5.3), so it is compromised, and its id
/// must not come back for another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Gone {
    /// Its id.
    #[serde(rename = "key_id")]
    pub id: String,
    /// The raw key.
    #[serde(rename = "public_key", with = "b64url")]
    pub public: [u8; 32],
}

/// A registry as it is remembered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    format: Format,
    instance: Instance,
    fetched_at: Timestamp,
    registry: Registry,
    gone: Vec<Gone>,
}

/// An entry as the file holds it.
#[derive(Serialize)]
struct Sealed<'a> {
    #[serde(flatten)]
    entry: &'a Entry,
    /// Of the canonical document without this member.
    sha256: String,
}

/// `format` of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Format {
    #[serde(rename = "writ.registry-cache.v1")]
    One,
}

/// Why bytes are no cache file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Damage(pub(crate) String);

impl Entry {
    /// The first entry of an instance, or the one that a forced refresh makes.
    pub const fn first(instance: Instance, registry: Registry, now: Timestamp) -> Self {
        Self { format: Format::One, instance, fetched_at: now, registry, gone: Vec::new() }
    }

    /// The entry after `fetched` was fetched at `now`, or `registry_rollback`. The same version keeps the registry that is known.
    pub fn followed_by(&self, fetched: &Registry, now: Timestamp) -> Result<Self, Failure> {
        fetched.may_follow(&self.registry)?;
        let rollback = |detail: String| Failure::new(FailureCode::RegistryRollback, detail);
        let keys: BTreeMap<&str, &Key> = fetched.keys().iter().map(|key| (key.id.as_str(), key)).collect();
        let publics: BTreeMap<&[u8; 32], &str> =
            fetched.keys().iter().map(|key| (&key.public, key.id.as_str())).collect();
        for gone in &self.gone {
            if let Some(id) = publics.get(&gone.public).filter(|id| **id != gone.id) {
                return Err(rollback(format!("`{id}` names the key that was withdrawn as `{}`", gone.id)));
            }
            match keys.get(gone.id.as_str()) {
                Some(key) if key.public != gone.public => {
                    return Err(rollback(format!("`{}` names another key than it once did", gone.id)));
                }
                Some(key) if key.state != KeyState::Compromised => {
                    return Err(rollback(format!("`{}` was withdrawn, which only a compromised key is", gone.id)));
                }
                _ => {}
            }
        }
        if fetched.version() == self.registry.version() {
            return Ok(Self { fetched_at: now, ..self.clone() });
        }
        let known = self.registry.keys().iter().map(|key| Gone { id: key.id.clone(), public: key.public });
        let missing = |gone: &Gone| !keys.contains_key(gone.id.as_str());
        let gone: Vec<Gone> = self.gone.iter().cloned().chain(known).filter(missing).collect();
        if gone.len() > MAX_GONE {
            return Err(rollback(format!("more than {MAX_GONE} keys were withdrawn: force a refresh")));
        }
        Ok(Self {
            format: Format::One,
            instance: self.instance.clone(),
            fetched_at: now,
            registry: fetched.clone(),
            gone,
        })
    }

    /// Whether it may serve at `now` without asking again. One from the future may not: a clock that was set back would keep it for ever.
    pub fn is_fresh(&self, now: Timestamp, ttl: Duration) -> bool {
        let age = now.millis().saturating_sub(self.fetched_at.millis());
        u128::try_from(age).is_ok_and(|age| age < ttl.as_millis())
    }

    /// Whose registry it is.
    pub const fn instance(&self) -> &Instance {
        &self.instance
    }

    /// When it was fetched last.
    pub const fn fetched_at(&self) -> Timestamp {
        self.fetched_at
    }

    /// The registry as published.
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The keys that are published no more.
    pub fn gone(&self) -> &[Gone] {
        &self.gone
    }

    /// Reads a file.
    pub fn parse(bytes: &[u8]) -> Result<Self, Damage> {
        let entry: Self = json::from_slice(bytes).map_err(|error| Damage(error.to_string()))?;
        if entry.gone.len() > MAX_GONE || !entry.gone.iter().all(|gone| is_key_id(&gone.id)) {
            return Err(Damage("`gone` holds no keys".to_owned()));
        }
        // The check sum is in the bytes: a version that lost a digit is not taken for a version.
        if entry.to_bytes() == bytes {
            Ok(entry)
        } else {
            Err(Damage("its bytes do not have its check sum".to_owned()))
        }
    }

    /// The file: one canonical JSON document and a line end.
    pub fn to_bytes(&self) -> Vec<u8> {
        let sum = Digest::of(json::to_canonical(self).as_bytes()).hex();
        (json::to_canonical(&Sealed { entry: self, sha256: sum }) + "\n").into_bytes()
    }
}
