//! What the client writes to a hook's standard input.
//!
//! Owns the reading of one payload into [`Event`], of this client and of those that took its format over, each with a [`Dialect`] of
//! its own. Refuses payloads without the members that an event cannot do without; unknown members and unknown events pass. The
//! invariant: an event that may stop a tool is either read in full or an error, never half read. Format page:
//! `spec/clients/claude-code.md`.

use serde::Deserialize;
use writ_core::json::{self, Limits, Loose, Value};
use writ_core::{Agent, BatchCall, Event, EventKind, Outcome, SessionId, ToolCall, ToolUse};

use super::outcome::batch_outcome;
use crate::PayloadError;
use crate::hints::{self, Hints};

/// A call of a tool with an input in a folder, and the server's and the tool's name there, where the payload tells them.
type CallOf = fn(String, Value, &str, Option<(String, String)>) -> ToolCall;

/// What sets a client with this format apart from the others.
pub(crate) struct Dialect {
    /// The client's name.
    pub client: &'static str,
    /// The canonical name of an event.
    pub event: fn(&str) -> &str,
    /// The ids that its transcripts have too.
    pub ids: Ids,
    /// What a call does.
    pub call: CallOf,
    /// What a batch says of a call that no hook saw.
    pub batch: fn(&str, &Value) -> Option<Outcome>,
    /// The error of a call that failed, where that is told as a result is.
    pub failure: fn(&Value) -> Option<String>,
    /// Whether a subagent's event names the subagent's own transcript in the main one's place.
    pub own_transcripts: bool,
}

/// Which member is a call's id.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ids {
    /// `tool_use_id`.
    Use,
    /// `tool_call_id`; what `tool_use_id` says is known to no one else.
    Call,
    /// None: the call is known by what it is.
    Nothing,
}

const CLAUDE_CODE: Dialect = Dialect {
    client: super::NAME,
    event: |name| name,
    ids: Ids::Use,
    call: |tool, input, cwd, _server| ToolCall::new(tool, input, cwd),
    batch: batch_outcome,
    failure: |_response| None,
    own_transcripts: false,
};

/// A payload as it is written, with the members of every event; each event takes its own. Unknown members pass.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Payload {
    hook_event_name: Loose<String>,
    session_id: Loose<String>,
    cwd: Loose<String>,
    transcript_path: Loose<String>,
    agent_id: Value,
    agent_type: Loose<String>,
    permission_mode: Loose<String>,
    prompt_id: Loose<String>,
    tool_name: Loose<String>,
    tool_use_id: Loose<String>,
    tool_call_id: Loose<String>,
    #[serde(deserialize_with = "json::given")]
    tool_input: Option<Value>,
    tool_response: Value,
    mcp_context: Loose<McpContext>,
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
    prompt_response: Loose<String>,
    agent_response: Loose<Response>,
}

/// Whose tool it is, where another name stands for it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct McpContext {
    server_name: Loose<String>,
    tool_name: Loose<String>,
}

/// A call in a batch.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Call {
    mcp_context: Loose<McpContext>,
    tool_name: Loose<String>,
    tool_use_id: Loose<String>,
    tool_call_id: Loose<String>,
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

/// Reads one payload of Claude Code's.
pub fn parse(bytes: &[u8]) -> Result<Event, PayloadError> {
    parse_in(bytes, &CLAUDE_CODE)
}

/// Reads one payload.
pub(crate) fn parse_in(bytes: &[u8], dialect: &Dialect) -> Result<Event, PayloadError> {
    let mut payload: Payload = json::from_slice_with(bytes, Limits::FOREIGN)?;
    let name = text(&mut payload.hook_event_name, "hook_event_name")?;
    let cwd = text(&mut payload.cwd, "cwd")?;
    let agent = agent(&payload.agent_id, payload.agent_type.0.take())?;
    let name = (dialect.event)(&name);
    let elsewhere = dialect.own_transcripts && agent.is_some() && name != "SubagentStop";
    Ok(Event {
        client: dialect.client,
        session: SessionId::new(text(&mut payload.session_id, "session_id")?),
        client_session: None,
        transcript: payload.transcript_path.0.take().filter(|_| !elsewhere),
        agent,
        permission_mode: payload.permission_mode.0.take(),
        prompt_id: payload.prompt_id.0.take(),
        kind: kind(name, payload, &cwd, dialect)?,
        cwd,
    })
}

/// The sub-agent that asks. One whose id is no text is not the main agent, which the policies of sub-agents do not hold.
pub(crate) fn agent(id: &Value, kind: Option<String>) -> Result<Option<Agent>, PayloadError> {
    let told = Some(id).filter(|id| **id != Value::Null);
    let text = told.map(|id| id.as_str().ok_or(PayloadError::Member { member: "agent_id", expected: "a text" }));
    Ok(text.transpose()?.map(|id| Agent { id: id.to_owned(), kind }))
}

