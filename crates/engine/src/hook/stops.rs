//! What becomes of prompts and turns once a limit is reached, and who is told before.
//!
//! Owns the refusals that are no calls: a client that is told to end its run still makes the call at hand, so only the refusal of calls,
//! prompts and the next request together stop a session for good. Decides with the policy's own word alone. Invariant: each refusal
//! has its row before it is answered.

use std::collections::BTreeMap;

use serde::Serialize;
use writ_core::{Answer, Event, Reply, Verdict, visible};
use writ_evidence::row::RowDecision;
use writ_policy::{Action, Enforce, Enforced, Measure, Policy, Refused, enforce, judge_limits, near, near_of_type};

use crate::decide::outcome::rules;
use crate::governing::in_force::InForce;
use crate::governing::layers::Caller;
use crate::limits::meter;
use crate::session::rows::{NEAR, PROMPT_REFUSED, TURN_ENDED, Who};
use crate::session::{Session, SessionError, agents};

/// What the row of a refusal says.
#[derive(Serialize)]
struct Stopped<'a> {
    #[serde(flatten)]
    who: Who<'a>,
    rules: Vec<String>,
    standing: &'static str,
}

#[derive(Serialize)]
struct Near<'a> {
    #[serde(flatten)]
    who: Who<'a>,
    limits: &'a [Measure],
    /// Of sub-agents of one type, by the layers that limit them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    agents: BTreeMap<String, Vec<Measure>>,
}

/// What is said of something between calls.
pub enum Checked {
    /// It goes on.
    Lets {
        /// What it would have come to, had the policy not only observed.
        observed: Option<Verdict>,
    },
    /// It is refused, with this answer.
    Refuses(Answer),
}

/// Brings the count up to date and holds it against the limits, where the policy has some.
pub fn check(session: &mut Session<'_>, input: &Event, action: Action) -> Result<Checked, SessionError> {
    if !session.state.policy.as_ref().is_some_and(|policy| policy.limited) {
        return Ok(Checked::Lets { observed: None });
    }
    meter::measure(session, input)?;
    let Ok(in_force) = session.policy() else { return Ok(Checked::Lets { observed: None }) };
    let caller = Caller::of(input.agent.as_ref());
    let speaking = in_force.speaking(caller);
    let (agents, now) = (&session.state.agents, session.moment());
    let of_agent = speaking.iter().filter_map(|speaks| {
        // What a file was changed to holds calls alone.
        let of_agent = speaks.of_agent.as_ref().filter(|of_agent| speaks.name.as_deref() == of_agent.counted())?;
        Some((of_agent.layer, speaks.policy, of_agent.own(agents, now)))
    });
    let of_agent: Vec<_> = of_agent.collect();
    let held =
        in_force.accepted.counted().map(|(_, policy)| policy).chain(of_agent.iter().map(|(_, policy, _)| *policy));
    let mode = Enforce::strictest(held.map(Policy::enforce));
    let decision = judge_limits(in_force.accepted.counted(), of_agent.iter().copied(), session.tally(), action);
    let counted: Vec<String> = of_agent.iter().map(|(layer, _, _)| (*layer).to_owned()).collect();
    let rules = rules(&decision);
    let Enforced { decision, observed } = enforce(mode, decision);
    let Some(reason) = decision.reasons.first().filter(|_| decision.verdict == Verdict::Deny) else {
        return Ok(Checked::Lets { observed });
    };
    let why = format!(
        "writ: {} ({} in policy `{}`). To go on: {}",
        visible::line(&reason.message),
        reason.rule,
        visible::line(session.state.policy_name()),
        visible::line(&reason.instead)
    );
    let rule = reason.rule.clone();
    let event = if action == Action::Prompt { PROMPT_REFUSED } else { TURN_ENDED };
    if action == Action::Prompt {
        session.state.refused = Some(Refused::Prompt);
    } else {
        session.state.refuse_call();
        agents::refuse(&mut session.state.agents, counted.iter().map(String::as_str));
    }
    let mut draft = session.event(event, Stopped { who: Who::of(input), rules, standing: "advised" });
    draft.decision = RowDecision::Denied;
    draft.denial_reason = Some(rule);
    session.append(draft)?;
    let answer = Answer::from(Reply::Block { reason: why.clone() });
    // Why a prompt is not taken its user is told anyway; why a turn ended, only so.
    Ok(Checked::Refuses(if action == Action::Prompt { answer } else { answer.with_message(why) }))
}

/// Behind a turn's calls: ends the turn, or tells the agent that a limit is near.
pub fn request(session: &mut Session<'_>, input: &Event) -> Result<Answer, SessionError> {
    match check(session, input, Action::Request)? {
        Checked::Refuses(answer) => Ok(answer),
        Checked::Lets { .. } => warn(session, input, "PostToolBatch"),
    }
}

/// The limits of sub-agents' own that are near and were not told of, by their layers, with a sentence each. Of its type's calls and use a sub-agent is
/// told; of its tasks whoever may give it one.
fn near_of_agents(
    session: &Session<'_>,
    in_force: &InForce,
    caller: Caller<'_>,
) -> (BTreeMap<String, Vec<Measure>>, Vec<String>) {
    let known = &session.state.agents;
    let speaking = in_force.accepted.applying(caller);
    let (mut found, mut said) = (BTreeMap::new(), Vec::new());
    for (layer, own) in in_force.accepted.of_agents() {
        let told = known.get(own.layer).map(|count| count.warned.as_slice()).unwrap_or_default();
        let speaks = caller != Caller::Main && speaking.iter().any(|speaks| speaks.at.name == layer.at.name);
        let about = |measure: Measure| match caller {
            Caller::Main => measure == Measure::Turns,
            Caller::SubAgent(_) | Caller::Untold => speaks && measure != Measure::Turns,
        };
        let near = near_of_type(&own.limits, own.own(known, session.moment()).tally);
        let near: Vec<_> = near.into_iter().filter(|(measure, _)| about(*measure) && !told.contains(measure)).collect();
        if !near.is_empty() {
            let (limits, texts): (Vec<Measure>, Vec<String>) = near.into_iter().unzip();
            said.extend(texts.into_iter().map(|text| format!("sub-agents of type `{}`: {text}", own.agent)));
            found.insert(own.layer.to_owned(), limits);
        }
    }
    (found, said)
}

/// Tells the agent once of each limit of which four fifths are used.
pub fn warn(session: &mut Session<'_>, input: &Event, event: &'static str) -> Result<Answer, SessionError> {
    let silent = Answer::from(Reply::Silent);
    if !session.state.policy.as_ref().is_some_and(|policy| policy.limited) {
        return Ok(silent);
    }
    let Ok(in_force) = session.policy() else { return Ok(silent) };
    let mut found = near(&in_force.accepted.limits(), session.tally());
    found.retain(|(measure, _)| !session.state.warned.contains(measure));
    let (agents, of_agents) = near_of_agents(session, in_force, Caller::of(input.agent.as_ref()));
    if found.is_empty() && agents.is_empty() {
        return Ok(silent);
    }
    let (limits, mut said): (Vec<Measure>, Vec<String>) = found.into_iter().unzip();
    said.extend(of_agents);
    session.state.warned.extend(&limits);
    for (layer, limits) in &agents {
        agents::warned(&mut session.state.agents, layer, limits);
    }
    let draft = session.event(NEAR, Near { who: Who::of(input), limits: &limits, agents });
    session.append(draft)?;
    let text = format!("writ: {}. Finish what matters most, and say what is left undone.", said.join(". "));
    Ok(Answer::from(Reply::Context { event: event.to_owned(), text: text.clone() }).with_message(text))
}
