//! Any agent that has no adapter of its own: events and answers in a JSON that is Writ's.
//!
//! Owns that format: the types are it. Refuses members it does not know, because a client that misspells one would be judged by half
//! a call. The invariant: what a call touches is told by its `kind` and that kind's members, or else by its tool's canonical name
//! and input. Format page: `spec/clients/generic.md`.

use serde::{Deserialize, Serialize};
use writ_core::json::{self, Limits, Object, Value};
use writ_core::{Answer, Event, EventKind, Reply, Search, SessionId, ToolCall, ToolKind, ToolUse, Verdict};

use crate::hints::{self, Hints};
use crate::text::bounded;
use crate::{Client, PayloadError};

/// The name by which rows and `--client` know it.
pub const NAME: &str = "generic";

/// Such an agent.
#[derive(Clone, Copy, Debug)]
pub struct Generic;

/// An event as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Payload {
    event: Name,
    #[serde(deserialize_with = "json::filled")]
    session: String,
    #[serde(deserialize_with = "json::filled")]
    cwd: String,
    agent: Option<Agent>,
    call: Option<Call>,
    #[serde(default)]
    response: Value,
    error: Option<String>,
    text: Option<String>,
    source: Option<String>,
    #[serde(default)]
    stop_again: bool,
    /// Where the client keeps its conversations: told by one that has a page of its own.
    database: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Name {
    SessionStart,
    Prompt,
    BeforeCall,
    AfterCall,
    CallFailed,
    SubagentStart,
    SubagentStop,
    Stop,
    SessionEnd,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Agent {
    #[serde(deserialize_with = "json::filled")]
    id: String,
    r#type: Option<String>,
}

/// A call; one that does not say what it does has a canonical name and input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    #[serde(deserialize_with = "json::filled")]
    id: String,
    #[serde(deserialize_with = "json::filled")]
    tool: String,
    #[serde(default, deserialize_with = "json::given")]
    input: Option<Value>,
    does: Option<Does>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
enum Does {
    Shell { command: String },
    Read { paths: Vec<String> },
    Write { paths: Vec<String> },
    Edit { paths: Vec<String> },
    SearchContents { folder: Option<String>, glob: Option<String> },
    SearchNames { folder: Option<String>, pattern: String },
    List { folder: Option<String> },
    Fetch { url: String },
    WebSearch,
    Delegate { subagent: Option<String> },
    Mcp { server: String, tool: String },
    Own,
    Other,
}

/// An answer as it is written.
#[derive(Serialize)]
struct Output {
    verdict: Option<Verdict>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// Reads an event. Its transcript is the database that it names.
pub(crate) fn read(bytes: &[u8]) -> Result<Event, PayloadError> {
    let payload: Payload = json::from_slice_with(bytes, Limits::FOREIGN).map_err(PayloadError::Format)?;
    if payload.database.as_ref().is_some_and(|path| !path.starts_with('/')) {
        return Err(PayloadError::Member { member: "database", expected: "an absolute path" });
    }
    if !payload.cwd.starts_with('/') {
        return Err(PayloadError::Member { member: "cwd", expected: "an absolute path" });
    }
    Ok(Event {
        client: NAME,
        session: SessionId::new(payload.session.clone()),
        client_session: None,
        transcript: payload.database.clone(),
        cwd: payload.cwd.clone(),
        agent: payload
            .agent
            .as_ref()
            .map(|agent| writ_core::Agent { id: agent.id.clone(), kind: agent.r#type.clone() }),
        permission_mode: None,
        prompt_id: None,
        kind: payload.kind()?,
    })
}

impl Client for Generic {
    fn name(&self) -> &'static str {
        NAME
    }

    fn read(&self, bytes: &[u8]) -> Result<Event, PayloadError> {
        match read(bytes)? {
            Event { transcript: Some(_), .. } => Err(PayloadError::Member { member: "database", expected: "absent" }),
            event => Ok(event),
        }
    }
    fn hints(&self, bytes: &[u8]) -> Hints {
        let found = hints::find(bytes, ["session", "cwd", "event", "id", "tool"]);
        let event =
            |word: String| json::from_value::<Name>(&Value::from(word)).ok().map(|name| name.canonical().to_owned());
        Hints { event: found.event.and_then(event), ..found }
    }

    fn render(&self, answer: &Answer) -> String {
        let (verdict, reason, context) = match &answer.reply {
            Reply::Silent => (None, None, None),
            Reply::Decided { verdict, reason } => (Some(*verdict), Some(reason), None),
            Reply::DenyPermission { reason } | Reply::Block { reason } => (Some(Verdict::Deny), Some(reason), None),
            Reply::Context { text, .. } => (None, None, Some(text)),
        };
        let text = |text: Option<&String>| text.map(|text| bounded(text));
        json::to_compact(&Output {
            verdict,
            reason: text(reason),
            context: text(context),
            message: text(answer.message.as_ref()),
        })
    }
}

impl Name {
    const fn canonical(self) -> &'static str {
        match self {
            Self::SessionStart => "SessionStart",
            Self::Prompt => "UserPromptSubmit",
            Self::BeforeCall => "PreToolUse",
            Self::AfterCall => "PostToolUse",
            Self::CallFailed => "PostToolUseFailure",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::Stop => "Stop",
            Self::SessionEnd => "SessionEnd",
        }
    }
}

impl Payload {
    fn kind(self) -> Result<EventKind, PayloadError> {
        let (call, cwd) = (self.call, self.cwd);
        let call = || match call {
            None => Err(PayloadError::Member { member: "call", expected: "an object" }),
            Some(call) => Ok(ToolUse { id: call.id.clone(), call: call.tool_call(&cwd)? }),
        };
        let (last_message, again) = (self.text.clone(), self.stop_again);
        Ok(match self.event {
            Name::SessionStart => EventKind::SessionStart { source: self.source },
            Name::Prompt => EventKind::UserPromptSubmit { prompt: self.text.unwrap_or_default() },
            Name::BeforeCall => EventKind::PreToolUse(call()?),
            Name::AfterCall => EventKind::PostToolUse { call: call()?, response: self.response, duration_ms: None },
            Name::CallFailed => EventKind::PostToolUseFailure {
                call: call()?,
                error: self.error.unwrap_or_default(),
                interrupted: false,
                duration_ms: None,
            },
            Name::SubagentStart => EventKind::SubagentStart,
            Name::SubagentStop => EventKind::SubagentStop { transcript: None, last_message, again },
            Name::Stop => EventKind::Stop { last_message, again },
            Name::SessionEnd => EventKind::SessionEnd { reason: self.source },
        })
    }
}

impl Call {
    fn tool_call(self, cwd: &str) -> Result<ToolCall, PayloadError> {
        let input = self.input.unwrap_or_else(|| Value::Object(Object::new()));
        match self.does {
            None => Ok(ToolCall::new(self.tool, input, cwd)),
            Some(does) => Ok(ToolCall::of(self.tool, does.kind()?, input, cwd)),
        }
    }
}

impl Does {
    fn kind(self) -> Result<ToolKind, PayloadError> {
        let some = |paths: Vec<String>| {
            let missing = PayloadError::Member { member: "paths", expected: "an array of at least one path" };
            if paths.is_empty() { Err(missing) } else { Ok(paths) }
        };
        Ok(match self {
            Self::Shell { command } => ToolKind::Shell { command },
            Self::Read { paths } => ToolKind::Read { paths: some(paths)? },
            Self::Write { paths } => ToolKind::Write { paths: some(paths)? },
            Self::Edit { paths } => ToolKind::edit(some(paths)?),
            Self::SearchContents { folder, glob } => {
                ToolKind::Search(Search::Contents { path: folder, others: Vec::new(), glob, file_type: None })
            }
            Self::SearchNames { folder, pattern } => {
                ToolKind::Search(Search::Names { path: folder, others: Vec::new(), pattern })
            }
            Self::List { folder } => ToolKind::Search(Search::Folder { path: folder, others: Vec::new() }),
            Self::Fetch { url } => ToolKind::Fetch { url },
            Self::WebSearch => ToolKind::WebSearch,
            Self::Delegate { subagent } => ToolKind::Delegate { subagent: subagent.unwrap_or_default() },
            Self::Mcp { server, tool } => ToolKind::Mcp { server, tool },
            Self::Own => ToolKind::Own,
            Self::Other => ToolKind::Other,
        })
    }
}
