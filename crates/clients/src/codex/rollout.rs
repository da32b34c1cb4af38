//! This client's own record of a session: a rollout for each thread.
//!
//! Owns the reading of rollouts: which calls were made and what became of them, what the model used, where turns begin. The client has two
//! ways to call: each call by itself (`function_call`, `custom_tool_call`), or several from one script (`exec`), where only what ran leaves a
//! line, under an id of its own. The invariant: a call that leaves a line and that a hook should have been asked about is told; what
//! leaves none is named in [`UNSEEN`]. Format page: `spec/clients/codex.md`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use writ_core::json::{self, Value};
use writ_core::{Digest, Outcome, Timestamp, ToolCall, ToolKind};

use super::tools;
use crate::jsonl::{self, Lines, Made, first_entry, moment, text};
use crate::past::{PastAgent, PastCall, Unseen};
use crate::transcript::{Call, Listing, MAIN, Reach, Told, TranscriptError};
use crate::usage::{AgentNote, Rate, Spoken, Tokens};
use crate::work::{Action, Change};

/// What no rollout tells.
pub const UNSEEN: [&str; 3] = [
    "what a script types into a shell that runs (`write_stdin` inside `exec`)",
    "calls inside a script (`exec`) that were denied, or that leave no item",
    "tools that the provider looks up and images that it makes (`tool_search_call`, `image_generation_call`)",
];

/// The most threads of one session.
const MOST_THREADS: usize = 10_000;
/// The most folders of days that are looked through for them.
const MOST_DAYS: usize = 400;

/// Names under which the model calls a shell; hooks know one.
const SHELLS: [&str; 5] = ["exec_command", "shell", "shell_command", "local_shell", "container.exec"];
/// Calls that the provider answers itself; those that are told of come as items of their own.
const HOSTED: [&str; 3] = ["web_search_call", "image_generation_call", "tool_search_call"];
/// Tools that run scripts of calls; no hook is asked about them.
const SCRIPTS: [&str; 2] = ["exec", "wait"];
/// How the id of a call from a script begins.
const FROM_SCRIPT: &str = "exec-";

/// Its lines, and the model that speaks in them.
#[derive(Default)]
pub struct Rollout {
    model: RefCell<String>,
}

/// A call on one line, as hooks know it.
struct Found<'a> {
    id: &'a str,
    tool: String,
    input: Value,
    server_side: bool,
    /// What became of it, where the same line says so.
    status: Option<&'a str>,
}

fn payload<'a>(entry: &'a Value, kind: &str) -> Option<&'a Value> {
    (text(entry, "type") == Some(kind)).then(|| entry.get("payload")).flatten()
}

/// The call that a line tells of.
fn found(entry: &Value) -> Option<Found<'_>> {
    if let Some(item) = payload(entry, "event_msg").filter(|event| text(event, "type") == Some("item_completed")) {
        return done(item.get("item")?);
    }
    let item = payload(entry, "response_item")?;
    let (name, id) = match text(item, "type")? {
        "function_call" | "custom_tool_call" => (text(item, "name")?, text(item, "call_id")?),
        "local_shell_call" => ("local_shell", text(item, "call_id")?),
        // What the provider does by itself has no call of the client's.
        kind if HOSTED.contains(&kind) => return None,
        // A kind of call that is not known yet is one that nobody saw.
        kind => (kind.strip_suffix("_call")?, text(item, "call_id").or_else(|| text(item, "id"))?),
    };
    let space = text(item, "namespace");
    // A server's tool may have such a name, too.
    if space.is_none() && SCRIPTS.contains(&name) {
        return None;
    }
    let tool = match space {
        _ if SHELLS.contains(&name) => "Bash".to_owned(),
        Some(space) if space.starts_with("mcp__") => format!("{space}__{name}"),
        // The one tool of its namespace whose name the client does not glue.
        Some("multi_agent_v1") if name == "spawn_agent" => name.to_owned(),
        Some(space) => format!("{space}{name}"),
        None => name.to_owned(),
    };
    let input = match text(item, "input") {
        Some(patch) => command(patch),
        None => text(item, "arguments")
            .and_then(|arguments| json::parse(arguments.as_bytes()).ok())
            .unwrap_or_else(|| Value::from(text(item, "arguments").unwrap_or_default())),
    };
    // Looking whether a shell has said more types nothing.
    let looks = name == "write_stdin" && text(&input, "chars").is_none_or(str::is_empty);
    (!looks).then_some(Found { id, tool, input, server_side: false, status: None })
}

