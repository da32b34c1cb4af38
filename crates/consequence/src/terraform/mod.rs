//! What a Terraform or OpenTofu plan would do, from its JSON form.
//!
//! Owns the resource types (`data/terraform/`), their tiers and the risks that only several changes together make. It runs no
//! Terraform and guesses nothing by a name: a type that no file has is tier 5 (R36). The invariant: no sensitive value leaves
//! (R8), and the work is linear in the plan. Page: `spec/consequence.md`.

mod document;
mod graph;
mod judge;
mod non_resource;
mod plan;
mod risks;
mod rule;
mod table;
mod view;

pub use plan::{MAX_RESOURCES, PlanError};
pub use table::Known;

use crate::report::Report;
use graph::Graph;
use plan::Plan;
use writ_core::json::Value;

/// Judges the document of `terraform show -json PLAN` (format 0.1 to 1.x). `state` is that of `terraform show -json` without a plan,
/// or a state file, for plans that carry no prior state of their own; what the plan says outranks it.
pub fn evaluate(plan: &Value, state: Option<&Value>) -> Result<Report, PlanError> {
    let document = plan;
    let plan = Plan::read(document, state)?;
    let mut judged: Vec<judge::Judged<'_>> =
        plan.changes.iter().filter_map(|change| judge::judge(change, &plan)).collect();
    let graph =
        if judged.iter().any(|judged| judged.change.action.deletes()) { Graph::read(&plan) } else { Graph::default() };
    graph.impact(&mut judged);
    let found = risks::find(&judged, &plan, &graph);
    for judged in &mut judged {
        risks::raise(judged, &found);
    }
    let risks = found.into_iter().map(risks::Found::told).collect();
    let others = non_resource::mutations(document, &plan)?;
    let mutations = judged.into_iter().map(|judged| judged.mutation).chain(others).collect();
    Ok(Report { mutations, cross_action_risks: Some(risks), unseen: Vec::new() })
}

/// The known types, with the tier of a delete when nothing else is known, and why.
pub fn supported() -> impl ExactSizeIterator<Item = &'static Known> {
    table::all()
}
