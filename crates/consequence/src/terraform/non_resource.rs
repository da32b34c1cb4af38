//! What a plan holds beside its changes: actions it runs, changes it puts off, and what it says of itself.
//!
//! It weighs no resource's attributes: that is for the rules. The invariant: a plan that does not tell all that its apply
//! would do is never allowed in silence. Page: `spec/consequence.md`.

use super::plan::{Plan, PlanError, list, within};
use crate::report::{Confidence, Intent, Mutation, Origin, Recoverability, Target, Tier};
use std::collections::HashSet;
use writ_core::json::Value;

/// The mutations that stand beside those of the changes.
pub fn mutations(document: &Value, plan: &Plan<'_>) -> Result<Vec<Mutation>, PlanError> {
    let invoked = list(document, "action_invocations")?;
    let deferred = list(document, "deferred_changes")?;
    within(invoked.len())?;
    within(deferred.len())?;
    let mut out: Vec<Mutation> = invoked.iter().map(invocation).chain(deferred.iter().map(put_off)).collect();
    if document.get("errored").and_then(Value::as_bool) == Some(true) {
        out.push(unfinished("the plan ended with an error: it holds no more than was planned until then"));
    } else if document.get("resource_changes").is_none() && makes_something(document, plan) {
        out.push(unfinished("the plan names resources and has no `resource_changes`: what it would do cannot be told"));
    }
    Ok(out)
}

/// What an action does, the plan does not say.
fn invocation(entry: &Value) -> Mutation {
    let address = text(entry, "address").unwrap_or("an action");
    let reasoning = format!("`{address}`: an action is run, and what it does is not in the plan");
    mutation("invoke", entry, Tier::NeedsReview, reasoning)
}

/// A change that waits for another plan: this one's apply does not do it.
fn put_off(entry: &Value) -> Mutation {
    let change = entry.get("resource_change").unwrap_or(entry);
    let address = text(change, "address").unwrap_or("a change");
    let reasoning = format!("`{address}`: it is put off, and not done by this plan: judge the plan that does it");
    mutation("defer", change, Tier::Reversible, reasoning)
}

fn unfinished(reason: &str) -> Mutation {
    let mut mutation = mutation("apply", &Value::Null, Tier::NeedsReview, reason.to_owned());
    mutation.intent.target.kind = Some("plan".to_owned());
    mutation
}

fn mutation(action: &str, entry: &Value, tier: Tier, reasoning: String) -> Mutation {
    let review = tier == Tier::NeedsReview;
    let advice = "read in the provider's documentation what this does, and have somebody look";
    let again = "make the plan again until it ends without an error";
    let suggestion = review.then_some(if action == "apply" { again } else { advice });
    let recoverability = Recoverability {
        tier,
        reasoning,
        source: Origin::Default,
        confidence: if review { Confidence::Low } else { Confidence::Medium },
        suggestions: suggestion.map(str::to_owned).into_iter().collect(),
    };
    let owned = |name| text(entry, name).map(str::to_owned);
    let kind = owned("type");
    let provider = kind.as_deref().and_then(|kind| kind.split('_').next()).map(str::to_owned);
    let target = Target { provider, kind, id: owned("address"), name: owned("name"), ..Target::default() };
    let intent = Intent { source: "terraform", action: action.to_owned(), target, ..Intent::default() };
    Mutation { intent, recoverability, evidence: Vec::new(), missing: Vec::new(), dependencies: Vec::new() }
}

fn text<'a>(entry: &'a Value, name: &str) -> Option<&'a str> {
    entry.get(name).and_then(Value::as_str)
}

/// Whether the planned values have a resource that the prior state has not. A plan that only refreshes has none.
fn makes_something(document: &Value, plan: &Plan<'_>) -> bool {
    let known: HashSet<&str> = plan.state.iter().map(|found| found.address.as_ref()).collect();
    let root = document.get("planned_values").and_then(|values| values.get("root_module"));
    let mut modules: Vec<&Value> = root.into_iter().collect();
    while let Some(module) = modules.pop() {
        let part = |name| module.get(name).and_then(Value::as_array).unwrap_or_default();
        let managed = part("resources").iter().filter(|resource| text(resource, "mode") != Some("data"));
        if managed.filter_map(|resource| text(resource, "address")).any(|address| !known.contains(address)) {
            return true;
        }
        modules.extend(part("child_modules"));
    }
    false
}
