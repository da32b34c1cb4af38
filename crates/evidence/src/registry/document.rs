//! The published document (§5.3).

use writ_core::Timestamp;
use writ_core::json::{self, JsonError, Limits, Object, Value};

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
    /// Not JSON, or not strict JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A member is missing or of the wrong kind.
    #[error("`{member}` {wrong}")]
    Member {
        /// Which, as a JSON pointer without the first slash.
        member: String,
        /// What is wrong with it.
        wrong: &'static str,
    },
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

impl Registry {
    /// Reads a document.
    pub fn parse(bytes: &[u8]) -> Result<Self, RegistryError> {
        let value = json::parse_with(bytes, LIMITS)?;
        let wrong = |member: &str, wrong: &'static str| RegistryError::Member { member: member.to_owned(), wrong };
        let instance = value.get("instance_id").and_then(Value::as_str).filter(|id| !id.is_empty());
        let instance = instance.ok_or_else(|| wrong("instance_id", "is not a text"))?.to_owned();
        let version = value.get("registry_version").and_then(Value::as_u64).filter(|version| *version > 0);
        let version = version.ok_or_else(|| wrong("registry_version", "is not a whole number above 0"))?;
        let updated = value.get("updated_at").and_then(Value::as_str).and_then(|text| Timestamp::parse(text).ok());
        let updated_at = updated.ok_or_else(|| wrong("updated_at", "is not an RFC 3339 date and time"))?;
        let entries = value.get("keys").and_then(Value::as_array).filter(|keys| keys.len() <= MAX_KEYS);
        let entries = entries.ok_or_else(|| wrong("keys", "is not a list of at most 4096 keys"))?;
        let keys: Vec<Key> = entries.iter().enumerate().map(|(at, entry)| key(at, entry)).collect::<Result<_, _>>()?;
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

    /// The document.
    pub fn to_json(&self) -> Value {
        let mut out = Object::new();
        out.push("instance_id", Value::from(self.instance.as_str()));
        out.push("keys", Value::Array(self.keys.iter().map(Key::to_json).collect()));
        out.push("registry_version", Value::from(self.version));
        out.push("updated_at", Value::from(self.updated_at.to_string()));
        Value::Object(out)
    }
}

impl Key {
    fn to_json(&self) -> Value {
        let mut out = Object::new();
        out.push("key_id", Value::from(self.id.as_str()));
        out.push("algorithm", Value::from("Ed25519"));
        out.push("public_key", Value::from(b64url::encode(&self.public)));
        out.push("state", Value::from(self.state.as_str()));
        let moments =
            [("valid_from", self.valid_from), ("valid_until", self.valid_until), ("deprecated_at", self.deprecated_at)];
        for (name, moment) in moments {
            match moment {
                Some(moment) => out.push(name, Value::from(moment.to_string())),
                None if name == "valid_until" && self.state == KeyState::Active => out.push(name, Value::Null),
                None => {}
            }
        }
        Value::Object(out)
    }
}

fn key(at: usize, entry: &Value) -> Result<Key, RegistryError> {
    let wrong = |name: &str, wrong: &'static str| RegistryError::Member { member: format!("keys/{at}/{name}"), wrong };
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    let id = text("key_id").filter(|id| is_key_id(id)).ok_or_else(|| wrong("key_id", "is not printable ASCII"))?;
    if text("algorithm") != Some("Ed25519") {
        return Err(wrong("algorithm", "is not `Ed25519`"));
    }
    let public: Option<[u8; 32]> = text("public_key").and_then(b64url::decode);
    let public = public.ok_or_else(|| wrong("public_key", "is not 32 bytes in base64url without padding"))?;
    PublicKey::new(Algorithm::Ed25519, public.to_vec()).map_err(|_weak| wrong("public_key", "is weak"))?;
    let state = KeyState::ALL.into_iter().find(|state| text("state") == Some(state.as_str()));
    let state = state.ok_or_else(|| wrong("state", "is not a key's state"))?;
    let moment = |name: &str| match entry.get(name) {
        None => Ok(None),
        Some(Value::Null) if name == "valid_until" && state == KeyState::Active => Ok(None),
        Some(value) => match value.as_str().map(Timestamp::parse) {
            Some(Ok(moment)) => Ok(Some(moment)),
            _ => Err(wrong(name, "is not an RFC 3339 date and time")),
        },
    };
    let (valid_from, valid_until, deprecated_at) =
        (moment("valid_from")?, moment("valid_until")?, moment("deprecated_at")?);
    let used = matches!(state, KeyState::Active | KeyState::Deprecated | KeyState::Retired);
    if used && valid_from.is_none() {
        return Err(wrong("valid_from", "is missing"));
    }
    if matches!(state, KeyState::Deprecated | KeyState::Retired) && deprecated_at.is_none() {
        return Err(wrong("deprecated_at", "is missing"));
    }
    Ok(Key { id: id.to_owned(), public, state, valid_from, valid_until, deprecated_at })
}
