//! A verdict on record: a ledger row, and an in-toto statement signed with the ledger's key beside it.

use std::fs;

use serde::Serialize;
use writ_claims::{Code, FileVerdict, Landing, Status};
use writ_core::{Digest, Event};
use writ_evidence::intoto::{self, ResourceDescriptor, Statement};

use super::tests_run::Tests;
use super::{Judged, NoVerdict, Stopping};
use crate::session::rows::Who;
use crate::session::{Session, SessionError};

/// The statement's predicate.
pub const PREDICATE_TYPE: &str = "https://github.com/writ-dev/writ/spec/claims/v1";
/// Most entries of a list on record; how many there are is always on record.
const MOST: usize = 200;
/// Longest file whose digest goes into a statement.
const MAX_SUBJECT: u64 = 64 << 20;

/// The claim beside the facts, as row and statement carry it.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// Who claims.
    pub agent: Option<String>,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it says became of its work.
    pub status: Option<Status>,
    source: &'static str,
    /// The files it says it changed.
    pub claimed: Vec<String>,
    #[serde(flatten)]
    verdict: Option<Judgement>,
    /// Whether DONE was said and the facts say otherwise.
    pub false_done: bool,
    /// Why, in a sentence.
    pub reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tests: Option<Tests>,
    /// What came of it.
    pub code: Code,
    /// Whether the agent was sent back.
    pub blocked: bool,
}

/// What the facts say, where there is a verdict.
#[derive(Clone, Serialize)]
struct Judgement {
    files: Vec<FileVerdict>,
    observed: Vec<String>,
    changes: usize,
    unclaimed: Vec<String>,
    ambiguous: bool,
}

impl Claim {
    /// The claim of an agent that stops.
    pub fn of(stopping: &Stopping, code: Code, tests: Option<Tests>) -> Self {
        let (verdict, false_done, reason) = match &stopping.judged {
            Ok(Judged { verdict, .. }) => {
                let tests = tests.filter(|_| code.blocks() && !verdict.false_done).and_then(Tests::against);
                let reason = tests.map_or_else(|| verdict.reason(), str::to_owned);
                let judgement = Judgement {
                    files: verdict.files.iter().take(MOST).cloned().collect(),
                    observed: verdict.observed.iter().take(MOST).cloned().collect(),
                    changes: verdict.observed.len(),
                    unclaimed: verdict.unclaimed.iter().take(MOST).cloned().collect(),
                    ambiguous: verdict.ambiguous,
                };
                (Some(judgement), verdict.false_done, reason)
            }
            Err(NoVerdict::NoSnapshot) => (None, false, "no snapshot of the agent's start".to_owned()),
            Err(NoVerdict::Unreliable(why)) => (None, false, why.clone()),
        };
        Self {
            agent: stopping.agent.clone(),
            kind: stopping.kind.clone(),
            status: stopping.claim.status,
            source: stopping.source,
            claimed: stopping.claim.files.iter().take(MOST).cloned().collect(),
            verdict,
            false_done,
            reason,
            tests,
            code,
            blocked: code.blocks(),
        }
    }

    /// The paths that changed, where that is known.
    pub fn observed(&self) -> Option<&[String]> {
        self.verdict.as_ref().map(|verdict| verdict.observed.as_slice())
    }
}

/// Keeps the statement, then appends the row that names it. Durable on return.
pub fn append(
    session: &mut Session<'_>,
    input: &Event,
    stopping: &Stopping,
    claim: &Claim,
) -> Result<(), SessionError> {
    let subject = stopping.judged.as_ref().map(|judged| subjects(stopping, judged)).unwrap_or_default();
    let statement = Statement::new(subject, PREDICATE_TYPE, claim);
    session.take_custody()?;
    let key = session.signer()?;
    let envelope = intoto::sign(&statement, &[&key])?.to_bytes();
    let digest = Digest::of(&envelope);
    session.keep(&format!("claims/{}.json", digest.hex()), &envelope)?;
    let detail = Detail { who: Who::of(input), standing: "observed", claim, statement: digest };
    let draft = session.event("claim", detail);
    session.append(draft)?;
    Ok(())
}

/// What the row says.
#[derive(Serialize)]
struct Detail<'a> {
    #[serde(flatten)]
    who: Who<'a>,
    standing: &'static str,
    claim: &'a Claim,
    /// Digest of the statement's envelope.
    statement: Digest,
}

/// The commit, and the claimed files that landed, with their digests.
fn subjects(stopping: &Stopping, judged: &Judged) -> Vec<ResourceDescriptor> {
    let head = judged.after.head();
    let head = head.map(|head| ResourceDescriptor::new("HEAD", "gitCommit", head));
    let mut out: Vec<ResourceDescriptor> = head.into_iter().collect();
    let landed = judged.verdict.files.iter().filter(|file| file.landing == Landing::Landed);
    for file in landed.take(MOST) {
        let path = judged.root.join(&file.claimed);
        let small = fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= MAX_SUBJECT);
        if let Some(bytes) = small.then(|| fs::read(&path).ok()).flatten() {
            out.push(ResourceDescriptor::sha256(file.claimed.clone(), Digest::of(&bytes)));
        }
    }
    debug_assert!(!stopping.claim.files.is_empty() || out.len() <= 1, "only claimed files are subjects");
    out
}
