//! A human's word that raises a limit for one session.
//!
//! The caller makes sure that a human is there (a terminal); the agent's own way here is barred by self-protection (R19).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use writ_core::{SessionId, Timestamp};
use writ_policy::{Limit, Measure, Tally};
use writ_store::Store;

use crate::Home;
use crate::session::rows::RAISED;
use crate::session::{Blocked, Session, SessionError, agents};

/// A limit that was raised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raise {
    /// What it counts.
    pub limit: Measure,
    /// What it was.
    pub from: u64,
    /// What it is now.
    pub to: u64,
    /// The type of sub-agents whose it is; the session's where that is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// Why a limit was not raised.
#[derive(Debug, thiserror::Error)]
pub enum RaiseError {
    /// The session.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Its policy cannot be had.
    #[error("the policy of this session cannot be read: `writ doctor` says more")]
    NoPolicy,
    /// There is no such limit.
    #[error("the policy of this session has no {limit}{}{}", whose(agent.as_deref()), elsewhere(others))]
    NoLimit {
        /// Which.
        limit: Measure,
        /// The type of sub-agents that was named.
        agent: Option<String>,
        /// Types of sub-agents that have one.
        others: Vec<String>,
    },
    /// It holds at the end alone, and stops nothing.
    #[error(
        "{0} of this session's policy is post-hoc: it stops nothing, and is held against the whole when that is verified"
    )]
    PostHoc(Measure),
    /// It is no more than before.
    #[error("{limit} is {} already: a limit is only raised here", limit.shown(*now))]
    NotMore {
        /// Which.
        limit: Measure,
        /// What it is.
        now: u64,
    },
}

fn whose(agent: Option<&str>) -> String {
    agent.map_or_else(String::new, |agent| format!(" of sub-agents of type `{agent}`"))
}

fn elsewhere(others: &[String]) -> String {
    let options: Vec<String> = others.iter().map(|agent| format!("`--agent {agent}`")).collect();
    if options.is_empty() { String::new() } else { format!("; {} has one", options.join(", ")) }
}

/// Raises a limit of a session to `to`, or that of its sub-agents of one type, and records that.
pub fn raise(
    store: &Store,
    id: &SessionId,
    (limit, agent): (Measure, Option<&str>),
    to: u64,
    home: &Home,
) -> Result<Raise, RaiseError> {
    let mut session = Session::resume(store, id, home, Timestamp::now())?;
    let in_force = match session.policy() {
        Ok(in_force) => in_force,
        Err(Blocked::Ungoverned) => return Err(SessionError::Ungoverned.into()),
        Err(Blocked::Unusable(_)) => return Err(RaiseError::NoPolicy),
    };
    let held = |limits: &[Limit], tally: Tally<'_>| {
        let found = limits.iter().find(|found| found.measure == limit).copied();
        found.map(|found| (found.post_hoc, tally.limit(&found)))
    };
    // By the name of the layer that holds it.
    let found: Vec<(Option<String>, (bool, u64))> = match agent {
        None => held(&in_force.accepted.limits(), session.tally()).map(|found| (None, found)).into_iter().collect(),
        Some(agent) => {
            let own = in_force.accepted.of_agents().filter(|(_, own)| own.agent == agent);
            let found = own.filter_map(|(_, own)| {
                let tally = own.own(&session.state.agents, session.moment()).tally;
                Some((Some(own.layer.to_owned()), held(&own.limits, tally)?))
            });
            found.collect()
        }
    };
    let stops: Vec<&(Option<String>, (bool, u64))> = found.iter().filter(|(_, (post_hoc, _))| !post_hoc).collect();
    let now = stops.iter().map(|(_, (_, now))| *now).min();
    let now = now.ok_or_else(|| {
        if !found.is_empty() {
            return RaiseError::PostHoc(limit);
        }
        let has = |limits: &[Limit]| limits.iter().any(|found| found.measure == limit);
        let of_agents = in_force.accepted.of_agents().filter(|(_, own)| has(&own.limits));
        let others: BTreeSet<String> = of_agents.map(|(_, own)| own.agent.to_owned()).collect();
        let others = others.into_iter().collect();
        RaiseError::NoLimit { limit, agent: agent.map(str::to_owned), others }
    })?;
    if to <= now {
        return Err(RaiseError::NotMore { limit, now });
    }
    let raise = Raise { limit, from: now, to, agent: agent.map(str::to_owned) };
    let layers: Vec<String> = stops.iter().filter_map(|(layer, _)| layer.clone()).collect();
    if agent.is_none() {
        session.state.raise(limit, to);
    }
    agents::raise(&mut session.state.agents, layers.iter().map(String::as_str), limit, to);
    let draft = session.event(RAISED, &raise);
    session.append(draft)?;
    Ok(raise)
}
