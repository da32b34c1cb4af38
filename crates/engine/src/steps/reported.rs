//! What an agent says of a step that its policy names.
//!
//! Owns the way from an agent's words to a signed statement that calls them the agent's. Refuses a step that no policy names, and the types of
//! what Writ itself sees: nobody is to take one for the other. Invariant: such a statement is `reported by the agent`, in the record and
//! wherever it is told of. Page: `spec/statements.md`.

use std::path::{Path, PathBuf};

use writ_core::json::{self, Object, Value};
use writ_core::secret::hide;
use writ_core::{Digest, SessionId, Timestamp};
use writ_evidence::intoto::Statement;
use writ_policy::percent_decoded;
use writ_store::Store;

use super::{StepError, may_attest, subjects};
use crate::Home;
use crate::session::Session;
use crate::session::statements::{self, Attested, Word};

/// Largest predicate, as canonical JSON, in bytes.
const MAX: usize = 1 << 20;
/// Longest name of a type.
const MAX_TYPE: usize = 512;
/// How the types of what Writ sees begin, without a scheme: its own, links, turns, and what is a verifier's word.
const OWN: [&str; 5] = [
    "github.com/writ-dev/writ",
    "in-toto.io/attestation/link",
    "in-toto.io/link",
    "agentflow.dev/attestation",
    "slsa.dev/verification_summary",
];

/// How the types begin that are a builder's word: under the key that signs what Writ sees, an agent's would be taken for one.
const BUILDERS: [&str; 2] = ["slsa.dev/provenance", "in-toto.io/provenance"];

/// What an agent says.
#[derive(Clone, Debug)]
pub struct Reported<'a> {
    /// The step that it says it of.
    pub name: &'a str,
    /// The type of its predicate, a URI.
    pub kind: &'a str,
    /// The predicate.
    pub predicate: &'a Value,
    /// Files that it is about; their digests Writ takes itself.
    pub products: Vec<PathBuf>,
    /// The folder that paths are told from.
    pub cwd: &'a Path,
}

/// Why it is not signed.
#[derive(Debug, thiserror::Error)]
pub enum ReportedError {
    /// No policy asks for it.
    #[error("the policy names no step `{name}` in `requiredAttestations`{}", named(known))]
    NotWanted {
        /// The step.
        name: String,
        /// Those that it names.
        known: Vec<String>,
    },
    /// The type.
    #[error("`{kind}` is a type of what Writ sees itself: name another, or have Writ run the step with `attest_step`")]
    OwnType {
        /// It.
        kind: String,
    },
    /// The type is a builder's.
    #[error("`{kind}` is a builder's word: have the step run by Writ (`attest_step`), or import what a builder signed")]
    BuildersType {
        /// It.
        kind: String,
    },
    /// The type.
    #[error("`{kind}` is no type of a predicate: write an absolute URI of at most {MAX_TYPE} characters")]
    Type {
        /// It.
        kind: String,
    },
    /// The predicate.
    #[error("the predicate has {bytes} bytes, and may have {MAX}")]
    TooLarge {
        /// Of its canonical JSON.
        bytes: usize,
    },
    /// The step.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The policy.
    #[error("no policy is in force")]
    NoPolicy,
}

fn named(known: &[String]) -> String {
    if known.is_empty() { ", and no other".to_owned() } else { format!(": it names {}", known.join(", ")) }
}

/// Whether a type is of what Writ sees, to some reader.
pub(super) fn is_own(kind: &str) -> bool {
    begins(&OWN, kind)
}

