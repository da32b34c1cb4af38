//! What the client writes to a hook's standard input.
//!
//! Owns the reading of one payload into [`Event`]. No member names the event, so those that are there say it; refuses a payload whose members
//! fit no event. The invariant: whatever has a tool's input and neither a result nor an error is a call that is about to run.

use serde::Deserialize;
use writ_core::json::{self, Limits, Loose, Object, Value};
use writ_core::{Event, EventKind, SessionId, ToolUse};

use super::{NAME, tools};
use crate::PayloadError;
use crate::claude_code::payload::agent;
use crate::hints::{self, Hints};

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Payload {
    session_id: Loose<String>,
    cwd: Loose<String>,
    hook_name: Loose<String>,
    tool_name: Loose<String>,
    #[serde(deserialize_with = "json::given")]
    tool_args: Option<Value>,
    #[serde(deserialize_with = "json::given")]
    tool_input: Option<Value>,
    #[serde(deserialize_with = "json::given")]
    tool_result: Option<Value>,
    error: Value,
    prompt: Loose<String>,
    source: Loose<String>,
    reason: Loose<String>,
    trigger: Loose<String>,
    stop_reason: Loose<String>,
    response: Loose<String>,
    #[serde(rename = "stop_hook_active")]
    stop_hook_active: Loose<bool>,
    transcript_path: Loose<String>,
    agent_id: Value,
    agent_type: Loose<String>,
    agent_name: Loose<String>,
    parent_agent_id: Loose<String>,
}

/// Reads one payload.
pub fn parse(bytes: &[u8]) -> Result<Event, PayloadError> {
    let mut payload: Payload = json::from_slice_with(bytes, Limits::FOREIGN)?;
    let own = text(&mut payload.session_id, "sessionId")?;
    let cwd = text(&mut payload.cwd, "cwd")?;
    let agent = agent(&payload.agent_id, payload.agent_type.0.take())?;
    // A subagent's events have its id in the session's place.
    let session = payload.parent_agent_id.0.take().filter(|_| agent.is_some()).unwrap_or(own);
    Ok(Event {
        client: NAME,
        session: SessionId::new(session),
        client_session: None,
        transcript: payload.transcript_path.0.take(),
        permission_mode: None,
        prompt_id: None,
        kind: kind(payload, &cwd, agent.is_some())?,
        agent,
        cwd,
    })
}

fn kind(mut payload: Payload, cwd: &str, in_agent: bool) -> Result<EventKind, PayloadError> {
    if payload.hook_name.0.as_deref() == Some("permissionRequest") {
        let input = payload.tool_input.take().unwrap_or_else(|| Value::Object(Object::new()));
        let call = tools::asked(text(&mut payload.tool_name, "toolName")?, input, cwd);
        return Ok(EventKind::PermissionRequest { call });
    }
    if let Some(input) = payload.tool_args.take() {
        let call = tools::call(text(&mut payload.tool_name, "toolName")?, input, cwd);
        let call = ToolUse { id: String::new(), call };
        let failed = payload.error != Value::Null;
        return Ok(match payload.tool_result.take() {
            Some(response) => EventKind::PostToolUse { call, response, duration_ms: None },
            None if failed => EventKind::PostToolUseFailure {
                error: payload.error.as_str().map_or_else(|| json::compact(&payload.error), str::to_owned),
                call,
                interrupted: false,
                duration_ms: None,
            },
            None => EventKind::PreToolUse(call),
        });
    }
    if payload.tool_name.0.is_some() {
        return Err(PayloadError::Member { member: "toolArgs", expected: "there" });
    }
    let (last_message, again) = (payload.response.0.take(), payload.stop_hook_active.0 == Some(true));
    let is_agents = payload.agent_name.0.is_some();
    Ok(match () {
        () if payload.stop_reason.0.is_some() && is_agents => {
            EventKind::SubagentStop { transcript: payload.transcript_path.0.take(), last_message, again }
        }
        // What a subagent's own loop says is told again as its stop.
        () if payload.stop_reason.0.is_some() && in_agent => EventKind::Other("agentStop".to_owned()),
        () if payload.stop_reason.0.is_some() => EventKind::Stop { last_message, again },
        () if is_agents => EventKind::SubagentStart,
        // Of what one agent tells another the human said nothing.
        () if payload.prompt.0.is_some() && in_agent => EventKind::Other("userPromptSubmitted".to_owned()),
        () if payload.prompt.0.is_some() => {
            EventKind::UserPromptSubmit { prompt: payload.prompt.0.take().unwrap_or_default() }
        }
        () if payload.source.0.is_some() => {
            EventKind::SessionStart { source: payload.source.0.take().map(|source| begun(&source)) }
        }
        () if payload.trigger.0.is_some() => EventKind::PreCompact { trigger: payload.trigger.0.take() },
        () if payload.reason.0.is_some() => EventKind::SessionEnd { reason: payload.reason.0.take() },
        () => EventKind::Other("unknown".to_owned()),
    })
}

