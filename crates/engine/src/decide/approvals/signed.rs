//! A human's word under signature, as the row of it holds it.
//!
//! Owns the statement: which action, how often, until when, at which place of the ledger. Refuses a word that is not signed
//! by a key known here, and one whose statement says anything else than its row. Invariant: a statement names the seal of the
//! row before its own, so that it is good at one place of one ledger: put in a second time, it is void. Page:
//! `spec/policy.md`, "Approvals".

use serde::{Deserialize, Serialize};
use writ_core::json::{self, Value};
use writ_core::{Digest, Timestamp};
use writ_evidence::dsse::{Envelope, VerifyError};
use writ_evidence::intoto::{self, ResourceDescriptor, Statement, StatementError};
use writ_evidence::keys::{KeyError, PublicKey, SigningKey};
use writ_evidence::row::Row;

use super::Grant;
use crate::session::state::{Action, Given};

/// What the statement is about.
pub const PREDICATE_TYPE: &str = "https://github.com/writ-dev/writ/spec/approval/v1";

/// How a human showed that they are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Presence {
    /// They know the approval passphrase.
    Passphrase,
    /// Something above their terminal is older than the session, and no agent's client is.
    Terminal,
}

impl Presence {
    /// The word for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passphrase => "with the approval passphrase",
            Self::Terminal => "at a terminal older than the session",
        }
    }
}

/// What a human said.
#[derive(Serialize)]
struct Predicate<'a> {
    action: Action<'a>,
    #[serde(flatten)]
    given: Given,
    presence: Presence,
    at: Timestamp,
    /// The seal of the row before the one that holds this.
    follows: Digest,
}

/// The same as it is read.
#[derive(Deserialize)]
struct Read {
    action: Value,
    #[serde(default)]
    uses: crate::session::state::Uses,
    #[serde(default)]
    until: Option<Timestamp>,
    presence: Presence,
    at: Timestamp,
    follows: Digest,
}

/// Where a word is put on record.
pub struct Place {
    /// The moment of its row.
    pub at: Timestamp,
    /// The seal of the row before.
    pub follows: Digest,
}

/// Signs a human's word on an action: the envelope, as the row holds it.
pub fn sign(
    action: Action<'_>,
    given: Given,
    presence: Presence,
    place: &Place,
    key: &SigningKey,
) -> Result<Value, KeyError> {
    let subject = vec![ResourceDescriptor::sha256(action.tool, action.digest())];
    let predicate = Predicate { action, given, presence, at: place.at, follows: place.follows };
    let envelope = intoto::sign(&Statement::new(subject, PREDICATE_TYPE, predicate), &[key])?;
    Ok(json::parse(&envelope.to_bytes()).unwrap_or(Value::Null))
}

/// A word that is good.
pub struct Checked {
    /// The word.
    pub grant: Grant,
    /// How the human showed that they are there.
    pub presence: Presence,
    /// The keys that signed it.
    pub signers: Vec<Digest>,
    /// Digests of the policies' files that its action was judged under.
    pub files: Vec<Digest>,
}

/// The policies' files that an action names.
fn files(action: &Value) -> Vec<Digest> {
    let layers = action.get("layers").and_then(Value::as_array).unwrap_or_default();
    let named = action.get("policy").into_iter().chain(layers);
    named.filter_map(|file| Digest::parse(file.as_str()?).ok()).collect()
}

/// Why a word is not good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotGood {
    /// What is signed is not what its row says.
    #[error("{0}")]
    Otherwise(String),
    /// None of the keys that are known signed it.
    #[error("no key that is known here signed it")]
    UnknownKey,
}

/// The word that a row holds, checked with the keys that may give one.
pub fn check(row: &Row, keys: &[PublicKey]) -> Result<Checked, NotGood> {
    let otherwise = |why: &str| NotGood::Otherwise(why.to_owned());
    let grant = row.detail.get("grant").and_then(|grant| json::from_value::<Grant>(grant).ok());
    let grant = grant.ok_or_else(|| otherwise("it names no approval"))?;
    let signed = row.detail.get("signed").ok_or_else(|| otherwise("it is not signed"))?;
    let envelope = Envelope::parse(json::canonical(signed).as_bytes());
    let envelope = envelope.map_err(|error| NotGood::Otherwise(error.to_string()))?;
    // Looked at before its signatures are: what says something else than its row is wrong whoever signed it.
    let said: Result<Statement<Read>, StatementError> = envelope.unchecked_statement();
    let said = said.map_err(|error| NotGood::Otherwise(error.to_string()))?;
    let predicate = said.predicate();
    let same = said.predicate_type() == PREDICATE_TYPE
        && Digest::of(json::canonical(&predicate.action).as_bytes()) == grant.action
        && Given { uses: predicate.uses, until: predicate.until } == grant.given();
    if !same {
        return Err(otherwise("what is signed is not what it says"));
    }
    if predicate.follows != row.prev_hash || predicate.at != row.timestamp {
        return Err(otherwise("it was signed for another place of the record"));
    }
    match envelope.verify(keys) {
        Ok(verified) => {
            let (presence, files) = (predicate.presence, files(&predicate.action));
            Ok(Checked { grant, presence, signers: verified.signers().to_vec(), files })
        }
        Err(VerifyError::NoSignature { .. }) => Err(NotGood::UnknownKey),
        Err(error @ VerifyError::Wrong { .. }) => Err(NotGood::Otherwise(error.to_string())),
    }
}
