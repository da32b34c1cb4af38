//! This client's own record of a session: one log of events for all its agents.
//!
//! Owns the reading of the log: which calls the model made and what became of them, what it used, where turns begin. The invariant: every
//! tool request of a readable line is told. Format page: `spec/clients/copilot.md`.

use std::path::{Path, PathBuf};

use writ_core::json::{Value, canonical};
use writ_core::{Digest, Outcome, Timestamp, ToolKind};

use super::tools;
use crate::jsonl::{self, Lines, Made, first_entry, moment, text};
use crate::keys;
use crate::past::{PastCall, Unseen};
use crate::transcript::{Call, Listing, Told, TranscriptError};
use crate::usage::{Rate, Spoken, Tokens};
use crate::work::{Action, Change, Replacement};

/// What no log tells.
pub const UNSEEN: [&str; 2] = [
    "which of several equal calls a hook was asked about: they are told apart by their order alone",
    "what the client reads by itself of a shell that ended in the background (`read_bash`)",
];

/// Whether the client made a call by itself: its own have an id of another form than the model's.
fn is_own(call: &Value) -> bool {
    let id = text(call, "toolCallId").unwrap_or_default();
    let mut parts = id.split('-').map(|part| (part.len(), part.bytes().all(|byte| byte.is_ascii_hexdigit())));
    let is_uuid = [8, 4, 4, 4, 12].iter().all(|length| parts.next() == Some((*length, true))) && parts.next().is_none();
    text(call, "toolName") == Some("read_bash") && is_uuid
}

/// Its lines.
pub struct Events;

fn data<'a>(entry: &'a Value, kind: &str) -> Option<&'a Value> {
    (text(entry, "type") == Some(kind)).then(|| entry.get("data")).flatten()
}

/// What became of a call.
fn outcome(data: &Value) -> Outcome {
    let error = data.get("error");
    let member = |name: &str| error.and_then(|error| text(error, name)).unwrap_or_default();
    let message = member("message");
    match data.get("success").and_then(Value::as_bool) {
        Some(true) => Outcome::Completed,
        _ if member("code") == "denied" && message.starts_with("Denied by preToolUse hook") => Outcome::DeniedByHook,
        _ if member("code") == "denied" => Outcome::DeniedByClient,
        _ if message.starts_with("Tool '") && message.ends_with("' does not exist.") => Outcome::NoSuchTool,
        _ if data.get("toolTelemetry").and_then(|all| all.get("properties")?.get("wasSyntaxError")).is_some() => {
            Outcome::Refused
        }
        _ => Outcome::Failed,
    }
}

