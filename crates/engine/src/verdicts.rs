//! Verdicts under signature on the way of a call: its evaluation, and the human's word that rests on it.
//!
//! Owns the chain: evaluation, then approval, tied by `chain_id` and `parent_attestation`, each named by digest in the row of the
//! ledger that rests on it. `writ verify` follows it. Page: `spec/attestation.md`.

use writ_consequence::Report;
use writ_core::Digest;
use writ_core::json::{self, Object, Value};
use writ_evidence::attestation::Attestation;

use crate::matter::{Detail, Subject};
use crate::notary::{Matter, Notary, NotaryError, SHELF_LIFE_SECONDS};
use crate::proof::Proof;
use crate::session::Session;

/// `input.source` of a human's word.
pub const APPROVAL: &str = "approval";

/// Why there is no attestation.
#[derive(Debug, thiserror::Error)]
pub enum VerdictError {
    /// The notary.
    #[error(transparent)]
    Notary(#[from] NotaryError),
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
    let Value::Object(mut attested) = subject.attested(detail) else {
        return Err(NotaryError::Unsettled.into());
    };
    about(&mut attested, session, input);
    attested.push("call", Value::from(call_id));
    issue(
        session,
        Matter {
            input: Value::Object(attested),
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
    evaluation: &Attestation,
) -> Result<Proof, VerdictError> {
    let mut attested = Object::new();
    attested.push("source", Value::from(APPROVAL));
    attested.push("tool", Value::from(tool));
    about(&mut attested, session, input);
    let mut output = Object::new();
    output.push("decision", Value::from("approved"));
    output.push("times", Value::from(1u64));
    issue(
        session,
        Matter {
            input: Value::Object(attested),
            output: Value::Object(output),
            seconds,
            chain_id: evaluation.text("chain_id").map(str::to_owned),
            parent: Some(evaluation.digest()),
        },
    )
}

fn about(attested: &mut Object, session: &Session<'_>, input: Digest) {
    attested.push("session", Value::from(session.id.as_str()));
    attested.push("tool_input", Value::from(input.to_string()));
}

fn issue(session: &Session<'_>, matter: Matter) -> Result<Proof, VerdictError> {
    let mut notary = Notary::open(session.home.state()?, None, None)?;
    let documents = notary.issue(&[matter])?;
    let document = documents.into_iter().next().ok_or(NotaryError::Unsettled)?;
    let registry = notary.registry(session.now)?;
    Ok(Proof::new(document, json::compact(&registry.to_json())))
}
