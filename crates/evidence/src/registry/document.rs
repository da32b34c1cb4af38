//! The published document (§5.3).

use serde::{Deserialize, Serialize};
use writ_core::Timestamp;
use writ_core::json::{self, FormatError, Limits};

use super::{Key, KeyState, Registry};
use crate::attestation::is_key_id;
use crate::b64url;
use crate::keys::{Algorithm, PublicKey};

/// Most keys of one registry.
const MAX_KEYS: usize = 4096;
/// 4 MiB, 64 levels, exact integers: what is fetched is no larger either.
const LIMITS: Limits = Limits { bytes: 4 << 20, ..Limits::OURS };

/// Why a document is no registry.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RegistryError {
    /// Not strict JSON, or a member is missing or of the wrong kind.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A registry of nobody.
    #[error("`instance_id` is empty")]
    Nobody,
    /// The first version is 1.
    #[error("`registry_version` is not a whole number above 0")]
    NoVersion,
    /// More than [`MAX_KEYS`].
    #[error("`keys` is not a list of at most {MAX_KEYS} keys")]
    TooManyKeys,
    /// One id twice.
    #[error("the key id `{0}` is used twice")]
    Twice(String),
    /// One key under two ids: the state of one would say nothing about the other.
    #[error("the key ids `{0}` and `{1}` name one public key")]
    OneKey(String, String),
    /// More than one key signs.
    #[error("more than one key is active")]
    TwoActive,
}

/// A registry whose keys were not yet held against each other. Other members pass.
#[derive(Deserialize)]
pub(super) struct Document {
    instance_id: String,
    keys: Vec<Key>,
    registry_version: u64,
    updated_at: Timestamp,
}

/// A key as it is published. Other members pass.
#[derive(Serialize, Deserialize)]
pub(super) struct KeyDocument {
    key_id: String,
    algorithm: Signing,
    #[serde(with = "b64url")]
    public_key: [u8; 32],
    state: KeyState,
    #[serde(default, deserialize_with = "json::given", skip_serializing_if = "Option::is_none")]
    valid_from: Option<Timestamp>,
    /// `null` where the key is active and its end is not planned.
    #[serde(default, deserialize_with = "json::given", skip_serializing_if = "Option::is_none")]
    valid_until: Option<Option<Timestamp>>,
    #[serde(default, deserialize_with = "json::given", skip_serializing_if = "Option::is_none")]
    deprecated_at: Option<Timestamp>,
}

#[derive(Serialize, Deserialize)]
enum Signing {
    Ed25519,
}

impl Registry {
    /// Reads a document.
    pub fn parse(bytes: &[u8]) -> Result<Self, RegistryError> {
        json::from_slice_with::<Document>(bytes, LIMITS)?.try_into()
    }
}

impl TryFrom<Document> for Registry {
    type Error = RegistryError;

    fn try_from(document: Document) -> Result<Self, RegistryError> {
        let Document { instance_id: instance, keys, registry_version: version, updated_at } = document;
        if instance.is_empty() {
            return Err(RegistryError::Nobody);
        }
        if version == 0 {
            return Err(RegistryError::NoVersion);
        }
        if keys.len() > MAX_KEYS {
            return Err(RegistryError::TooManyKeys);
        }
        let mut ids: Vec<&str> = keys.iter().map(|key| key.id.as_str()).collect();
        ids.sort_unstable();
        if let Some([twice, _]) =
            ids.windows(2).find_map(|pair| <&[&str; 2]>::try_from(pair).ok().filter(|[a, b]| a == b))
        {
            return Err(RegistryError::Twice((*twice).to_owned()));
        }
        let mut publics: Vec<(&[u8; 32], &str)> = keys.iter().map(|key| (&key.public, key.id.as_str())).collect();
        publics.sort_unstable();
        if let Some(((_, one), (_, other))) = publics.iter().zip(publics.iter().skip(1)).find(|(a, b)| a.0 == b.0) {
            return Err(RegistryError::OneKey((*one).to_owned(), (*other).to_owned()));
        }
        if keys.iter().filter(|key| key.state == KeyState::Active).count() > 1 {
            return Err(RegistryError::TwoActive);
        }
        Ok(Self { instance, keys, version, updated_at })
    }
}

impl TryFrom<KeyDocument> for Key {
    type Error = &'static str;

    fn try_from(key: KeyDocument) -> Result<Self, &'static str> {
        let KeyDocument { key_id: id, public_key: public, state, valid_from, valid_until, deprecated_at, .. } = key;
        if !is_key_id(&id) {
            return Err("`key_id` is not printable ASCII");
        }
        PublicKey::new(Algorithm::Ed25519, public.to_vec()).map_err(|_weak| "`public_key` is weak")?;
        if valid_until == Some(None) && state != KeyState::Active {
            return Err("`valid_until` is not an RFC 3339 date and time");
        }
        let used = matches!(state, KeyState::Active | KeyState::Deprecated | KeyState::Retired);
        if used && valid_from.is_none() {
            return Err("`valid_from` is missing");
        }
        if matches!(state, KeyState::Deprecated | KeyState::Retired) && deprecated_at.is_none() {
            return Err("`deprecated_at` is missing");
        }
        Ok(Self { id, public, state, valid_from, valid_until: valid_until.flatten(), deprecated_at })
    }
}

impl From<Key> for KeyDocument {
    fn from(key: Key) -> Self {
        let Key { id, public, state, valid_from, valid_until, deprecated_at } = key;
        let open = (state == KeyState::Active).then_some(None);
        Self {
            key_id: id,
            algorithm: Signing::Ed25519,
            public_key: public,
            state,
            valid_from,
            valid_until: valid_until.map(Some).or(open),
            deprecated_at,
        }
    }
}
