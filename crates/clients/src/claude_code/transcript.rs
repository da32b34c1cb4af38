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
use writ_core::{Digest, Timestamp, plain};

use super::outcome::{Outcome, transcript_outcome};

/// The longest line that is read; longer ones count as unreadable.
pub const LINE_LIMIT: u64 = 64 << 20;
/// The longest transcript file.
pub const FILE_LIMIT: u64 = 4 << 30;
/// The most subagents of one session.
pub const SUBAGENT_LIMIT: usize = 10_000;

/// A tool call that the model made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The call's id, the same as in the hooks.
    pub call_id: String,
    /// The tool's name as the model wrote it; the hooks may know it under another (`Task` is `Agent`).
    pub tool: String,
    /// Digest of the input's canonical JSON. Equal to that of the `PostToolBatch` input; the input in `PreToolUse` differs
    /// where the client made a path absolute or turned a text into a number.
    pub input: Digest,
    /// The subagent that made it.
    pub agent: Option<String>,
    /// When, by the client's clock.
    pub at: Option<Timestamp>,
    /// The line in its transcript, from 1.
    pub line: u64,
    /// Run by the model's provider: no hook of the client's ever sees it.
    pub server_side: bool,
    /// What became of it; `None` when the transcript has no result, as when the client was killed.
    pub outcome: Option<Outcome>,
}

/// What one transcript says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    /// The calls in the order in which the model made them.
    pub calls: Vec<Call>,
    /// The lines, from 1, that are not JSON objects or longer than [`LINE_LIMIT`].
    pub unreadable: Vec<u64>,
    /// The last line has no line break and is not JSON: the client was cut off, or is writing it now.
    pub torn: bool,
    /// How many lines there are.
    pub lines: u64,
}

/// A subagent's transcript and what the client noted beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subagent {
    /// The subagent's id.
    pub id: String,
    /// `general-purpose` and the like.
    pub kind: Option<String>,
    /// The call that started it; for a nested one that call is in its parent's transcript.
    pub spawned_by: Option<String>,
    /// Its transcript's file.
    pub path: PathBuf,
    /// What it says.
    pub transcript: Transcript,
}

/// A session: the main conversation and its subagents, sorted by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The main conversation.
    pub main: Transcript,
    /// The subagents, nested ones included.
    pub subagents: Vec<Subagent>,
}

impl Session {
    /// Every call, the main conversation's first.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.main.calls.iter().chain(self.subagents.iter().flat_map(|subagent| &subagent.transcript.calls))
    }

    /// Whether every line of every transcript could be read.
    pub fn is_whole(&self) -> bool {
        let whole = |transcript: &Transcript| transcript.unreadable.is_empty() && !transcript.torn;
        whole(&self.main) && self.subagents.iter().all(|subagent| whole(&subagent.transcript))
    }
}

/// Why a transcript cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TranscriptError {
    /// The file system says no.
    #[error("cannot read the transcript {}: {source}", path.display())]
    Io {
        /// Which file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Larger than [`FILE_LIMIT`].
    #[error("the transcript {} is larger than {FILE_LIMIT} bytes", path.display())]
    TooLarge {
        /// Which file.
        path: PathBuf,
    },
    /// More than [`SUBAGENT_LIMIT`] subagents.
    #[error("{} holds more than {SUBAGENT_LIMIT} subagents", path.display())]
    TooMany {
        /// Which folder.
        path: PathBuf,
    },
}

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
        return Err(TranscriptError::TooLarge { path: path.to_owned() });
    }
    Ok(BufReader::new(file.take(FILE_LIMIT)))
}

/// Reads one transcript, line by line. Memory is that of the longest line and of the calls found.
pub fn read(reader: impl BufRead) -> io::Result<Transcript> {
    let mut transcript = Transcript::default();
    let mut open: HashMap<String, usize> = HashMap::new();
    let mut unreadable = Vec::new();
    let (lines, torn) = walk(reader, |line, told| match told {
        Told::Call(call) => transcript.add(call, &mut open),
        Told::Result(result) => transcript.settle(&result, &open),
        Told::Nothing => unreadable.push(line),
    })?;
    Ok(Transcript { unreadable, lines, torn, ..transcript })
}

/// One thing that a transcript tells.
pub enum Told<'a> {
    /// The model made a call.
    Call(Call),
    /// A call came to its end.
    Result(Ended<'a>),
    /// A line, or a call in it, that cannot be read.
    Nothing,
}

/// A call's result.
pub struct Ended<'a> {
    /// The call's id.
    pub call_id: &'a str,
    result: &'a Value,
    decision: Option<&'a Value>,
}

impl Ended<'_> {
    /// What became of the call of `tool`.
    pub fn outcome(&self, tool: &str) -> Outcome {
        transcript_outcome(tool, self.result, self.decision)
    }
}

/// Tells of the session's calls and results in the order of the files, and keeps none: memory is that of the longest line.
/// Returns whether every line could be read.
pub fn tell(main: &Path, mut take: impl FnMut(Told<'_>)) -> Result<bool, TranscriptError> {
    let mut whole = true;
    let mut one = |path: &Path| {
        let told = |_line, told: Told<'_>| {
            whole &= !matches!(told, Told::Nothing);
            take(told);
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
fn walk(mut reader: impl BufRead, mut take: impl FnMut(u64, Told<'_>)) -> io::Result<(u64, bool)> {
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
            Ok(entry) if entry.as_object().is_some() => blocks(&entry, lines, |told| take(lines, told)),
            _ if line.trim_ascii().is_empty() => {}
            _ if ended || !reader.fill_buf()?.is_empty() => {
                take(lines, Told::Nothing);
                if !ended {
                    skip_line(&mut reader)?;
                }
            }
            _ => torn = true,
        }
    }
}

fn blocks(entry: &Value, line: u64, mut take: impl FnMut(Told<'_>)) {
    let content = entry.get("message").and_then(|message| message.get("content")).and_then(Value::as_array);
    for block in content.unwrap_or_default() {
        let kind = block.get("type").and_then(Value::as_str);
        match kind {
            Some("tool_use" | "server_tool_use" | "mcp_tool_use") => {
                take(call(entry, block, line, kind != Some("tool_use")).map_or(Told::Nothing, Told::Call));
            }
            Some("tool_result") => {
                if let Some(call_id) = block.get("tool_use_id").and_then(Value::as_str) {
                    let decision = entry.get("permissionDecision");
                    take(Told::Result(Ended { call_id, result: block, decision }));
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

impl Transcript {
    /// A resumed conversation may repeat earlier lines; the first one counts. Another call under the same id is a call.
    fn add(&mut self, call: Call, open: &mut HashMap<String, usize>) {
        let earlier = open.get(&call.call_id).and_then(|&at| self.calls.get(at));
        if earlier.is_none_or(|earlier| (&earlier.tool, earlier.input) != (&call.tool, call.input)) {
            open.insert(call.call_id.clone(), self.calls.len());
            self.calls.push(call);
        }
    }

    fn settle(&mut self, ended: &Ended<'_>, open: &HashMap<String, usize>) {
        if let Some(call) = open.get(ended.call_id).and_then(|&index| self.calls.get_mut(index)) {
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
            return Err(TranscriptError::TooMany { path: folder });
        }
        found.push((path, id));
    }
    found.sort_by(|(_, a), (_, b)| a.cmp(b));
    Ok(found)
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
