//! Limits against what a session used (R17): when the next action is refused, and what is said then.
//!
//! The one place that says so, for calls, prompts and requests alike. Pure. Invariant: a limit whose count is not known refuses.

use writ_core::{Matched, Reason, Subject, Verdict};

use crate::limits::{Action, Limit, Measure, Own, Refused, Tally};
use crate::policy::Policy;

/// The reasons for which a policy's limits refuse what is about to happen; none where they let it.
pub fn refusals(policy: &Policy, tally: Tally<'_>, action: Action) -> Vec<Reason> {
    refused(policy, policy.limits(), None, tally, action)
}

/// The same for what agents of one type used, against the limits that are theirs.
pub fn refusals_of_agents(policy: &Policy, own: &Own<'_>, action: Action) -> Vec<Reason> {
    refused(policy, own.limits, Some(own.agent), own.tally, action)
}

fn refused(policy: &Policy, limits: &[Limit], agent: Option<&str>, tally: Tally<'_>, action: Action) -> Vec<Reason> {
    // Who gives a task uses up a turn of the agent that gets it, and nothing else of its.
    let about = |limit: &&Limit| action != Action::Start || limit.measure == Measure::Turns;
    let at_once = limits.iter().filter(|limit| !limit.post_hoc).filter(about);
    at_once.filter_map(|limit| refusal(policy, limit, agent, tally, action)).collect()
}

/// How to go on where a price is missing.
const PRICE: &str = "a human runs `writ prices set MODEL --input N --output N` in a terminal: with `--fast TIMES` for fast answers, \
                     with `--search N` for searches of the web; a model without a name is `''`";

fn refusal(policy: &Policy, limit: &Limit, agent: Option<&str>, tally: Tally<'_>, action: Action) -> Option<Reason> {
    let (measure, most) = (limit.measure, tally.limit(limit));
    let agents = agent.map(|agent| format!("sub-agents of type `{agent}`"));
    let (who, has) = agents.as_deref().map_or(("the session", "has"), |agents| (agents, "have"));
    let theirs = agents.as_ref().map_or_else(String::new, |agents| format!(" of {agents}"));
    let (message, instead) = match tally.used(measure) {
        Err(why) => {
            let instead = if tally.usage.is_some_and(|usage| usage.unknown.is_none()) {
                PRICE.to_owned()
            } else {
                "a client whose transcripts can be read, or a policy without this limit".to_owned()
            };
            (format!("what {who} used is not known, and the policy limits it: {why}"), instead)
        }
        Ok(used) if is_reached(measure, used, most, tally, action) => {
            let (used_up, most_shown) = (measure.number(used), measure.shown(most));
            let message = match measure {
                Measure::ToolCalls | Measure::Turns => {
                    format!("{who} {has} had the {most_shown} that the policy gives")
                }
                Measure::Spend => format!("{who} {has} spent {used_up} of the {most_shown} that the policy gives"),
                Measure::TokensIn => format!("the model{theirs} has read {used_up} of the {most_shown} that it may"),
                Measure::TokensOut => {
                    format!("the model{theirs} has written {used_up} of the {most_shown} that it may")
                }
                Measure::WallTime => format!("{who} {has} run for {used_up} of the {most_shown} that the policy gives"),
            };
            let next = measure.written(most.saturating_mul(2).max(used.saturating_add(most)).max(1));
            (
                message,
                format!(
                    "a human runs `writ limits raise {measure} {next}{}` in a terminal, or begins a new session",
                    agent.map_or_else(String::new, |agent| format!(" --agent {agent}"))
                ),
            )
        }
        Ok(_) => return None,
    };
    let matched = Matched { subject: Subject::Policy, text: policy.name().to_owned(), span: None };
    Some(Reason { verdict: Verdict::Deny, rule: measure.pointer(), matched, message, instead })
}

/// Whether the next action is one too many (R17). What is used up by answering is reached when it is used up; calls and turns are
/// reached by the one that comes after the last, so that the last one is answered.
fn is_reached(measure: Measure, used: u64, most: u64, tally: Tally<'_>, action: Action) -> bool {
    let refused = |what| tally.refused == Some(what);
    match (measure, action) {
        (Measure::Spend | Measure::TokensIn | Measure::TokensOut | Measure::WallTime, _) => used >= most,
        (Measure::ToolCalls, Action::Call | Action::Prompt | Action::Start) => used >= most,
        (Measure::ToolCalls, Action::Request) => used >= most && refused(Refused::Call),
        (Measure::Turns, Action::Prompt | Action::Start) => used >= most,
        // A client that goes on behind a prompt that was refused is in the next turn.
        (Measure::Turns, Action::Call | Action::Request) => used > most || used == most && refused(Refused::Prompt),
    }
}

/// The same of what sub-agents of one type may use.
pub fn near_of_type(limits: &[Limit], tally: Tally<'_>) -> Vec<(Measure, String)> {
    found_near(limits, tally, "then they are refused")
}

/// The limits of a list (from [`strictest`](crate::strictest)) that refuse, or will when the session has ended, of which four fifths are used: each with a sentence.
pub fn near(limits: &[Limit], tally: Tally<'_>) -> Vec<(Measure, String)> {
    found_near(limits, tally, "then the session is stopped")
}

fn found_near(limits: &[Limit], tally: Tally<'_>, stopped: &str) -> Vec<(Measure, String)> {
    let near = |limit: &Limit| {
        let (measure, most) = (limit.measure, tally.limit(limit));
        let used = tally.used(measure).ok().filter(|used| used.saturating_mul(5) >= most.saturating_mul(4))?;
        let then = if limit.post_hoc { "more than that fails verification" } else { stopped };
        Some((measure, format!("{} are used ({measure}); {then}", measure.shown_of(used, most))))
    };
    let mut found: Vec<(Measure, String)> = limits.iter().filter_map(near).collect();
    found.dedup_by_key(|(measure, _)| *measure);
    found
}
