//! The client's past calls with their inputs.
//!
//! Owns where the client keeps the transcripts of a project, and the reading of whole calls. Refuses to guess a folder: a call whose line
//! names none has that of the line before. Limits are those of [`super::transcript`]. Format page: `spec/clients/claude-code.md`.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use writ_core::json::Value;
use writ_core::{Timestamp, ToolCall};

use super::outcome::transcript_outcome;
use super::transcript::{LINE_LIMIT, files, open, skip_line};
use super::usage::note;
use crate::past::{PastAgent, PastCall, Unseen};
use crate::transcript::{MAIN, TranscriptError, parse_line};

/// How many lines at most are looked at for a folder, or for the signs of a transcript.
const HEAD: usize = 64;
/// The longest of them.
const HEAD_LINE: u64 = 1 << 20;

/// The transcripts of a project: those of its folder and of folders below it.
pub fn kept(project: &Path, user: &Path, folder: Option<&Path>) -> Vec<PathBuf> {
    let own = folder.map_or_else(|| user.join(".claude"), Path::to_owned);
    let name = folder_name(project);
    let mut found = Vec::new();
    for entry in fs::read_dir(own.join("projects")).into_iter().flatten().flatten() {
        let text = entry.file_name().to_string_lossy().into_owned();
        // The same name may be another folder's: what a transcript itself says decides.
        if text == name || text.strip_prefix(&name).is_some_and(|rest| rest.starts_with('-')) {
            let inside = fs::read_dir(entry.path()).into_iter().flatten().flatten();
            found.extend(inside.map(|entry| entry.path()).filter(|path| is_of(path, project)));
        }
    }
    let written = |path: &PathBuf| fs::metadata(path).and_then(|found| found.modified()).ok();
    found.sort_by_cached_key(|path| (written(path), path.clone()));
    found
}

/// A folder's name among the client's projects.
fn folder_name(project: &Path) -> String {
    project.to_string_lossy().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

/// Whether a file is a transcript of a session in a folder, or below it.
fn is_of(path: &Path, project: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "jsonl")
        && head(path, |entry| text(entry, "cwd").map(|cwd| Path::new(cwd).starts_with(project))) == Some(true)
}

/// Whether a file begins as this client's transcripts do.
pub fn is_one(path: &Path) -> bool {
    let sign = |entry: &Value| {
        let known = text(entry, "sessionId").is_some() && text(entry, "type").is_some();
        // A client that was made from an early one of this notes where each message is from.
        let other = text(entry, "provenance").is_some();
        (known && !other && (entry.get("parentUuid").is_some() || text(entry, "uuid").is_some())).then_some(())
    };
    head(path, sign).is_some()
}

/// The first answer that the lines at a file's beginning give.
fn head<T>(path: &Path, answer: impl Fn(&Value) -> Option<T>) -> Option<T> {
    let mut reader = open(path, 0).ok()?;
    let mut line = Vec::new();
    for _ in 0..HEAD {
        line.clear();
        if (&mut reader).take(HEAD_LINE).read_until(b'\n', &mut line).ok()? == 0 {
            return None;
        }
        if let Some(found) = parse_line(&line).ok().as_ref().and_then(&answer) {
            return Some(found);
        }
    }
    None
}

/// Tells the calls of a session.
pub fn calls(main: &Path, take: &mut dyn FnMut(PastCall)) -> Result<Unseen, TranscriptError> {
    let listing = files(main)?;
    let mut unseen = Unseen { agents: listing.unread, ..Unseen::default() };
    let mut cwd = String::new();
    for (name, path) in listing.files {
        let agent = (name != MAIN).then(|| PastAgent { id: name, kind: note(&path).kind });
        let mut reading = Reading { agent, cwd, open: HashMap::new(), calls: Vec::new(), unseen };
        let failed = |source| TranscriptError::Io { path: path.clone(), source };
        reading.walk(open(&path, 0)?).map_err(failed)?;
        reading.calls.into_iter().for_each(&mut *take);
        (unseen, cwd) = (reading.unseen, reading.cwd);
    }
    Ok(unseen)
}

/// One transcript, as far as it was read.
struct Reading {
    agent: Option<PastAgent>,
    /// The folder that the last line named.
    cwd: String,
    /// Calls without a result yet, by their ids.
    open: HashMap<String, usize>,
    calls: Vec<PastCall>,
    unseen: Unseen,
}

