//! How a session stands to its limits, for people: used and allowed, agent by agent.
//!
//! Reads the last row and what was counted; decides nothing and writes nothing.

use serde::Serialize;
use writ_clients::transcript::MAIN;
use writ_clients::usage::Tokens;
use writ_core::{Money, SessionId, Timestamp};
use writ_policy::{Limit, Measure, Tally};
use writ_store::{Store, StoreError};

use super::meter;
use super::prices::Prices;
use crate::session::state::State;
use crate::session::{kept_policy, millis_between};

/// One limit.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitShown {
    /// Which.
    pub limit: Measure,
    /// The type of sub-agents whose it is; the session's where that is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// How much was used; `None` where that is not known.
    pub used: Option<u64>,
    /// Why it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// How much may be.
    pub most: u64,
    /// What the policy says, where a human raised it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raised_from: Option<u64>,
    /// Whether it is held against the end alone.
    pub post_hoc: bool,
}

impl LimitShown {
    /// Whether it is used up.
    pub fn is_used_up(&self) -> bool {
        self.used.is_none_or(|used| used >= self.most)
    }

    /// `$1.20 of $5.00`
    pub fn text(&self) -> String {
        let whose = self.agent.as_ref().map_or_else(String::new, |agent| format!("`{agent}`: "));
        let mut text = whose
            + &match (&self.used, &self.unknown) {
                (Some(used), _) => self.limit.shown_of(*used, self.most),
                (None, why) => {
                    let most = self.limit.shown(self.most);
                    format!("not known, of {most}: {}", why.as_deref().unwrap_or_default())
                }
            };
        if let Some(from) = self.raised_from {
            text.push_str(&format!(" (raised from {})", self.limit.shown(from)));
        }
        if self.post_hoc {
            text.push_str(" (held against the end)");
        }
        text
    }
}

/// What one agent used.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentShown {
    /// `main`, or the subagent's id.
    pub agent: String,
    /// Its type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The call that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Its models.
    pub models: Vec<String>,
    /// Its tokens.
    pub tokens: Tokens,
    /// What they cost; `None` where a model has no price.
    pub spend: Option<Money>,
}

/// A session's limits and who used what.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Standing {
    /// Its limits.
    pub limits: Vec<LimitShown>,
    /// Its agents, `main` first, as far as the transcripts were read.
    pub agents: Vec<AgentShown>,
}

/// How a session stands at a moment; `None` where it has no rows, or its policy limits nothing.
pub fn standing(store: &Store, id: &SessionId, now: Timestamp) -> Result<Option<Standing>, StoreError> {
    let (Some(first), Some(last)) = (store.first_row(id)?, store.last_row(id)?) else { return Ok(None) };
    let (Some(mut state), Some(policy)) = (State::from_detail(&last.detail), kept_policy(store, id, &last)) else {
        return Ok(None);
    };
    state.put_back(last.timestamp, now);
    let now = state.steady(now);
    let tally = state.tally(millis_between(first.timestamp, now));
    let shown = |limit: &Limit, agent: Option<&str>, tally: Tally<'_>| {
        let (used, unknown) = match tally.used(limit.measure) {
            Ok(used) => (Some(used), None),
            Err(why) => (None, Some(why)),
        };
        let most = Tally::limit(tally, limit);
        let raised_from = (most > limit.value).then_some(limit.value);
        let agent = agent.map(str::to_owned);
        LimitShown { limit: limit.measure, agent, used, unknown, most, raised_from, post_hoc: limit.post_hoc }
    };
    let mut limits: Vec<LimitShown> = policy.limits().iter().map(|limit| shown(limit, None, tally)).collect();
    for (_, of_agent) in policy.of_agents() {
        let tally = of_agent.own(&state.agents, now).tally;
        limits.extend(of_agent.limits.iter().map(|limit| shown(limit, Some(of_agent.agent), tally)));
    }
    if limits.is_empty() {
        return Ok(None);
    }
    Ok(Some(Standing { limits, agents: agents(store, id, &state) }))
}

fn agents(store: &Store, id: &SessionId, state: &State) -> Vec<AgentShown> {
    let Some(meter) = meter::kept(store, id) else { return Vec::new() };
    let prices = match state.prices {
        Some(kept) => meter::prices_of(&store.folder(id), kept).ok(),
        None => Prices::open(store.root()).ok(),
    };
    let mut out: Vec<AgentShown> = Vec::new();
    for (agent, used) in meter.agents() {
        let tokens = used.tokens();
        if tokens.is_nothing() && agent != MAIN {
            continue;
        }
        let mut models: Vec<String> = used.used.iter().map(|(rate, _)| rate.model.clone()).collect();
        models.sort();
        models.dedup();
        let spend = prices.as_ref().and_then(|prices| prices.cost(&used).ok());
        let shown =
            AgentShown { kind: used.note.kind, call: used.note.call, models, tokens, spend, agent: agent.clone() };
        if agent == MAIN { out.insert(0, shown) } else { out.push(shown) }
    }
    out
}
