//! What the client writes to a hook's standard input.
//!
//! Owns the reading of one payload into [`HookInput`]. Refuses payloads without the members that an event cannot do
//! without; unknown members and unknown events pass. The invariant: an event that may stop a tool is either read in
//! full or an error, never half read. Format page: `spec/clients/claude-code.md`.

use writ_core::SessionId;
use writ_core::json::{JsonError, Limits, Value, parse_with};

/// One payload.
#[derive(Clone, Debug, PartialEq)]
pub struct HookInput {
    /// The client's session.
    pub session: SessionId,
    /// The session's main transcript, absolute; also inside a subagent.
    pub transcript: Option<String>,
    /// The client's working directory, absolute.
    pub cwd: String,
    /// The subagent that the event happened in; `None` in the main conversation.
    pub agent: Option<Agent>,
    /// `default`, `acceptEdits`, `plan`, `bypassPermissions`, `dontAsk`, `auto`.
    pub permission_mode: Option<String>,
    /// The prompt that the event belongs to, from the first prompt on.
    pub prompt_id: Option<String>,
    /// What happened.
    pub event: Event,
}

/// A subagent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The client's id for this run of it; its transcript is `agent-<id>.jsonl`.
    pub id: String,
    /// `general-purpose` and the like.
    pub kind: Option<String>,
}

/// A tool call as a hook sees it. Before the tool runs the client has already made relative and `~` paths absolute,
/// filled in defaults, and turned aliases into names (`Task` → `Agent`).
#[derive(Clone, Debug, PartialEq)]
pub struct ToolUse {
    /// The call's id, the same in the transcript.
    pub call_id: String,
    /// The tool's name.
    pub tool: String,
    /// The tool's input.
    pub input: Value,
}

/// A call in a `PostToolBatch`: every call of the model's turn, also those that no other event told of. Name and input
/// are as the model wrote them, which is how the transcript has them too.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchCall {
    /// The call.
    pub call: ToolUse,
    /// What the model was told: text or content blocks. [`super::batch_outcome`] reads it.
    pub response: Value,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A tool is about to run; the answer may stop it.
    PreToolUse(ToolUse),
    /// The client would ask its user; the payload has no call id.
    PermissionRequest {
        /// The tool's name.
        tool: String,
        /// The tool's input.
        input: Value,
    },
    /// A tool has run.
    PostToolUse {
        /// The call.
        call: ToolUse,
        /// What the tool gave back, in the tool's own shape.
        response: Value,
        /// How long it ran, in milliseconds.
        duration_ms: Option<u64>,
    },
    /// A tool has run and failed. Denied calls do not come here.
    PostToolUseFailure {
        /// The call.
        call: ToolUse,
        /// The error's text.
        error: String,
        /// Whether the user interrupted it.
        interrupted: bool,
        /// How long it ran, in milliseconds.
        duration_ms: Option<u64>,
    },
    /// Every call of one model turn has been answered.
    PostToolBatch {
        /// The calls, in the model's order.
        calls: Vec<BatchCall>,
    },
    /// A prompt came in.
    UserPromptSubmit {
        /// Its text.
        prompt: String,
    },
    /// A session begins: `startup`, `resume`, `clear` or `compact`.
    SessionStart {
        /// Which of them.
        source: Option<String>,
    },
    /// A subagent begins; [`HookInput::agent`] says which.
    SubagentStart,
    /// A subagent wants to end; [`HookInput::agent`] says which.
    SubagentStop {
        /// Its own transcript, absolute.
        transcript: Option<String>,
        /// What it says at the end.
        last_message: Option<String>,
        /// Whether a hook has already sent it back to work.
        again: bool,
    },
    /// The agent wants to end its turn.
    Stop {
        /// What it says at the end.
        last_message: Option<String>,
        /// Whether a hook has already sent it back to work.
        again: bool,
    },
    /// The conversation is about to be compacted: `manual` or `auto`.
    PreCompact {
        /// Which of them.
        trigger: Option<String>,
    },
    /// The session ends.
    SessionEnd {
        /// Why, in the client's word.
        reason: Option<String>,
    },
    /// A settings file changed.
    ConfigChange {
        /// `project_settings`, `user_settings`, …
        source: Option<String>,
        /// Which file, absolute.
        file: Option<String>,
    },
    /// An event that Writ does not act on.
    Other(String),
}

impl Event {
    /// The event's name as the client spells it.
    pub fn name(&self) -> &str {
        match self {
            Self::PreToolUse(_) => "PreToolUse",
            Self::PermissionRequest { .. } => "PermissionRequest",
            Self::PostToolUse { .. } => "PostToolUse",
            Self::PostToolUseFailure { .. } => "PostToolUseFailure",
            Self::PostToolBatch { .. } => "PostToolBatch",
            Self::UserPromptSubmit { .. } => "UserPromptSubmit",
            Self::SessionStart { .. } => "SessionStart",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop { .. } => "SubagentStop",
            Self::Stop { .. } => "Stop",
            Self::PreCompact { .. } => "PreCompact",
            Self::SessionEnd { .. } => "SessionEnd",
            Self::ConfigChange { .. } => "ConfigChange",
            Self::Other(name) => name,
        }
    }
}

