//! Whether a policy's limits are looser than those that hold for it (R23).
//!
//! Owns the comparison. Reads nothing: resolution asks it when a policy is loaded, verification of what was kept. Invariant: both give
//! the same answer on the same policies. Page: `spec/layers.md`.

use std::collections::BTreeMap;

use writ_policy::{Child, Policy};

/// The strictest limit of each name, and who has it.
pub type Limits = BTreeMap<String, (f64, String)>;

/// A policy's own limits.
pub fn limits_of(policy: &Policy, who: &str) -> Limits {
    policy.limit_values().into_iter().map(|(name, value)| (name, (value, who.to_owned()))).collect()
}

/// The strictest of both.
pub fn merged(mut limits: Limits, others: &Limits) -> Limits {
    for (name, (value, who)) in others {
        let known = limits.entry(name.clone()).or_insert_with(|| (*value, who.clone()));
        if *value < known.0 {
            *known = (*value, who.clone());
        }
    }
    limits
}

/// What is looser than what holds for it, in words with both places (R23).
pub fn looser(child: &Limits, parent: &Limits) -> Option<String> {
    child.iter().find_map(|(name, (value, who))| {
        let (most, whose) = parent.get(name).filter(|(most, _)| value > most)?;
        Some(format!("`{name}` is {value} in {who} and {most} in {whose}, which it may not exceed"))
    })
}

/// A sub-agent's limits that stand beside its policy.
pub fn beside(child: &Child, file: &str, pointer: &str) -> Limits {
    let who = format!("{}#{}", file, pointer.replace("/policy", "/limits"));
    child.limits.iter().map(|(name, value)| (name.clone(), (*value, who.clone()))).collect()
}