/// How a session begins, in the word that every client has for it.
fn begun(source: &str) -> String {
    if source == "new" { "startup".to_owned() } else { source.to_owned() }
}

fn text(found: &mut Loose<String>, member: &'static str) -> Result<String, PayloadError> {
    let found = found.0.take().filter(|text| !text.is_empty());
    found.ok_or(PayloadError::Member { member, expected: "a text that is not empty" })
}

/// What can still be told from a payload that [`parse`] refuses. Whatever may be about a call is taken for one.
pub fn hints(bytes: &[u8]) -> Hints {
    let found = hints::find(bytes, ["sessionId", "cwd", "hookName", "toolCallId", "toolName"]);
    let event = match parse(bytes) {
        Ok(event) => Some(event.kind.name().to_owned()),
        Err(_) if found.event.as_deref() == Some("permissionRequest") => Some("PermissionRequest".to_owned()),
        Err(_) if found.tool.is_some() => Some("PreToolUse".to_owned()),
        Err(_) => None,
    };
    Hints { event, call_id: None, ..found }
}

/// A payload of a harmless read.
pub fn sample(cwd: &str) -> String {
    let payload = Object::from([
        ("sessionId", Value::from("writ-doctor")),
        ("cwd", Value::from(cwd)),
        ("toolName", Value::from("view")),
        ("toolArgs", Value::Object([("path", Value::from(format!("{cwd}/README.md").as_str()))].into())),
    ]);
    json::compact(&Value::Object(payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_members_say_which_event_it_is() {
        let event =
            |more: &str| parse(format!(r#"{{"sessionId":"s","timestamp":1,"cwd":"/w",{more}}}"#).as_bytes()).unwrap();
        for (more, name) in [
            (r#""toolName":"bash","toolArgs":{"command":"ls"}"#, "PreToolUse"),
            (r#""toolName":"bash","toolArgs":{"command":"ls"},"toolResult":{"resultType":"success"}"#, "PostToolUse"),
            (r#""toolName":"bash","toolArgs":{"nope":1},"error":"Required""#, "PostToolUseFailure"),
            (r#""hookName":"permissionRequest","toolName":"bash","toolInput":{"command":"ls"}"#, "PermissionRequest"),
            (r#""prompt":"do it""#, "UserPromptSubmit"),
            (r#""source":"new","initialPrompt":"do it""#, "SessionStart"),
            (r#""transcriptPath":"/t","stopReason":"end_turn","stop_hook_active":false"#, "Stop"),
            (
                r#""transcriptPath":"/t","agentName":"a","agentId":"i","agentType":"t","parentAgentId":"p""#,
                "SubagentStart",
            ),
            (
                r#""agentName":"a","agentId":"i","parentAgentId":"p","stopReason":"end_turn","response":"x""#,
                "SubagentStop",
            ),
            (r#""agentId":"i","parentAgentId":"p","stopReason":"end_turn""#, "agentStop"),
            (r#""reason":"complete""#, "SessionEnd"),
            (r#""message":"x","title":"y""#, "unknown"),
        ] {
            assert_eq!(event(more).kind.name(), name, "{more}");
        }
        let theirs =
            event(r#""toolName":"bash","toolArgs":{"command":"ls"},"agentId":"s","agentType":"t","parentAgentId":"p""#);
        assert_eq!((theirs.session.as_str(), theirs.agent.unwrap().id.as_str()), ("p", "s"));
        assert!(parse(br#"{"sessionId":"s","cwd":"/w","toolName":"bash"}"#).is_err());
        assert_eq!(
            hints(br#"{"sessionId":"s","cwd":"/w","toolName":"bash","toolArgs":{"#).event.as_deref(),
            Some("PreToolUse")
        );
        assert_eq!(hints(br#"{"sessionId":"s","cwd":"/w","prompt":"x"}"#).event.as_deref(), Some("UserPromptSubmit"));
    }
}
