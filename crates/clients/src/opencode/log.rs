//! What the lines tell that this client's database is drawn off into.
//!
//! Owns the reading of such a file: a line for each message and each part, and another one whenever it has changed. The invariant: every
//! call that has begun is told, each time under the same id. Format page: `spec/clients/opencode.md`.

use std::fs;
use std::path::{Path, PathBuf};

use memchr::memmem;
use writ_core::json::{self, Value, canonical};
use writ_core::{Digest, Outcome, Timestamp, ToolKind, regular_file};

use super::tools;
use crate::jsonl::{Lines, Made, first_entry, moment, text};
use crate::transcript::{Call, Listing, MAIN, Told, parse_line};
use crate::usage::{AgentNote, Rate, Spoken, Tokens};
use crate::work::{Action, Change, Replacement};

/// What the database never tells.
pub const UNSEEN: [&str; 1] =
    ["what a message or a part said before the client changed it, where no event came in between"];

/// The most sub-agents of one session.
const MOST_FILES: usize = 10_000;
/// The longest file that is looked through for the call that began a sub-agent.
const MOST_NOTED: u64 = 64 << 20;

/// Its lines.
pub struct Log;

/// A part of one type: what the client keeps of it.
fn part<'a>(entry: &'a Value, kind: &str) -> Option<&'a Value> {
    let data = entry.get("data").filter(|_| text(entry, "type") == Some("part"))?;
    (text(data, "type") == Some(kind)).then_some(data)
}

fn input(call: &Value) -> &Value {
    call.get("state").and_then(|state| state.get("input")).unwrap_or(&Value::Null)
}

/// What became of a call.
fn outcome(tool: &str, state: &Value) -> Option<Outcome> {
    let error = text(state, "error").unwrap_or_default();
    Some(match text(state, "status")? {
        "completed" if tool == "invalid" => Outcome::NoSuchTool,
        "completed" => Outcome::Completed,
        // What the plugin throws begins so.
        "error"
            if ["writ: ", "writ denies this", "writ gave no verdict: "].iter().any(|said| error.starts_with(said)) =>
        {
            Outcome::DeniedByHook
        }
        "error" if error.contains("was called with invalid arguments") => Outcome::Refused,
        "error"
            if error.contains("rejected permission to use this") || error.contains("prevents you from using this") =>
        {
            Outcome::DeniedByClient
        }
        "error" => Outcome::Failed,
        _ => return None,
    })
}

impl Lines for Log {
    fn tell(&self, entry: &Value, take: &mut dyn FnMut(Told<'_>)) {
        if entry.get("data") == Some(&Value::Null) {
            take(Told::Unreadable);
        }
        let Some(call) = part(entry, "tool") else { return };
        let (Some(id), Some(tool)) = (text(call, "callID"), text(call, "tool")) else {
            take(Told::Unreadable);
            return;
        };
        let state = call.get("state").unwrap_or(&Value::Null);
        // Of one that waits the model is still writing the input.
        if matches!(text(state, "status"), None | Some("pending")) {
            return;
        }
        take(Told::Call(Call {
            call_id: id.to_owned(),
            tool: tool.to_owned(),
            input: Digest::of(canonical(input(call)).as_bytes()),
            agent: text(entry, "agent").map(str::to_owned),
            server_side: is_server_side(call),
            key: None,
        }));
        if let Some(became) = outcome(tool, state) {
            take(Told::Result { call_id: id, outcome: &|_tool| became });
        }
    }

    fn spoken(&self, entry: &Value) -> Option<Spoken> {
        let step = part(entry, "step-finish")?;
        let told = || {
            let tokens = step.get("tokens")?;
            let count = |of: &Value, name: &str| match of.get(name) {
                None | Some(Value::Null) => Some(0),
                Some(count) => count.as_u64(),
            };
            let cache = tokens.get("cache").unwrap_or(&Value::Null);
            let tokens = Tokens {
                input: count(tokens, "input")?,
                output: count(tokens, "output")?.saturating_add(count(tokens, "reasoning")?),
                cache_read: count(cache, "read")?,
                cache_write: count(cache, "write")?,
                ..Tokens::default()
            };
            let model = text(entry, "model").unwrap_or_default().to_owned();
            let rate = Rate { model, length: Rate::length_of(tokens.all_input()), ..Rate::default() };
            Some(Spoken::Message { id: text(entry, "id")?.to_owned(), rate, tokens, at: None })
        };
        Some(told().unwrap_or(Spoken::Unreadable))
    }

    fn prompt(&self, entry: &Value) -> Option<Option<Timestamp>> {
        let user = text(entry, "type") == Some("message") && text(entry, "role") == Some("user");
        (user && entry.get("again").is_none()).then(|| moment(entry))
    }

    fn model<'a>(&self, entry: &'a Value) -> Option<&'a str> {
        text(entry, "model")
    }

    fn words(&self, entry: &Value) -> Option<String> {
        let part = part(entry, "text").filter(|_| text(entry, "role") == Some("assistant"))?;
        text(part, "text").filter(|words| !words.is_empty()).map(str::to_owned)
    }

    fn acts(&self, entry: &Value) -> Vec<Action> {
        part(entry, "tool").and_then(action).into_iter().collect()
    }

    fn made(&self, entry: &Value, cwd: &str) -> Vec<Made> {
        let made = |call: &Value| {
            let (id, tool) = (text(call, "callID")?.to_owned(), text(call, "tool")?);
            let call_made = tools::call(tool.to_owned(), input(call).clone(), cwd);
            // Whose it is, its file says, and of what type.
            Some(Made { id, call: call_made, agent: None, server_side: is_server_side(call) })
        };
        part(entry, "tool").and_then(made).into_iter().collect()
    }

    fn folder<'a>(&self, entry: &'a Value) -> Option<&'a str> {
        text(entry, "directory")
    }
}

