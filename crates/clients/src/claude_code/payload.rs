//! What the client writes to a hook's standard input.
//!
//! Owns the reading of one payload into [`HookInput`]. Refuses payloads without the members that an event cannot do
//! without; unknown members and unknown events pass. The invariant: an event that may stop a tool is either read in
//! full or an error, never half read. Format page: `spec/clients/claude-code.md`.

use serde::Deserialize;
use writ_core::SessionId;
use writ_core::json::{self, FormatError, Limits, Loose, Value};

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
    /// Not a JSON object, or beyond [`Limits::FOREIGN`]. What is wrong is not told: it may quote the payload.
    #[error("the hook's input is not acceptable JSON")]
    Json(#[from] FormatError),
    /// A member that the event cannot do without is missing or of the wrong kind.
    #[error("the hook's input has no `{member}` that is {expected}")]
    Member {
        /// The member's name.
        member: &'static str,
        /// What it should be.
        expected: &'static str,
    },
}

/// A payload as it is written, with the members of every event; each event takes its own. Unknown members pass.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Payload {
    hook_event_name: Loose<String>,
    session_id: Loose<String>,
    cwd: Loose<String>,
    transcript_path: Loose<String>,
    agent_id: Loose<String>,
    agent_type: Loose<String>,
    permission_mode: Loose<String>,
    prompt_id: Loose<String>,
    tool_name: Loose<String>,
    tool_use_id: Loose<String>,
    #[serde(deserialize_with = "json::given")]
    tool_input: Option<Value>,
    tool_response: Value,
    tool_calls: Loose<Vec<Call>>,
    duration_ms: Loose<u64>,
    error: Loose<String>,
    is_interrupt: Loose<bool>,
    prompt: Loose<String>,
    source: Loose<String>,
    trigger: Loose<String>,
    reason: Loose<String>,
    file_path: Loose<String>,
    agent_transcript_path: Loose<String>,
    stop_hook_active: Loose<bool>,
    last_assistant_message: Loose<String>,
    /// Where other clients of its kind put the agent's last words, as `body` and `agent_response` are.
    output: Loose<String>,
    body: Loose<String>,
    agent_response: Loose<Response>,
}

/// A call in a batch.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Call {
    tool_name: Loose<String>,
    tool_use_id: Loose<String>,
    #[serde(deserialize_with = "json::given")]
    tool_input: Option<Value>,
    tool_response: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Response {
    content: Loose<Vec<Loose<Block>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Block {
    r#type: Loose<String>,
    text: Loose<String>,
}

/// Reads one payload.
pub fn parse(bytes: &[u8]) -> Result<HookInput, PayloadError> {
    let mut payload: Payload = json::from_slice_with(bytes, Limits::FOREIGN)?;
    let name = text(&mut payload.hook_event_name, "hook_event_name")?;
    Ok(HookInput {
        session: SessionId::new(text(&mut payload.session_id, "session_id")?),
        transcript: payload.transcript_path.0.take(),
        cwd: text(&mut payload.cwd, "cwd")?,
        agent: payload.agent_id.0.take().map(|id| Agent { id, kind: payload.agent_type.0.take() }),
        permission_mode: payload.permission_mode.0.take(),
        prompt_id: payload.prompt_id.0.take(),
        event: event(name, payload)?,
    })
}

fn event(name: String, mut payload: Payload) -> Result<Event, PayloadError> {
    Ok(match name.as_str() {
        "PreToolUse" => Event::PreToolUse(payload.call()?.0),
        "PermissionRequest" => Event::PermissionRequest {
            tool: text(&mut payload.tool_name, "tool_name")?,
            input: input(payload.tool_input)?,
        },
        "PostToolUse" => {
            let (call, response) = payload.call()?;
            Event::PostToolUse { call, response, duration_ms: payload.duration_ms.0 }
        }
        "PostToolUseFailure" => Event::PostToolUseFailure {
            call: payload.call()?.0,
            error: payload.error.0.unwrap_or_default(),
            interrupted: payload.is_interrupt.0 == Some(true),
            duration_ms: payload.duration_ms.0,
        },
        "PostToolBatch" => Event::PostToolBatch { calls: batch(payload.tool_calls.0)? },
        "UserPromptSubmit" => Event::UserPromptSubmit { prompt: payload.prompt.0.unwrap_or_default() },
        "SessionStart" => Event::SessionStart { source: payload.source.0 },
        "SubagentStart" => Event::SubagentStart,
        "SubagentStop" => Event::SubagentStop {
            transcript: payload.agent_transcript_path.0.take(),
            again: payload.stop_hook_active.0 == Some(true),
            last_message: payload.last_words(),
        },
        "Stop" => Event::Stop { again: payload.stop_hook_active.0 == Some(true), last_message: payload.last_words() },
        "PreCompact" => Event::PreCompact { trigger: payload.trigger.0 },
        "SessionEnd" => Event::SessionEnd { reason: payload.reason.0 },
        "ConfigChange" => Event::ConfigChange { source: payload.source.0, file: payload.file_path.0 },
        _ => Event::Other(name),
    })
}

impl Payload {
    /// The call, and what it gave back.
    fn call(&mut self) -> Result<(ToolUse, Value), PayloadError> {
        let call = Call {
            tool_name: std::mem::take(&mut self.tool_name),
            tool_use_id: std::mem::take(&mut self.tool_use_id),
            tool_input: self.tool_input.take(),
            tool_response: std::mem::take(&mut self.tool_response),
        };
        call.read()
    }

    /// What the agent says at the end: in this client's member, or where others of its kind put it.
    fn last_words(self) -> Option<String> {
        let blocks = self.agent_response.0.and_then(|response| response.content.0).unwrap_or_default();
        let texts = blocks.into_iter().filter_map(|block| block.0);
        let texts = texts.filter(|block| block.r#type.0.as_deref() == Some("text")).filter_map(|block| block.text.0);
        let texts: Vec<String> = texts.collect();
        let spoken = (!texts.is_empty()).then(|| texts.join("\n"));
        let members = [spoken, self.last_assistant_message.0, self.output.0, self.body.0];
        members.into_iter().flatten().find(|text| !text.trim().is_empty())
    }
}

impl Call {
    fn read(mut self) -> Result<(ToolUse, Value), PayloadError> {
        let call_id = text(&mut self.tool_use_id, "tool_use_id")?;
        let tool = text(&mut self.tool_name, "tool_name")?;
        Ok((ToolUse { call_id, tool, input: input(self.tool_input)? }, self.tool_response))
    }
}

fn batch(calls: Option<Vec<Call>>) -> Result<Vec<BatchCall>, PayloadError> {
    let calls = calls.ok_or(PayloadError::Member { member: "tool_calls", expected: "an array of calls" })?;
    calls.into_iter().map(|call| call.read().map(|(call, response)| BatchCall { call, response })).collect()
}

fn input(input: Option<Value>) -> Result<Value, PayloadError> {
    input.ok_or(PayloadError::Member { member: "tool_input", expected: "there" })
}

fn text(found: &mut Loose<String>, member: &'static str) -> Result<String, PayloadError> {
    let found = found.0.take().filter(|text| !text.is_empty());
    found.ok_or(PayloadError::Member { member, expected: "a text that is not empty" })
}

mod lenient;
#[cfg(test)]
mod tests;

pub use lenient::{Hints, hints};
