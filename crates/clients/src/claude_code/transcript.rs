//! The client's own record of a session.
//!
//! Owns the reading of transcripts: which tool calls the model made and what became of them, in the main conversation
//! and in every subagent. Refuses to skip what it cannot read: such lines are counted and named, so that nobody takes a
//! gap for completeness. The invariant: every `tool_use` block on a readable line is a [`Call`]. Format page:
//! `spec/clients/claude-code.md`.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use writ_core::json::{Limits, Value, canonical, parse_with};
use writ_core::{Digest, Outcome, Timestamp, plain};

use super::outcome::transcript_outcome;
use crate::transcript::{Call, Session, Subagent, Told, Transcript, TranscriptError};

/// The longest line that is read; longer ones count as unreadable.
pub const LINE_LIMIT: u64 = 64 << 20;
/// The longest transcript file.
pub const FILE_LIMIT: u64 = 4 << 30;
/// The most subagents of one session.
pub const SUBAGENT_LIMIT: usize = 10_000;

/// Reads the transcript at `main` and the subagents' transcripts in the folder beside it.
pub fn read_session(main: &Path) -> Result<Session, TranscriptError> {
    Ok(Session { main: read_file(main)?, subagents: subagents(main)? })
}

/// Reads one transcript file.
pub fn read_file(path: &Path) -> Result<Transcript, TranscriptError> {
    let failed = |source| TranscriptError::Io { path: path.to_owned(), source };
    read(open(path)?).map_err(failed)
}

fn open(path: &Path) -> Result<BufReader<io::Take<File>>, TranscriptError> {
    let failed = |source| TranscriptError::Io { path: path.to_owned(), source };
    let file = plain::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.len() > FILE_LIMIT {
        return Err(TranscriptError::TooLarge { path: path.to_owned(), most: FILE_LIMIT });
    }
    Ok(BufReader::new(file.take(FILE_LIMIT)))
}

/// Reads one transcript, line by line. Memory is that of the longest line and of the calls found.
pub fn read(reader: impl BufRead) -> io::Result<Transcript> {
    let mut calls = Calls::default();
    let mut unreadable = Vec::new();
    let (lines, torn) = walk(reader, |line, entry| match entry {
        Entry::Call(call) => calls.add(call),
        Entry::Result(result) => calls.settle(&result),
        Entry::Unreadable => unreadable.push(line),
    })?;
    Ok(Transcript { calls: calls.found, unreadable, lines, torn })
}

/// One thing that a transcript tells, as this client writes it.
enum Entry<'a> {
    Call(Call),
    Result(Answered<'a>),
    Unreadable,
}

/// A call's result.
struct Answered<'a> {
    call_id: &'a str,
    result: &'a Value,
    decision: Option<&'a Value>,
}

impl Answered<'_> {
    fn outcome(&self, tool: &str) -> Outcome {
        transcript_outcome(tool, self.result, self.decision)
    }

    /// Whatever the tool's name is: only a call that gave an error needs it to say why.
    fn completed(&self) -> bool {
        self.outcome("") == Outcome::Completed
    }
}

/// Tells of the session's calls and results in the order of the files, and keeps none: memory is that of the longest line.
/// Returns whether every line could be read.
pub fn tell(main: &Path, take: &mut dyn FnMut(Told<'_>)) -> Result<bool, TranscriptError> {
    let mut whole = true;
    let mut one = |path: &Path| {
        let told = |_line, entry: Entry<'_>| match entry {
            Entry::Call(call) => take(Told::Call(call)),
            Entry::Result(ended) => {
                take(Told::Result { call_id: ended.call_id, completed: ended.completed() });
            }
            Entry::Unreadable => whole = false,
        };
        let failed = |source| TranscriptError::Io { path: path.to_owned(), source };
        walk(open(path)?, told).map(|(_, torn)| torn).map_err(failed)
    };
    let mut torn = one(main)?;
    for (path, _) in subagent_files(main)? {
        torn |= one(&path)?;
    }
    Ok(whole && !torn)
}

/// Reads line by line. Returns how many lines there are, and whether the last was cut off.
fn walk(mut reader: impl BufRead, mut take: impl FnMut(u64, Entry<'_>)) -> io::Result<(u64, bool)> {
    let (mut lines, mut torn) = (0, false);
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = (&mut reader).take(LINE_LIMIT).read_until(b'\n', &mut line)?;
        if length == 0 {
            return Ok((lines, torn));
        }
        lines += 1;
        let ended = line.last() == Some(&b'\n');
        match parse_with(&line, Limits::FOREIGN) {
            Ok(entry) if entry.as_object().is_some() => blocks(&entry, lines, |entry| take(lines, entry)),
            _ if line.trim_ascii().is_empty() => {}
            _ if ended || !reader.fill_buf()?.is_empty() => {
                take(lines, Entry::Unreadable);
                if !ended {
                    skip_line(&mut reader)?;
                }
            }
            _ => torn = true,
        }
    }
}

