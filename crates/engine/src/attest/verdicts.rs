//! Verdicts under signature on the way of a call: its evaluation, and the human's word that rests on it.
//!
//! Owns the chain: evaluation, then approval, tied by `chain_id` and `parent_attestation`, each named by digest in the row of the
//! ledger that rests on it. `writ verify` follows it. Page: `spec/attestation.md`.

use serde::Serialize;
use writ_consequence::Report;
use writ_core::json::{self, Value};
use writ_core::{Digest, SessionId};
use writ_evidence::attestation::Attestation;

use super::issuer::{Issuer, IssuerError, SHELF_LIFE_SECONDS, Statement};
use super::proofs::Proof;
use super::subject::{Detail, Subject};
use crate::session::Session;

/// `input.source` of a human's word.
pub const APPROVAL: &str = "approval";

/// Why there is no attestation.
#[derive(Debug, thiserror::Error)]
pub enum VerdictError {
    /// The issuer.
    #[error(transparent)]
    Issuer(#[from] IssuerError),
    /// Nowhere to keep it.
    #[error(transparent)]
    NoStateDir(#[from] crate::NoStateDir),
}

/// Attests the evaluation of a call that is about to run.
pub fn attest(
    session: &Session<'_>,
    call_id: &str,
    subject: &Subject<'_>,
    input: Digest,
    report: &Report,
    detail: Detail,
) -> Result<Proof, VerdictError> {
    let about = About { session: &session.id, tool_input: input };
    let attested = Evaluated { subject: subject.attested(detail), about, call: call_id };
    issue(
        session,
        Statement {
            input: json::to_value(&attested),
            output: subject.output(report, detail),
            seconds: SHELF_LIFE_SECONDS,
            chain_id: None,
            parent: None,
        },
    )
}

/// Attests a human's word on a call, resting on the evaluation of it.
pub fn approve(
    session: &Session<'_>,
    tool: &str,
    input: Digest,
    seconds: i64,
    once: bool,
    evaluation: &Attestation,
) -> Result<Proof, VerdictError> {
    let about = About { session: &session.id, tool_input: input };
    let attested = Approved { source: APPROVAL, tool, about };
    issue(
        session,
        Statement {
            input: json::to_value(&attested),
            output: json::to_value(&Approval { decision: "approved", times: once.then_some(1) }),
            seconds,
            chain_id: evaluation.text("chain_id").map(str::to_owned),
            parent: Some(evaluation.digest()),
        },
    )
}

/// Which call of which session it is about.
#[derive(Serialize)]
struct About<'a> {
    session: &'a SessionId,
    tool_input: Digest,
}

/// The `input` of an evaluation's attestation.
#[derive(Serialize)]
struct Evaluated<'a> {
    #[serde(flatten)]
    subject: Value,
    #[serde(flatten)]
    about: About<'a>,
    call: &'a str,
}

/// The `input` of an approval's.
#[derive(Serialize)]
struct Approved<'a> {
    source: &'static str,
    tool: &'a str,
    #[serde(flatten)]
    about: About<'a>,
}

/// The `output` of an approval's.
#[derive(Serialize)]
struct Approval {
    decision: &'static str,
    /// How often it may run, where that is not as often as it is called until it expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<u8>,
}

fn issue(session: &Session<'_>, statement: Statement) -> Result<Proof, VerdictError> {
    let mut issuer = Issuer::open(session.home.state()?, None, None)?;
    let documents = issuer.issue(&[statement])?;
    let document = documents.into_iter().next().ok_or(IssuerError::Unsettled)?;
    let registry = issuer.registry(session.now)?;
    Ok(Proof::new(document, json::to_compact(&registry)))
}