fn begins(types: &[&str], kind: &str) -> bool {
    let plain = as_readers_may_take_it(kind);
    types.iter().any(|own| plain.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// A type's host and path without all that some reader leaves out: scheme, user, port, case, escapes, dots, doubled and turned slashes.
fn as_readers_may_take_it(kind: &str) -> String {
    let decoded = (0..3).fold(kind.to_owned(), |text, _| percent_decoded(&text).unwrap_or(text));
    let text = decoded.to_lowercase().replace('\\', "/");
    let rest = text.split_once(':').map_or(text.as_str(), |(_, rest)| rest);
    let mut parts: Vec<&str> = Vec::new();
    for part in rest.split(['/', '?', '#']) {
        match part {
            "" | "." => {}
            ".." => parts.truncate(parts.len().saturating_sub(1).max(1)),
            part => parts.push(part),
        }
    }
    if let Some(host) = parts.first_mut() {
        let named = host.rsplit('@').next().unwrap_or_default();
        *host = named.split(':').next().unwrap_or_default().trim_end_matches('.');
    }
    parts.join("/")
}

/// Signs what an agent says, as the agent's word, and records it. Durable on return.
pub fn sign(store: &Store, id: &SessionId, home: &Home, said: &Reported<'_>) -> Result<Attested, ReportedError> {
    let Reported { name, kind, predicate, .. } = said;
    if is_own(kind) {
        return Err(ReportedError::OwnType { kind: (*kind).to_owned() });
    }
    if begins(&BUILDERS, kind) {
        return Err(ReportedError::BuildersType { kind: (*kind).to_owned() });
    }
    let plain = |c: char| c.is_ascii_graphic();
    if kind.len() > MAX_TYPE || !kind.chars().all(plain) || !kind.contains(':') {
        return Err(ReportedError::Type { kind: kind.chars().take(MAX_TYPE).collect() });
    }
    let predicate = masked(predicate);
    let bytes = json::to_canonical(&predicate).len();
    if bytes > MAX {
        return Err(ReportedError::TooLarge { bytes });
    }
    may_attest(store, id, home, name)?;
    let mut session = Session::resume(store, id, home, Timestamp::now()).map_err(StepError::from)?;
    let in_force = session.policy().map_err(|_blocked| ReportedError::NoPolicy)?;
    let wanted = in_force.accepted.counted().filter_map(|(_, policy)| policy.document().get("requiredAttestations"));
    let wanted = wanted.filter_map(Value::as_array).flatten().filter_map(Value::as_str);
    let known: Vec<String> = wanted.map(str::to_owned).collect();
    if !known.iter().any(|known| known == name) {
        return Err(ReportedError::NotWanted { name: (*name).to_owned(), known });
    }
    let mut subject = subjects(store, id, said.cwd, &said.products)?;
    session.take_custody().map_err(StepError::from)?;
    let before = session.ledger().last().map_or(Digest::ZERO, |row| row.entry_hash);
    subject.push(statements::place_of(name, before));
    let statement = Statement::new(subject, *kind, predicate);
    Ok(statements::keep(&mut session, name, Word::Reported, &statement, Object::new()).map_err(StepError::from)?)
}

/// The same without secrets (R8).
fn masked(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::from(hide(text)),
        Value::Array(items) => Value::Array(items.iter().map(masked).collect()),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.to_owned(), masked(value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::{BUILDERS, begins, is_own};
    use crate::steps::LINK;
    use crate::turns::predicate::PREDICATE_TYPE;

    #[test]
    fn how_something_was_built_is_a_builders_word() {
        for kind in
            ["https://slsa.dev/provenance/v1", "HTTP://slsa.dev/provenance/v0.2", "https://in-toto.io/Provenance/v0.1"]
        {
            assert!(begins(&BUILDERS, kind), "{kind}");
            // Whoever built it may have signed it.
            assert!(!is_own(kind), "{kind}");
        }
        for kind in ["https://slsa.dev/provenances/v1", "https://example.org/slsa.dev/provenance/v1"] {
            assert!(!begins(&BUILDERS, kind), "{kind}");
        }
    }

    #[test]
    fn what_writ_sees_has_none_of_the_agents_types() {
        for kind in [
            LINK,
            PREDICATE_TYPE,
            "https://github.com/writ-dev/writ/spec/turn/v1",
            "http://GitHub.com:443/writ-dev/writ/x",
            "https://user@github.com./writ-dev//writ/x",
            "https://github.com/writ-dev/x/../writ/y",
            "https://github.com/writ%2ddev%252fwrit/y",
            "https:\\\\github.com\\writ-dev\\writ\\y",
            "https:/github.com/writ-dev/writ",
            "git+ssh://github.com/./writ-dev/writ?x",
            "https://in-toto.io/Link/v1",
        ] {
            assert!(is_own(kind), "{kind}");
        }
        for kind in ["https://github.com/writ-dev/writer/x", "https://example.org/writ-dev/writ", "urn:x:y", ":", ""] {
            assert!(!is_own(kind), "{kind}");
        }
    }
}