impl Reading {
    fn walk(&mut self, mut reader: impl BufRead) -> std::io::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if (&mut reader).take(LINE_LIMIT).read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            match parse_line(&line) {
                Ok(entry) if entry.as_object().is_some() => self.take(&entry),
                _ if line.trim_ascii().is_empty() => {}
                _ => {
                    self.unseen.unreadable += 1;
                    if line.last() != Some(&b'\n') {
                        skip_line(&mut reader)?;
                    }
                }
            }
        }
    }

    fn take(&mut self, entry: &Value) {
        if let Some(cwd) = text(entry, "cwd").filter(|cwd| cwd.starts_with('/')) {
            cwd.clone_into(&mut self.cwd);
        }
        let content = entry.get("message").and_then(|message| message.get("content")).and_then(Value::as_array);
        for block in content.unwrap_or_default() {
            match text(block, "type") {
                Some("tool_use") => self.call(entry, block),
                Some("server_tool_use" | "mcp_tool_use") => self.unseen.server_side += 1,
                Some("tool_result") => self.result(entry, block),
                _ => {}
            }
        }
    }

    fn call(&mut self, entry: &Value, block: &Value) {
        let (Some(id), Some(tool), Some(input)) = (text(block, "id"), text(block, "name"), block.get("input")) else {
            self.unseen.unreadable += 1;
            return;
        };
        // The client repeats a message whose blocks it writes one by one.
        if self.open.contains_key(id) {
            return;
        }
        let cwd = if self.cwd.is_empty() { "/" } else { &self.cwd };
        self.open.insert(id.to_owned(), self.calls.len());
        self.calls.push(PastCall {
            id: id.to_owned(),
            call: ToolCall::new(tool, input.clone(), cwd),
            agent: self.agent.clone(),
            at: text(entry, "timestamp").and_then(|moment| Timestamp::parse(moment).ok()),
            outcome: None,
        });
    }

    fn result(&mut self, entry: &Value, block: &Value) {
        let at = text(block, "tool_use_id").and_then(|id| self.open.get(id).copied());
        if let Some(call) = at.and_then(|at| self.calls.get_mut(at)) {
            call.outcome = Some(transcript_outcome(&call.call.tool, block, entry.get("permissionDecision")));
        }
    }
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use writ_core::Outcome;

    fn line(cwd: &str, content: &str) -> String {
        format!(
            r#"{{"type":"assistant","sessionId":"s","uuid":"u","cwd":"{cwd}","timestamp":"2026-01-18T10:30:00.000Z","message":{{"content":[{content}]}}}}"#
        )
    }

    #[test]
    fn calls_have_their_folder_their_agent_and_what_became_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let main = folder.path().join("s.jsonl");
        let lines = [
            line("/w", r#"{"type":"tool_use","id":"a","name":"Bash","input":{"command":"ls"}}"#),
            line("/w", r#"{"type":"tool_use","id":"a","name":"Bash","input":{"command":"ls"}}"#),
            line("/w/sub", r#"{"type":"tool_use","id":"b","name":"Read","input":{"file_path":"x"}}"#),
            r#"{"type":"user","permissionDecision":{"decision":"reject","reasonCode":"hook:PreToolUse"},"message":{"content":[{"type":"tool_result","tool_use_id":"b","is_error":true,"content":"no"}]}}"#.to_owned(),
            line("/w", r#"{"type":"server_tool_use","id":"c","name":"web_search","input":{}}"#),
            line("/w", r#"{"type":"tool_use","id":"d","input":{}}"#),
            "{broken".to_owned(),
        ];
        fs::write(&main, lines.join("\n")).unwrap();
        let agents = folder.path().join("s/subagents");
        fs::create_dir_all(&agents).unwrap();
        let own = line("/w", r#"{"type":"tool_use","id":"e","name":"Glob","input":{"pattern":"*"}}"#);
        fs::write(agents.join("agent-x1.jsonl"), own).unwrap();
        fs::write(agents.join("agent-x1.meta.json"), r#"{"agentType":"Explore"}"#).unwrap();
        let mut told = Vec::new();
        let unseen = calls(&main, &mut |call| told.push(call)).unwrap();
        assert_eq!(unseen, Unseen { unreadable: 2, server_side: 1, agents: 0 });
        let ids: Vec<_> = told.iter().map(|call| (call.id.as_str(), call.call.cwd.as_str(), call.outcome)).collect();
        assert_eq!(ids, [("a", "/w", None), ("b", "/w/sub", Some(Outcome::DeniedByHook)), ("e", "/w", None)]);
        assert_eq!(told.last().unwrap().agent.as_ref().unwrap().kind.as_deref(), Some("Explore"));
        assert!(is_one(&main) && told.get(1).unwrap().was_stopped());
    }

    #[test]
    fn a_project_has_its_own_transcripts_and_not_those_of_a_like_name() {
        let user = tempfile::tempdir().unwrap();
        let place = |folder: &str, name: &str, cwd: &str| {
            let path = user.path().join(".claude/projects").join(folder);
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join(name), line(cwd, "")).unwrap();
        };
        place("-w-app", "a.jsonl", "/w/app");
        place("-w-app-two", "b.jsonl", "/w/app-two");
        place("-w-app-sub", "c.jsonl", "/w/app/sub");
        place("-w-app", "d.txt", "/w/app");
        let found = kept(Path::new("/w/app"), user.path(), None);
        let mut names: Vec<_> = found.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, ["a.jsonl", "c.jsonl"]);
        assert!(kept(Path::new("/w/none"), user.path(), None).is_empty());
        assert!(!is_one(&user.path().join(".claude/projects/-w-app/none")));
    }
}
