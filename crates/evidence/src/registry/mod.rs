//! The key registry: which keys of an instance may sign, which may be believed.
//!
//! Owns the five states, the only legal ways between them, and the strict form of the published document. Refuses a registry with two
//! active keys, one id or one key twice, or a state without its dates. Invariant: every registry made here is legal, and its version is higher
//! than that of the one it was made from. Page: `spec/attestation.md` (seed §5, R31).

mod change;
mod document;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use writ_core::{Timestamp, json};

pub use change::{Change, ChangeError};
pub use document::RegistryError;

use crate::attestation::{Attestation, Failure, FailureCode};

/// Where an instance publishes its registry.
pub const PATH: &str = "/.well-known/recourse-keys.json";

/// What a key may be used for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyState {
    /// Published, not in use yet.
    Pending,
    /// Signs.
    Active,
    /// Signs no more; what it signed counts.
    Deprecated,
    /// Out of rotation for good; what it signed counts.
    Retired,
    /// Nothing it ever signed counts.
    Compromised,
}

impl KeyState {
    /// The state as the registry spells it.
    pub fn as_str(self) -> &'static str {
        json::word(&self)
    }

    /// Whether a key may go from here to `next` (R31).
    pub const fn may_become(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::Pending, Self::Active | Self::Deprecated)
                | (Self::Active, Self::Deprecated)
                | (Self::Deprecated, Self::Retired)
                | (Self::Pending | Self::Active | Self::Deprecated | Self::Retired, Self::Compromised)
        )
    }

    /// Whether a key may get from here to `later` in any number of steps.
    const fn may_reach(self, later: Self) -> bool {
        matches!(
            (self, later),
            (Self::Pending, _)
                | (Self::Active, Self::Active | Self::Deprecated | Self::Retired | Self::Compromised)
                | (Self::Deprecated, Self::Deprecated | Self::Retired | Self::Compromised)
                | (Self::Retired, Self::Retired | Self::Compromised)
                | (Self::Compromised, Self::Compromised)
        )
    }
}

impl fmt::Display for KeyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One key.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "document::KeyDocument", into = "document::KeyDocument")]
pub struct Key {
    /// Its name, never used again for another key.
    pub id: String,
    /// The raw Ed25519 key.
    pub public: [u8; 32],
    /// Its state.
    pub state: KeyState,
    /// From when it signs or signed.
    pub valid_from: Option<Timestamp>,
    /// When its deprecation is planned.
    pub valid_until: Option<Timestamp>,
    /// When it was deprecated.
    pub deprecated_at: Option<Timestamp>,
}

/// A registry.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "document::Document")]
pub struct Registry {
    #[serde(rename = "instance_id")]
    instance: String,
    keys: Vec<Key>,
    #[serde(rename = "registry_version")]
    version: u64,
    updated_at: Timestamp,
}

impl Registry {
    /// The instance's name.
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// The keys, oldest first.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Rises with every change.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// When it was changed last.
    pub const fn updated_at(&self) -> Timestamp {
        self.updated_at
    }

    /// The key of that name.
    pub fn key(&self, id: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.id == id)
    }

    /// The key that signs.
    pub fn active(&self) -> Option<&Key> {
        self.keys.iter().find(|key| key.state == KeyState::Active)
    }

    /// The key that may sign at `now`: the active one, until its end.
    pub fn signing(&self, now: Timestamp) -> Option<&Key> {
        self.active().filter(|active| active.valid_until.is_none_or(|end| now < end))
    }

    /// Checks an attestation's signature with its key as this registry has it (§4.4, §7.4 steps 4 to 8).
    pub fn check(&self, attestation: &Attestation) -> Result<KeyState, Failure> {
        let id = attestation.key_id();
        let key = self.key(id);
        let key = key.ok_or_else(|| Failure::new(FailureCode::KeyNotFound, format!("no key `{id}` is published")))?;
        match key.state {
            KeyState::Pending => Err(Failure::new(FailureCode::KeyPending, format!("`{id}` may not sign yet"))),
            KeyState::Compromised => Err(Failure::new(
                FailureCode::KeyCompromised,
                format!("`{id}` is compromised: nothing it signed counts"),
            )),
            KeyState::Active | KeyState::Deprecated | KeyState::Retired => {
                attestation.is_signed_by(&key.public).map(|()| key.state)
            }
        }
    }

    /// Whether this registry, fetched now, may take the place of `known` (§5.5, R31). A lower version is a rollback; so is the same
    /// version with other keys, a key whose state went backwards, an id that names another key, and a key under another id.
    pub fn may_follow(&self, known: &Self) -> Result<(), Failure> {
        let rollback = |detail: String| Err(Failure::new(FailureCode::RegistryRollback, detail));
        if self.version < known.version {
            return rollback(format!("version {} was fetched, {} is known", self.version, known.version));
        }
        let keys: BTreeMap<&str, &Key> = self.keys.iter().map(|key| (key.id.as_str(), key)).collect();
        // The order of the list says nothing: an instance that sorts it differently has changed nothing.
        let same = |old: &Key| keys.get(old.id.as_str()).is_some_and(|new| *new == old);
        if self.version == known.version && (keys.len() != known.keys.len() || !known.keys.iter().all(same)) {
            return rollback(format!("version {} was fetched with other keys than are known", self.version));
        }
        let publics: BTreeMap<&[u8; 32], &str> = self.keys.iter().map(|key| (&key.public, key.id.as_str())).collect();
        for old in &known.keys {
            if let Some(id) = publics.get(&old.public).filter(|id| **id != old.id) {
                return rollback(format!("`{id}` names the key that `{}` named", old.id));
            }
            match keys.get(old.id.as_str()) {
                Some(new) if new.public != old.public => {
                    return rollback(format!("`{}` names another key now", old.id));
                }
                Some(new) if !old.state.may_reach(new.state) => {
                    return rollback(format!("`{}` went from {} to {}", old.id, old.state, new.state));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
