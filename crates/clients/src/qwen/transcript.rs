//! This client's own record of a session.
//!
//! Owns the reading of its chat files: which calls the model made and what became of them, what it used, where turns begin. A tool that is
//! loaded later is called through `tool_call`; hooks and rows know it by its own name, and so does what is told here. The invariant: every
//! `functionCall` on a readable line is a [`Call`]. Format page: `spec/clients/qwen.md`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use writ_core::json::{Value, canonical};
use writ_core::{Digest, Outcome, Timestamp, ToolKind};

use super::tools;
use crate::jsonl::{self, Lines, Made, first_entry, moment, text};
use crate::past::{PastAgent, PastCall, Unseen};
use crate::transcript::{Call, Listing, MAIN, Told, TranscriptError};
use crate::usage::{AgentNote, Rate, Spoken, Tokens};
use crate::work::{Action, Change, Replacement};

/// The most subagents of one session.
const MOST_AGENTS: usize = 10_000;

/// Its lines.
pub struct Chats;

/// The name and input of a call, out of the tool that wraps it.
fn inner(call: &Value) -> Option<(&str, &Value)> {
    let (name, args) = (text(call, "name")?, call.get("args").unwrap_or(&Value::Null));
    if name != "tool_call" {
        return Some((name, args));
    }
    Some((text(args, "name").unwrap_or(name), args.get("arguments").unwrap_or(args)))
}

fn parts(entry: &Value) -> &[Value] {
    let parts = entry.get("message").and_then(|message| message.get("parts")).and_then(Value::as_array);
    parts.unwrap_or_default()
}

/// What a result says became of its call.
fn outcome(entry: &Value, response: &Value) -> Outcome {
    let result = entry.get("toolCallResult");
    let member = |name: &str| result.and_then(|result| text(result, name));
    let failed = response.get("response").is_some_and(|response| response.get("error").is_some());
    match (member("executionStatus"), member("errorType")) {
        (Some("not_started"), kind) => tools::stopped(kind.unwrap_or_default()),
        (None, _) if failed => Outcome::Failed,
        _ if member("status") == Some("error") || failed => Outcome::Failed,
        _ => Outcome::Completed,
    }
}

impl Lines for Chats {
    fn tell(&self, entry: &Value, take: &mut dyn FnMut(Told<'_>)) {
        for part in parts(entry) {
            if let Some(call) = part.get("functionCall") {
                let told = || {
                    let (tool, args) = inner(call)?;
                    Some(Call {
                        call_id: text(call, "id")?.to_owned(),
                        tool: tool.to_owned(),
                        input: Digest::of(canonical(args).as_bytes()),
                        agent: text(entry, "agentId").map(str::to_owned),
                        server_side: false,
                        key: None,
                    })
                };
                take(told().map_or(Told::Unreadable, Told::Call));
            }
            if let Some(response) = part.get("functionResponse")
                && let Some(call_id) = text(response, "id")
            {
                take(Told::Result { call_id, outcome: &|_tool| outcome(entry, response) });
            }
        }
    }

    fn spoken(&self, entry: &Value) -> Option<Spoken> {
        let usage = entry.get("usageMetadata").filter(|usage| usage.as_object().is_some())?;
        let count = |name: &str| match usage.get(name) {
            None | Some(Value::Null) => Some(0),
            Some(count) => count.as_u64(),
        };
        let message = || {
            let (read, cached) = (count("promptTokenCount")?, count("cachedContentTokenCount")?);
            let tokens = Tokens {
                input: read.saturating_sub(cached),
                output: count("candidatesTokenCount")?.saturating_add(count("thoughtsTokenCount")?),
                cache_read: cached,
                ..Tokens::default()
            };
            let model = text(entry, "model").unwrap_or_default().to_owned();
            let rate = Rate { model, length: Rate::length_of(tokens.all_input()), ..Rate::default() };
            Some(Spoken::Message { id: text(entry, "uuid")?.to_owned(), rate, tokens, at: None })
        };
        Some(message().unwrap_or(Spoken::Unreadable))
    }

    fn prompt(&self, entry: &Value) -> Option<Option<Timestamp>> {
        let human = match text(entry, "provenance") {
            Some(provenance) => provenance == "real_user",
            None => entry.get("isSidechain").and_then(Value::as_bool) == Some(true),
        };
        let speaks = parts(entry).iter().any(|part| part.get("text").is_some() || part.get("inlineData").is_some());
        (text(entry, "type") == Some("user") && human && speaks).then(|| moment(entry))
    }

    fn model<'a>(&self, entry: &'a Value) -> Option<&'a str> {
        text(entry, "model").filter(|_| text(entry, "type") == Some("assistant"))
    }

    fn words(&self, entry: &Value) -> Option<String> {
        if text(entry, "type") != Some("assistant") {
            return None;
        }
        let thought = |part: &&Value| part.get("thought").and_then(Value::as_bool) != Some(true);
        let words: Vec<&str> = parts(entry).iter().filter(thought).filter_map(|part| text(part, "text")).collect();
        (!words.is_empty()).then(|| words.join("\n"))
    }

    fn acts(&self, entry: &Value) -> Vec<Action> {
        let calls = parts(entry).iter().filter_map(|part| part.get("functionCall"));
        calls.filter_map(|call| action(call, entry)).collect()
    }

    fn made(&self, entry: &Value, cwd: &str) -> Vec<Made> {
        let made = |call: &Value| {
            let (tool, args) = inner(call)?;
            Some(Made {
                id: text(call, "id")?.to_owned(),
                call: tools::call(tool.to_owned(), args.clone(), cwd),
                agent: None,
                server_side: false,
            })
        };
        parts(entry).iter().filter_map(|part| part.get("functionCall")).filter_map(made).collect()
    }

    fn folder<'a>(&self, entry: &'a Value) -> Option<&'a str> {
        text(entry, "cwd")
    }
}

