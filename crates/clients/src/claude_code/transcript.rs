//! The client's own record of a session.
//!
//! Owns the reading of transcripts: which tool calls the model made and what became of them, in the main conversation
//! and in every subagent. Refuses to skip what it cannot read: such lines are counted and named, so that nobody takes a
//! gap for completeness. The invariant: every `tool_use` block on a readable line is a [`Call`]. Format page:
//! `spec/clients/claude-code.md`.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use writ_core::json::{Value, canonical};
use writ_core::{Digest, regular_file};

use super::outcome::transcript_outcome;
use crate::transcript::{Call, Listing, MAIN, Reach, Told, TranscriptError, parse_line};

/// The longest line that is read; longer ones count as unreadable.
pub const LINE_LIMIT: u64 = 64 << 20;
/// The longest transcript file.
pub const FILE_LIMIT: u64 = 4 << 30;
/// Read at once.
const PIECE: usize = 1 << 18;
/// The most subagents of one session.
pub const SUBAGENT_LIMIT: usize = 10_000;
/// How deep below the folder of subagents transcripts are looked for: those of a workflow lie in `workflows/RUN`.
const DEPTH: usize = 3;
/// The most folders there.
const FOLDERS: usize = 10_000;

pub(super) fn open(path: &Path, from: u64) -> Result<BufReader<io::Take<File>>, TranscriptError> {
    let failed = |source| TranscriptError::Io { path: path.to_owned(), source };
    let mut file = regular_file::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.len() > FILE_LIMIT {
        return Err(TranscriptError::TooLarge { path: path.to_owned(), most: FILE_LIMIT });
    }
    file.seek(SeekFrom::Start(from)).map_err(failed)?;
    Ok(BufReader::with_capacity(PIECE, file.take(FILE_LIMIT)))
}

/// Tells what one transcript says from byte `from` on. Memory is that of the longest line.
pub fn read(path: &Path, from: u64, take: &mut dyn FnMut(Told<'_>)) -> Result<Reach, TranscriptError> {
    let failed = |source| TranscriptError::Io { path: path.to_owned(), source };
    let (read, torn) = walk(open(path, from)?, take).map_err(failed)?;
    Ok(Reach { end: from + read, torn })
}

/// Reads line by line. Returns how many bytes there are up to the end of the last whole line, and whether another was cut off.
fn walk(mut reader: impl BufRead, take: &mut dyn FnMut(Told<'_>)) -> io::Result<(u64, bool)> {
    let (mut whole, mut line) = (0, Vec::new());
    loop {
        line.clear();
        let mut length = (&mut reader).take(LINE_LIMIT).read_until(b'\n', &mut line)? as u64;
        if length == 0 {
            return Ok((whole, false));
        }
        let mut ended = line.last() == Some(&b'\n');
        match parse_line(&line) {
            Ok(entry) if entry.as_object().is_some() => blocks(&entry, take),
            _ if line.trim_ascii().is_empty() => {}
            _ if ended => take(Told::Unreadable),
            _ if !reader.fill_buf()?.is_empty() => {
                take(Told::Unreadable);
                let (skipped, found) = skip_line(&mut reader)?;
                (length, ended) = (length + skipped, found);
            }
            _ => return Ok((whole, true)),
        }
        // A last line that is whole but for its end is told, and read again once it has one.
        whole += if ended { length } else { 0 };
    }
}

fn blocks(entry: &Value, take: &mut dyn FnMut(Told<'_>)) {
    let content = entry.get("message").and_then(|message| message.get("content")).and_then(Value::as_array);
    for block in content.unwrap_or_default() {
        let kind = block.get("type").and_then(Value::as_str);
        match kind {
            Some("tool_use" | "server_tool_use" | "mcp_tool_use") => {
                take(call(entry, block, kind != Some("tool_use")).map_or(Told::Unreadable, Told::Call));
            }
            Some("tool_result") => {
                if let Some(call_id) = block.get("tool_use_id").and_then(Value::as_str) {
                    let decision = entry.get("permissionDecision");
                    take(Told::Result { call_id, outcome: &|tool| transcript_outcome(tool, block, decision) });
                }
            }
            _ => {}
        }
    }
}

/// Skips the rest of a line. Returns its bytes, and whether it has an end.
pub(super) fn skip_line(reader: &mut impl BufRead) -> io::Result<(u64, bool)> {
    let mut skipped = 0;
    loop {
        let chunk = reader.fill_buf()?;
        let end = chunk.iter().position(|&byte| byte == b'\n');
        let used = end.map_or(chunk.len(), |at| at + 1);
        reader.consume(used);
        skipped += used as u64;
        if end.is_some() || used == 0 {
            return Ok((skipped, end.is_some()));
        }
    }
}

fn call(entry: &Value, block: &Value, server_side: bool) -> Option<Call> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(Call {
        call_id: text(block, "id")?,
        tool: text(block, "name")?,
        input: Digest::of(canonical(block.get("input")?).as_bytes()),
        agent: text(entry, "agentId"),
        server_side,
        key: None,
    })
}

/// The transcripts of the session: the main one, then its subagents' by their ids, as many as are read.
pub fn files(main: &Path) -> Result<Listing, TranscriptError> {
    let root = main.with_extension("").join("subagents");
    let mut listing = Listing { files: vec![(MAIN.to_owned(), main.to_owned())], unread: 0 };
    let (mut found, mut folders) = (BTreeMap::new(), VecDeque::from([(root.clone(), 0)]));
    let mut seen = 1;
    while let Some((folder, depth)) = folders.pop_front() {
        let failed = |source| TranscriptError::Io { path: folder.clone(), source };
        let entries = match fs::read_dir(&folder) {
            // One below may have gone since its folder was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries.map_err(failed)?,
        };
        let mut below = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            if let Some(id) = subagent_id(&path) {
                let id = if found.contains_key(&id) { beside(&root, &folder, &id) } else { id };
                found.insert(id, path);
                if found.len() > SUBAGENT_LIMIT {
                    found.pop_last();
                    listing.unread += 1;
                }
            } else if depth < DEPTH && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                below.push((path, depth + 1));
            }
        }
        below.sort();
        for next in below {
            seen += 1;
            if seen > FOLDERS {
                listing.unread += 1;
            } else {
                folders.push_back(next);
            }
        }
    }
    listing.files.extend(found);
    Ok(listing)
}

/// The name of a subagent's transcript whose id another one has that was found before it.
fn beside(root: &Path, folder: &Path, id: &str) -> String {
    let within = folder.strip_prefix(root).unwrap_or(folder);
    format!("{}/{id}", within.display())
}

/// The id in a file's name. Bytes of it that are no UTF-8 are written `/ff`, which no file's name holds, so that no two names give
/// the same id.
fn subagent_id(path: &Path) -> Option<String> {
    let name = path.file_name()?.as_bytes();
    let id = name.strip_prefix(b"agent-")?.strip_suffix(b".jsonl")?;
    let pieces = id.utf8_chunks().flat_map(|chunk| {
        let other = chunk.invalid().iter().map(|byte| format!("/{byte:02x}"));
        std::iter::once(chunk.valid().to_owned()).chain(other)
    });
    Some(pieces.collect())
}

#[cfg(test)]
mod tests;
