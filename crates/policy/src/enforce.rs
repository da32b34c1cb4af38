//! What becomes of a decision: given to the client, or only recorded.
//!
//! Decides nothing itself: the verdict is [`crate::judge`]'s either way. Invariant: what protects the record is enforced under
//! every policy. Page: `spec/extensions.md`.

use writ_core::json::Value;
use writ_core::{Decision, Reason, Verdict};

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

impl Enforce {
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
