//! One question of a verification, and its answer.
//!
//! Owns how an answer is known and how it ended. Refuses a third way beside passed and failed that would count as a success. Invariant: a phase
//! that failed is written with the rule, the evidence and the remedy. Page: `spec/verify.md`.

use serde::{Serialize, Serializer};
use writ_core::json;

use super::explained::{Explained, explained};

/// How a claim is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// An operating-system limit held it.
    Enforced,
    /// The client was told; the client acts on it.
    Advised,
    /// Writ saw it itself, or computed it from the record.
    Observed,
    /// It stands in the agent's own transcript.
    #[serde(rename = "reported by the agent")]
    Reported,
}

impl Standing {
    /// The words used in a report.
    pub fn as_str(self) -> &'static str {
        json::word(&self)
    }
}

/// How a phase ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
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
    pub fn as_str(self) -> &'static str {
        json::word(&self)
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
    /// As `spec/verify.md` lists them.
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

/// A phase as reports write it: one that failed names the rule, the evidence and the remedy.
#[derive(Serialize)]
struct PhaseDocument<'a> {
    name: &'a str,
    outcome: Outcome,
    standing: Standing,
    summary: &'a str,
    findings: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<&'a str>,
}

impl Phase {
    /// The rule, the evidence and the remedy, where it failed.
    pub fn explained(&self) -> Option<Explained> {
        explained(self.name).filter(|_| self.outcome == Outcome::Failed)
    }
}

impl Serialize for Phase {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let told = self.explained();
        let Self { name, outcome, standing, summary, findings } = self;
        let document = PhaseDocument {
            name,
            outcome: *outcome,
            standing: *standing,
            summary,
            findings,
            rule: told.map(|told| told.rule),
            evidence: told.map(|told| told.evidence),
            remedy: told.map(|told| told.remedy),
        };
        document.serialize(serializer)
    }
}
