//! How far a session's transcripts were read, so that each stop reads only what is new.
//!
//! Owns the cursor that is kept between stops and the stretches that go on record. The cursor is a convenience: without it
//! everything is read again, and nothing is lost. Invariant: a stretch names exactly the bytes that were read, so whoever reads
//! them later sees whether they were rewritten.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use writ_core::{Digest, Outcome, json};

use crate::transcript::{Call, Listing, MAIN, Told, Transcripts, digest};

/// Bytes before a position that are looked at again: who changes a transcript seldom leaves its end alone.
const TAIL: u64 = 64 << 10;
/// Most transcripts that are read at once; the others come next time.
const MOST_FILES: usize = 64;
/// Most bytes that a row says of what was read; what does not fit comes next time.
const MOST_TOLD: usize = 24_000;
/// Bytes that a row needs for a transcript beside its name, at most.
const TOLD: usize = 240;
/// Most calls without a result that are remembered; of older ones the whole transcript still tells.
const MOST_OPEN: usize = 1024;

/// How far the transcripts were read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// The main conversation's file.
    #[serde(with = "json::path")]
    main: PathBuf,
    files: BTreeMap<String, Position>,
    /// Calls whose result was not there yet, oldest first.
    open: Vec<Call>,
}

/// Where reading goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Position {
    /// In bytes.
    end: u64,
    /// Digest of the last bytes before it.
    tail: Digest,
}

/// A stretch of a transcript that was read, as it goes on record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// [`MAIN`](crate::transcript::MAIN), or the subagent's id.
    pub file: String,
    /// The first byte.
    pub from: u64,
    /// Behind the last byte.
    pub to: u64,
    /// Digest of the bytes.
    pub digest: Digest,
    /// What was read of it before is no longer what the file holds: it was read again from its beginning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rewritten: bool,
}

/// What was read at a stop, as its row says it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reading {
    /// The main conversation's file, where it is not the one that the session began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main: Option<String>,
    /// Of which transcripts which bytes.
    pub read: Vec<Stretch>,
    /// How many transcripts of subagents were not looked at, for there were more than are read.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unread: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like that")]
const fn is_none(count: &u64) -> bool {
    *count == 0
}

/// What is new in a session's transcripts.
#[derive(Clone, Debug)]
pub struct News {
    /// Calls that came to their end, and how.
    pub ended: Vec<(Call, Outcome)>,
    /// What was read.
    pub stretches: Vec<Stretch>,
    /// How many transcripts nobody looks at.
    pub unread: u64,
    /// Where the next reading begins.
    pub cursor: Cursor,
}

impl Cursor {
    /// How much of the main conversation's file was read, in bytes.
    pub fn read_of(&self, main: &Path) -> u64 {
        let position = self.files.get(MAIN).filter(|_| self.main == main);
        position.map_or(0, |position| position.end)
    }
}

/// Reads what is new since `cursor`. A transcript that cannot be read keeps its place.
pub fn news(transcripts: &dyn Transcripts, main: &Path, cursor: Cursor) -> News {
    let cursor = if cursor.main == main { cursor } else { Cursor { main: main.to_owned(), ..Cursor::default() } };
    // Where the subagents cannot be listed, the main conversation is read all the same.
    let alone = |_| Listing { files: vec![(MAIN.to_owned(), main.to_owned())], unread: 1 };
    let Listing { files, unread } = transcripts.files(main).unwrap_or_else(alone);
    let mut news = News { ended: Vec::new(), stretches: Vec::new(), unread, cursor };
    let mut open = std::mem::take(&mut news.cursor.open);
    let mut room = MOST_TOLD;
    for (name, path) in files {
        let Some((from, rewritten)) = begin(news.cursor.files.get(&name), &path) else { continue };
        let told = TOLD + json::to_compact(&name).len();
        if news.stretches.len() == MOST_FILES || told > room {
            break;
        }
        room -= told;
        if let Some(stretch) = news.read(transcripts, &path, name, (from, rewritten), &mut open) {
            news.stretches.push(stretch);
        }
    }
    open.drain(..open.len().saturating_sub(MOST_OPEN));
    news.cursor.open = open;
    news
}

/// Where to begin, and whether that is because the file was rewritten; `None` where nothing is new.
fn begin(known: Option<&Position>, path: &Path) -> Option<(u64, bool)> {
    let Some(Position { end, tail }) = known else { return Some((0, false)) };
    let length = path.metadata().ok()?.len();
    match digest(path, end.saturating_sub(TAIL), *end) {
        Ok(Some(found)) if found == *tail => (length > *end).then_some((*end, false)),
        Ok(_) => Some((0, true)),
        Err(_) => None,
    }
}

impl News {
    fn read(
        &mut self,
        transcripts: &dyn Transcripts,
        path: &Path,
        name: String,
        (from, rewritten): (u64, bool),
        open: &mut Vec<Call>,
    ) -> Option<Stretch> {
        let ended = &mut self.ended;
        let mut told: HashSet<String> = open.iter().map(|call| call.call_id.clone()).collect();
        let read = transcripts.read(path, from, &mut |entry| match entry {
            // A resumed conversation may repeat earlier lines; the first one counts.
            Told::Call(call) if !call.server_side && told.insert(call.call_id.clone()) => open.push(call),
            Told::Result { call_id, outcome } => {
                if let Some(at) = open.iter().rposition(|call| call.call_id == call_id) {
                    let call = open.remove(at);
                    let outcome = outcome(&call.tool);
                    ended.push((call, outcome));
                }
            }
            Told::Call(_) | Told::Unreadable => {}
        });
        let to = read.ok()?.end;
        let of = |from| digest(path, from, to).ok().flatten();
        let (all, tail) = (of(from)?, of(to.saturating_sub(TAIL))?);
        self.cursor.files.insert(name.clone(), Position { end: to, tail });
        (to > from || rewritten).then_some(Stretch { file: name, from, to, digest: all, rewritten })
    }
}
