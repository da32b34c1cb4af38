//! Keys to choose from, and registries' documents made of them without the crate's own writer.

use std::collections::HashMap;

use writ_core::Timestamp;
use writ_evidence::b64url;
use writ_evidence::keys::{Algorithm, SigningKey};
use writ_evidence::registry::{KeyState, Registry};

use crate::reference::{Doc, Key, STATES, State};

/// Moments beyond the model's interest: when a key began, when it was deprecated.
const LONG_AGO: &str = "2026-01-01T00:00:00Z";

/// Keys to choose from, made once: a key is its number.
pub struct Pool {
    pub keys: Vec<SigningKey>,
    pub public: Vec<[u8; 32]>,
    pub numbers: HashMap<[u8; 32], usize>,
}

impl Pool {
    pub fn new() -> Self {
        let keys: Vec<SigningKey> = (0..256).map(|_| SigningKey::generate(Algorithm::Ed25519).unwrap()).collect();
        let public: Vec<[u8; 32]> = keys.iter().map(|key| key.public().raw().try_into().unwrap()).collect();
        let numbers = public.iter().enumerate().map(|(number, key)| (*key, number)).collect();
        Self { keys, public, numbers }
    }
}

/// A registry's document, written without the crate's own writer.
pub fn print(pool: &Pool, name: &str, doc: &Doc) -> Vec<u8> {
    let key = |key: &Key| {
        let (public, state) = (b64url::encode(&pool.public[key.public]), word(key.state));
        let until = match key.until {
            Some(until) => format!(",\"valid_until\":\"{}\"", Timestamp::from_millis(until)),
            None if key.state == State::Active => ",\"valid_until\":null".to_owned(),
            None => String::new(),
        };
        format!(
            "{{\"key_id\":\"{}\",\"algorithm\":\"Ed25519\",\"public_key\":\"{public}\",\"state\":\"{state}\",\
             \"valid_from\":\"{LONG_AGO}\",\"deprecated_at\":\"{LONG_AGO}\"{until}}}",
            key.id
        )
    };
    let keys: Vec<String> = doc.keys.iter().map(key).collect();
    let (keys, version) = (keys.join(", "), doc.version);
    format!("{{\"instance_id\": \"{name}\", \"registry_version\": {version}, \"updated_at\": \"{LONG_AGO}\", \"keys\": [{keys}]}}")
        .into_bytes()
}

pub fn read_back(pool: &Pool, registry: &Registry) -> Doc {
    let keys = registry.keys().iter().map(|key| Key {
        id: key.id.clone(),
        public: pool.numbers[&key.public],
        state: state(key.state),
        until: key.valid_until.map(Timestamp::millis),
    });
    Doc { version: registry.version(), keys: keys.collect() }
}

fn word(state: State) -> &'static str {
    match state {
        State::Pending => "pending",
        State::Active => "active",
        State::Deprecated => "deprecated",
        State::Retired => "retired",
        State::Compromised => "compromised",
    }
}

pub fn state(state: KeyState) -> State {
    *STATES.iter().find(|known| word(**known) == state.as_str()).unwrap()
}
