//! A verdict on record: a ledger row, and an in-toto statement signed with the ledger's key beside it.

use std::fs;

use writ_claims::{Code, Landing, Status};
use writ_clients::claude_code::HookInput;
use writ_core::Digest;
use writ_core::json::{self, Object, Value};
use writ_evidence::dsse::Envelope;

use super::tests_run::Tests;
use super::{Judged, NoVerdict, Stopping};
use crate::session::{Session, SessionError};

/// The statement's predicate.
pub const PREDICATE_TYPE: &str = "https://github.com/writ-dev/writ/spec/claims/v1";
/// The envelope's payload.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
/// Most entries of a list on record; how many there are is always on record.
const MOST: usize = 200;
/// Longest file whose digest goes into a statement.
const MAX_SUBJECT: u64 = 64 << 20;

/// The claim beside the facts, as row and statement carry it.
pub fn claim(stopping: &Stopping, code: Code, tests: Option<Tests>) -> Value {
    let texts = |items: &mut dyn Iterator<Item = &str>| Value::Array(items.take(MOST).map(Value::from).collect());
    let mut out = Object::new();
    out.push("agent", Value::from(stopping.agent.as_deref()));
    out.push("type", Value::from(stopping.kind.as_str()));
    out.push("status", Value::from(stopping.claim.status.map(Status::as_str)));
    out.push("source", Value::from(stopping.source));
    out.push("claimed", texts(&mut stopping.claim.files.iter().map(String::as_str)));
    match &stopping.judged {
        Ok(Judged { verdict, .. }) => {
            out.push("files", first(verdict.files_json()));
            out.push("observed", texts(&mut verdict.observed.iter().map(String::as_str)));
            out.push("changes", Value::from(verdict.observed.len()));
            out.push("unclaimed", texts(&mut verdict.unclaimed.iter().map(String::as_str)));
            out.push("falseDone", Value::from(verdict.false_done));
            out.push("ambiguous", Value::from(verdict.ambiguous));
            let tests = tests.filter(|_| code.blocks() && !verdict.false_done).and_then(Tests::against);
            out.push("reason", tests.map_or_else(|| Value::from(verdict.reason()), Value::from));
        }
        Err(why) => {
            let reason = match why {
                NoVerdict::NoSnapshot => "no snapshot of the agent's start",
                NoVerdict::Unreliable(why) => why.as_str(),
            };
            out.push("falseDone", Value::from(false));
            out.push("reason", Value::from(reason));
        }
    }
    if let Some(tests) = tests {
        out.push("tests", Value::from(tests.as_str()));
    }
    out.push("code", Value::from(code.as_str()));
    out.push("blocked", Value::from(code.blocks()));
    Value::Object(out)
}

fn first(list: Value) -> Value {
    match list {
        Value::Array(items) => Value::Array(items.into_iter().take(MOST).collect()),
        other => other,
    }
}

/// Keeps the statement, then appends the row that names it. Durable on return.
pub fn append(
    session: &mut Session<'_>,
    input: &HookInput,
    stopping: &Stopping,
    claim: Value,
) -> Result<(), SessionError> {
    let statement = json::canonical(&statement(stopping, claim.clone()));
    let key = session.store.ledger_key()?;
    let envelope = Envelope::sign(PAYLOAD_TYPE, statement.as_bytes(), &[&key])?.to_bytes();
    let digest = Digest::of(&envelope);
    session.keep(&format!("claims/{}.json", digest.hex()), &envelope)?;
    let mut detail = Object::new();
    crate::call::describe(input, &mut detail);
    detail.push("standing", Value::from("observed"));
    detail.push("claim", claim);
    detail.push("statement", Value::from(digest.to_string()));
    let draft = session.event("claim", detail);
    session.append(draft)?;
    Ok(())
}

/// An in-toto statement: the commit, and the claimed files that landed, with their digests.
fn statement(stopping: &Stopping, claim: Value) -> Value {
    let mut out = Object::new();
    out.push("_type", Value::from("https://in-toto.io/Statement/v1"));
    let subjects = stopping.judged.as_ref().map(|judged| subjects(stopping, judged)).unwrap_or_default();
    out.push("subject", Value::Array(subjects));
    out.push("predicateType", Value::from(PREDICATE_TYPE));
    out.push("predicate", claim);
    Value::Object(out)
}

fn subjects(stopping: &Stopping, judged: &Judged) -> Vec<Value> {
    let subject = |name: &str, algorithm: &str, digest: &str| {
        let mut digests = Object::new();
        digests.push(algorithm, Value::from(digest));
        let mut out = Object::new();
        out.push("name", Value::from(name));
        out.push("digest", Value::Object(digests));
        Value::Object(out)
    };
    let mut out: Vec<Value> = judged.after.head().map(|head| subject("HEAD", "gitCommit", head)).into_iter().collect();
    let landed = judged.verdict.files.iter().filter(|file| file.landing == Landing::Landed);
    for file in landed.take(MOST) {
        let path = judged.root.join(&file.claimed);
        let small = fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= MAX_SUBJECT);
        if let Some(bytes) = small.then(|| fs::read(&path).ok()).flatten() {
            out.push(subject(&file.claimed, "sha256", &Digest::of(&bytes).hex()));
        }
    }
    debug_assert!(!stopping.claim.files.is_empty() || out.len() <= 1, "only claimed files are subjects");
    out
}
