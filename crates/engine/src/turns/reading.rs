//! A transcript read into the session's tree, up to where an attestation is to speak for it.
//!
//! Owns what is new since the attestation before: which turns, and what they used. The one who signs and the one who verifies read the
//! same way. What is kept between two readings is a convenience: without it everything is read again, and comes out the same. Invariant: a
//! statement's lines end where a line ends. Page: `spec/turns.md`.

use std::path::Path;

use serde::{Deserialize, Serialize};
use writ_clients::ahead;
use writ_clients::meter::{AgentUse, Messages};
use writ_clients::transcript::{Line, MAIN, TranscriptError, Transcripts, digest};
use writ_clients::usage::{Rate, Spoken, Tokens};
use writ_core::{Digest, json};
use writ_evidence::merkle::NodeHash;
use writ_evidence::session_tree::{Binding, Kept, Metrics, SessionTree};

/// Bytes before a position that are looked at again.
const TAIL: u64 = 64 << 10;

/// What is new of a turn.
#[derive(Clone, Debug)]
pub struct Pending {
    /// Where it stands.
    pub binding: Binding,
    /// The first byte that is new.
    pub from: u64,
    /// Behind the last.
    pub to: u64,
    /// What the new lines told.
    pub used: AgentUse,
    /// What of that belongs to the turn before.
    pub told_late: Metrics,
    /// The model that answered last.
    pub model: Option<String>,
    /// Another turn has begun behind it.
    pub closed: bool,
    /// An attestation spoke for its beginning already.
    pub again: bool,
}

/// A reading.
pub struct Reader<H> {
    tree: SessionTree<H>,
    messages: Messages,
    used: AgentUse,
    model: Option<String>,
    told_late: Metrics,
    from: u64,
    at: u64,
    /// Whether an attestation spoke for the open turn already.
    attested: bool,
    /// Lines about usage that cannot be read.
    pub unread: u64,
    /// Turns that ended and for which none did.
    closed: Vec<Pending>,
}

impl<H: NodeHash> Default for Reader<H> {
    fn default() -> Self {
        Self {
            tree: SessionTree::default(),
            messages: Messages::default(),
            used: AgentUse::default(),
            model: None,
            told_late: Metrics::default(),
            from: 0,
            at: 0,
            attested: false,
            unread: 0,
            closed: Vec::new(),
        }
    }
}

/// Tokens as statements count them.
pub const fn metrics(tokens: Tokens) -> Metrics {
    Metrics {
        tokens_in: tokens.all_input(),
        tokens_out: tokens.output,
        cache_read: tokens.cache_read,
        cache_write: tokens.cache_write.saturating_add(tokens.cache_write_hour),
    }
}

impl<H: NodeHash> Reader<H> {
    /// Behind the last whole line, in bytes.
    pub const fn at(&self) -> u64 {
        self.at
    }

    /// The root over all turns so far.
    pub fn root(&self) -> H {
        self.tree.root()
    }

    /// Takes the next line.
    pub fn line(&mut self, line: &Line<'_>) {
        self.line_or(line, None);
    }

    /// Takes the next line; where its secrets are masked, the hash that it had in the tree stands for it.
    pub fn line_or(&mut self, line: &Line<'_>, hash: Option<H>) {
        if let Some(moment) = line.prompt.filter(|_| line.ends) {
            if self.attested {
                self.told_late = metrics(self.used.tokens());
                self.attested = false;
            } else if let Some(pending) = self.take() {
                self.closed.push(Pending { closed: true, ..pending });
                self.attested = false;
            }
            self.tree.begin(moment);
        }
        match hash {
            Some(hash) if line.ends => self.tree.hidden_line(hash),
            Some(_) => {}
            None => self.tree.line(line.bytes, line.ends),
        }
        match &line.spoken {
            Some(Spoken::Message { id, rate, tokens, .. }) => self.message(id, rate, *tokens),
            Some(Spoken::Unreadable) => self.unread += 1,
            Some(Spoken::Total(_)) | None => {}
        }
        if line.ends {
            self.at = line.end;
        }
    }

