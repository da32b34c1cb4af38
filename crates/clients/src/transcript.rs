//! A client's own record of a session, in words that fit every client.
//!
//! Owns what a transcript reader gives, and what a client that keeps transcripts can be asked. The client's own word can be
//! edited, so it proves nothing by itself. The invariant: what a reader cannot read it says, so that nobody takes a gap for
//! completeness.

use std::io;
use std::path::{Path, PathBuf};

use writ_core::{Digest, Outcome, Timestamp};

use crate::work::Work;

/// A client that keeps transcripts. Each is named by the file of its main conversation.
pub trait Transcripts {
    /// Which calls a session's agents made, and what became of them.
    fn session(&self, main: &Path) -> Result<Session, TranscriptError>;

    /// The same, one after the other in the order of the files, and without keeping any. Gives whether every line could be read.
    fn tell(&self, main: &Path, take: &mut dyn FnMut(Told<'_>)) -> Result<bool, TranscriptError>;

    /// Every transcript of a session: the main one, and those of its subagents.
    fn files(&self, main: &Path) -> Vec<PathBuf>;

    /// What one agent did and said, from its own transcript; `None` when there is none that can be read.
    fn work(&self, path: &Path) -> Option<Work>;
}

/// One thing that a transcript tells.
pub enum Told<'a> {
    /// The model made a call.
    Call(Call),
    /// A call came to its end.
    Result {
        /// The call's id.
        call_id: &'a str,
        /// Whether it ran and gave a result that is no error.
        completed: bool,
    },
}

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
    /// The lines, from 1, that are not JSON objects or longer than the reader takes.
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
    /// Larger than a reader takes.
    #[error("the transcript {} is larger than {most} bytes", path.display())]
    TooLarge {
        /// Which file.
        path: PathBuf,
        /// The most that is read.
        most: u64,
    },
    /// More subagents than a reader takes.
    #[error("{} holds more than {most} subagents", path.display())]
    TooMany {
        /// Which folder.
        path: PathBuf,
        /// The most that are read.
        most: usize,
    },
}