/// Whether the model's provider ran it.
fn is_server_side(call: &Value) -> bool {
    let told = call.get("metadata").and_then(|metadata| metadata.get("providerExecuted"));
    told.and_then(Value::as_bool) == Some(true)
}

/// A call that may have changed a file.
fn action(call: &Value) -> Option<Action> {
    let (tool, input) = (text(call, "tool")?, input(call));
    let kind = tools::call(tool.to_owned(), input.clone(), "").kind;
    let reads = matches!(
        kind,
        ToolKind::Read { .. } | ToolKind::Search(_) | ToolKind::Fetch { .. } | ToolKind::WebSearch | ToolKind::Own
    );
    let member = |name: &str| text(input, name).unwrap_or_default().to_owned();
    let change = match tool {
        "write" => Change::Content(member("content")),
        "edit" if member("oldString").is_empty() => Change::Content(member("newString")),
        "edit" => Change::Edits(vec![Replacement {
            old: member("oldString"),
            new: member("newString"),
            all: input.get("replaceAll").and_then(Value::as_bool) == Some(true),
        }]),
        _ => Change::Unknown,
    };
    (!reads).then(|| Action {
        call_id: text(call, "callID").unwrap_or_default().to_owned(),
        tool: tool.to_owned(),
        lasting: false,
        kind,
        change,
        cwd: text(input, "workdir").map(str::to_owned),
        succeeded: None,
        altered: false,
        ended: None,
    })
}

/// Where the files of a session's sub-agents are.
pub fn below(main: &Path) -> PathBuf {
    main.with_extension("")
}

/// The files of a session: its own, and its sub-agents'.
pub fn files(main: &Path) -> Listing {
    let mut listing = Listing { files: vec![(MAIN.to_owned(), main.to_owned())], unread: 0 };
    let found = fs::read_dir(below(main)).into_iter().flatten().flatten().map(|entry| entry.path());
    let found = found.filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    let mut found: Vec<(String, PathBuf)> =
        found.filter_map(|path| Some((path.file_stem()?.to_str()?.to_owned(), path))).collect();
    found.sort_unstable();
    listing.unread = found.len().saturating_sub(MOST_FILES) as u64;
    found.truncate(MOST_FILES);
    listing.files.extend(found);
    listing
}

/// The type of a sub-agent, as its file's first line tells, and the call that began it, as the parts of its parent do.
pub fn note(path: &Path) -> AgentNote {
    let first = first_entry(path);
    let own = text(&first, "parent").and_then(|parent| Some((parent, text(&first, "session")?)));
    let Some((parent, session)) = own else { return AgentNote::default() };
    let folder = path.parent().unwrap_or(Path::new("/"));
    let beside = [folder.join(format!("{parent}.jsonl")), folder.with_extension("jsonl")];
    let call = beside.iter().find_map(|file| beginning(file, session));
    AgentNote { kind: text(&first, "kind").map(str::to_owned), call, depth: None }
}

/// The call of a file that began a session.
fn beginning(file: &Path, session: &str) -> Option<String> {
    let bytes = regular_file::read(file, MOST_NOTED).ok()?;
    let named = json::to_compact(session);
    let mut lines = bytes.split(|&byte| byte == b'\n').filter(|line| memmem::find(line, named.as_bytes()).is_some());
    lines.find_map(|line| {
        let entry = parse_line(line).ok()?;
        let call = part(&entry, "tool")?;
        let begun = call.get("state")?.get("metadata")?;
        (text(begun, "sessionId") == Some(session)).then(|| text(call, "callID").map(str::to_owned)).flatten()
    })
}

/// Reads the lines of a text.
pub fn tell_lines(bytes: &[u8], take: &mut dyn FnMut(Told<'_>)) {
    for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        match parse_line(line) {
            Ok(entry) => Log.tell(&entry, take),
            Err(_) => take(Told::Unreadable),
        }
    }
}
