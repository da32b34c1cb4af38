//! The predicate of a turn's attestation.
//!
//! Owns its members and how each is written. Refuses unknown members. Invariant: money is whole micro-dollars here and a decimal only on
//! the page (R26). Page: `spec/turns.md`.

pub use crate::session::statements::RUN;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use writ_core::{Digest, Money, Timestamp};
use writ_evidence::session_tree::{Binding, Metrics as Tokens};

use crate::identity::environment::Standing;

/// Its type.
pub const PREDICATE_TYPE: &str = "https://agentflow.dev/attestation/turn/v0.1";
/// The name of the subject that is the work tree.
pub const TREE: &str = "git:treehash";
/// Micro-dollars in a dollar.
const MICROS: f64 = 1e6;

/// US dollars as statements write them: `0.08`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usd(pub Money);

impl Serialize for Usd {
    #[expect(clippy::cast_precision_loss, reason = "exact below nine thousand million dollars")]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0.micros() as f64 / MICROS)
    }
}

impl<'de> Deserialize<'de> for Usd {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "held within bounds")]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        let micros = (dollars * MICROS).round();
        if !(0.0..9e15).contains(&micros) {
            return Err(de::Error::custom("expected an amount in US dollars"));
        }
        Ok(Self(Money::from_micros(micros as u64)))
    }
}

/// What happened in one turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Turn {
    /// Its number, from 1.
    pub turn: u64,
    /// Which statement about that turn it is, where it is not the first: the agent went on without a prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<u64>,
    /// The session.
    pub run_id: String,
    /// When it was signed.
    pub timestamp: Timestamp,
    /// The turn's own end was not seen: it is attested at a later one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// The first and the last row that it speaks for.
    pub rows: [u64; 2],
    /// What was used since the attestation before.
    pub metrics: Metrics,
    /// What of that the lines of an earlier turn told after it was attested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_late: Option<Tokens>,
    /// What was used so far.
    pub cumulative: Cumulative,
    /// Digest of the prices that the cost was counted with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Digest>,
    /// The model that answered last in it; `null` where no transcript tells.
    pub model: Option<String>,
    /// The calls, in order.
    pub tools: Vec<Tool>,
    /// Files that allowed calls name, sorted.
    pub files: Files,
    /// Hosts that allowed calls name, sorted.
    pub domains: Domains,
    /// Humans' words on actions.
    pub approvals: Vec<Approval>,
    /// Whose turn it is.
    pub agent: AgentOf,
    /// What is known of the work tree beside its hash, which is a subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_tree: Option<WorkTreeOf>,
    /// Where the turn stands in the session's tree; `null` where no transcript can be read.
    pub session_binding: Option<Binding>,
    /// Which bytes of which transcript were read since the attestation before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<Lines>,
}

/// What one turn used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metrics {
    /// All that the model read, caches included.
    pub tokens_in: u64,
    /// All that it wrote.
    pub tokens_out: u64,
    /// What of its input came from a cache.
    pub cache_read: u64,
    /// What of its input went into one.
    pub cache_write: u64,
    /// What it cost; `null` where a model has no price.
    #[serde(rename = "costUSD")]
    pub cost_usd: Option<Usd>,
    /// From its prompt's row to its last.
    pub duration_ms: u64,
}

/// What was used so far by this agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cumulative {
    /// As in [`Metrics`].
    pub tokens_in: u64,
    /// As in [`Metrics`].
    pub tokens_out: u64,
    /// `null` from the first turn on whose cost is not known.
    #[serde(rename = "costUSD")]
    pub cost_usd: Option<Usd>,
    /// Turns that were attested.
    pub turns: u64,
    /// Calls that were allowed (R17).
    pub tool_calls: u64,
}

impl Cumulative {
    /// Before the first turn.
    pub fn begin() -> Self {
        Self { cost_usd: Some(Usd::default()), ..Self::default() }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        let cost = self.cost_usd.zip(other.cost_usd).map(|(one, other)| Usd([one.0, other.0].into_iter().sum()));
        Self {
            tokens_in: self.tokens_in.saturating_add(other.tokens_in),
            tokens_out: self.tokens_out.saturating_add(other.tokens_out),
            cost_usd: cost,
            turns: self.turns.saturating_add(other.turns),
            tool_calls: self.tool_calls.saturating_add(other.tool_calls),
        }
    }

    /// With one more statement.
    #[must_use]
    pub fn with(self, metrics: &Metrics, first: bool, calls: u64) -> Self {
        let cost = self.cost_usd.zip(metrics.cost_usd).map(|(sum, more)| Usd([sum.0, more.0].into_iter().sum()));
        Self {
            tokens_in: self.tokens_in.saturating_add(metrics.tokens_in),
            tokens_out: self.tokens_out.saturating_add(metrics.tokens_out),
            cost_usd: cost,
            turns: self.turns + u64::from(first),
            tool_calls: self.tool_calls.saturating_add(calls),
        }
    }
}

/// A call. No text of a command goes into a statement (R8): the names of its programs stand for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tool {
    /// The tool's name.
    pub name: String,
    /// The file that it acts on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The programs of its command, each in its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
    /// Whether it was let run: by its policy, or, where that asks, by its result.
    pub allowed: bool,
    /// The type of sub-agent that it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// Files, below the policy's folder by their paths from there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// Read.
    pub read: Vec<String>,
    /// Written, moved away or deleted.
    pub written: Vec<String>,
    /// Written and not there before, as far as a rule had Writ look.
    pub created: Vec<String>,
}

/// Hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Domains {
    /// Asked for something.
    pub fetched: Vec<String>,
}

/// A human's word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Approval {
    /// The row that holds it, signed.
    pub row: u64,
    /// Whether it was a yes.
    pub granted: bool,
    /// The tool.
    pub tool: String,
    /// The action that it is for (R71).
    pub action: Digest,
}

/// An agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentOf {
    /// Whose model its client asks, where that is one company's alone.
    pub provider: Option<String>,
    /// The model, as above.
    pub model: Option<String>,
    /// The session.
    pub session_id: String,
    /// A sub-agent's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// A sub-agent's type.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its identity (R21).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Digest>,
    /// Digest of the document that holds the identity's parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity_document: Option<Digest>,
    /// How each part is known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub standing: BTreeMap<String, Standing>,
}

/// A work tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkTreeOf {
    /// The branch that is checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Attributes or settings could make git's own hash another; they were not applied.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub filters_not_applied: bool,
    /// Why there is no hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

/// Bytes of a transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Lines {
    /// `main`, or the sub-agent's id.
    pub file: String,
    /// The first.
    pub from: u64,
    /// Behind the last.
    pub to: u64,
    /// What was read before was no longer there: the tree was made anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rewritten: bool,
}
