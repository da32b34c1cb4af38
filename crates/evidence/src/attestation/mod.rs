//! Consequence attestations: a verdict, what it was given on, and a signature over both.
//!
//! Owns the exact signed bytes, the id and the strict form of an attestation. It fetches nothing and keeps nothing. Invariant: the
//! bytes that are signed and checked are the canonical form of everything but `signature`, whatever members there are. Page:
//! `spec/attestation.md` (seed §4 and §6, R30, R33).

mod draft;
mod failure;
mod instance;
mod offline;

use serde::{Deserialize, Deserializer};
use writ_core::json::{self, Limits, Object, Value};
use writ_core::{Digest, Timestamp};

use crate::b64url;
use crate::keys::{Algorithm, PublicKey};

pub use draft::{Draft, Pending};
pub use failure::{Failure, FailureCode};
pub use instance::{Instance, InstanceError};
pub use offline::{Terms, is_trusted, verify};

/// `version` of what Writ issues.
pub const VERSION: &str = "recourse.attestation.v1";
/// Where an instance serves its attestations.
pub const FOLDER: &str = "/.well-known/attestations/";
/// The members that give an attestation its id (§6.3).
const IDENTIFYING: [&str; 5] = ["evaluator", "input", "key_id", "output", "timestamp"];

/// An attestation in the right form, its signature not checked.
#[derive(Clone, PartialEq, Debug)]
pub struct Attestation {
    members: Object,
    id: String,
    signature: [u8; 64],
    timestamp: Timestamp,
    expires_at: Option<Timestamp>,
}

/// The members of §4.1. Others pass.
#[derive(Deserialize)]
#[expect(dead_code, reason = "most members are read to be checked, and then taken from the document as they stand")]
struct Form {
    #[serde(deserialize_with = "json::filled")]
    attestation_uri: String,
    #[serde(default, deserialize_with = "some_filled")]
    chain_id: Option<String>,
    evaluator: Evaluator,
    #[serde(default, deserialize_with = "json::given")]
    expires_at: Option<Timestamp>,
    input: AnObject,
    #[serde(deserialize_with = "key_id")]
    key_id: String,
    #[serde(default, deserialize_with = "nonce")]
    nonce: Option<String>,
    output: AnObject,
    #[serde(default, deserialize_with = "json::given")]
    parent_attestation: Option<Digest>,
    #[serde(with = "b64url")]
    signature: [u8; 64],
    timestamp: Timestamp,
    #[serde(default, deserialize_with = "json::given")]
    version: Option<Version>,
}

/// An object, whatever it holds.
#[derive(Deserialize)]
struct AnObject {}

#[derive(Deserialize)]
#[serde(untagged, expecting = "not a text and not an object")]
#[expect(dead_code, reason = "read to be checked")]
enum Evaluator {
    Named(#[serde(deserialize_with = "json::filled")] String),
    Described(Object),
}

#[derive(Deserialize)]
enum Version {
    /// [`VERSION`].
    #[serde(rename = "recourse.attestation.v1")]
    One,
}

impl Attestation {
    /// Reads a document.
    pub fn parse(bytes: &[u8]) -> Result<Self, Failure> {
        let value = json::parse_with(bytes, Limits::SIGNED).map_err(|error| invalid(error.to_string()))?;
        Self::from_value(value)
    }

    /// Reads a parsed document. The caller parsed it under [`Limits::SIGNED`].
    pub fn from_value(value: Value) -> Result<Self, Failure> {
        let form: Form = json::from_value(&value).map_err(|error| invalid(error.to_string()))?;
        let Value::Object(members) = value else { return Err(invalid("not a JSON object")) };
        let id = id_of(&members);
        if split_uri(&form.attestation_uri).is_none_or(|(_, named)| named != id) {
            return Err(invalid(format!("`attestation_uri` is not {{instance}}{FOLDER}{id}.json")));
        }
        let Form { signature, timestamp, expires_at, .. } = form;
        Ok(Self { id, signature, timestamp, expires_at, members })
    }

    /// The id of §6.3: 32 hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The URL of the durable copy.
    pub fn uri(&self) -> &str {
        self.text("attestation_uri").unwrap_or_default()
    }