/// A call that came to its end, by the item that the client keeps of it.
fn done(item: &Value) -> Option<Found<'_>> {
    let id = text(item, "id")?;
    let kind = text(item, "type")?;
    if kind == "WebSearch" {
        let input = item.get("action").cloned().unwrap_or(Value::Null);
        return Some(Found { id, tool: "web_search".to_owned(), input, server_side: true, status: None });
    }
    // Any other has a line of its own, from before it ran.
    if !id.starts_with(FROM_SCRIPT) {
        return None;
    }
    let (tool, input) = match kind {
        "CommandExecution" => {
            let words = item.get("command").and_then(Value::as_array).unwrap_or_default();
            ("Bash".to_owned(), command(words.last().and_then(Value::as_str).unwrap_or_default()))
        }
        "FileChange" => ("apply_patch".to_owned(), item.get("changes").cloned().unwrap_or(Value::Null)),
        "McpToolCall" => {
            let (server, tool) = (text(item, "server")?, text(item, "tool")?);
            let name = if server == "codex" { tool.to_owned() } else { format!("mcp__{server}__{tool}") };
            (name, item.get("arguments").cloned().unwrap_or(Value::Null))
        }
        "ImageView" => ("view_image".to_owned(), Value::Null),
        other => {
            (text(item, "tool").unwrap_or(other).to_owned(), item.get("arguments").cloned().unwrap_or(Value::Null))
        }
    };
    Some(Found { id, tool, input, server_side: false, status: text(item, "status").or(Some("completed")) })
}

fn command(line: &str) -> Value {
    Value::Object([("command", Value::from(line))].into())
}

/// What the model was told of a call's end.
fn said(output: &Value) -> &str {
    let block = || output.as_array()?.iter().find_map(|block| text(block, "text"));
    output.as_str().or_else(block).unwrap_or_default()
}

/// What that says became of the call. It is the client's own text only where no hook was asked.
fn outcome(tool: &str, said: &str) -> Outcome {
    let code = |sign: &str| {
        let rest = said.lines().find_map(|line| line.strip_prefix(sign));
        rest.and_then(|code| code.trim().parse::<i64>().ok())
    };
    match () {
        () if said.strip_prefix("unsupported call: ").is_some_and(|name| name == tool || name.contains(tool)) => {
            Outcome::NoSuchTool
        }
        () if said.starts_with("failed to parse function arguments") => Outcome::Refused,
        () if said.starts_with("Command blocked by PreToolUse hook: ")
            || said.starts_with("Tool call blocked by PreToolUse hook: ") =>
        {
            Outcome::DeniedByHook
        }
        () if said.contains("rejected by user") => Outcome::DeniedByClient,
        () if said.starts_with("apply_patch verification failed") => Outcome::Failed,
        () if code("Process exited with code ").or_else(|| code("Exit code: ")).is_some_and(|code| code != 0) => {
            Outcome::Failed
        }
        () => Outcome::Completed,
    }
}

