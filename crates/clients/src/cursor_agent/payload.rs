//! What the client writes to a hook's standard input.
//!
//! Owns the reading of one payload into [`Event`]. A shell line, a server's tool and a file are asked about twice, generally and by an event
//! of their own: the second is a permission for the same call. Refuses a payload that does not say where a call runs. The invariant: an
//! event that may stop a call is either read in full or an error, never half read.

use serde::Deserialize;
use writ_core::json::{self, Limits, Loose, Object, Value};
use writ_core::{Agent, Event, EventKind, SessionId, ToolCall, ToolKind, ToolUse};

use super::{NAME, tools};
use crate::PayloadError;
use crate::hints::{self, Hints};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Payload {
    hook_event_name: Loose<String>,
    conversation_id: Loose<String>,
    workspace_roots: Loose<Vec<Loose<String>>>,
    cwd: Loose<String>,
    tool_name: Loose<String>,
    #[serde(deserialize_with = "json::given")]
    tool_input: Option<Value>,
    tool_output: Value,
    command: Loose<String>,
    file_path: Loose<String>,
    error_message: Loose<String>,
    duration: Loose<u64>,
    prompt: Loose<String>,
    reason: Loose<String>,
    trigger: Loose<String>,
    loop_count: Loose<u64>,
    subagent_id: Loose<String>,
    subagent_type: Loose<String>,
}

/// Reads one payload.
pub fn parse(bytes: &[u8]) -> Result<Event, PayloadError> {
    let mut payload: Payload = json::from_slice_with(bytes, Limits::FOREIGN)?;
    let name = text(&mut payload.hook_event_name, "hook_event_name")?;
    let session = SessionId::new(text(&mut payload.conversation_id, "conversation_id")?);
    let root = payload.workspace_roots.0.take().and_then(|roots| roots.into_iter().find_map(|root| root.0));
    let cwd = payload.cwd.0.take().filter(|cwd| cwd.starts_with('/')).or(root);
    let cwd = cwd.filter(|cwd| cwd.starts_with('/'));
    let cwd = cwd.ok_or(PayloadError::Member { member: "cwd", expected: "an absolute path" })?;
    let agent = payload.subagent_id.0.clone().map(|id| Agent { id, kind: payload.subagent_type.0.clone() });
    Ok(Event {
        client: NAME,
        session,
        client_session: None,
        transcript: None,
        permission_mode: None,
        prompt_id: None,
        kind: payload.kind(&name, &cwd)?,
        agent,
        cwd,
    })
}

impl Payload {
    fn kind(mut self, name: &str, cwd: &str) -> Result<EventKind, PayloadError> {
        Ok(match name {
            "preToolUse" => EventKind::PreToolUse(self.used(cwd)?),
            "beforeShellExecution" => {
                let command = text(&mut self.command, "command")?;
                let input = object("command", &command);
                EventKind::PermissionRequest {
                    call: ToolCall::of("Shell".to_owned(), ToolKind::Shell { command }, input, cwd.to_owned()),
                }
            }
            "beforeMCPExecution" => {
                let name = format!("MCP:{}", text(&mut self.tool_name, "tool_name")?);
                EventKind::PermissionRequest { call: tools::call(name, self.input()?, cwd) }
            }
            "beforeReadFile" => {
                let path = text(&mut self.file_path, "file_path")?;
                let input = object("file_path", &path);
                EventKind::PermissionRequest {
                    call: ToolCall::of("Read".to_owned(), ToolKind::Read { paths: vec![path] }, input, cwd.to_owned()),
                }
            }
            "postToolUse" => EventKind::PostToolUse {
                call: self.used(cwd)?,
                response: std::mem::take(&mut self.tool_output),
                duration_ms: self.duration.0,
            },
            "postToolUseFailure" => EventKind::PostToolUseFailure {
                call: self.used(cwd)?,
                error: self.error_message.0.take().unwrap_or_default(),
                interrupted: false,
                duration_ms: self.duration.0,
            },
            "beforeSubmitPrompt" => EventKind::UserPromptSubmit { prompt: self.prompt.0.take().unwrap_or_default() },
            "sessionStart" => EventKind::SessionStart { source: None },
            "subagentStart" if self.subagent_id.0.is_some() => EventKind::SubagentStart,
            "stop" => EventKind::Stop { last_message: None, again: self.loop_count.0.is_some_and(|count| count > 0) },
            "preCompact" => EventKind::PreCompact { trigger: self.trigger.0.take() },
            "sessionEnd" => EventKind::SessionEnd { reason: self.reason.0.take() },
            other => EventKind::Other(other.to_owned()),
        })
    }

    fn used(&mut self, cwd: &str) -> Result<ToolUse, PayloadError> {
        let tool = text(&mut self.tool_name, "tool_name")?;
        Ok(ToolUse { id: String::new(), call: tools::call(tool, self.input()?, cwd) })
    }

