//! What becomes of a decision: given to the client, or only recorded.
//!
//! Decides nothing itself: the verdict is [`crate::judge`]'s either way. Invariant: what protects the record is enforced under
//! every policy. Page: `spec/extensions.md`.

use serde::{Deserialize, Serialize};
use writ_core::json::Value;
use writ_core::{Decision, Digest, Reason, Verdict};

use crate::protect;

/// The `enforce` member: what becomes of a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Enforce {
    /// It is given to the client.
    #[default]
    Decide,
    /// It is recorded, and stops nothing but what would touch the record itself.
    Observe,
}

/// What the `enforce` member wants of the kernel (R80).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Confine {
    /// The weakest sandbox that will do, from 1 to 4.
    pub at_least: u8,
}

impl Confine {
    /// The words for the levels, weakest first.
    pub const LEVELS: [&str; 4] = ["filters", "landlock", "namespaces", "full"];

    pub(crate) fn read(document: &Value) -> Option<Self> {
        let member = document.get("enforce")?;
        if member.as_str() == Some("calls") {
            return Some(Self { at_least: 1 });
        }
        let wanted = member.get("calls").and_then(Value::as_bool)?;
        let word = member.get("atLeast").and_then(Value::as_str);
        let at_least = Self::LEVELS.iter().zip(1..).find(|(level, _)| Some(**level) == word);
        wanted.then(|| Self { at_least: at_least.map_or(1, |(_, number)| number) })
    }
}

/// The right to run one command in one confinement: minted by an allowing decision, and read back only from a row that says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Grant {
    confinement: Digest,
    command: Digest,
}

impl Grant {
    /// The right that a decision gives; none unless it lets the call run, or leaves it to a human's yes.
    pub fn of(decision: &Decision, confinement: Digest, command: &str) -> Option<Self> {
        let command = Digest::of(command.as_bytes());
        (decision.verdict < Verdict::Deny).then_some(Self { confinement, command })
    }

    /// Whether it is for this command in this confinement.
    pub fn covers(&self, confinement: Digest, command: &str) -> bool {
        self.confinement == confinement && self.command == Digest::of(command.as_bytes())
    }

    /// Digest of the confinement.
    pub const fn confinement(&self) -> Digest {
        self.confinement
    }
}

impl Enforce {
    /// What becomes of a decision of several layers: it is only recorded where all of them only observe.
    pub fn strictest(modes: impl IntoIterator<Item = Self>) -> Self {
        let mut modes = modes.into_iter().peekable();
        let observes = modes.peek().is_some() && modes.all(|mode| mode == Self::Observe);
        if observes { Self::Observe } else { Self::Decide }
    }

    pub(crate) fn read(document: &Value) -> Self {
        match document.get("enforce").and_then(Value::as_str) {
            Some("observe") => Self::Observe,
            _ => Self::Decide,
        }
    }
}

/// What becomes of a decision under a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enforced {
    /// What the client is told.
    pub decision: Decision,
    /// What it would have been told, where the policy only observes and that would have been stricter.
    pub observed: Option<Verdict>,
}

/// Under a policy that observes, a decision stops nothing but what would touch the policy, the record, its keys or the hooks.
pub fn enforce(mode: Enforce, decision: Decision) -> Enforced {
    if mode == Enforce::Decide {
        return Enforced { decision, observed: None };
    }
    let judged = decision.verdict;
    let stays = |reason: &Reason| reason.verdict == Verdict::Allow || reason.rule == protect::RULE;
    let decision = Decision::from_reasons(decision.reasons.into_iter().filter(stays).collect());
    let observed = (judged > decision.verdict).then_some(judged);
    Enforced { decision, observed }
}