fn blocks(entry: &Value, line: u64, mut take: impl FnMut(Entry<'_>)) {
    let content = entry.get("message").and_then(|message| message.get("content")).and_then(Value::as_array);
    for block in content.unwrap_or_default() {
        let kind = block.get("type").and_then(Value::as_str);
        match kind {
            Some("tool_use" | "server_tool_use" | "mcp_tool_use") => {
                take(call(entry, block, line, kind != Some("tool_use")).map_or(Entry::Unreadable, Entry::Call));
            }
            Some("tool_result") => {
                if let Some(call_id) = block.get("tool_use_id").and_then(Value::as_str) {
                    let decision = entry.get("permissionDecision");
                    take(Entry::Result(Answered { call_id, result: block, decision }));
                }
            }
            _ => {}
        }
    }
}

fn skip_line(reader: &mut impl BufRead) -> io::Result<()> {
    loop {
        let chunk = reader.fill_buf()?;
        let end = chunk.iter().position(|&byte| byte == b'\n');
        let used = end.map_or(chunk.len(), |at| at + 1);
        reader.consume(used);
        if end.is_some() || used == 0 {
            return Ok(());
        }
    }
}

/// The calls found so far, and where each of them stands.
#[derive(Default)]
struct Calls {
    found: Vec<Call>,
    places: HashMap<String, usize>,
}

impl Calls {
    /// A resumed conversation may repeat earlier lines; the first one counts. Another call under the same id is a call.
    fn add(&mut self, call: Call) {
        let earlier = self.places.get(&call.call_id).and_then(|&at| self.found.get(at));
        if earlier.is_none_or(|earlier| (&earlier.tool, earlier.input) != (&call.tool, call.input)) {
            self.places.insert(call.call_id.clone(), self.found.len());
            self.found.push(call);
        }
    }

    fn settle(&mut self, ended: &Answered<'_>) {
        if let Some(call) = self.places.get(ended.call_id).and_then(|&index| self.found.get_mut(index)) {
            let outcome = ended.outcome(&call.tool);
            call.outcome.get_or_insert(outcome);
        }
    }
}

fn call(entry: &Value, block: &Value, line: u64, server_side: bool) -> Option<Call> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(Call {
        call_id: text(block, "id")?,
        tool: text(block, "name")?,
        input: Digest::of(canonical(block.get("input")?).as_bytes()),
        agent: text(entry, "agentId"),
        at: text(entry, "timestamp").and_then(|moment| Timestamp::parse(&moment).ok()),
        line,
        server_side,
        outcome: None,
    })
}

fn subagents(main: &Path) -> Result<Vec<Subagent>, TranscriptError> {
    let read = |(path, id): (PathBuf, String)| {
        let meta = read_meta(&path.with_extension("meta.json"));
        let member = |name| meta.as_ref()?.get(name)?.as_str().map(str::to_owned);
        let (kind, spawned_by) = (member("agentType"), member("toolUseId"));
        Ok(Subagent { id, kind, spawned_by, transcript: read_file(&path)?, path })
    };
    subagent_files(main)?.into_iter().map(read).collect()
}

/// The subagents' transcripts and their ids, sorted by id.
fn subagent_files(main: &Path) -> Result<Vec<(PathBuf, String)>, TranscriptError> {
    let folder = main.with_extension("").join("subagents");
    let failed = |source| TranscriptError::Io { path: folder.clone(), source };
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let Some(id) = subagent_id(&path) else { continue };
        if found.len() == SUBAGENT_LIMIT {
            return Err(TranscriptError::TooMany { path: folder, most: SUBAGENT_LIMIT });
        }
        found.push((path, id));
    }
    found.sort_by(|(_, a), (_, b)| a.cmp(b));
    Ok(found)
}

/// Every transcript of the session: the main one, and those of its subagents.
pub fn files(main: &Path) -> Vec<PathBuf> {
    let beside = fs::read_dir(main.with_extension("").join("subagents")).into_iter().flatten().flatten();
    let all = beside.map(|entry| entry.path()).chain([main.to_owned()]);
    all.filter(|path| path.extension().is_some_and(|kind| kind == "jsonl")).collect()
}

fn subagent_id(path: &Path) -> Option<String> {
    path.file_name()?.to_str()?.strip_prefix("agent-")?.strip_suffix(".jsonl").map(str::to_owned)
}

/// What the client noted beside a subagent's transcript. Not having it costs only the link to the spawning call.
fn read_meta(path: &Path) -> Option<Value> {
    parse_with(&plain::read(path, 1 << 20).ok()?, Limits::FOREIGN).ok()
}

#[cfg(test)]
mod tests;
