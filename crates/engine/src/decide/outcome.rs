//! What a decision comes to beside the policies' own word: a human's pending word, a human's yes.
//!
//! Pure: the hook decides with it, and verification decides again.

use std::collections::BTreeSet;

use writ_core::{Custody, Decision, Matched, Reason, Subject, Verdict};
use writ_evidence::row::RowDecision;
use writ_policy::{Action, Own, Policy, Tally, judge_limits};

use crate::governing::layers::LayerRef;
use crate::session::state::Uses;

/// Rule names that are Writ's own: no human has accepted the policy as it is now.
pub const POLICY_CHANGED: &str = "writ:policy-changed";
/// The policy cannot be read or verified any more.
pub const POLICY_UNUSABLE: &str = "writ:policy-unusable";
/// A sub-agent would be held by less than the one that gives it a task.
const HELD_LESS: &str = "writ:sub-agent";
/// What keeps the key is less than a policy wants.
const CUSTODY: &str = "/custody";
/// A human said yes to exactly this call.
pub const APPROVED: &str = "writ:approved";
/// A human said no to exactly this call.
pub const REFUSED: &str = "writ:refused";

/// What a human's pending word about the policy makes of a decision (R82).
pub fn and_pending(decision: Decision, pending: bool) -> Decision {
    if !pending {
        return decision;
    }
    let mut reasons = decision.reasons;
    reasons.push(Reason {
        verdict: Verdict::Ask,
        rule: POLICY_CHANGED.to_owned(),
        matched: Matched { subject: Subject::Policy, text: String::new(), span: None },
        message: "an earlier session here ended while its policy was changed or gone, and no human has settled that"
            .to_owned(),
        instead: "a human runs `writ policy accept` in a terminal".to_owned(),
    });
    Decision::from_reasons(reasons)
}

/// What the policies' wish for custody makes of a decision: a record whose key is kept less well than that is none to them.
pub fn and_custody(decision: Decision, wanted: Custody, kept: Custody) -> Decision {
    if kept >= wanted {
        return decision;
    }
    let mut reasons = decision.reasons;
    reasons.push(Reason {
        verdict: Verdict::Deny,
        rule: CUSTODY.to_owned(),
        matched: Matched { subject: Subject::Policy, text: String::new(), span: None },
        message: format!("the policy wants the record's key in custody `{wanted}`, and here it is in `{kept}`"),
        instead: match wanted {
            Custody::OtherUser => {
                "root runs `writ notary install --for USER`, which says how (spec/notary.md)".to_owned()
            }
            Custody::File | Custody::ProcessMemory | Custody::Pkcs11 => {
                format!("a human runs `writ notary run --custody {wanted}` (spec/notary.md)")
            }
        },
    });
    Decision::from_reasons(reasons)
}

/// What the turns that sub-agents may have make of a decision about a call that gives them a task.
pub fn and_turns<'a>(decision: Decision, agents: impl IntoIterator<Item = (&'a str, &'a Policy, Own<'a>)>) -> Decision {
    let refused = judge_limits([], agents, Tally::default(), Action::Start);
    if refused.reasons.is_empty() {
        return decision;
    }
    Decision::from_reasons(decision.reasons.into_iter().chain(refused.reasons).collect())
}

/// What the layers that would speak no more make of a decision about a call by which a sub-agent gives another a task: `lost` is one of them.
pub fn and_lost(decision: Decision, lost: Option<&LayerRef>, kind: Option<&str>) -> Decision {
    let Some(lost) = lost else { return decision };
    let (held, kind) = (lost.agent.as_deref().unwrap_or_default(), kind.unwrap_or_default());
    let mut reasons = decision.reasons;
    reasons.push(Reason {
        verdict: Verdict::Deny,
        rule: HELD_LESS.to_owned(),
        matched: Matched { subject: Subject::Tool, text: kind.to_owned(), span: None },
        message: format!("the policy `{}`, which holds this sub-agent, would not hold one of type `{kind}`", lost.name),
        instead: format!("have the main agent give the task, or make `{kind}` a sublayout of the policy of `{held}`"),
    });
    Decision::from_reasons(reasons)
}

/// The custody that policies which speak together want.
pub fn wanted_custody<'a>(policies: impl IntoIterator<Item = &'a Policy>) -> Custody {
    policies.into_iter().map(Policy::custody).max().unwrap_or_default()
}

/// What an asked call becomes once a human has said yes or no to it.
pub fn after_a_word(asked: Decision, uses: Uses) -> Decision {
    match uses {
        Uses::Once | Uses::Any => approved(asked),
        Uses::Never => refused(asked),
    }
}

fn refused(asked: Decision) -> Decision {
    let mut reasons = asked.reasons;
    reasons.push(Reason {
        verdict: Verdict::Deny,
        rule: REFUSED.to_owned(),
        matched: Matched { subject: Subject::Policy, text: String::new(), span: None },
        message: "a human said no to exactly this".to_owned(),
        instead: "a human takes that back with `writ approve --revoke`".to_owned(),
    });
    Decision::from_reasons(reasons)
}

fn approved(asked: Decision) -> Decision {
    let reasons = asked.reasons.into_iter().map(|reason| match reason.verdict {
        Verdict::Ask => Reason { verdict: Verdict::Allow, rule: APPROVED.to_owned(), instead: String::new(), ..reason },
        Verdict::Allow | Verdict::Deny => reason,
    });
    Decision::from_reasons(reasons.collect())
}

/// Whether a limit that is reached refused it.
pub fn is_limited(decision: &Decision) -> bool {
    decision.verdict == Verdict::Deny && decision.reasons.iter().any(|reason| is_limit(&reason.rule))
}

/// Whether a rule is a limit; a layer's name may stand before its pointer.
pub fn is_limit(rule: &str) -> bool {
    rule.rsplit(':').next().is_some_and(|rule| rule.starts_with("/limits/"))
}

/// The ledger's word for a verdict.
pub const fn row_decision(verdict: Verdict) -> RowDecision {
    match verdict {
        Verdict::Allow => RowDecision::Approved,
        Verdict::Ask => RowDecision::Asked,
        Verdict::Deny => RowDecision::Denied,
    }
}

/// Of [`rules`] those about what the session has taken in, sorted, each once.
pub fn flows(rules: &[String]) -> Vec<&str> {
    let about = rules.iter().map(String::as_str).filter(|rule| rule.contains("/dataFlow/flowRules/"));
    about.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The rules behind a decision, strictest first: what the ledger keeps and what verification compares.
pub fn rules(decision: &Decision) -> Vec<String> {
    decision.reasons.iter().map(|reason| format!("{} {}", reason.verdict, reason.rule)).collect()
}
