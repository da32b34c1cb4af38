//! What happens to a session between its calls: prompts, subagents, stops, its end.

use std::path::Path;

use writ_clients::claude_code::{Answer, Event, HookAnswer, HookInput};
use writ_core::Digest;
use writ_core::json::{Object, Value};

use crate::claims::{self, Prepared};
use crate::session::{Session, SessionError};
use crate::{call, seal, sweep};

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
        Event::SessionStart { .. } if session.fresh => return Ok(welcome(session)),
        Event::SessionStart { source } => {
            detail.push("source", Value::from(source.as_deref()));
            "session-resumed"
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
    Ok(answer)
}

/// Tells the user, once, which policy governs; loudly when nobody they trust signed it.
fn welcome(session: &Session<'_>) -> HookAnswer {
    let Some(policy) = &session.state.policy else { return Answer::Silent.into() };
    let message = match policy.signed.as_str() {
        "trusted" => return Answer::Silent.into(),
        "unknown-key" => format!("writ: policy `{}` is signed, but not by a key you trust", policy.name),
        _ => format!("writ: policy `{}` is not signed", policy.name),
    };
    HookAnswer::from(Answer::Silent).with_message(message)
}