    fn message(&mut self, id: &str, rate: &Rate, tokens: Tokens) {
        if !rate.model.is_empty() {
            self.model = Some(rate.model.clone());
        }
        // A transcript is one agent's. Its name is no empty one: to compare those may cost a processor a hundred times as much.
        if let Some((_, rate, more)) = self.messages.count(MAIN, id, rate, tokens) {
            self.tree.count(metrics(more));
            self.used.add(&rate, more);
        }
    }

    /// What is new of the open turn; from here on an attestation speaks for it. `None` before the first prompt.
    pub fn take(&mut self) -> Option<Pending> {
        let pending = Pending {
            binding: self.tree.binding()?,
            from: self.from,
            to: self.at,
            used: std::mem::take(&mut self.used),
            told_late: std::mem::take(&mut self.told_late),
            model: self.model.take(),
            closed: false,
            again: self.attested,
        };
        (self.from, self.attested) = (self.at, true);
        Some(pending)
    }

    /// The turns that ended and for which no attestation spoke.
    pub fn closed(&mut self) -> Vec<Pending> {
        std::mem::take(&mut self.closed)
    }

    /// Whether something is new of a turn for which an attestation spoke already.
    pub fn has_used(&self) -> bool {
        !self.attested || !self.used.tokens().is_nothing()
    }

    /// Reads on, to the end of the last whole line.
    pub fn read(&mut self, transcripts: &dyn Transcripts, path: &Path) -> Result<(), TranscriptError> {
        let reach = ahead::lines(transcripts, path, self.at, &mut |line| self.line(&line));
        self.tree.abandon();
        reach.map(drop)
    }

    /// As it is kept: a line of JSON, then what stands for the messages.
    pub fn to_bytes(&self, path: &Path) -> Option<Vec<u8>> {
        let tail = digest(path, self.at.saturating_sub(TAIL), self.at).ok().flatten()?;
        let place = Place {
            path: path.to_string_lossy().into_owned(),
            at: self.at,
            tail,
            tree: self.tree.kept(),
            messages: self.messages.clone(),
        };
        let mut bytes = json::to_compact(&place).into_bytes();
        bytes.push(b'\n');
        bytes.extend(self.messages.counted_names());
        Some(bytes)
    }

    /// Goes on with what was kept of this transcript when the last attestation was made. `None` where it is no longer the same.
    pub fn resume(bytes: &[u8], path: &Path, to: u64) -> Option<Self> {
        let end = bytes.iter().position(|&byte| byte == b'\n')?;
        let place: Place = json::from_slice(bytes.get(..end)?).ok()?;
        let Place { at, mut messages, .. } = place;
        let same = place.path == path.to_string_lossy() && at == to && messages.name_counted(bytes.get(end + 1..)?);
        let holds = digest(path, at.saturating_sub(TAIL), at).ok().flatten() == Some(place.tail);
        let tree = SessionTree::resume(&place.tree)?;
        (same && holds).then(|| Self { tree, messages, from: at, at, attested: true, ..Self::default() })
    }

    /// Reads from the beginning, as far as the last attestation spoke for. `None` where no line ends there any more.
    pub fn again(transcripts: &dyn Transcripts, path: &Path, to: u64) -> Option<Self> {
        let mut reader = Self::default();
        let read = |line: Line<'_>| {
            if line.end <= to {
                reader.line(&line)
            }
        };
        ahead::lines(transcripts, path, 0, &mut { read }).ok()?;
        reader.tree.abandon();
        reader.closed.clear();
        if reader.at != to {
            return None;
        }
        drop(reader.take());
        reader.unread = 0;
        Some(reader)
    }
}

/// How far a transcript was read.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Place {
    path: String,
    at: u64,
    tail: Digest,
    tree: Kept,
    messages: Messages,
}
