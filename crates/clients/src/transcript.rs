//! A client's own record of a session, in words that fit every client.
//!
//! Owns what a transcript reader gives, and what a client that keeps transcripts can be asked. The client's own word can be
//! edited, so it proves nothing by itself. The invariant: what a reader cannot read it says, so that nobody takes a gap for
//! completeness.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use writ_core::json::{JsonError, Limits, Value, parse_with, without_lone_surrogates};
use writ_core::{Digest, Hasher, Outcome, Timestamp, regular_file};

use crate::usage::{AgentNote, Spoken};
use crate::work::Work;

/// The name of the main conversation's transcript among a session's.
pub const MAIN: &str = "main";

/// A client that keeps transcripts. A session's are named by the file of its main conversation.
pub trait Transcripts: Sync {
    /// The transcripts of a session.
    fn files(&self, main: &Path) -> Result<Listing, TranscriptError>;

    /// Tells what one transcript says from byte `from` on, where a line begins, in the order of its lines, and keeps none.
    fn read(&self, path: &Path, from: u64, take: &mut dyn FnMut(Told<'_>)) -> Result<Reach, TranscriptError>;

    /// What one agent did and said, from its own transcript; `None` when there is none that can be read.
    fn work(&self, path: &Path) -> Option<Work>;

    /// Tells what one transcript says of usage from byte `from` on, where a line begins, in the order of its lines.
    fn usage(&self, path: &Path, from: u64, take: &mut dyn FnMut(Spoken)) -> Result<Reach, TranscriptError>;

    /// Tells one transcript line by line from byte `from` on, where a line begins: its bytes, and what turns are made of.
    fn lines(&self, path: &Path, from: u64, take: &mut dyn FnMut(Line<'_>)) -> Result<Reach, TranscriptError>;

    /// Whether a transcript tells, near its end, of a call: a client writes what the model said a little after it asks its hooks.
    fn tells_of(&self, path: &Path, call: &str) -> bool;

    /// The model of the message that made a call, or of the last message, as the end of a transcript tells.
    fn model(&self, path: &Path, call: Option<&str>) -> Option<String>;

    /// What the client notes of the subagent whose transcript this is.
    fn note(&self, path: &Path) -> AgentNote;

    /// What happens in a session and stands in none of its transcripts, in words.
    fn unseen(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether the client writes its transcripts only while or after a stop's hook runs.
    fn written_late(&self) -> bool {
        false
    }

    /// The files beside a transcript that [`note`](Self::note) reads, whether they are there or not.
    fn beside(&self, path: &Path) -> Vec<PathBuf>;

    /// Tells what the client itself keeps now of a session whose transcripts are drawn from that ([`Drawn`]); nothing where they are its own.
    fn now(&self, _main: &Path, _take: &mut dyn FnMut(Told<'_>)) -> Result<(), TranscriptError> {
        Ok(())
    }
}

/// A client that keeps its conversations in a database: they are drawn off into files of lines, which are its transcripts to everybody else.
pub trait Drawn: Sync {
    /// Where the file of a session's main conversation is in a folder.
    fn main(&self, folder: &Path, session: &str) -> PathBuf;

    /// Begins that file, where it is not there: from then on it names its database.
    fn begin(&self, main: &Path, database: &Path) -> Result<(), TranscriptError>;

    /// Brings the files of a session up to date; nothing where they have not begun, or there is no database yet.
    fn draw(&self, main: &Path) -> Result<(), TranscriptError>;
}

/// A session's transcripts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Each under its name: [`MAIN`] first, then each subagent's under its id, sorted.
    pub files: Vec<(String, PathBuf)>,
    /// How many more subagents there are, which nobody reads.
    pub unread: u64,
}

/// One thing that a transcript tells.
pub enum Told<'a> {
    /// The model made a call.
    Call(Call),
    /// A call came to its end.
    Result {
        /// The call's id.
        call_id: &'a str,
        /// What became of it, given the tool's name.
        outcome: &'a dyn Fn(&str) -> Outcome,
    },
    /// A line, or a part of it, that cannot be read.
    Unreadable,
}

/// A line of a transcript, or a part of one that is longer than is held.
#[derive(Debug)]
pub struct Line<'a> {
    /// Its bytes, without the line feed.
    pub bytes: &'a [u8],
    /// Whether the line ends here. One that never does is not read: whatever was told of it is void.
    pub ends: bool,
    /// Behind its line feed, in bytes; of a part, behind that.
    pub end: u64,
    /// It is a human's prompt, or a subagent's order, with its moment: a turn begins (R22).
    pub prompt: Option<Option<Timestamp>>,
    /// What it tells of usage.
    pub spoken: Option<Spoken>,
}

/// How far a transcript was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Behind the last line that has an end, in bytes.
    pub end: u64,
    /// Whether the last line has no end and is not JSON: the client was cut off, or is writing it now.
    pub torn: bool,
}

/// A tool call that the model made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Run by the model's provider: no hook of the client's ever sees it.
    pub server_side: bool,
    /// What hooks know it by, where the client tells them no id (`keys`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Reads a line. Half a letter, where a text was cut in one, is U+FFFD.
pub fn parse_line(bytes: &[u8]) -> Result<Value, JsonError> {
    parse_with(bytes, Limits::FOREIGN).or_else(|error| match without_lone_surrogates(bytes) {
        Some(mended) => parse_with(&mended, Limits::FOREIGN),
        None => Err(error),
    })
}

/// Tells of the calls and results of all of a session's transcripts. Returns whether every line could be read.
pub fn tell(
    transcripts: &dyn Transcripts,
    main: &Path,
    take: &mut dyn FnMut(Told<'_>),
) -> Result<bool, TranscriptError> {
    let mut whole = true;
    let Listing { files, unread } = transcripts.files(main)?;
    if unread > 0 {
        return Err(TranscriptError::TooMany { path: main.to_owned(), unread });
    }
    for (_, path) in files {
        let reach = transcripts.read(&path, 0, &mut |told| {
            whole &= !matches!(told, Told::Unreadable);
            take(told);
        })?;
        whole &= !reach.torn;
    }
    Ok(whole)
}

/// SHA-256 of the bytes from `from` to `to`; `None` where the file is shorter.
pub fn digest(path: &Path, from: u64, to: u64) -> io::Result<Option<Digest>> {
    let mut file = regular_file::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut rest = file.take(to.saturating_sub(from));
    let (mut hasher, mut piece) = (Hasher::default(), vec![0; 1 << 16]);
    loop {
        match rest.read(&mut piece)? {
            0 => return Ok((rest.limit() == 0).then(|| hasher.finish())),
            length => hasher.update(piece.get(..length).unwrap_or_default()),
        }
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
    /// The database that it is drawn from cannot be read.
    #[error("cannot read the client's database {}: {source}", path.display())]
    Database {
        /// Which.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// Larger than a reader takes.
    #[error("the transcript {} is larger than {most} bytes", path.display())]
    TooLarge {
        /// Which file.
        path: PathBuf,
        /// The most that is read.
        most: u64,
    },
    /// More subagents than a reader takes.
    #[error("the transcript {} has {unread} subagents more than are read", path.display())]
    TooMany {
        /// The main conversation's.
        path: PathBuf,
        /// How many are left.
        unread: u64,
    },
}
