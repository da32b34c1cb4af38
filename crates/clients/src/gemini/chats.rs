//! This client's own record of a session.
//!
//! Owns the reading of its chat files: which calls the model made and what became of them, what it used, where turns begin. A file is a log of
//! updates: a message is told again, with its calls, when they have ended, and a resumed session begins with all that was. The invariant:
//! every call of a readable line is told, each time under the same id. Format page: `spec/clients/gemini.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use writ_core::json::{Value, canonical};
use writ_core::{Digest, Outcome, Timestamp, ToolKind, regular_file};

use super::tools;
use crate::jsonl::{self, Lines, Made, first_entry, moment, text};
use crate::keys;
use crate::past::{PastAgent, PastCall, Unseen};
use crate::transcript::{Call, Listing, MAIN, Told, TranscriptError};
use crate::usage::{Rate, Spoken, Tokens};
use crate::work::{Action, Change, Replacement};

/// What no chat file tells.
pub const UNSEEN: [&str; 1] =
    ["which of several equal calls a hook was asked about: they are told apart by their order alone"];

/// The most files of one session.
const MOST_FILES: usize = 10_000;
/// Most of a chat that is looked at for its folder.
const MOST_HEAD: u64 = 256 << 10;
/// The longest path of a project.
const MOST_PATH: u64 = 1 << 14;

/// Its lines.
pub struct Chats;

/// The messages on a line: itself, or those that it sets.
fn messages(entry: &Value) -> Vec<&Value> {
    match entry.get("$set") {
        Some(set) => set.get("messages").and_then(Value::as_array).unwrap_or_default().iter().collect(),
        None => vec![entry],
    }
}

fn calls(message: &Value) -> &[Value] {
    message.get("toolCalls").and_then(Value::as_array).unwrap_or_default()
}

/// What the model was told of a call that failed.
fn error(call: &Value) -> Option<&str> {
    let results = call.get("result").and_then(Value::as_array)?;
    let responses = results.iter().filter_map(|result| result.get("functionResponse")?.get("response"));
    responses.filter_map(|response| text(response, "error")).next()
}

/// What became of a call. It is the client's own text only where no hook was asked.
fn outcome(call: &Value) -> Outcome {
    let name = text(call, "name").unwrap_or_default();
    match (text(call, "status"), error(call)) {
        (_, Some(why)) if why.starts_with(&format!("Tool \"{name}\" not found")) => Outcome::NoSuchTool,
        (_, Some(why)) if why.starts_with("Tool execution blocked: ") => Outcome::DeniedByHook,
        (_, Some(why))
            if why.starts_with("params must ")
                || why.starts_with("Path not in workspace: ")
                || why.contains("ignored by configured ignore patterns") =>
        {
            Outcome::Refused
        }
        (Some("cancelled"), _) => Outcome::DeniedByClient,
        (Some("error"), _) | (_, Some(_)) => Outcome::Failed,
        _ => Outcome::Completed,
    }
}

impl Lines for Chats {
    fn tell(&self, entry: &Value, take: &mut dyn FnMut(Told<'_>)) {
        for call in messages(entry).into_iter().flat_map(calls) {
            let (Some(id), Some(name)) = (text(call, "id"), text(call, "name")) else {
                take(Told::Unreadable);
                continue;
            };
            let args = call.get("args").unwrap_or(&Value::Null);
            take(Told::Call(Call {
                call_id: id.to_owned(),
                tool: name.to_owned(),
                input: Digest::of(canonical(args).as_bytes()),
                agent: None,
                server_side: false,
                key: Some(keys::of(name, args)),
            }));
            if call.get("result").is_some() || matches!(text(call, "status"), Some("success" | "error" | "cancelled")) {
                take(Told::Result { call_id: id, outcome: &|_tool| outcome(call) });
            }
        }
    }

    fn spoken(&self, entry: &Value) -> Option<Spoken> {
        // What is set again was told before.
        let tokens = entry.get("tokens").filter(|tokens| tokens.as_object().is_some())?;
        let count = |name: &str| match tokens.get(name) {
            None | Some(Value::Null) => Some(0),
            Some(count) => count.as_u64(),
        };
        let message = || {
            let (read, cached) = (count("input")?, count("cached")?);
            let tokens = Tokens {
                input: read.saturating_sub(cached).saturating_add(count("tool")?),
                output: count("output")?.saturating_add(count("thoughts")?),
                cache_read: cached,
                ..Tokens::default()
            };
            let model = text(entry, "model").unwrap_or_default().to_owned();
            let rate = Rate { model, length: Rate::length_of(tokens.all_input()), ..Rate::default() };
            Some(Spoken::Message { id: text(entry, "id")?.to_owned(), rate, tokens, at: None })
        };
        Some(message().unwrap_or(Spoken::Unreadable))
    }

    fn prompt(&self, entry: &Value) -> Option<Option<Timestamp>> {
        let blocks = entry.get("content").and_then(Value::as_array).unwrap_or_default();
        let results = blocks.iter().any(|block| block.get("functionResponse").is_some());
        let speaks = blocks.iter().any(|block| block.get("text").is_some() || block.get("inlineData").is_some());
        (text(entry, "type") == Some("user") && speaks && !results).then(|| moment(entry))
    }

    fn model<'a>(&self, entry: &'a Value) -> Option<&'a str> {
        text(entry, "model")
    }

    fn words(&self, entry: &Value) -> Option<String> {
        let words = text(entry, "content").filter(|_| text(entry, "type") == Some("gemini"))?;
        (!words.is_empty()).then(|| words.to_owned())
    }

    fn acts(&self, entry: &Value) -> Vec<Action> {
        messages(entry).into_iter().flat_map(calls).filter_map(action).collect()
    }

    fn made(&self, entry: &Value, cwd: &str) -> Vec<Made> {
        let made = |call: &Value| {
            let (id, name) = (text(call, "id")?.to_owned(), text(call, "name")?);
            let args = call.get("args").cloned().unwrap_or(Value::Null);
            Some(Made {
                id,
                call: tools::call(name.to_owned(), args, cwd, server(name)),
                agent: None,
                server_side: false,
            })
        };
        messages(entry).into_iter().flat_map(calls).filter_map(made).collect()
    }

    fn folder<'a>(&self, _entry: &'a Value) -> Option<&'a str> {
        None
    }
}