impl Lines for Events {
    fn tell(&self, entry: &Value, take: &mut dyn FnMut(Told<'_>)) {
        if let Some(call) = data(entry, "tool.execution_start").filter(|call| !is_own(call)) {
            let told = || {
                let (name, arguments) = (text(call, "toolName")?, call.get("arguments")?);
                Some(Call {
                    call_id: text(call, "toolCallId")?.to_owned(),
                    tool: name.to_owned(),
                    input: Digest::of(canonical(arguments).as_bytes()),
                    agent: text(entry, "agentId").map(str::to_owned),
                    server_side: false,
                    key: Some(keys::of(name, arguments)),
                })
            };
            take(told().map_or(Told::Unreadable, Told::Call));
        }
        if let Some(ended) = data(entry, "tool.execution_complete")
            && let Some(call_id) = text(ended, "toolCallId")
        {
            take(Told::Result { call_id, outcome: &|_tool| outcome(ended) });
        }
    }

    fn spoken(&self, entry: &Value) -> Option<Spoken> {
        let usage = data(entry, "session.usage_record")?.get("usage")?;
        let count = |name: &str| match usage.get(name) {
            None | Some(Value::Null) => Some(0),
            Some(count) => {
                count.as_u64().or_else(|| count.as_f64().filter(|count| *count >= 0.0).map(|count| count as u64))
            }
        };
        let message = || {
            let (read, written) = (count("cacheReadTokens")?, count("cacheWriteTokens")?);
            let tokens = Tokens {
                input: count("inputTokens")?.saturating_sub(read).saturating_sub(written),
                output: count("outputTokens")?,
                cache_read: read,
                cache_write: written,
                ..Tokens::default()
            };
            let model = text(usage, "model").unwrap_or_default().to_owned();
            let rate = Rate { model, length: Rate::length_of(tokens.all_input()), ..Rate::default() };
            Some(Spoken::Message { id: text(entry, "id")?.to_owned(), rate, tokens, at: None })
        };
        Some(message().unwrap_or(Spoken::Unreadable))
    }

    fn prompt(&self, entry: &Value) -> Option<Option<Timestamp>> {
        data(entry, "user.message").map(|_| moment(entry))
    }

    fn model<'a>(&self, entry: &'a Value) -> Option<&'a str> {
        data(entry, "assistant.message").and_then(|message| text(message, "model"))
    }

    fn words(&self, entry: &Value) -> Option<String> {
        let words = data(entry, "assistant.message")
            .filter(|_| entry.get("agentId").is_none())
            .and_then(|message| text(message, "content"))?;
        (!words.is_empty()).then(|| words.to_owned())
    }

    fn acts(&self, entry: &Value) -> Vec<Action> {
        data(entry, "tool.execution_start").and_then(action).into_iter().collect()
    }

    fn made(&self, entry: &Value, cwd: &str) -> Vec<Made> {
        let made = || {
            let call = data(entry, "tool.execution_start")?;
            let (name, arguments) = (text(call, "toolName")?, call.get("arguments")?);
            Some(Made {
                id: text(call, "toolCallId")?.to_owned(),
                call: tools::call(name.to_owned(), arguments.clone(), cwd),
                agent: text(entry, "agentId").map(str::to_owned),
                server_side: false,
            })
        };
        made().into_iter().collect()
    }

    fn folder<'a>(&self, entry: &'a Value) -> Option<&'a str> {
        let start = data(entry, "session.start").or_else(|| data(entry, "session.resume"))?;
        text(start.get("context")?, "cwd")
    }
}

/// The logs of sessions that began in a project.
pub fn kept(project: &Path, own: &Path) -> Vec<PathBuf> {
    jsonl::beginning(jsonl::inside(&own.join("session-state")), |path, first| {
        let named = path.file_name().is_some_and(|name| name == "events.jsonl");
        named && Events.folder(first).is_some_and(|cwd| Path::new(cwd).starts_with(project))
    })
}

/// Whether a file begins as a log of this client's does.
pub fn is_one(path: &Path) -> bool {
    data(&first_entry(path), "session.start").is_some_and(|start| text(start, "producer") == Some("copilot-agent"))
}

/// The past calls of a session.
pub fn calls(listing: Listing, take: &mut dyn FnMut(PastCall)) -> Result<Unseen, TranscriptError> {
    jsonl::calls(&Events, (listing, "/"), |_name, _path| None, take)
}

/// A call that may have changed a file.
fn action(call: &Value) -> Option<Action> {
    let (tool, args) = (text(call, "toolName")?, call.get("arguments").unwrap_or(&Value::Null));
    let kind = tools::call(tool.to_owned(), args.clone(), "").kind;
    let reads = matches!(
        kind,
        ToolKind::Read { .. } | ToolKind::Search(_) | ToolKind::Fetch { .. } | ToolKind::WebSearch | ToolKind::Own
    );
    let part = |name: &str| text(args, name).unwrap_or_default().to_owned();
    let change = match tool {
        "create" => Change::Content(part("file_text")),
        "edit" => Change::Edits(vec![Replacement { old: part("old_str"), new: part("new_str"), all: false }]),
        _ => Change::Unknown,
    };
    (!reads).then(|| Action {
        call_id: text(call, "toolCallId").unwrap_or_default().to_owned(),
        tool: tool.to_owned(),
        lasting: matches!(kind, ToolKind::Delegate { .. }) || text(args, "mode") == Some("async"),
        kind,
        change,
        cwd: None,
        succeeded: None,
        altered: false,
        ended: None,
    })
}