    /// Scheme, host and port of the instance that issued it.
    pub fn instance(&self) -> &str {
        split_uri(self.uri()).map_or("", |(instance, _)| instance)
    }

    /// The signing key's name.
    pub fn key_id(&self) -> &str {
        self.text("key_id").unwrap_or_default()
    }

    /// When it was evaluated.
    pub const fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// When it ends, if it does.
    pub const fn expires_at(&self) -> Option<Timestamp> {
        self.expires_at
    }

    /// The nonce, where there is one.
    pub fn nonce(&self) -> Option<&str> {
        self.text("nonce")
    }

    /// A member that is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.members.get(name).and_then(Value::as_str)
    }

    /// What was evaluated.
    pub fn input(&self) -> &Value {
        self.members.get("input").unwrap_or(&Value::Null)
    }

    /// The report.
    pub fn output(&self) -> &Value {
        self.members.get("output").unwrap_or(&Value::Null)
    }

    /// Every member.
    pub const fn members(&self) -> &Object {
        &self.members
    }

    /// The whole document, canonical: the two copies of §6.4 are compared by it.
    pub fn canonical(&self) -> String {
        json::canonical(&Value::Object(self.members.clone()))
    }

    /// SHA-256 of the canonical document: what a `parent_attestation` and a ledger row call it by.
    pub fn digest(&self) -> Digest {
        Digest::of(self.canonical().as_bytes())
    }

    /// The bytes that are signed (§4.1).
    pub fn payload(&self) -> String {
        let signed = self.members.iter().filter(|(name, _)| *name != "signature");
        json::canonical(&Value::Object(signed.map(|(name, value)| (name.to_owned(), value.clone())).collect()))
    }

    /// Checks the signature with one key, strictly.
    pub fn is_signed_by(&self, key: &[u8; 32]) -> Result<(), Failure> {
        let wrong = |detail: &str| Failure::new(FailureCode::SignatureInvalid, detail);
        let key = PublicKey::new(Algorithm::Ed25519, key.to_vec());
        let key = key.map_err(|_weak| wrong("the registry's key is weak"))?;
        key.verify(self.payload().as_bytes(), &self.signature)
            .map_err(|_bad| wrong("the signature does not belong to this document and this key"))
    }
}

/// Scheme, host and port of an attestation's URL, and the id in it. A user, a query, a fragment or another path is refused.
pub fn split_uri(uri: &str) -> Option<(&str, &str)> {
    let (instance, file) = uri.split_once(FOLDER)?;
    let id = file.strip_suffix(".json").filter(|id| is_id(id))?;
    is_instance(instance).then_some((instance, id))
}

/// Whether this is `scheme://host[:port]` and nothing else ([`Instance::parse`]).
pub fn is_instance(instance: &str) -> bool {
    Instance::parse(instance).is_ok()
}

/// Whether this is an attestation's id.
pub fn is_id(id: &str) -> bool {
    is_nonce(id)
}

/// Printable ASCII without spaces (§5.1).
pub fn is_key_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= 256 && id.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_nonce(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn some_filled<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    json::filled(deserializer).map(Some)
}

fn key_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let wrong = "not printable ASCII without spaces";
    json::read_text(deserializer, |text| if is_key_id(text) { Ok(text.to_owned()) } else { Err(wrong) })
}

fn nonce<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let wrong = "not 32 lower-case hexadecimal digits";
    json::read_text(deserializer, |text| if is_nonce(text) { Ok(Some(text.to_owned())) } else { Err(wrong) })
}

fn id_of(members: &Object) -> String {
    let named = IDENTIFYING.iter().filter_map(|name| Some(((*name).to_owned(), members.get(name)?.clone())));
    short_hex(json::canonical(&Value::Object(named.collect())).as_bytes())
}

fn short_hex(bytes: &[u8]) -> String {
    let mut hex = Digest::of(bytes).hex();
    hex.truncate(32);
    hex
}

fn invalid(detail: impl Into<String>) -> Failure {
    Failure::new(FailureCode::InvalidAttestation, detail)
}
