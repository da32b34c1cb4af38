//! What a session signs: statements of its turns, of steps, of what its agent says.
//!
//! Owns their keeping: each lies under the digest of its envelope, and a row names it. Refuses a name that no file can have. Invariant: a
//! statement that a row names is on disk before the row is, signed by the key that is in force there. Page: `spec/statements.md`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use serde::{Deserialize, Serialize};
use writ_core::json::{self, Value};
use writ_core::{Digest, SessionId};
use writ_evidence::intoto::{self, ResourceDescriptor, Statement};
use writ_evidence::row::Row;

use super::rows::event;
use super::{Session, SessionError};

/// The event of the row that names one.
pub const ATTESTED: &str = "attested";
/// Where they lie in a session's folder.
pub const FOLDER: &str = "statements";
/// Longest envelope.
pub const MAX_ENVELOPE: u64 = 16 << 20;
/// Longest name.
const MAX_NAME: usize = 128;

/// How what a statement says is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Word {
    /// Writ saw it.
    #[serde(rename = "observed")]
    Observed,
    /// The agent says so.
    #[serde(rename = "reported by the agent")]
    Reported,
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
        format!("{FOLDER}/{}.json", self.digest.hex())
    }
}

/// Whether a statement can have this name: letters, digits, `-`, `_` and `.`, which it does not begin with.
pub fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && name.len() <= MAX_NAME && !name.starts_with('.') && name.chars().all(plain)
}

/// The subject that ties a statement to its session.
pub fn subject_of(id: &SessionId) -> ResourceDescriptor {
    ResourceDescriptor::sha256(format!("agentflow:run:{id}"), Digest::of(id.as_str().as_bytes()))
}

/// What the row says.
#[derive(Serialize)]
struct Detail<'a, T> {
    attested: &'a Attested,
    #[serde(flatten)]
    more: T,
}

/// Signs a statement, keeps it, and appends the row that names it. Durable on return. `more` is what else the row says.
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
    let mut attested = Attested { name: name.to_owned(), kind, digest, standing, uncopied: None };
    session.keep(&attested.file(), &envelope)?;
    attested.uncopied = copy(session, name, &envelope).err().map(|error| error.to_string());
    let draft = session.event(ATTESTED, Detail { attested: &attested, more });
    session.append(draft)?;
    Ok(attested)
}

/// Puts a copy where the policy wants one, for people and other tools. Nothing is followed out of the policy's folder, and nothing that
/// is there is replaced.
fn copy(session: &mut Session<'_>, name: &str, envelope: &[u8]) -> io::Result<()> {
    let Ok(in_force) = session.policy() else { return Ok(()) };
    let accepted = &in_force.accepted;
    let folder = accepted.policy.document().get("attestationDir").and_then(Value::as_str);
    let (Some(folder), Some(root)) = (folder.map(Path::new), accepted.path.parent()) else { return Ok(()) };
    let below = if folder.is_absolute() { folder.strip_prefix(root).map_err(io::Error::other)? } else { folder };
    fs::create_dir_all(root.join(below))?;
    let top = File::open(root)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let place = below.join(format!("{name}.json"));
    let opened =
        openat2(&top, &place, flags, Mode::from_raw_mode(0o644), ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS);
    let mut file = File::from(opened?);
    file.write_all(envelope)
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
