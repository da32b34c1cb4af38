//! What happens to a session between its calls: prompts, subagents, stops, its end.

use std::path::Path;

use writ_clients::claude_code::{Answer, Event, HookAnswer, HookInput};
use writ_core::json::{Object, Value};
use writ_core::{Digest, visible};

use writ_policy::Enforce;

use crate::claims::{self, Prepared};
use crate::observed::Observed;
use crate::session::{Session, SessionError};
use crate::{call, seal, sweep, watch};

/// Most lines that a message at the end has.
const TOLD: usize = 8;

/// Records an event that is no call, and does what belongs to it: sweep for calls no hook saw, seal at a stop.
pub fn record(
    session: &mut Session<'_>,
    input: &HookInput,
    event: &Event,
    prepared: Prepared,
) -> Result<HookAnswer, SessionError> {
    // An agent that is sent back has not stopped: its claim is all there is to record.
    let answer = claims::record(session, input, prepared)?;
    if matches!(answer.answer, Answer::Block { .. }) || matches!(event, Event::SubagentStart) {
        return Ok(answer);
    }
    let mut detail = Object::new();
    call::describe(input, &mut detail);
    let name = match event {
        Event::SessionStart { source } => {
            detail.push("source", Value::from(source.as_deref()));
            if session.fresh { "client-started" } else { "session-resumed" }
        }
        Event::UserPromptSubmit { prompt } => {
            session.state.turns += 1;
            detail.push("prompt", Value::from(Digest::of(prompt.as_bytes()).to_string()));
            "prompt"
        }
        Event::PostToolBatch { calls } => {
            sweep::batch(session, input, calls)?;
            return Ok(Answer::Silent.into());
        }
        Event::SubagentStop { .. } => "subagent-stop",
        Event::PreCompact { trigger } => {
            detail.push("trigger", Value::from(trigger.as_deref()));
            "compact"
        }
        Event::ConfigChange { source, file } => {
            detail.push("source", Value::from(source.as_deref()));
            detail.push("file", Value::from(file.as_deref()));
            if let Some(why) = weakened(session, input, file.as_deref())? {
                detail.push("blocked", Value::from(why.as_str()));
                let draft = session.event("config-change", detail);
                session.append(draft)?;
                let reason = format!(
                    "writ keeps the settings this session began with: {why}. `writ doctor` says how to mend them"
                );
                return Ok(HookAnswer::from(Answer::Block { reason: reason.clone() }).with_message(reason));
            }
            "config-change"
        }
        Event::Stop { .. } => "stop",
        Event::SessionEnd { reason } => {
            detail.push("reason", Value::from(reason.as_deref()));
            "session-end"
        }
        Event::PreToolUse(_)
        | Event::PostToolUse { .. }
        | Event::PostToolUseFailure { .. }
        | Event::PermissionRequest { .. }
        | Event::SubagentStart
        | Event::Other(_) => return Ok(Answer::Silent.into()),
    };
    let sealing = matches!(event, Event::Stop { .. } | Event::SessionEnd { .. });
    if sealing && let Some(transcript) = &input.transcript {
        sweep::transcript(session, Path::new(transcript))?;
    }
    let draft = session.event(name, detail);
    session.append(draft)?;
    if sealing {
        seal::seal(session)?;
    }
    match event {
        Event::SessionStart { .. } if session.fresh => Ok(welcome(session)),
        Event::SessionEnd { .. } => Ok(farewell(session, answer)),
        _ => Ok(answer),
    }
}

/// Tells the user at the end what a policy that observes would have stopped.
fn farewell(session: &Session<'_>, answer: HookAnswer) -> HookAnswer {
    let observes = session
        .policy()
        .ok()
        .map(|in_force| &in_force.accepted.policy)
        .filter(|policy| policy.enforce() == Enforce::Observe);
    let Some((policy, rows)) = observes.and_then(|policy| Some((policy, session.rows().ok()?))) else { return answer };
    let observed = Observed::of(rows.iter(), policy);
    let lines: Vec<String> = observed.lines().into_iter().take(TOLD).collect();
    let ours = format!("writ: {}\n{}", observed.summary(), lines.join("\n"));
    let message = answer.message.iter().map(String::as_str).chain([ours.trim_end()]).collect::<Vec<_>>().join("\n");
    answer.with_message(message)
}

/// Whether changed settings would loosen the hooks that the session began with.
fn weakened(session: &Session<'_>, input: &HookInput, changed: Option<&str>) -> Result<Option<String>, SessionError> {
    let genesis = session.store.first_row(&session.id)?;
    let hooks = genesis.as_ref().map(|row| watch::recorded(&row.detail)).unwrap_or_default();
    Ok(watch::weakened(session.home, Path::new(&input.cwd), &hooks, changed.map(Path::new)))
}

/// Tells the user, once, which policy governs; loudly when nobody they trust signed it, or when it has expired.
fn welcome(session: &Session<'_>) -> HookAnswer {
    let Some(policy) = &session.state.policy else { return Answer::Silent.into() };
    let name = visible::line(&policy.name);
    let expired = session
        .policy()
        .ok()
        .and_then(|in_force| in_force.accepted.policy.expires().map(|(at, text)| (at, text.to_owned())));
    if let Some((_, text)) = expired.filter(|(at, _)| session.now > *at) {
        let message = format!("writ: policy `{name}` expired on {text}: every call is denied");
        return HookAnswer::from(Answer::Silent).with_message(message);
    }
    let observes = session.policy().is_ok_and(|in_force| in_force.accepted.policy.enforce() == Enforce::Observe);
    let trusted = match policy.signed.as_str() {
        "trusted" => None,
        "unknown-key" => Some(format!("writ: policy `{name}` is signed, but not by a key you trust")),
        "no-functionary" => Some(format!("writ: policy `{name}` is signed by none of the functionaries it names")),
        _ => Some(format!("writ: policy `{name}` is not signed")),
    };
    let observing =
        observes.then(|| format!("writ: policy `{name}` only observes: calls are recorded, and none is stopped"));
    let messages: Vec<String> = trusted.into_iter().chain(observing).collect();
    if messages.is_empty() {
        return Answer::Silent.into();
    }
    HookAnswer::from(Answer::Silent).with_message(messages.join("\n"))
}