fn kind(name: &str, mut payload: Payload, cwd: &str, dialect: &Dialect) -> Result<EventKind, PayloadError> {
    Ok(match name {
        "PreToolUse" => EventKind::PreToolUse(payload.call().tool_use(cwd, dialect)?),
        "PermissionRequest" => EventKind::PermissionRequest { call: payload.call().tool_call(cwd, dialect)? },
        "PostToolUse" => {
            let (response, duration_ms) = (std::mem::take(&mut payload.tool_response), payload.duration_ms.0);
            let call = payload.call().tool_use(cwd, dialect)?;
            match (dialect.failure)(&response) {
                Some(error) => EventKind::PostToolUseFailure { call, error, interrupted: false, duration_ms },
                None => EventKind::PostToolUse { call, response, duration_ms },
            }
        }
        "PostToolUseFailure" => EventKind::PostToolUseFailure {
            call: payload.call().tool_use(cwd, dialect)?,
            error: payload.error.0.unwrap_or_default(),
            interrupted: payload.is_interrupt.0 == Some(true),
            duration_ms: payload.duration_ms.0,
        },
        "PostToolBatch" => EventKind::PostToolBatch { calls: batch(payload.tool_calls.0, cwd, dialect)? },
        "UserPromptSubmit" => EventKind::UserPromptSubmit { prompt: payload.prompt.0.unwrap_or_default() },
        "SessionStart" => EventKind::SessionStart { source: payload.source.0 },
        "SubagentStart" => EventKind::SubagentStart,
        "SubagentStop" => EventKind::SubagentStop {
            transcript: payload.agent_transcript_path.0.take(),
            again: payload.stop_hook_active.0 == Some(true),
            last_message: payload.last_words(),
        },
        "Stop" => {
            EventKind::Stop { again: payload.stop_hook_active.0 == Some(true), last_message: payload.last_words() }
        }
        "PreCompact" => EventKind::PreCompact { trigger: payload.trigger.0 },
        "SessionEnd" => EventKind::SessionEnd { reason: payload.reason.0 },
        "ConfigChange" => EventKind::ConfigChange { source: payload.source.0, file: payload.file_path.0 },
        other => EventKind::Other(other.to_owned()),
    })
}

impl Payload {
    fn call(&mut self) -> Call {
        Call {
            mcp_context: std::mem::take(&mut self.mcp_context),
            tool_name: std::mem::take(&mut self.tool_name),
            tool_use_id: std::mem::take(&mut self.tool_use_id),
            tool_call_id: std::mem::take(&mut self.tool_call_id),
            tool_input: self.tool_input.take(),
            tool_response: Value::Null,
        }
    }

    /// What the agent says at the end: in this client's member, or where others of its kind put it.
    fn last_words(self) -> Option<String> {
        let blocks = self.agent_response.0.and_then(|response| response.content.0).unwrap_or_default();
        let texts = blocks.into_iter().filter_map(|block| block.0);
        let texts = texts.filter(|block| block.r#type.0.as_deref() == Some("text")).filter_map(|block| block.text.0);
        let texts: Vec<String> = texts.collect();
        let spoken = (!texts.is_empty()).then(|| texts.join("\n"));
        let members = [spoken, self.last_assistant_message.0, self.prompt_response.0, self.output.0, self.body.0];
        members.into_iter().flatten().find(|text| !text.trim().is_empty())
    }
}

impl Call {
    fn tool_use(mut self, cwd: &str, dialect: &Dialect) -> Result<ToolUse, PayloadError> {
        let id = match dialect.ids {
            Ids::Use => text(&mut self.tool_use_id, "tool_use_id")?,
            Ids::Call => text(&mut self.tool_call_id, "tool_call_id")?,
            Ids::Nothing => String::new(),
        };
        Ok(ToolUse { id, call: self.tool_call(cwd, dialect)? })
    }

    /// Before a tool runs Claude Code has made relative and `~` paths absolute, filled in defaults, and turned aliases into names
    /// (`Task` → `Agent`).
    fn tool_call(mut self, cwd: &str, dialect: &Dialect) -> Result<ToolCall, PayloadError> {
        let server = self.mcp_context.0.and_then(|context| Some((context.server_name.0?, context.tool_name.0?)));
        Ok((dialect.call)(text(&mut self.tool_name, "tool_name")?, input(self.tool_input)?, cwd, server))
    }
}

fn batch(calls: Option<Vec<Call>>, cwd: &str, dialect: &Dialect) -> Result<Vec<BatchCall>, PayloadError> {
    let calls = calls.ok_or(PayloadError::Member { member: "tool_calls", expected: "an array of calls" })?;
    let one = |mut call: Call| {
        let response = std::mem::take(&mut call.tool_response);
        let call = call.tool_use(cwd, dialect)?;
        Ok(BatchCall { outcome: (dialect.batch)(&call.call.tool, &response), call })
    };
    calls.into_iter().map(one).collect()
}

fn input(input: Option<Value>) -> Result<Value, PayloadError> {
    input.ok_or(PayloadError::Member { member: "tool_input", expected: "there" })
}

fn text(found: &mut Loose<String>, member: &'static str) -> Result<String, PayloadError> {
    let found = found.0.take().filter(|text| !text.is_empty());
    found.ok_or(PayloadError::Member { member, expected: "a text that is not empty" })
}

/// What can still be told from a payload that [`parse`] refuses.
pub fn hints(bytes: &[u8]) -> Hints {
    hints::find(bytes, ["session_id", "cwd", "hook_event_name", "tool_use_id", "tool_name"])
}

#[cfg(test)]
mod tests;
