//! What sub-agents used, where a layer about their type limits it: part of the session's state.
//!
//! Owns the counts, one for each such layer, and how they go on; live decisions and verification take both from here. Invariant: a count
//! falls only where a human's word answers a call that counted while it waited.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use writ_core::{Timestamp, Verdict};
use writ_policy::{Measure, Raised, Refused, Tally, Usage};

/// Counts by the names of layers.
pub type Agents = BTreeMap<String, AgentCount>;

/// What the agents used on whose calls one layer speaks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCount {
    /// Calls that were allowed or left to a human's word.
    pub calls: u64,
    /// Tasks that they were given, where that is limited.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub turns: u64,
    /// When the first of their calls was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Timestamp>,
    /// What they used by their client's own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Limits that a human raised for them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub raised: Raised,
    /// Whether one of their calls was refused because a limit was reached.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
    /// Limits of which they were told that four fifths are used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warned: Vec<Measure>,
}

impl AgentCount {
    /// The greater of two counts of the same agents.
    fn most(self, other: Self) -> Self {
        let usage = match (self.usage, other.usage) {
            (Some(one), Some(other)) => Some(Usage {
                tokens_in: one.tokens_in.max(other.tokens_in),
                tokens_out: one.tokens_out.max(other.tokens_out),
                spend: one.spend.max(other.spend),
                unknown: one.unknown.or(other.unknown),
                unpriced: one.unpriced.or(other.unpriced),
            }),
            (one, other) => one.or(other),
        };
        let began = [self.began, other.began].into_iter().flatten().min();
        Self { calls: self.calls.max(other.calls), turns: self.turns.max(other.turns), began, usage, ..Self::default() }
    }

    /// Without what was said of their limits.
    fn unsaid(self) -> Self {
        Self { raised: Raised::new(), refused: false, warned: Vec::new(), ..self }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like that")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What they used, at a moment.
pub fn tally<'a>(agents: &'a Agents, layer: &str, now: Timestamp) -> Tally<'a> {
    let Some(count) = agents.get(layer) else { return Tally::default() };
    Tally {
        calls: count.calls,
        turns: count.turns,
        millis: count.began.map_or(0, |began| u64::try_from(now.millis().saturating_sub(began.millis())).unwrap_or(0)),
        refused: count.refused.then_some(Refused::Call),
        usage: count.usage.as_ref(),
        raised: Some(&count.raised),
        ..Tally::default()
    }
}

/// Counts a call that was decided, for each layer that speaks on it and limits its agents.
pub fn count<'a>(
    agents: &mut Agents,
    layers: impl IntoIterator<Item = &'a str>,
    verdict: Verdict,
    limited: bool,
    now: Timestamp,
) {
    for layer in layers {
        let count = agents.entry(layer.to_owned()).or_default();
        count.calls += u64::from(verdict != Verdict::Deny);
        count.began = count.began.or(Some(now));
        count.refused |= limited;
    }
}

/// Counts a task that they are given, where the call that gives it may run.
pub fn start<'a>(agents: &mut Agents, layers: impl IntoIterator<Item = &'a str>, verdict: Verdict) {
    if verdict != Verdict::Deny {
        layers.into_iter().for_each(|layer| agents.entry(layer.to_owned()).or_default().turns += 1);
    }
}

/// Counts a call no more that waited for a human's word, or counts it again: what it counted for by the agent that makes it, and by those
/// that it gives a task to.
pub fn answer(agents: &mut Agents, calls: &BTreeSet<&str>, turns: &BTreeSet<&str>, again: bool) {
    let moved = |count: &mut u64| *count = if again { *count + 1 } else { count.saturating_sub(1) };
    calls.iter().for_each(|layer| moved(&mut agents.entry((*layer).to_owned()).or_default().calls));
    turns.iter().for_each(|layer| moved(&mut agents.entry((*layer).to_owned()).or_default().turns));
}

/// Notes that they were told of limits that are near.
pub fn warned(agents: &mut Agents, layer: &str, limits: &[Measure]) {
    agents.entry(layer.to_owned()).or_default().warned.extend(limits);
}

/// Notes that one of their turns was ended because a limit was reached.
pub fn refuse<'a>(agents: &mut Agents, layers: impl IntoIterator<Item = &'a str>) {
    layers.into_iter().for_each(|layer| agents.entry(layer.to_owned()).or_default().refused = true);
}

/// A layer that limits sub-agents of one type.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// The type.
    pub agent: &'a str,
    /// The layer's name.
    pub layer: &'a str,
}

/// Goes over to other layers: each takes what was used by its type, and nothing that was said of another policy's limits.
pub fn follow(agents: &mut Agents, before: &[Limits<'_>], now: &[Limits<'_>]) {
    let used = std::mem::take(agents);
    for Limits { agent, layer } in now {
        let own = before.iter().filter(|limits| limits.agent == *agent).filter_map(|limits| used.get(limits.layer));
        if let Some(count) = own.cloned().reduce(AgentCount::most) {
            agents.insert((*layer).to_owned(), count.unsaid());
        }
    }
}

/// Takes a limit that a human raised.
pub fn raise<'a>(agents: &mut Agents, layers: impl IntoIterator<Item = &'a str>, measure: Measure, to: u64) {
    for layer in layers {
        let count = agents.entry(layer.to_owned()).or_default();
        count.raised.insert(measure, to);
        count.warned.retain(|warned| *warned != measure);
        count.refused = false;
    }
}