    /// The input, which an older form tells as a text of JSON.
    fn input(&mut self) -> Result<Value, PayloadError> {
        let told = self.tool_input.take().ok_or(PayloadError::Member { member: "tool_input", expected: "there" })?;
        match told.as_str() {
            Some(text) => json::parse_with(text.as_bytes(), Limits::FOREIGN).map_err(|_no_json| PayloadError::Member {
                member: "tool_input",
                expected: "an object, or the JSON of one",
            }),
            None => Ok(told),
        }
    }
}

fn object(name: &str, value: &str) -> Value {
    Value::Object(Object::from([(name, Value::from(value))]))
}

fn text(found: &mut Loose<String>, member: &'static str) -> Result<String, PayloadError> {
    let found = found.0.take().filter(|text| !text.is_empty());
    found.ok_or(PayloadError::Member { member, expected: "a text that is not empty" })
}

/// What can still be told from a payload that [`parse`] refuses, with the name that every client has for the event.
pub fn hints(bytes: &[u8]) -> Hints {
    let found = hints::find(bytes, ["conversation_id", "cwd", "hook_event_name", "tool_use_id", "tool_name"]);
    let event = found.event.map(|event| match event.as_str() {
        "preToolUse" => "PreToolUse".to_owned(),
        "beforeShellExecution" | "beforeMCPExecution" | "beforeReadFile" => "PermissionRequest".to_owned(),
        "beforeSubmitPrompt" => "UserPromptSubmit".to_owned(),
        "postToolUse" => "PostToolUse".to_owned(),
        "postToolUseFailure" => "PostToolUseFailure".to_owned(),
        "sessionStart" => "SessionStart".to_owned(),
        "stop" => "Stop".to_owned(),
        "preCompact" => "PreCompact".to_owned(),
        "sessionEnd" => "SessionEnd".to_owned(),
        _ => event,
    });
    Hints { event, call_id: None, ..found }
}

/// A payload of a harmless read.
pub fn sample(cwd: &str) -> String {
    let payload = Object::from([
        ("hook_event_name", Value::from("preToolUse")),
        ("conversation_id", Value::from("writ-doctor")),
        ("workspace_roots", Value::Array(vec![Value::from(cwd)])),
        ("tool_name", Value::from("Read")),
        ("tool_input", object("file_path", &format!("{cwd}/README.md"))),
    ]);
    json::compact(&Value::Object(payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(more: &str) -> Result<Event, PayloadError> {
        parse(format!(r#"{{"conversation_id":"s","workspace_roots":["/w"],"hook_event_name":{more}}}"#).as_bytes())
    }

    #[test]
    fn each_event_is_told() {
        for (more, name) in [
            (r#""preToolUse","tool_name":"Shell","tool_input":{"command":"ls"},"tool_use_id":"t""#, "PreToolUse"),
            (r#""beforeShellExecution","command":"ls","cwd":"/w/app""#, "PermissionRequest"),
            (r#""beforeMCPExecution","tool_name":"t","tool_input":"{}","command":"npx s""#, "PermissionRequest"),
            (r#""beforeReadFile","file_path":"/w/.env","content":"x""#, "PermissionRequest"),
            (r#""postToolUse","tool_name":"Shell","tool_input":{"command":"ls"},"tool_output":"x""#, "PostToolUse"),
            (r#""beforeSubmitPrompt","prompt":"do it""#, "UserPromptSubmit"),
            (r#""stop","status":"completed","loop_count":0"#, "Stop"),
            (r#""subagentStart","subagent_id":"a","subagent_type":"t""#, "SubagentStart"),
            (r#""afterAgentThought""#, "afterAgentThought"),
        ] {
            assert_eq!(event(more).unwrap().kind.name(), name, "{more}");
        }
        let EventKind::PermissionRequest { call } =
            event(r#""beforeMCPExecution","tool_name":"t","tool_input":"{\"a\":1}""#).unwrap().kind
        else {
            panic!("no permission")
        };
        assert_eq!(call.kind, ToolKind::Mcp { server: "*".to_owned(), tool: "t".to_owned() });
        assert_eq!(event(r#""beforeShellExecution","command":"ls","cwd":"/w/app""#).unwrap().cwd, "/w/app");
    }

    #[test]
    fn what_is_half_told_is_refused() {
        for more in [
            r#""preToolUse","tool_name":"Shell""#,
            r#""preToolUse","tool_name":"Shell","tool_input":"no JSON""#,
            r#""beforeShellExecution""#,
            r#""beforeReadFile","file_path":"""#,
        ] {
            assert!(event(more).is_err(), "{more}");
        }
        assert!(parse(br#"{"conversation_id":"s","hook_event_name":"stop"}"#).is_err(), "no folder");
        let told = hints(br#"{"conversation_id":"s","hook_event_name":"beforeReadFile","#);
        assert_eq!(told.event.as_deref(), Some("PermissionRequest"));
        assert!(parse(sample("/w").as_bytes()).is_ok());
    }
}
