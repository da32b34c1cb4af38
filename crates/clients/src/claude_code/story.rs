//! What one agent did and said, from its transcript, with the inputs that prove it.
//!
//! Owns the reading of last words and of every call that may have changed a file. The calls come in the model's order; one whose result is an
//! error, or missing, is marked so. Limits are those of [`super::transcript`].

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use writ_core::json::{Limits, Value, parse_with};
use writ_core::plain;

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
                        self.deeds.push(Deed { call_id: id, tool, input, cwd: text(entry, "cwd"), succeeded: None });
                    }
                }
                Some("tool_result") => {
                    let deed = text(block, "tool_use_id").and_then(|id| open.get(&id).copied());
                    if let Some(deed) = deed.and_then(|at| self.deeds.get_mut(at)) {
                        let failed = block.get("is_error").and_then(Value::as_bool).unwrap_or(false);
                        deed.succeeded = Some(!failed);
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
}
