//! What verification found, in an order that people read: one phase a question.

use writ_core::json::{Object, Value};

/// How a claim is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// The client was told; the client acts on it.
    Advised,
    /// Writ saw it itself, or computed it from the record.
    Observed,
    /// It stands in the agent's own transcript.
    Reported,
}

impl Standing {
    /// The words used in a report.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Advised => "advised",
            Self::Observed => "observed",
            Self::Reported => "reported by the agent",
        }
    }
}

/// How a phase ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Checked and right.
    Passed,
    /// Checked and wrong.
    Failed,
    /// Nothing to check, or not yet; never counted as a success.
    Absent,
}

impl Outcome {
    /// `passed`, `failed` or `absent`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Absent => "absent",
        }
    }

    /// ✓ ✗ –
    pub const fn mark(self) -> char {
        match self {
            Self::Passed => '✓',
            Self::Failed => '✗',
            Self::Absent => '–',
        }
    }
}

/// One question and its answer.
#[derive(Clone, Debug)]
pub struct Phase {
    /// `policy`, `rows`, `checkpoints`, `consistency`, `tail`, `decisions`, `coverage`.
    pub name: &'static str,
    /// How it ended.
    pub outcome: Outcome,
    /// How the claim is known.
    pub standing: Standing,
    /// One line for people.
    pub summary: String,
    /// Single findings, worst first.
    pub findings: Vec<String>,
}

/// A whole verification.
#[derive(Clone, Debug)]
pub struct Report {
    /// The session's id, when the genesis row could be read.
    pub session: Option<String>,
    /// How many rows there are.
    pub rows: u64,
    /// Calls in the transcript that no row saw, as `tool call-id`.
    pub unobserved: Vec<String>,
    /// The phases in order.
    pub phases: Vec<Phase>,
}

impl Report {
    /// Whether nothing failed.
    pub fn verified(&self) -> bool {
        self.phases.iter().all(|phase| phase.outcome != Outcome::Failed)
    }

    /// The report as JSON. Shape: `spec/verify.md`.
    pub fn to_json(&self) -> Value {
        let texts = |items: &[String]| Value::Array(items.iter().map(|item| Value::from(item.as_str())).collect());
        let phase = |phase: &Phase| {
            let mut out = Object::new();
            out.push("name", Value::from(phase.name));
            out.push("outcome", Value::from(phase.outcome.as_str()));
            out.push("standing", Value::from(phase.standing.as_str()));
            out.push("summary", Value::from(phase.summary.as_str()));
            out.push("findings", texts(&phase.findings));
            Value::Object(out)
        };
        let mut coverage = Object::new();
        coverage.push("unobserved", texts(&self.unobserved));
        let mut out = Object::new();
        out.push("verified", Value::from(self.verified()));
        out.push("session", Value::from(self.session.as_deref()));
        out.push("rows", Value::from(self.rows));
        out.push("phases", Value::Array(self.phases.iter().map(phase).collect()));
        out.push("coverage", Value::Object(coverage));
        Value::Object(out)
    }
}