/// The server and the tool in a name of the model's, which has them as `mcp_server_tool`.
fn server(name: &str) -> Option<(String, String)> {
    let (server, tool) = name.strip_prefix("mcp_")?.split_once('_')?;
    Some((server.to_owned(), tool.to_owned()))
}

/// The folder of the project that a chat file is of, as the client notes it beside the folder of its chats.
fn project(chat: &Path) -> Option<String> {
    let own = chat.ancestors().skip(2).take(2).map(|folder| folder.join(".project_root"));
    let noted = own.filter_map(|path| regular_file::read(&path, MOST_PATH).ok()).next()?;
    String::from_utf8(noted).ok().map(|path| path.trim_end().to_owned()).filter(|path| path.starts_with('/'))
}

/// The same as the client told the model in the session's first message: for past calls alone, since anybody could have said it.
fn told(chat: &Path) -> Option<String> {
    let mut head = Vec::new();
    regular_file::open(chat).ok()?.take(MOST_HEAD).read_to_end(&mut head).ok()?;
    let head = String::from_utf8_lossy(&head);
    let (_, rest) = head.split_once("Workspace Directories:**\\n  - /")?;
    Some(format!("/{}", rest.get(..rest.find(['\\', '"'])?)?))
}

/// The chat files that sessions of a project began with.
pub fn kept(project_of: &Path, own: &Path) -> Vec<PathBuf> {
    let chats = jsonl::inside(&own.join("tmp")).map(|folder| folder.join("chats"));
    let mut seen = BTreeSet::new();
    let mut found = jsonl::beginning(chats, |path, first| {
        let inside = project(path).is_some_and(|folder| Path::new(&folder).starts_with(project_of));
        inside && text(first, "kind") != Some("subagent") && text(first, "sessionId").is_some()
    });
    found.retain(|path| seen.insert(text(&first_entry(path), "sessionId").map(str::to_owned)));
    found
}

/// Whether a file begins as a chat does.
pub fn is_one(path: &Path) -> bool {
    let first = first_entry(path);
    text(&first, "sessionId").is_some() && text(&first, "projectHash").is_some()
}

/// The past calls of a session.
pub fn past(main: &Path, take: &mut dyn FnMut(PastCall)) -> Result<Unseen, TranscriptError> {
    // What it went on in is the main agent's, too.
    let agent = |name: &str, path: &Path| {
        (name != MAIN && path.parent() != main.parent()).then(|| PastAgent { id: name.to_owned(), kind: None })
    };
    let cwd = project(main).or_else(|| told(main)).unwrap_or_else(|| "/".to_owned());
    jsonl::calls(&Chats, (files(main)?, &cwd), agent, take)
}

/// A call that may have changed a file.
fn action(call: &Value) -> Option<Action> {
    let (tool, args) = (text(call, "name")?, call.get("args").unwrap_or(&Value::Null));
    let kind = tools::call(tool.to_owned(), args.clone(), "", None).kind;
    let reads = matches!(
        kind,
        ToolKind::Read { .. } | ToolKind::Search(_) | ToolKind::Fetch { .. } | ToolKind::WebSearch | ToolKind::Own
    );
    let part = |name: &str| text(args, name).unwrap_or_default().to_owned();
    let change = match tool {
        "write_file" => Change::Content(part("content")),
        "replace" if part("old_string").is_empty() => Change::Content(part("new_string")),
        "replace" => Change::Edits(vec![Replacement {
            old: part("old_string"),
            new: part("new_string"),
            all: args.get("allow_multiple").and_then(Value::as_bool) == Some(true),
        }]),
        _ => Change::Unknown,
    };
    (!reads).then(|| Action {
        call_id: text(call, "id").unwrap_or_default().to_owned(),
        tool: tool.to_owned(),
        lasting: args.get("is_background").and_then(Value::as_bool) == Some(true),
        kind,
        change,
        cwd: None,
        succeeded: None,
        altered: false,
        ended: None,
    })
}

/// The files of the session: the one that it began with, those that it went on in (`session-*-<id>.jsonl`, at each resumption), and its
/// subagents' (`<session>/<id>.jsonl`).
pub fn files(main: &Path) -> Result<Listing, TranscriptError> {
    let mut listing = Listing { files: vec![(MAIN.to_owned(), main.to_owned())], unread: 0 };
    let meta = first_entry(main);
    let (Some(session), Some(folder)) = (text(&meta, "sessionId"), main.parent()) else { return Ok(listing) };
    let mut found = BTreeMap::new();
    for (place, same) in [(folder.to_owned(), true), (folder.join(session), false)] {
        for path in fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path()) {
            let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            let ending = session.get(..8).unwrap_or(session);
            let fits = path.extension().is_some_and(|end| end == "jsonl") && path != main;
            if !fits || same && !(stem.ends_with(ending) && text(&first_entry(&path), "sessionId") == Some(session)) {
                continue;
            }
            found.insert(stem, path);
            if found.len() > MOST_FILES {
                found.pop_last();
                listing.unread += 1;
            }
        }
    }
    listing.files.extend(found);
    Ok(listing)
}