/// Why a payload cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// Not JSON, or beyond [`Limits::FOREIGN`].
    #[error("the hook's input is not acceptable JSON")]
    Json(#[from] JsonError),
    /// A member that the event cannot do without is missing or of the wrong kind.
    #[error("the hook's input has no `{member}` that is {expected}")]
    Member {
        /// The member's name.
        member: &'static str,
        /// What it should be.
        expected: &'static str,
    },
}

/// Reads one payload.
pub fn parse(bytes: &[u8]) -> Result<HookInput, PayloadError> {
    let payload = parse_with(bytes, Limits::FOREIGN)?;
    let name = text(&payload, "hook_event_name")?;
    Ok(HookInput {
        session: SessionId::new(text(&payload, "session_id")?),
        transcript: optional(&payload, "transcript_path"),
        cwd: text(&payload, "cwd")?,
        agent: optional(&payload, "agent_id").map(|id| Agent { id, kind: optional(&payload, "agent_type") }),
        permission_mode: optional(&payload, "permission_mode"),
        prompt_id: optional(&payload, "prompt_id"),
        event: event(name, &payload)?,
    })
}

fn event(name: String, payload: &Value) -> Result<Event, PayloadError> {
    Ok(match name.as_str() {
        "PreToolUse" => Event::PreToolUse(tool_use(payload)?),
        "PermissionRequest" => Event::PermissionRequest { tool: text(payload, "tool_name")?, input: input(payload)? },
        "PostToolUse" => Event::PostToolUse {
            call: tool_use(payload)?,
            response: payload.get("tool_response").cloned().unwrap_or(Value::Null),
            duration_ms: payload.get("duration_ms").and_then(Value::as_u64),
        },
        "PostToolUseFailure" => Event::PostToolUseFailure {
            call: tool_use(payload)?,
            error: optional(payload, "error").unwrap_or_default(),
            interrupted: flag(payload, "is_interrupt"),
            duration_ms: payload.get("duration_ms").and_then(Value::as_u64),
        },
        "PostToolBatch" => Event::PostToolBatch { calls: batch(payload)? },
        "UserPromptSubmit" => Event::UserPromptSubmit { prompt: optional(payload, "prompt").unwrap_or_default() },
        "SessionStart" => Event::SessionStart { source: optional(payload, "source") },
        "SubagentStart" => Event::SubagentStart,
        "SubagentStop" => Event::SubagentStop {
            transcript: optional(payload, "agent_transcript_path"),
            last_message: last_words(payload),
            again: flag(payload, "stop_hook_active"),
        },
        "Stop" => Event::Stop { last_message: last_words(payload), again: flag(payload, "stop_hook_active") },
        "PreCompact" => Event::PreCompact { trigger: optional(payload, "trigger") },
        "SessionEnd" => Event::SessionEnd { reason: optional(payload, "reason") },
        "ConfigChange" => {
            Event::ConfigChange { source: optional(payload, "source"), file: optional(payload, "file_path") }
        }
        _ => Event::Other(name),
    })
}

/// What the agent says at the end: in this client's member, or where others of its kind put it.
fn last_words(payload: &Value) -> Option<String> {
    let content = payload.get("agent_response").and_then(|response| response.get("content")).and_then(Value::as_array);
    let texts =
        content.unwrap_or_default().iter().filter(|block| block.get("type").and_then(Value::as_str) == Some("text"));
    let texts: Vec<&str> = texts.filter_map(|block| block.get("text").and_then(Value::as_str)).collect();
    let spoken = (!texts.is_empty()).then(|| texts.join("\n"));
    let members = ["last_assistant_message", "output", "body"].into_iter().map(|member| optional(payload, member));
    std::iter::once(spoken).chain(members).flatten().find(|text| !text.trim().is_empty())
}

fn batch(payload: &Value) -> Result<Vec<BatchCall>, PayloadError> {
    let expected = PayloadError::Member { member: "tool_calls", expected: "an array" };
    let calls = payload.get("tool_calls").and_then(Value::as_array).ok_or(expected)?;
    let one = |call: &Value| {
        let response = call.get("tool_response").cloned().unwrap_or(Value::Null);
        Ok(BatchCall { call: tool_use(call)?, response })
    };
    calls.iter().map(one).collect()
}

fn tool_use(payload: &Value) -> Result<ToolUse, PayloadError> {
    Ok(ToolUse { call_id: text(payload, "tool_use_id")?, tool: text(payload, "tool_name")?, input: input(payload)? })
}

fn input(payload: &Value) -> Result<Value, PayloadError> {
    payload.get("tool_input").cloned().ok_or(PayloadError::Member { member: "tool_input", expected: "there" })
}

fn text(payload: &Value, member: &'static str) -> Result<String, PayloadError> {
    let found = payload.get(member).and_then(Value::as_str).filter(|text| !text.is_empty());
    found.map(str::to_owned).ok_or(PayloadError::Member { member, expected: "a text that is not empty" })
}

fn optional(payload: &Value, member: &str) -> Option<String> {
    payload.get(member).and_then(Value::as_str).map(str::to_owned)
}

fn flag(payload: &Value, member: &str) -> bool {
    payload.get(member).and_then(Value::as_bool).unwrap_or(false)
}

mod lenient;
#[cfg(test)]
mod tests;

pub use lenient::{Hints, hints};
