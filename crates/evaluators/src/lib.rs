//! A session's attestations against the rules that its policy names: PASS or FAIL, and why.
//!
//! Owns what an evaluator is shown, how each kind is asked, and what counts as an answer. Refuses the network, which the caller hands in,
//! and the hook's path. Invariant: only a well-formed PASS of an evaluator that was shown everything is a pass (R25). Page:
//! `spec/evaluators.md`.

pub mod ai;
//pub mod grpc;
pub mod input;
pub mod named;
pub mod rego;

use serde::{Deserialize, Serialize};
use writ_core::Digest;

/// What an evaluator said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// Its rule holds.
    #[serde(rename = "PASS")]
    Pass,
    /// It does not, or nobody could tell.
    #[serde(rename = "FAIL")]
    Fail,
}

/// What came of one evaluator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// PASS or FAIL.
    pub status: Status,
    /// Why; of a PASS what the evaluator said, if it said something.
    pub reasons: Vec<String>,
    /// What a reader should know of a judgement that stands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Of the rule: the Rego module, the prompt.
    pub rule: Digest,
    /// Of what it was shown.
    pub shown: Digest,
}

impl Judgement {
    /// A FAIL for one reason.
    pub fn failed(why: impl Into<String>, rule: Digest, shown: Digest) -> Self {
        Self { status: Status::Fail, reasons: vec![why.into()], notes: Vec::new(), rule, shown }
    }
}
