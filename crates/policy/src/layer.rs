//! Policies in layers: each judges what its own survey of the call found, and the strictest word counts.
//!
//! Owns how layers come together (R5, R24, R82). Each layer has facts of its own, because a survey looks for what its policy's rules
//! name, and patterns that take back (`!`) mean their own list alone: merged lists could loosen. Invariant: a layer can only
//! tighten. What one layer denies or asks stays denied or asked, and an allow is said only where every layer names the call.

use writ_core::{Decision, Matched, Reason, Subject, Verdict};

use crate::facts::Facts;
use crate::flow::Flow;
use crate::judge::{flow_refusals, judge_alone, missing_tools, refusals, refusals_of_agents};
use crate::limits::{Action, Own, Tally};
use crate::policy::Policy;
use crate::protect::Setting;

/// Rule name that is Writ's own: nothing is allowed without a policy.
const NO_LAYER: &str = "writ:no-policy";

/// One policy and what its survey of the call found.
#[derive(Clone, Copy, Debug)]
pub struct Layer<'a> {
    name: Option<&'a str>,
    policy: &'a Policy,
    facts: &'a Facts,
    count: Count<'a>,
    unseen: bool,
}

/// What a layer's limits are held against.
#[derive(Clone, Copy, Debug)]
enum Count<'a> {
    /// What the session used.
    Session,
    /// Nothing: nobody counts.
    Nothing,
    /// What the agents used that it is about.
    Own(Own<'a>),
}

impl<'a> Layer<'a> {
    /// The policy that governs. Its rules are named by their pointers alone.
    pub const fn own(policy: &'a Policy, facts: &'a Facts) -> Self {
        Self { name: None, policy, facts, count: Count::Session, unseen: false }
    }

    /// Another one that is asked too. Its rules are named with its own name in front (`changed-policy:/tools/deny/0`).
    pub const fn named(name: &'a str, policy: &'a Policy, facts: &'a Facts) -> Self {
        Self { name: Some(name), policy, facts, count: Count::Session, unseen: false }
    }

    /// Leaves its limits out.
    #[must_use]
    pub const fn uncounted(self) -> Self {
        Self { count: Count::Nothing, ..self }
    }

    /// Says whether there may have been calls that it gave no labels to, and would have.
    #[must_use]
    pub const fn unseen(self, unseen: bool) -> Self {
        Self { unseen, ..self }
    }

    /// Holds other limits against another count than the session's.
    #[must_use]
    pub const fn counted(self, own: Own<'a>) -> Self {
        Self { count: Count::Own(own), ..self }
    }
}

/// A reason of a layer, with a name that says whose rule it is. Writ's own rules are the same in all layers.
fn named_in(name: Option<&str>, reason: Reason) -> Reason {
    let Some(name) = name.filter(|_| reason.rule.starts_with('/')) else { return reason };
    let rule = format!("{name}:{}", reason.rule);
    Reason { instead: reason.instead.replace(&reason.rule, &rule), rule, ..reason }
}

/// Holds what is about to happen against the limits of policies alone, each with what its rules are named with; those of single agents
/// against their own count.
pub fn judge_limits<'a>(
    policies: impl IntoIterator<Item = (Option<&'a str>, &'a Policy)>,
    agents: impl IntoIterator<Item = (&'a str, &'a Policy, Own<'a>)>,
    tally: Tally<'_>,
    action: Action,
) -> Decision {
    let agents = agents.into_iter().flat_map(|(name, policy, own)| {
        refusals_of_agents(policy, &own, action).into_iter().map(move |reason| named_in(Some(name), reason))
    });
    let reasons = policies.into_iter().flat_map(|(name, policy)| {
        refusals(policy, tally, action).into_iter().map(move |reason| named_in(name, reason))
    });
    Decision::from_reasons(reasons.chain(agents).collect())
}

/// Applies policies to the facts of one call.
pub fn judge(layers: &[Layer<'_>], setting: &Setting, tally: Tally<'_>) -> Decision {
    let mut reasons = Vec::new();
    let mut all_name_it = true;
    let flow = Flow::all(layers.iter().map(|layer| &layer.facts.flow));
    for layer in layers {
        let (counted, own) = match layer.count {
            Count::Session => (Some(tally), None),
            Count::Nothing => (None, None),
            Count::Own(own) => (None, Some(own)),
        };
        let mut judged = judge_alone(layer.policy, setting, layer.facts, counted).reasons;
        // A policy of one kind of sub-agent may well take from it what the main agent has to have.
        let others = layers.iter().filter(|other| !matches!(other.count, Count::Own(_)));
        let others = others.map(|other| other.policy).filter(|other| !std::ptr::eq(*other, layer.policy));
        judged.extend(missing_tools(layer.policy, others));
        judged.extend(own.iter().flat_map(|own| refusals_of_agents(layer.policy, own, Action::Call)));
        all_name_it &= !judged.is_empty();
        let unseen = layer.unseen && tally.calls + tally.turns > 0;
        let judged = judged.into_iter().chain(flow_refusals(layer.policy, &flow, tally, unseen));
        reasons.extend(judged.map(|reason| named_in(layer.name, reason)));
    }
    // What not every layer names is allowed by no rule: it is the client's affair.
    if !all_name_it {
        reasons.retain(|reason| reason.verdict != Verdict::Allow);
    }
    if layers.is_empty() {
        reasons.push(no_layer());
    }
    Decision::from_reasons(reasons)
}

fn no_layer() -> Reason {
    Reason {
        verdict: Verdict::Deny,
        rule: NO_LAYER.to_owned(),
        matched: Matched { subject: Subject::Policy, text: String::new(), span: None },
        message: "no policy was asked".to_owned(),
        instead: "a policy that allows it".to_owned(),
    }
}
