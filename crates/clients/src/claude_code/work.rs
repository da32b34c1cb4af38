//! What one agent did and said, from its transcript.
//!
//! Owns the reading of its last message and of every call that may have changed a file, and of what the client noted of others who
//! changed files meanwhile: hooks that are not Writ's, and files that somebody edited. All come in the order of the transcript;
//! a call whose result is an error, or missing, is marked so. Limits are those of [`super::transcript`].

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use writ_core::json::Value;
use writ_core::{Timestamp, ToolKind, regular_file};

use crate::transcript::parse_line;
use crate::work::{Action, Change, Replacement, Work};

/// The tool of an [`Action`] that a hook other than Writ's did: a formatter, say. Nothing is known of it.
const HOOK: &str = "a hook";
/// The tool of an [`Action`] that somebody other than the agent did to a file, as the client noticed.
const EDITED: &str = "an edit by somebody else";

/// Longest transcript that is read, in bytes.
const FILE_LIMIT: u64 = 256 << 20;

/// Tools that leave files alone.
const READERS: &[&str] = &[
    "Read",
    "Glob",
    "Grep",
    "LS",
    "NotebookRead",
    "WebFetch",
    "WebSearch",
    "TodoRead",
    "TodoWrite",
    "TaskCreate",
    "TaskUpdate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "BashOutput",
    "KillBash",
    "KillShell",
    "ToolSearch",
    "AskUserQuestion",
    "EnterPlanMode",
    "ExitPlanMode",
    "ListMcpResourcesTool",
    "ReadMcpResourceTool",
    "Skill",
    "SlashCommand",
    "SendMessage",
    "StructuredOutput",
    "LSP",
];

/// Reads a transcript; `None` when there is none that can be read.
pub fn read(path: &Path) -> Option<Work> {
    let file = regular_file::open(path).ok()?;
    if file.metadata().ok()?.len() > FILE_LIMIT {
        return None;
    }
    let mut reader = BufReader::new(file.take(FILE_LIMIT));
    let mut reading = Reading { work: Work { whole: true, ..Work::default() }, open: HashMap::new() };
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).ok()? > 0 {
        match parse_line(&line) {
            Ok(entry) => reading.take(&entry),
            Err(_) => reading.work.whole &= line.trim_ascii().is_empty(),
        }
        line.clear();
    }
    Some(reading.work)
}

/// The work told so far.
struct Reading {
    work: Work,
    /// Calls by their ids.
    open: HashMap<String, usize>,
}

impl Reading {
    fn take(&mut self, entry: &Value) {
        if let Some(attachment) = entry.get("attachment") {
            self.work.actions.extend(by_others(attachment, entry));
        }
        let content = entry.get("message").and_then(|message| message.get("content"));
        let spoken = text(entry, "type") == Some("assistant");
        if let (true, Some(words)) = (spoken, content.and_then(Value::as_str)) {
            self.work.last_message = Some(words.to_owned());
        }
        let mut words = Vec::new();
        for block in content.and_then(Value::as_array).unwrap_or_default() {
            match text(block, "type") {
                Some("text") if spoken => words.extend(text(block, "text")),
                Some("tool_use") => self.call(block, entry),
                Some("tool_result") => self.result(block, entry),
                _ => {}
            }
        }
        if !words.is_empty() {
            self.work.last_message = Some(words.join("\n"));
        }
    }

    fn call(&mut self, block: &Value, entry: &Value) {
        let (Some(id), Some(tool)) = (text(block, "id"), text(block, "name")) else { return };
        if !READERS.contains(&tool) {
            self.open.insert(id.to_owned(), self.work.actions.len());
            let input = block.get("input").unwrap_or(&Value::Null);
            self.work.actions.push(Action {
                call_id: id.to_owned(),
                // What this one runs goes on behind its result.
                kind: if tool == "Monitor" { ToolKind::Other } else { ToolKind::canonical(tool, input) },
                change: change(tool, input),
                lasting: flag(input, "run_in_background") || matches!(tool, "Agent" | "Task"),
                ..action(tool, entry)
            });
        }
    }

