//! What a row tells of its call, read and held against itself: its facts, its digests, what held it.
//!
//! Owns the checks that need no judging. Refuses facts about another tool, and a sandbox that nobody wanted. Invariant: nothing here knows a
//! rule. Page: `spec/ledger.md`.

use writ_core::json::{self, Value};
use writ_core::{Digest, Verdict};
use writ_evidence::row::{Row, RowDecision};
use writ_policy::{Facts, Policy};

use super::layers::Judged;
use crate::decide::outcome::POLICY_UNUSABLE;
use crate::session::rows::{RUN, event};

/// Whether a policy asks who the agent is, and the facts it was judged on do not tell.
pub fn is_untold(policies: &[&Policy], root: &Facts, layers: &[Judged]) -> bool {
    let facts = std::iter::once(root).chain(layers.iter().map(|layer| &layer.facts));
    policies.iter().zip(facts).any(|(policy, facts)| policy.identity().asks() && facts.agent().is_none())
}

/// Whether what is said to hold a call is what is to hold it: a sandbox of its own, or that of the run that it is part of. `run` is the call of
/// the run that was let run.
pub fn held(row: &Row, wanted: bool, facts: &Facts, run: &mut Option<String>) -> Result<(), String> {
    let granted = row.detail.get("sandbox").is_some();
    if event(row) == RUN {
        let runs = row.decision == RowDecision::Approved;
        *run = row.call_id.clone().filter(|_| runs);
        return if runs == granted { Ok(()) } else { Err("a run, and a sandbox granted, are one".to_owned()) };
    }
    if let Some(named) = row.detail.get("run") {
        let ours = run.is_some() && named.as_str() == run.as_deref();
        return match (ours, granted) {
            (true, false) => Ok(()),
            (true, true) => Err("it is held by its run, and was granted a sandbox of its own".to_owned()),
            (false, _) => Err("it is said to be part of a run that was not let run".to_owned()),
        };
    }
    if wanted && facts.is_shell_call() && !facts.is_unconfined() {
        // What was denied runs nowhere.
        if !granted && row.decision != RowDecision::Denied {
            return Err("its policy wants it in a sandbox, and it was granted none".to_owned());
        }
    } else if !facts.is_held().is_nothing() {
        return Err("it is said to be held by a sandbox that its policy does not want".to_owned());
    }
    Ok(())
}

/// A call without facts was denied because the accepted policy could not be applied.
pub fn blocked(row: &Row) -> Result<Verdict, String> {
    let only = recorded_rules(row) == [format!("deny {POLICY_UNUSABLE}")];
    if only { Ok(Verdict::Deny) } else { Err("it was decided without facts".to_owned()) }
}

/// The facts that a row holds, which are about its tool.
pub fn read_facts(facts: &Value, tool: &str) -> Result<Facts, String> {
    let facts: Facts = json::from_value(facts).map_err(|error| format!("its facts do not read: {error}"))?;
    about(&facts, tool).map(|()| facts)
}

/// Refuses facts about another tool.
pub fn about(facts: &Facts, tool: &str) -> Result<(), String> {
    if facts.tool() == tool {
        return Ok(());
    }
    Err(format!("its facts are about `{}`, the row about `{tool}`", facts.tool()))
}

/// A digest that a row names.
pub fn digest(value: Option<&Value>) -> Option<Digest> {
    value.and_then(Value::as_str).and_then(|text| Digest::parse(text).ok())
}

fn recorded_rules(row: &Row) -> Vec<String> {
    let rules = row.detail.get("rules").and_then(Value::as_array).unwrap_or_default();
    rules.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
