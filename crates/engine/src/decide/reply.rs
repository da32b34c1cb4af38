//! What is said of a decision: to the client, to people, in the row.
//!
//! Owns the words; decides nothing. Invariant: what a row says of a refusal holds no command's text (R8).

use writ_core::{Answer, Decision, Digest, Event, Reply, Subject, Verdict, visible};
use writ_policy::Policy;

use crate::governing::layers::Caller;
use crate::session::Session;
use crate::session::shown::{Rules, cite};
use crate::session::state::short;

/// What the ledger says of a refusal: the rule and what kind of thing it met, never the command's text (R8).
pub fn denial(decision: &Decision) -> Option<String> {
    let reason = decision.reasons.first().filter(|_| decision.verdict > Verdict::Allow)?;
    let met = match reason.matched.subject {
        Subject::Path | Subject::Host | Subject::Tool | Subject::Policy => format!(" `{}`", reason.matched.text),
        Subject::Command | Subject::Unresolved => String::new(),
    };
    Some(format!("{} {}{met}", reason.rule, reason.matched.subject.as_str()))
}

/// What the client is told.
pub fn reply(
    session: &Session<'_>,
    input: &Event,
    policy: Option<&dyn Rules>,
    decision: &Decision,
    action: Digest,
) -> Answer {
    match decision.verdict {
        Verdict::Deny => Reply::Decided { verdict: Verdict::Deny, reason: explain(session, policy, decision) }.into(),
        Verdict::Ask => {
            let grant = grant(session, input, action);
            let stays =
                if session.within.is_some() { ". Files that need a yes stay read-only in this run" } else { "" };
            let reason = format!("{}\n{grant}{stays}", explain(session, policy, decision));
            Reply::Decided { verdict: Verdict::Ask, reason }.into()
        }
        // A policy grants what it names. What it merely does not forbid, and anything in plan mode, is the client's affair.
        Verdict::Allow if decision.reasons.is_empty() || input.permission_mode.as_deref() == Some("plan") => {
            Reply::Silent.into()
        }
        Verdict::Allow => Reply::Decided { verdict: Verdict::Allow, reason: explain(session, policy, decision) }.into(),
    }
}

/// How a human lets it run, as the policies that speak want it signed.
fn grant(session: &Session<'_>, input: &Event, action: Digest) -> String {
    let policies = session.policy().map(|in_force| in_force.policies(Caller::of(input.agent.as_ref())));
    let wanted: Vec<Vec<Digest>> = policies.into_iter().flatten().filter_map(Policy::approval_keys).collect();
    if wanted.iter().any(Vec::is_empty) {
        return "If nobody is asked here, nobody can let it run: `approvals.keys` names no key".to_owned();
    }
    let key = if wanted.is_empty() { "" } else { " --key FILE" };
    let (action, whose) = (short(action), if wanted.is_empty() { "" } else { ", one of those in `approvals.keys`" });
    format!("If nobody is asked here, a human lets it run once with `writ approve {action}{key}`{whose}")
}

/// The reasons behind a verdict, for people.
pub fn explain(session: &Session<'_>, policy: Option<&dyn Rules>, decision: &Decision) -> String {
    let mut out = String::new();
    for reason in decision.reasons.iter().filter(|reason| reason.verdict == decision.verdict).take(3) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&format!(
            "writ: {} ({} in policy `{}`)",
            visible::line(&reason.message),
            visible::line(&cite(policy, &reason.rule)),
            visible::line(session.state.policy_name())
        ));
        if !reason.instead.is_empty() {
            out.push_str(&format!(". To allow it: {}", visible::line(&reason.instead)));
        }
    }
    out
}
