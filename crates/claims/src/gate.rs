//! From a verdict to a block, or the reason there is none: the seed's gates, in its order (R50).
//!
//! Every gate can only take a block away. Whoever asks has to put the counters on record before acting on the answer: a block
//! that nobody remembers is a loop.

use serde::Serialize;
use writ_core::json;

use crate::judge::Verdict;

/// What stands for every subagent in a list of agent types.
pub const ALL: &str = "all";

/// What may be enforced, and how often.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Enforcement {
    /// Whether a false DONE is blocked at all.
    pub on: bool,
    /// The agent types it is about; empty, or [`ALL`] among them, for all.
    pub agents: Vec<String>,
    /// Blocks an agent gets at most.
    pub max_retries: u64,
    /// Blocks a session gets at most.
    pub session_ceiling: u64,
}

impl Default for Enforcement {
    fn default() -> Self {
        Self { on: false, agents: Vec::new(), max_retries: 1, session_ceiling: 10 }
    }
}

/// The stop that is judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stop<'a> {
    /// The agent's id, when it has one.
    pub agent: Option<&'a str>,
    /// Its type.
    pub kind: &'a str,
    /// The client is already continuing because of a stop hook.
    pub hook_active: bool,
    /// Blocks this agent got so far.
    pub agent_blocks: u64,
    /// Blocks the session got so far.
    pub session_blocks: u64,
}

/// What comes of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Code {
    /// Nothing is enforced.
    #[serde(rename = "ALLOW_NOT_ENFORCING")]
    NotEnforcing,
    /// This agent is not among those it is about.
    #[serde(rename = "ALLOW_AGENT_NOT_IN_SCOPE")]
    AgentNotInScope,
    /// The agent has no id to count by.
    #[serde(rename = "ALLOW_NO_AGENT_ID")]
    NoAgentId,
    /// The claim is not false beyond doubt.
    #[serde(rename = "ALLOW_NOT_FALSE_DONE")]
    NotFalseDone,
    /// git did not answer.
    #[serde(rename = "ALLOW_DELTA_UNRELIABLE")]
    DeltaUnreliable,
    /// The tree was not clean before.
    #[serde(rename = "ALLOW_AMBIGUOUS")]
    Ambiguous,
    /// The agent was blocked as often as it may be.
    #[serde(rename = "ALLOW_RETRY_CAP")]
    RetryCap,
    /// The session was.
    #[serde(rename = "ALLOW_SESSION_CEILING")]
    SessionCeiling,
    /// The client already continues an agent that was blocked.
    #[serde(rename = "ALLOW_STOP_HOOK_ACTIVE")]
    StopHookActive,
    /// Blocked.
    #[serde(rename = "BLOCK_FALSE_DONE")]
    FalseDone,
}

impl Code {
    /// The reason code on record.
    pub fn as_str(self) -> &'static str {
        json::word(&self)
    }

    /// Whether the agent is sent back.
    pub const fn blocks(self) -> bool {
        matches!(self, Self::FalseDone)
    }
}

/// What is known of a stop's claim.
#[derive(Clone, Copy, Debug)]
pub enum Finding<'a> {
    /// It was laid beside the delta.
    Judged(&'a Verdict),
    /// git gave no delta; whether the claim is a DONE with files.
    NoDelta {
        /// Whether there is something to judge.
        done: bool,
    },
    /// It is about tests, and the commands on record say otherwise.
    FalseTests,
}

impl Finding<'_> {
    fn is_false(self) -> bool {
        match self {
            Self::Judged(verdict) => verdict.false_done,
            Self::NoDelta { done } => done,
            Self::FalseTests => true,
        }
    }

    fn is_clear(self) -> bool {
        match self {
            Self::Judged(verdict) => !verdict.ambiguous || verdict.proven,
            Self::NoDelta { .. } | Self::FalseTests => true,
        }
    }
}

/// Passes a finding through the gates.
pub fn decide(enforcement: &Enforcement, stop: &Stop<'_>, finding: Finding<'_>) -> Code {
    let agents = &enforcement.agents;
    let gates = [
        (!enforcement.on, Code::NotEnforcing),
        (!agents.is_empty() && !agents.iter().any(|kind| kind == stop.kind || kind == ALL), Code::AgentNotInScope),
        (stop.agent.is_none_or(str::is_empty), Code::NoAgentId),
        (!finding.is_false(), Code::NotFalseDone),
        (matches!(finding, Finding::NoDelta { .. }), Code::DeltaUnreliable),
        (!finding.is_clear(), Code::Ambiguous),
        (stop.agent_blocks >= enforcement.max_retries, Code::RetryCap),
        (stop.session_blocks >= enforcement.session_ceiling, Code::SessionCeiling),
        (stop.hook_active, Code::StopHookActive),
    ];
    gates.into_iter().find_map(|(shut, code)| shut.then_some(code)).unwrap_or(Code::FalseDone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(false_done: bool, ambiguous: bool, proven: bool) -> Verdict {
        let (files, observed, unclaimed) = Default::default();
        Verdict { files, observed, unclaimed, false_done, ambiguous, proven }
    }

    #[test]
    fn the_gates_shut_in_order() {
        let on = Enforcement { on: true, ..Enforcement::default() };
        let scoped = Enforcement { agents: vec!["writer".to_owned()], ..on.clone() };
        let never = Enforcement { max_retries: 0, ..on.clone() };
        let stop = Stop { agent: Some("a1"), kind: "", hook_active: false, agent_blocks: 0, session_blocks: 0 };
        let lie = verdict(true, false, false);
        let judged = Finding::Judged(&lie);
        assert_eq!(decide(&Enforcement::default(), &stop, judged), Code::NotEnforcing);
        assert_eq!(decide(&scoped, &stop, judged), Code::AgentNotInScope);
        assert_eq!(decide(&scoped, &Stop { kind: "writer", ..stop }, judged), Code::FalseDone);
        let all = Enforcement { agents: vec![ALL.to_owned(), "main".to_owned()], ..on.clone() };
        assert_eq!(decide(&all, &Stop { kind: "writer", ..stop }, judged), Code::FalseDone);
        assert_eq!(decide(&all, &Stop { kind: "main", ..stop }, judged), Code::FalseDone);
        assert_eq!(decide(&on, &Stop { agent: None, ..stop }, judged), Code::NoAgentId);
        assert_eq!(decide(&on, &stop, Finding::Judged(&verdict(false, false, false))), Code::NotFalseDone);
        assert_eq!(decide(&on, &stop, Finding::NoDelta { done: true }), Code::DeltaUnreliable);
        assert_eq!(decide(&on, &stop, Finding::NoDelta { done: false }), Code::NotFalseDone);
        assert_eq!(decide(&on, &stop, Finding::Judged(&verdict(true, true, false))), Code::Ambiguous);
        assert_eq!(decide(&on, &stop, Finding::Judged(&verdict(true, true, true))), Code::FalseDone);
        assert_eq!(decide(&on, &Stop { agent_blocks: 1, ..stop }, judged), Code::RetryCap);
        assert_eq!(decide(&never, &stop, judged), Code::RetryCap);
        assert_eq!(decide(&on, &Stop { session_blocks: 10, ..stop }, judged), Code::SessionCeiling);
        assert_eq!(decide(&on, &Stop { hook_active: true, ..stop }, judged), Code::StopHookActive);
        assert_eq!(decide(&on, &stop, judged), Code::FalseDone);
        assert_eq!(decide(&on, &stop, Finding::FalseTests), Code::FalseDone);
    }
}
