//! What a session signs: statements of its turns, of steps, of what its agent says.
//!
//! Owns their keeping: each lies under the digest of its envelope, and a row names it. Refuses a name that no file can have. Invariant: a
//! statement that a row names is on disk before the row is, signed by the key that is in force there. Page: `spec/statements.md`.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use writ_core::Digest;
use writ_core::json::{self, Value};
use writ_evidence::intoto::{self, ResourceDescriptor, Statement};
use writ_evidence::row::Row;
use writ_policy::Policy;

use super::rows::event;
use super::{Session, SessionError, seal};
use crate::governing::kept::attestations;

/// The event of the row that names one.
pub const ATTESTED: &str = "attested";
/// Where they lie in a session's folder.
pub const FOLDER: &str = "statements";
/// What the name of a session's subject begins with.
pub const RUN: &str = "agentflow:run:";
/// What the name of a step's subject begins with.
pub const STEP: &str = "agentflow:step:";
/// Longest envelope.
pub const MAX_ENVELOPE: u64 = 16 << 20;
/// Longest name.
const MAX_NAME: usize = 128;

/// Files among a session's statements that no row names, sorted: a write that was cut off leaves one behind, and so does whoever adds one.
pub fn unnamed(folder: &Path, named: &HashSet<Digest>) -> Vec<String> {
    let names: HashSet<String> = named.iter().map(|digest| file_of(*digest)).collect();
    let there = fs::read_dir(folder.join(FOLDER)).into_iter().flatten().flatten();
    let there = there.map(|entry| format!("{FOLDER}/{}", entry.file_name().to_string_lossy()));
    let mut strays: Vec<String> = there.filter(|name| !names.contains(name)).collect();
    strays.sort_unstable();
    strays
}

/// How what a statement says is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Word {
    /// Writ saw it.
    #[serde(rename = "observed")]
    Observed,
    /// The process that ran it says how it ended; a notary saw what went in and came out.
    #[serde(rename = "reported by the process that ran it")]
    Runner,
    /// The agent says so.
    #[serde(rename = "reported by the agent")]
    Reported,
}

impl Word {
    /// What reports say of it behind a name; nothing of what Writ saw.
    pub const fn told(self) -> &'static str {
        match self {
            Self::Observed => "",
            Self::Runner => ", reported by the process that ran it",
            Self::Reported => ", reported by the agent",
        }
    }
}

/// A statement, as a row names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attested {
    /// `turn-3`, or the step's name.
    pub name: String,
    /// The type of its predicate.
    #[serde(rename = "type")]
    pub kind: String,
    /// Of its envelope.
    pub digest: Digest,
    /// How it is known.
    pub standing: Word,
    /// Why there is no copy in the policy's `attestationDir`, if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncopied: Option<String>,
}

impl Attested {
    /// The statement that a row names.
    pub fn of(row: &Row) -> Option<Result<Self, String>> {
        (event(row) == ATTESTED).then(|| {
            let named = row.detail.get(ATTESTED).ok_or("it names no statement")?;
            json::from_value(named).map_err(|error| error.to_string())
        })
    }

    /// Its file in a session's folder.
    pub fn file(&self) -> String {
        file_of(self.digest)
    }
}

fn file_of(envelope: Digest) -> String {
    format!("{FOLDER}/{}.json", envelope.hex())
}

/// Whether a statement can have this name: letters, digits, `-`, `_` and `.`, which it does not begin with.
pub fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && name.len() <= MAX_NAME && !name.starts_with('.') && name.chars().all(plain)
}

/// The subject that ties a statement to its session: no other has a first row with this seal.
pub fn subject_of(session: &str, genesis: Digest) -> ResourceDescriptor {
    ResourceDescriptor::sha256(format!("{RUN}{session}"), genesis)
}

/// Whether a subject says of which session a statement is.
pub fn is_session(subject: &ResourceDescriptor) -> bool {
    subject.name.starts_with(RUN)
}

/// The subject that ties what an agent says to its step and to its place in the record: the seal of the row before.
pub fn place_of(name: &str, before: Digest) -> ResourceDescriptor {
    ResourceDescriptor::sha256(format!("{STEP}{name}"), before)
}

/// What the row says.
#[derive(Serialize)]
struct Detail<'a, T> {
    attested: &'a Attested,
    #[serde(flatten)]
    more: T,
}

/// Signs a statement, keeps it, appends the row that names it, and seals. Durable on return. `more` is what else the row says.
pub fn keep<P: Serialize>(
    session: &mut Session<'_>,
    name: &str,
    standing: Word,
    statement: &Statement<P>,
    more: impl Serialize,
) -> Result<Attested, SessionError> {
    session.take_custody()?;
    let key = session.signer()?;
    let envelope = intoto::sign(statement, &[&key])?.to_bytes();
    let digest = Digest::of(&envelope);
    let kind = statement.predicate_type().to_owned();
    let attested = Attested { name: name.to_owned(), kind, digest, standing, uncopied: None };
    record(session, attested, &envelope, more)
}

/// Keeps a signed statement, appends the row that names it, and seals. Durable on return. `more` is what else the row says.
pub fn record(
    session: &mut Session<'_>,
    mut attested: Attested,
    envelope: &[u8],
    more: impl Serialize,
) -> Result<Attested, SessionError> {
    session.take_custody()?;
    session.keep(&attested.file(), envelope)?;
    attested.uncopied = publish(session, &format!("{}.json", attested.name), envelope);
    let draft = session.event(ATTESTED, Detail { attested: &attested, more });
    session.append(draft)?;
    // Whether an end of a turn comes after it is not known, and what is not sealed can be cut off.
    seal::seal(session)?;
    Ok(attested)
}

/// Puts a copy where the policy wants it, for people and other tools. Returns why not.
pub fn publish(session: &Session<'_>, name: &str, bytes: &[u8]) -> Option<String> {
    let accepted = &session.policy().ok()?.accepted;
    let wanted = folder(&accepted.policy)?;
    let Some(place) = attestations(&accepted.path, wanted) else {
        return Some("`attestationDir` is not below the policy's folder".to_owned());
    };
    let path = place.join(session.id.file_name()).join(name);
    match writ_store::publish(&path, bytes) {
        Ok(true) => None,
        Ok(false) => Some(format!("{} is there already", path.display())),
        Err(error) => Some(error.to_string()),
    }
}

/// The folder that a policy names for attestations, as it is written.
pub fn folder(policy: &Policy) -> Option<&str> {
    policy.document().get("attestationDir").and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_plain_files() {
        for good in ["turn-1", "task-complete", "control_AC-1.2", "a"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", ".", "..", ".x", "a/b", "a b", "é", &"x".repeat(129)] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
