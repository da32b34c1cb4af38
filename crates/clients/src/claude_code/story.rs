//! What one agent did and said, from its transcript, with the inputs that prove it.
//!
//! Owns the reading of last words and of every call that may have changed a file, and of what the client noted of others who
//! changed files meanwhile: hooks that are not Writ's, and files that somebody edited. All come in the order of the transcript;
//! a call whose result is an error, or missing, is marked so. Limits are those of [`super::transcript`].

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use writ_core::json::{Limits, Value, parse_with};
use writ_core::{Timestamp, plain};

/// The tool of a [`Deed`] that a hook other than Writ's did: a formatter, say. Nothing is known of it.
pub const HOOK: &str = "a hook";
/// The tool of a [`Deed`] that somebody other than the agent did to the file `file_path`, as the client noticed.
pub const EDITED: &str = "an edit by somebody else";

/// Longest transcript that is read for a story, in bytes.
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

/// A call that wrote a file or ran a command, or may have.
#[derive(Clone, Debug, PartialEq)]
pub struct Deed {
    /// The call's id.
    pub call_id: String,
    /// `Write`, `Edit`, `MultiEdit`, `NotebookEdit`, `Bash`, or one that nothing is known of.
    pub tool: String,
    /// Its input.
    pub input: Value,
    /// The working directory then.
    pub cwd: Option<String>,
    /// Whether the tool reported success; `None` when the transcript has no result.
    pub succeeded: Option<bool>,
    /// The tool wrote something else than its input says: a human or a hook changed that first.
    pub altered: bool,
    /// When its result came, by the client's clock.
    pub ended: Option<Timestamp>,
}

/// What a transcript tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Story {
    /// Writes and commands, in order.
    pub deeds: Vec<Deed>,
    /// The text of the last turn that has any.
    pub last_words: Option<String>,
    /// Every line could be read.
    pub whole: bool,
}

/// Reads a transcript; `None` when there is none that can be read.
pub fn read(path: &Path) -> Option<Story> {
    let file = plain::open(path).ok()?;
    if file.metadata().ok()?.len() > FILE_LIMIT {
        return None;
    }
    let mut reader = BufReader::new(file.take(FILE_LIMIT));
    let mut story = Story { whole: true, ..Story::default() };
    let mut open = HashMap::new();
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).ok()? > 0 {
        match parse_with(&line, Limits::FOREIGN) {
            Ok(entry) => story.take(&entry, &mut open),
            Err(_) => story.whole &= line.trim_ascii().is_empty(),
        }
        line.clear();
    }
    Some(story)
}

impl Story {
    fn take(&mut self, entry: &Value, open: &mut HashMap<String, usize>) {
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        if let Some(attachment) = entry.get("attachment") {
            self.deeds.extend(by_others(attachment, entry));
        }
        let message = entry.get("message");
        let content = message.and_then(|message| message.get("content"));
        let spoken = text(entry, "type").as_deref() == Some("assistant");
        if let (true, Some(words)) = (spoken, content.and_then(Value::as_str)) {
            self.last_words = Some(words.to_owned());
        }
        let mut words = Vec::new();
        for block in content.and_then(Value::as_array).unwrap_or_default() {
            match block.get("type").and_then(Value::as_str) {
                Some("text") if spoken => words.extend(text(block, "text")),
                Some("tool_use") => {
                    let (Some(id), Some(tool)) = (text(block, "id"), text(block, "name")) else { continue };
                    if !READERS.contains(&tool.as_str()) {
                        open.insert(id.clone(), self.deeds.len());
                        let input = block.get("input").cloned().unwrap_or(Value::Null);
                        self.deeds.push(Deed { call_id: id, input, ..deed(tool, entry) });
                    }
                }
                Some("tool_result") => {
                    let deed = text(block, "tool_use_id").and_then(|id| open.get(&id).copied());
                    if let Some(deed) = deed.and_then(|at| self.deeds.get_mut(at)) {
                        let failed = block.get("is_error").and_then(Value::as_bool).unwrap_or(false);
                        deed.succeeded = Some(!failed);
                        deed.altered = entry.get("toolUseResult").is_some_and(|result| is_altered(&deed.input, result));
                        deed.ended = moment(entry);
                    }
                }
                _ => {}
            }
        }
        if !words.is_empty() {
            self.last_words = Some(words.join("\n"));
        }
    }
}

fn moment(entry: &Value) -> Option<Timestamp> {
    entry.get("timestamp").and_then(Value::as_str).and_then(|moment| Timestamp::parse(moment).ok())
}

fn deed(tool: impl Into<String>, entry: &Value) -> Deed {
    let cwd = entry.get("cwd").and_then(Value::as_str).map(str::to_owned);
    let (call_id, input) = (String::new(), Value::Null);
    Deed { call_id, tool: tool.into(), input, cwd, succeeded: None, altered: false, ended: None }
}

/// What the client noted beside the conversation: a hook that ran, a file that was changed by somebody else.
fn by_others(attachment: &Value, entry: &Value) -> Option<Deed> {
    let text = |name: &str| attachment.get(name).and_then(Value::as_str);
    let kind = text("type")?;
    let ended = moment(entry);
    if kind.starts_with("hook_") || kind.starts_with("async_hook") {
        return (!is_own(attachment)).then(|| Deed { ended, ..deed(HOOK, entry) });
    }
    let path = text("filename").or_else(|| text("file_path")).filter(|_| kind.contains("edited"))?;
    let input = Value::Object([("file_path".to_owned(), Value::from(path))].into_iter().collect());
    Some(Deed { input, ended, succeeded: Some(true), ..deed(EDITED, entry) })
}

/// Whether a hook is Writ's: by its command, or, where the client names none, by an answer that says nothing.
fn is_own(attachment: &Value) -> bool {
    let text = |name: &str| attachment.get(name).and_then(Value::as_str);
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
fn is_altered(input: &Value, result: &Value) -> bool {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let differs = |asked: &str, told: &str| {
        text(result, told).is_some_and(|told| text(input, asked).is_some_and(|asked| asked != told))
    };
    let by_user = result.get("userModified").and_then(Value::as_bool).unwrap_or(false);
    by_user || differs("content", "content") || differs("old_string", "oldString") || differs("new_string", "newString")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_deeds_and_last_words() {
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
        let story = read(&path).unwrap();
        let deeds: Vec<_> = story.deeds.iter().map(|deed| (deed.call_id.as_str(), deed.succeeded)).collect();
        assert_eq!(deeds, [("a", Some(true)), ("c", Some(false))]);
        assert_eq!(story.last_words.as_deref(), Some("Status: DONE"));
        assert!(story.whole && read(folder.path()).is_none());
        std::fs::write(&path, "{\"broken").unwrap();
        assert!(!read(&path).unwrap().whole);
    }

    #[test]
    fn others_who_changed_files_are_told_of_and_writ_itself_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let tools = |attachment: &str| {
            std::fs::write(&path, format!(r#"{{"type":"attachment","attachment":{attachment}}}"#)).unwrap();
            read(&path).unwrap().deeds.into_iter().map(|deed| deed.tool).collect::<Vec<_>>()
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
        assert!(read(&path).unwrap().deeds.iter().all(|deed| deed.altered));
    }
}
