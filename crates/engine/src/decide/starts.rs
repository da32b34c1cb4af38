//! Calls that give a sub-agent a task: a turn of the agents of that type.
//!
//! Owns which layers limit those turns, and which would hold the agent that gives the task and not the one that gets it; counts nothing itself. Invariant: whose turn a call begins is read from its facts, so that
//! verification finds the same. Page: `spec/limits.md`.

use writ_policy::Policy;

use crate::governing::Governing;
use crate::governing::layers::{self, Caller, LayerRef, OfAgent, limits_turns};

/// The layers that limit the turns of the sub-agents that a call gives a task to, by the type that it names; where it names none it may be any.
pub fn limited<'a>(accepted: &'a Governing, starts: Option<&str>) -> Vec<(OfAgent<'a>, &'a Policy)> {
    let layers = starts.map(|kind| accepted.applying(Caller::typed(Some(kind)))).unwrap_or_default().into_iter();
    let own = layers.filter_map(|layer| Some((accepted.of_agent(layer, &layer.policy)?, &layer.policy)));
    own.filter(|(of_agent, _)| limits_turns(&of_agent.limits)).collect()
}

/// A layer that speaks on the calls of the sub-agent that gives the task, and would not on those of the one that gets it.
pub fn lost<'a>(accepted: &'a Governing, caller: Caller<'_>, starts: Option<&str>) -> Option<&'a LayerRef> {
    let list: Vec<&LayerRef> = accepted.layers.iter().map(|layer| &layer.at).collect();
    layers::lost(&list, caller, starts?)
}