    fn result(&mut self, block: &Value, entry: &Value) {
        let open = text(block, "tool_use_id").and_then(|id| self.open.get(id).copied());
        if let Some(action) = open.and_then(|at| self.work.actions.get_mut(at)) {
            action.succeeded = Some(!flag(block, "is_error"));
            action.altered = entry.get("toolUseResult").is_some_and(|result| is_altered(&action.change, result));
            action.ended = moment(entry);
        }
    }
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

fn flag(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(false)
}

/// What a call makes of its file when it does what it says.
fn change(tool: &str, input: &Value) -> Change {
    let member = |value: &Value, name: &str| text(value, name).unwrap_or_default().to_owned();
    let replacement = |value: &Value| Replacement {
        old: member(value, "old_string"),
        new: member(value, "new_string"),
        all: flag(value, "replace_all"),
    };
    match tool {
        "Write" => Change::Content(member(input, "content")),
        // An edit of nothing makes the file.
        "Edit" if member(input, "old_string").is_empty() => Change::Content(member(input, "new_string")),
        "Edit" => Change::Edits(vec![replacement(input)]),
        "MultiEdit" => {
            let edits = input.get("edits").and_then(Value::as_array).unwrap_or_default();
            Change::Edits(edits.iter().map(replacement).collect())
        }
        _ => Change::Unknown,
    }
}

fn moment(entry: &Value) -> Option<Timestamp> {
    text(entry, "timestamp").and_then(|moment| Timestamp::parse(moment).ok())
}

fn action(tool: &str, entry: &Value) -> Action {
    Action {
        call_id: String::new(),
        tool: tool.to_owned(),
        kind: ToolKind::Other,
        change: Change::Unknown,
        cwd: text(entry, "cwd").map(str::to_owned),
        lasting: false,
        succeeded: None,
        altered: false,
        ended: None,
    }
}

/// What the client noted beside the conversation: a hook that ran, a file that was changed by somebody else.
fn by_others(attachment: &Value, entry: &Value) -> Option<Action> {
    let text = |name: &str| text(attachment, name);
    let kind = text("type")?;
    let ended = moment(entry);
    if kind.starts_with("hook_") || kind.starts_with("async_hook") {
        return (!is_own(attachment)).then(|| Action { ended, ..action(HOOK, entry) });
    }
    let path = text("filename").or_else(|| text("file_path")).filter(|_| kind.contains("edited"))?;
    let kind = ToolKind::edit(vec![path.to_owned()]);
    Some(Action { kind, ended, succeeded: Some(true), ..action(EDITED, entry) })
}

/// Whether a hook is Writ's: by its command, or, where the client names none, by an answer that says nothing.
fn is_own(attachment: &Value) -> bool {
    let text = |name: &str| text(attachment, name);
    match text("command") {
        Some(command) => {
            let mut words = command.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
            let program = words.next().and_then(|word| word.rsplit('/').next());
            program == Some("writ") && words.next().is_none_or(|word| word == "hook")
        }
        None => {
            text("stdout").is_some_and(|stdout| stdout.trim() == "{}")
                || text("type") == Some("hook_permission_decision")
        }
    }
}

/// Whether a tool's own account of a write differs from what it was asked to write.
fn is_altered(change: &Change, result: &Value) -> bool {
    let differs = |told: &str, asked: &str| text(result, told).is_some_and(|told| told != asked);
    let replaces = |old: &str, new: &str| differs("oldString", old) || differs("newString", new);
    flag(result, "userModified")
        || match change {
            Change::Content(content) => differs("content", content) || replaces("", content),
            Change::Edits(edits) => matches!(edits.as_slice(), [edit] if replaces(&edit.old, &edit.new)),
            Change::Unknown => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_actions_and_the_last_message() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let lines = [
            r#"{"type":"user","message":{"role":"user","content":"do it"},"cwd":"/w"}"#,
            r#"{"type":"assistant","cwd":"/w","message":{"content":[{"type":"text","text":"first"},{"type":"tool_use","id":"a","name":"Write","input":{"file_path":"/w/x"}},{"type":"tool_use","id":"b","name":"Read","input":{}}]}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","content":"ok"}]}}"#,
            r#"{"type":"assistant","cwd":"/w","message":{"content":[{"type":"tool_use","id":"c","name":"Bash","input":{"command":"false"}}]}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c","is_error":true,"content":"no"}]}}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"text","text":"Status: DONE"}]}}"#,
        ];
        std::fs::write(&path, lines.join("\n")).unwrap();
        let work = read(&path).unwrap();
        let actions: Vec<_> = work.actions.iter().map(|action| (action.call_id.as_str(), action.succeeded)).collect();
        assert_eq!(actions, [("a", Some(true)), ("c", Some(false))]);
        assert_eq!(work.last_message.as_deref(), Some("Status: DONE"));
        assert!(work.whole && read(folder.path()).is_none());
        std::fs::write(&path, "{\"broken").unwrap();
        assert!(!read(&path).unwrap().whole);
    }

    #[test]
    fn others_who_changed_files_are_told_of_and_writ_itself_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let tools = |attachment: &str| {
            std::fs::write(&path, format!(r#"{{"type":"attachment","attachment":{attachment}}}"#)).unwrap();
            read(&path).unwrap().actions.into_iter().map(|action| action.tool).collect::<Vec<_>>()
        };
        let formatter =
            r#"{"type":"hook_success","hookEvent":"PostToolUse","command":"prettier --write .","stdout":""}"#;
        assert_eq!(tools(formatter), [HOOK]);
        assert_eq!(tools(r#"{"type":"hook_non_blocking_error","stderr":"x"}"#), [HOOK]);
        assert_eq!(tools(r#"{"type":"edited_text_file","filename":"/w/a.py","snippet":""}"#), [EDITED]);
        for own in ["writ", "writ hook", "'/usr/bin/writ' hook"] {
            let attachment = format!(r#"{{"type":"hook_success","command":"{own}","stdout":"x"}}"#);
            assert!(tools(&attachment).is_empty(), "{own}");
        }
        assert!(tools(r#"{"type":"hook_success","stdout":"{}"}"#).is_empty());
        assert!(tools(r#"{"type":"budget_usd","used":1}"#).is_empty());
        let lines = [
            r#"{"message":{"content":[{"type":"tool_use","id":"a","name":"Write","input":{"file_path":"/w/x","content":"a"}}]}}"#,
            r#"{"message":{"content":[{"type":"tool_result","tool_use_id":"a"}]},"toolUseResult":{"content":"b"}}"#,
        ];
        std::fs::write(&path, lines.join("\n")).unwrap();
        assert!(read(&path).unwrap().actions.iter().all(|action| action.altered));
    }
}
