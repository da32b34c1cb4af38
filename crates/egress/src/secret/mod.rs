//! Secrets that a confined program uses without having them (R66).
//!
//! Owns the values while a run lasts, the placeholders that stand for them inside, and where a value may be put. Refuses to show
//! a value: it is in no `Debug`, no error and no record, and its memory is zeroed when it is dropped. Invariant: a value leaves
//! this room only in a request to a host that its rule names, over TLS whose other end proved to be that host.

mod find;
mod letters;
mod place;
mod scrub;

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use writ_core::Digest;
use writ_policy::HostRule;
use zeroize::Zeroizing;

use crate::host::{HostName, any};

pub use place::Fields;
pub use scrub::{Scrubber, Unpacker, Watcher};

/// What every placeholder begins with; 32 hexadecimal digits follow.
const START: &str = "writ_secret_";
const DIGITS: usize = 32;
/// Shortest value: a shorter one would be found in answers that have nothing to do with it.
const SHORTEST: usize = 8;
/// Longest value.
const LONGEST: usize = 8192;

/// Fields of a request that a secret may always stand in; a rule names others.
const FIELDS: [&str; 3] = ["authorization", "cookie", "x-api-key"];

/// Fields that say how a message is read, so that nothing is put in there.
const NEVER: [&str; 12] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "content-type",
    "content-encoding",
    "accept-encoding",
    "proxy-authorization",
];

/// A secret, as the rules know it: without its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretRule {
    /// What it is called in policy and records.
    pub name: String,
    /// What stands for it inside.
    pub placeholder: String,
    /// Hosts that may receive it.
    pub hosts: Vec<HostRule>,
    /// Where it is put in.
    pub inject: Inject,
    /// Fields beside `Authorization`, `Cookie` and `X-Api-Key`; lower case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
}

/// Where a secret is put in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inject {
    /// In fields of the head.
    #[default]
    Header,
    /// In the query of the URL, and in fields of the head.
    Query,
}

impl SecretRule {
    /// Whether a rule may name a field.
    pub fn may_stand_in(field: &str) -> bool {
        let token = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
        !field.is_empty() && field.bytes().all(token) && !NEVER.contains(&field)
    }

    fn stands_in(&self, field: &str) -> bool {
        FIELDS.contains(&field) || self.headers.iter().any(|header| header == field)
    }
}

/// A placeholder of fixed form and random digits.
pub fn placeholder() -> Result<String, SecretError> {
    let mut bytes = [0; DIGITS];
    SystemRandom::new().fill(&mut bytes).map_err(|_unspecified| SecretError::Random)?;
    let digits = Digest::of(&bytes).hex();
    Ok(format!("{START}{}", digits.get(..DIGITS).unwrap_or_default()))
}

/// Whether a text has a placeholder's form.
pub fn is_placeholder(text: &str) -> bool {
    text.strip_prefix(START).is_some_and(|digits| {
        digits.len() == DIGITS && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// The value of a secret.
pub struct SecretValue {
    name: String,
    value: Zeroizing<Vec<u8>>,
}

/// A value that cannot be a secret's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum SecretError {
    #[error("secret `{0}` has fewer than 8 bytes or more than 8192")]
    Length(String),
    #[error("secret `{0}` holds a line break or another control character")]
    Control(String),
    #[error("secret `{0}` has no value, or more than one")]
    Values(String),
    #[error("no random bytes could be had")]
    Random,
}

impl SecretValue {
    /// Takes a value over.
    pub fn new(name: String, value: Vec<u8>) -> Result<Self, SecretError> {
        let value = Zeroizing::new(value);
        if !(SHORTEST..=LONGEST).contains(&value.len()) {
            return Err(SecretError::Length(name));
        }
        if value.iter().any(u8::is_ascii_control) {
            return Err(SecretError::Control(name));
        }
        Ok(Self { name, value })
    }

    /// Whether the value stands in some bytes: as it is, or as programs write it down (Base64 at any place, percent-encoded, escaped for
    /// JSON or HTML, in hexadecimal digits). What somebody made up to hide it (turned around, cut up, encrypted) is not found.
    pub fn stands_in(&self, bytes: &[u8]) -> bool {
        let plain = find::spellings(&self.value).iter().any(|spelling| spelling.find(bytes).is_some());
        plain || find::holds(&Zeroizing::new(bytes.to_ascii_lowercase()), &find::hexadecimal(&self.value))
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretValue({}, [secret])", self.name)
    }
}

/// A secret with its value and the spellings of both that are looked for.
struct Secret {
    rule: SecretRule,
    value: Zeroizing<Vec<u8>>,
    /// Spellings of the value.
    spellings: Vec<find::Spelling>,
    /// Spellings of the placeholder.
    marks: Vec<Vec<u8>>,
}

/// The secrets of a run.
pub struct Secrets(Vec<Secret>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|secret| &secret.rule.name)).finish()
    }
}

impl Secrets {
    /// Joins rules and values; each rule has exactly one.
    pub fn new(rules: &[SecretRule], values: Vec<SecretValue>) -> Result<Self, SecretError> {
        let mut values = values;
        let mut secrets = Vec::new();
        for rule in rules {
            let wanted = values.iter().position(|value| value.name == rule.name);
            let value = wanted.map(|place| values.swap_remove(place).value);
            let value = value.ok_or_else(|| SecretError::Values(rule.name.clone()))?;
            let spellings = find::spellings(&value);
            let marks = find::marks(rule.placeholder.as_bytes());
            secrets.push(Secret { rule: rule.clone(), value, spellings, marks });
        }
        match values.first() {
            Some(left) => Err(SecretError::Values(left.name.clone())),
            None => Ok(Self(secrets)),
        }
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether any may be sent to a host.
    pub fn are_for(&self, host: &HostName) -> bool {
        self.0.iter().any(|secret| any(&secret.rule.hosts, host))
    }

    /// The first secret whose placeholder is in `bytes` although it is not bound to `host`.
    fn strange(&self, host: &HostName, bytes: &[u8]) -> Option<&Secret> {
        let strange = |secret: &&Secret| !any(&secret.rule.hosts, host);
        self.0.iter().filter(strange).find(|secret| secret.marks.iter().any(|mark| find::holds(bytes, mark)))
    }
}

/// What a program sends as Basic credentials, read.
fn basic(value: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (scheme, rest) = value.split_at_checked(6)?;
    let encoded = scheme.eq_ignore_ascii_case(b"basic ").then(|| rest.trim_ascii())?;
    STANDARD.decode(encoded).ok().map(Zeroizing::new)
}
