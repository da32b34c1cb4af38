//! One instance's cache file.
//!
//! Owns what is remembered of a registry: the last one taken, when it was fetched, and every key that was published once and is no more.
//! Refuses bytes that are not exactly what [`Entry::to_bytes`] writes. Invariant: an entry follows the one it was made from by
//! [`Registry::may_follow`], and no id it ever held names another key.

use std::collections::BTreeMap;
use std::time::Duration;

use writ_core::json::{self, Object, Value};
use writ_core::{Digest, Timestamp};
use writ_evidence::attestation::{Failure, FailureCode, is_key_id};
use writ_evidence::b64url;
use writ_evidence::registry::{Key, KeyState, Registry};

use crate::Instance;

/// `format` of the file.
const FORMAT: &str = "writ.registry-cache.v1";
/// Most keys that are remembered beyond the published ones.
pub const MAX_GONE: usize = 16_384;

/// A key that was published and is no more. Every key but a compromised one must be published (§5.3), so it is compromised, and its id
/// must not come back for another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gone {
    /// Its id.
    pub id: String,
    /// The raw key.
    pub public: [u8; 32],
}

/// A registry as it is remembered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    instance: Instance,
    fetched_at: Timestamp,
    registry: Registry,
    gone: Vec<Gone>,
}

/// Why bytes are no cache file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Damage(pub(crate) String);

impl Entry {
    /// The first entry of an instance, or the one that a forced refresh makes.
    pub const fn first(instance: Instance, registry: Registry, now: Timestamp) -> Self {
        Self { instance, fetched_at: now, registry, gone: Vec::new() }
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
        Ok(Self { instance: self.instance.clone(), fetched_at: now, registry: fetched.clone(), gone })
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
        let damage = |why: &str| Damage(why.to_owned());
        let value = json::parse(bytes).map_err(|error| Damage(error.to_string()))?;
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        if text("format") != Some(FORMAT) {
            return Err(damage("`format` is another"));
        }
        let instance = text("instance").and_then(|text| Instance::parse(text).ok());
        let instance = instance.ok_or_else(|| damage("`instance` is none"))?;
        let fetched_at = text("fetched_at").and_then(|text| Timestamp::parse(text).ok());
        let fetched_at = fetched_at.ok_or_else(|| damage("`fetched_at` is no moment"))?;
        let registry = json::canonical(value.get("registry").unwrap_or(&Value::Null));
        let registry = Registry::parse(registry.as_bytes()).map_err(|error| Damage(format!("`registry`: {error}")))?;
        let gone = value.get("gone").and_then(Value::as_array).filter(|gone| gone.len() <= MAX_GONE);
        let gone = gone.and_then(|gone| gone.iter().map(Gone::from_json).collect::<Option<Vec<_>>>());
        let entry = Self { instance, fetched_at, registry, gone: gone.ok_or_else(|| damage("`gone` holds no keys"))? };
        // The check sum is in the bytes: a version that lost a digit is not taken for a version.
        if entry.to_bytes() == bytes { Ok(entry) } else { Err(damage("its bytes do not have its check sum")) }
    }

    /// The file: one canonical JSON document and a line end.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Object::new();
        out.push("fetched_at", Value::from(self.fetched_at.to_string()));
        out.push("format", Value::from(FORMAT));
        out.push("gone", Value::Array(self.gone.iter().map(Gone::to_json).collect()));
        out.push("instance", Value::from(self.instance.as_str()));
        out.push("registry", self.registry.to_json());
        let sum = Digest::of(json::canonical(&Value::Object(out.clone())).as_bytes());
        out.push("sha256", Value::from(sum.hex()));
        let mut bytes = json::canonical(&Value::Object(out)).into_bytes();
        bytes.push(b'\n');
        bytes
    }
}

impl Gone {
    fn from_json(value: &Value) -> Option<Self> {
        let id = value.get("key_id").and_then(Value::as_str).filter(|id| is_key_id(id))?;
        let public = value.get("public_key").and_then(Value::as_str).and_then(b64url::decode)?;
        Some(Self { id: id.to_owned(), public })
    }

    fn to_json(&self) -> Value {
        let mut out = Object::new();
        out.push("key_id", Value::from(self.id.as_str()));
        out.push("public_key", Value::from(b64url::encode(&self.public)));
        Value::Object(out)
    }
}