impl Lines for Rollout {
    fn tell(&self, entry: &Value, take: &mut dyn FnMut(Told<'_>)) {
        if let Some(Found { id, tool, input, server_side, status }) = found(entry) {
            let input = Digest::of(json::canonical(&input).as_bytes());
            take(Told::Call(Call { call_id: id.to_owned(), tool, input, agent: None, server_side, key: None }));
            if let Some(status) = status {
                let outcome = if status == "completed" { Outcome::Completed } else { Outcome::Failed };
                take(Told::Result { call_id: id, outcome: &|_tool| outcome });
            }
            return;
        }
        let Some(item) = payload(entry, "response_item") else { return };
        let ends = matches!(text(item, "type"), Some("function_call_output" | "custom_tool_call_output"));
        if let (true, Some(call_id)) = (ends, text(item, "call_id")) {
            let said = said(item.get("output").unwrap_or(&Value::Null));
            take(Told::Result { call_id, outcome: &|tool| outcome(tool, said) });
        }
    }

    fn spoken(&self, entry: &Value) -> Option<Spoken> {
        if let Some(model) = self.model(entry) {
            model.clone_into(&mut self.model.borrow_mut());
            return None;
        }
        let record = payload(entry, "token_usage_record")?;
        let usage = record.get("usage")?;
        let count = |name: &str| match usage.get(name) {
            None | Some(Value::Null) => Some(0),
            Some(count) => count.as_u64(),
        };
        let message = || {
            let (read, written) = (count("cached_input_tokens")?, count("cache_write_input_tokens")?);
            let tokens = Tokens {
                input: count("input_tokens")?.saturating_sub(read).saturating_sub(written),
                output: count("output_tokens")?,
                cache_read: read,
                cache_write: written,
                ..Tokens::default()
            };
            let model = self.model.borrow().clone();
            let rate = Rate { model, length: Rate::length_of(tokens.all_input()), ..Rate::default() };
            Some(Spoken::Message { id: text(record, "response_id")?.to_owned(), rate, tokens, at: None })
        };
        Some(message().unwrap_or(Spoken::Unreadable))
    }

    fn prompt(&self, entry: &Value) -> Option<Option<Timestamp>> {
        let person = || {
            let event = payload(entry, "event_msg").filter(|event| text(event, "type") == Some("item_completed"))?;
            (text(event.get("item")?, "type") == Some("UserMessage")).then_some(())
        };
        // What one agent orders another.
        let order = || {
            let item = payload(entry, "response_item").filter(|item| text(item, "type") == Some("agent_message"))?;
            text(item, "recipient").filter(|recipient| *recipient != "/root").map(drop)
        };
        person().or_else(order).map(|()| moment(entry))
    }

    fn model<'a>(&self, entry: &'a Value) -> Option<&'a str> {
        payload(entry, "turn_context").and_then(|turn| text(turn, "model"))
    }

    fn words(&self, entry: &Value) -> Option<String> {
        let message = payload(entry, "response_item").filter(|item| text(item, "type") == Some("message"))?;
        let blocks =
            message.get("content").and_then(Value::as_array).filter(|_| text(message, "role") == Some("assistant"))?;
        let words: Vec<&str> = blocks.iter().filter_map(|block| text(block, "text")).collect();
        (!words.is_empty()).then(|| words.join("\n"))
    }

    fn acts(&self, entry: &Value) -> Vec<Action> {
        let Some(Found { id, tool, input, server_side: false, .. }) = found(entry) else { return Vec::new() };
        let kind = asked(&tool, input, "").kind;
        let reads = matches!(kind, ToolKind::Read { .. } | ToolKind::Own);
        let lasting = matches!(kind, ToolKind::Delegate { .. });
        let action = Action {
            call_id: id.to_owned(),
            tool,
            kind,
            change: Change::Unknown,
            cwd: None,
            lasting,
            succeeded: None,
            altered: false,
            ended: None,
        };
        if reads { Vec::new() } else { vec![action] }
    }

    fn made(&self, entry: &Value, cwd: &str) -> Vec<Made> {
        let made = found(entry).map(|Found { id, tool, input, server_side, .. }| Made {
            id: id.to_owned(),
            call: asked(&tool, input, cwd),
            agent: None,
            server_side,
        });
        made.into_iter().collect()
    }

    fn folder<'a>(&self, entry: &'a Value) -> Option<&'a str> {
        let payload = payload(entry, "turn_context").or_else(|| payload(entry, "session_meta"));
        payload.and_then(|payload| text(payload, "cwd"))
    }
}