/// The chats of sessions that began in a project.
pub fn kept(project: &Path, own: &Path) -> Vec<PathBuf> {
    let chats = jsonl::inside(&own.join("projects")).map(|folder| folder.join("chats"));
    jsonl::beginning(chats, |_path, first| text(first, "cwd").is_some_and(|cwd| Path::new(cwd).starts_with(project)))
}

/// Whether a file begins as a chat does.
pub fn is_one(path: &Path) -> bool {
    let first = first_entry(path);
    let (message, told) = (first.get("message"), text(&first, "sessionId").is_some() && text(&first, "uuid").is_some());
    told && message.is_none_or(|message| message.get("parts").is_some()) && text(&first, "provenance").is_some()
}

/// The past calls of a session.
pub fn calls(main: &Path, take: &mut dyn FnMut(PastCall)) -> Result<Unseen, TranscriptError> {
    let agent =
        |name: &str, path: &Path| (name != MAIN).then(|| PastAgent { id: name.to_owned(), kind: note(path).kind });
    jsonl::calls(&Chats, (files(main)?, "/"), agent, take)
}

/// A call that may have changed a file.
fn action(call: &Value, entry: &Value) -> Option<Action> {
    let (tool, args) = inner(call)?;
    let cwd = text(entry, "cwd");
    let call_of = tools::call(tool.to_owned(), args.clone(), cwd.unwrap_or_default());
    let reads = matches!(
        call_of.kind,
        ToolKind::Read { .. } | ToolKind::Search(_) | ToolKind::Fetch { .. } | ToolKind::WebSearch | ToolKind::Own
    );
    let part = |name: &str| text(args, name).unwrap_or_default().to_owned();
    let change = match tool {
        "write_file" => Change::Content(part("content")),
        "edit" if part("old_string").is_empty() => Change::Content(part("new_string")),
        "edit" => Change::Edits(vec![Replacement {
            old: part("old_string"),
            new: part("new_string"),
            all: args.get("replace_all").and_then(Value::as_bool) == Some(true),
        }]),
        _ => Change::Unknown,
    };
    let lasting = args.get("is_background").and_then(Value::as_bool) == Some(true);
    (!reads).then(|| Action {
        call_id: text(call, "id").unwrap_or_default().to_owned(),
        tool: tool.to_owned(),
        lasting: lasting || matches!(call_of.kind, ToolKind::Delegate { .. }) || tool == "monitor",
        kind: call_of.kind,
        change,
        cwd: cwd.map(|_| call_of.cwd),
        succeeded: None,
        altered: false,
        ended: None,
    })
}

/// The transcripts of the session: `chats/<session>.jsonl`, then `subagents/<session>/agent-<id>.jsonl` beside that folder.
pub fn files(main: &Path) -> Result<Listing, TranscriptError> {
    let mut listing = Listing { files: vec![(MAIN.to_owned(), main.to_owned())], unread: 0 };
    let project = main.parent().and_then(Path::parent);
    let Some((project, session)) = project.zip(main.file_stem()) else { return Ok(listing) };
    let folder = project.join("subagents").join(session);
    let failed = |source| TranscriptError::Io { path: folder.clone(), source };
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(listing),
        entries => entries.map_err(failed)?,
    };
    let mut found = BTreeMap::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Some(id) = name.strip_prefix("agent-").and_then(|name| name.strip_suffix(".jsonl")) else { continue };
        found.insert(id.to_owned(), path);
        if found.len() > MOST_AGENTS {
            found.pop_last();
            listing.unread += 1;
        }
    }
    listing.files.extend(found);
    Ok(listing)
}

/// What the first line of a subagent's transcript says of it.
pub fn note(path: &Path) -> AgentNote {
    AgentNote { kind: text(&first_entry(path), "agentName").map(str::to_owned), call: None, depth: None }
}