/// The call as hooks are asked about it.
fn asked(tool: &str, input: Value, cwd: &str) -> ToolCall {
    let folder = ["workdir", "cwd"].iter().find_map(|name| text(&input, name)).unwrap_or_default();
    let cwd = match folder {
        "" => cwd.to_owned(),
        folder if folder.starts_with('/') => folder.to_owned(),
        folder => format!("{cwd}/{folder}"),
    };
    let input = match (text(&input, "cmd"), input.get("command").and_then(Value::as_array)) {
        (Some(line), _) => command(line),
        // Words: a shell with its line, or a program.
        (None, Some(words)) if tool == "Bash" => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            match words.as_slice() {
                [_, "-c" | "-lc", line] => command(line),
                words => command(&words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")),
            }
        }
        (None, _) => input,
    };
    let kind = match tool {
        // Text that is typed into a shell is a line of it.
        "write_stdin" => ToolKind::Shell { command: text(&input, "chars").unwrap_or_default().to_owned() },
        "apply_patch" if text(&input, "command").is_none() => {
            let paths = input.as_object().into_iter().flat_map(json::Object::iter).map(|(path, _)| path.to_owned());
            ToolKind::edit(paths.collect())
        }
        _ => return tools::call(tool.to_owned(), input, &cwd),
    };
    ToolCall::of(tool, kind, input, cwd)
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The rollouts of root threads that began in a project.
pub fn kept(project: &Path, own: &Path) -> Vec<PathBuf> {
    let level = |folders: Vec<PathBuf>| folders.iter().flat_map(|folder| jsonl::inside(folder)).collect::<Vec<_>>();
    let days = level(level(level(vec![own.join("sessions")])));
    jsonl::beginning(days.into_iter(), |path, first| {
        let meta = payload(first, "session_meta").filter(|meta| text(meta, "parent_thread_id").is_none());
        let cwd = meta.and_then(|meta| text(meta, "cwd"));
        thread(path).is_some() && cwd.is_some_and(|cwd| Path::new(cwd).starts_with(project))
    })
}

/// Whether a file begins as a rollout does.
pub fn is_one(path: &Path) -> bool {
    payload(&first_entry(path), "session_meta").is_some_and(|meta| text(meta, "cli_version").is_some())
}

/// The past calls of a session.
pub fn calls(main: &Path, take: &mut dyn FnMut(PastCall)) -> Result<Unseen, TranscriptError> {
    let agent =
        |name: &str, path: &Path| (name != MAIN).then(|| PastAgent { id: name.to_owned(), kind: note(path).kind });
    jsonl::calls(&Rollout::default(), (files(main)?, "/"), agent, take)
}

/// Tells of usage. The model stands on a line of its own at each turn's beginning, which may lie before `from`.
pub fn usage(path: &Path, from: u64, take: &mut dyn FnMut(Spoken)) -> Result<Reach, TranscriptError> {
    jsonl::usage(&speaking(path, from), path, from, take)
}

/// The lines, with the model that speaks at byte `from`.
pub fn speaking(path: &Path, from: u64) -> Rollout {
    let lines = Rollout::default();
    let before = if from > 0 { jsonl::model_before(&lines, path, from) } else { None };
    Rollout { model: RefCell::new(before.unwrap_or_default()) }
}

/// The id in a rollout's name.
fn thread(path: &Path) -> Option<String> {
    let stem = path.file_stem()?.to_str()?.strip_prefix("rollout-")?;
    let at = stem.len().checked_sub(36)?;
    stem.get(at..).map(str::to_owned)
}

/// The rollouts of the session: the root thread's, then those of threads that it led to, which began on its day or later.
pub fn files(main: &Path) -> Result<Listing, TranscriptError> {
    let mut listing = Listing { files: vec![(MAIN.to_owned(), main.to_owned())], unread: 0 };
    let Some(root) = thread(main) else { return Ok(listing) };
    let mut found = BTreeMap::new();
    for folder in days(main) {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            // Names begin with their moments.
            if path.file_name() <= main.file_name() && path.parent() == main.parent() {
                continue;
            }
            let Some(id) = thread(&path).filter(|id| *id != root) else { continue };
            let meta = first_entry(&path);
            let session = payload(&meta, "session_meta").and_then(|meta| text(meta, "session_id"));
            if session != Some(root.as_str()) {
                continue;
            }
            found.insert(id, path);
            if found.len() > MOST_THREADS {
                found.pop_last();
                listing.unread += 1;
            }
        }
    }
    listing.files.extend(found);
    Ok(listing)
}

/// The folders of the day that a rollout began on, and of later days: `sessions/YEAR/MONTH/DAY`.
fn days(main: &Path) -> Vec<PathBuf> {
    let Some(first) = main.parent() else { return Vec::new() };
    let Some(all) = first.ancestors().nth(3) else { return vec![first.to_owned()] };
    let below = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let numbers = entries
            .map(|entry| entry.path())
            .filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit)));
        numbers.collect::<Vec<_>>()
    };
    let mut out: Vec<PathBuf> =
        below(all).iter().flat_map(|year| below(year)).flat_map(|month| below(&month)).collect();
    out.retain(|folder| folder.as_path() > first);
    out.push(first.to_owned());
    out.sort();
    out.truncate(MOST_DAYS);
    out
}

/// The model that speaks where a call is made, or last.
pub fn model(path: &Path, call: Option<&str>) -> Option<String> {
    jsonl::model(&Rollout::default(), path, call)
}

/// What a thread's first line says of it.
pub fn note(path: &Path) -> AgentNote {
    let meta = first_entry(path);
    let meta = payload(&meta, "session_meta");
    let spawned = meta.filter(|meta| text(meta, "parent_thread_id").is_some());
    let kind = spawned.map(|meta| text(meta, "agent_role").unwrap_or("default").to_owned());
    AgentNote { kind, call: None, depth: None }
}
