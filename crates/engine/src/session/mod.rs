//! A session: its ledger locked, its state read, its rows appended.
//!
//! Owns the order of things on every hook call; decides nothing. While a [`Session`] lives, no other process can append to
//! its ledger, so the state it read is the state its next row follows.

pub mod agents;
pub mod custody;
pub mod drawn;
pub mod keyed;
pub mod observed;
mod open;
mod policy;
pub mod process;
pub mod rows;
pub mod seal;
pub mod shown;
pub mod state;
pub mod statements;
pub mod taint;
pub mod unhooked;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::mem;
use std::path::PathBuf;

use serde::Serialize;
use writ_clients::Client;
use writ_clients::transcript::TranscriptError;
use writ_core::json;
use writ_core::secret::mask_id;
use writ_core::{Digest, SessionId, Timestamp};
use writ_evidence::row::{Draft, Row, RowDecision};
use writ_policy::{Held, Known, Setting, Taint, Tally};
use writ_store::{LedgerGuard, Store, StoreError, regular_file};

use crate::Home;
use crate::governing::in_force::InForce;
use crate::governing::{Governing, GoverningError, layers};
use crate::home::NoStateDir;
use rows::IdentityRef;
use state::{State, StateError};

/// Rules that a policy names in files of their own, by those names, and the digests of their texts.
pub type Rules = BTreeMap<String, Digest>;
/// Largest of them, in bytes.
pub const MAX_RULE: u64 = 1 << 20;

pub use open::{PUBLIC_KEY, rehearse};
pub use policy::{Wanted, confined_repository, kept_policy, stands};

/// What the id of a session's record ends in where no policy governs and only claims are kept. A policy that comes to govern
/// the same session later begins a record of its own.
const UNGOVERNED: &str = "+claims";
/// Why a session cannot be used. On a call this denies (R6).
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The ledger or its folder.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The policy.
    #[error(transparent)]
    Governing(#[from] GoverningError),
    /// The checkpoint could not be signed.
    #[error("the checkpoint cannot be signed: {0}")]
    Key(#[from] writ_evidence::keys::KeyError),
    /// There is no state folder.
    #[error(transparent)]
    NoStateDir(#[from] NoStateDir),
    /// The last row's state.
    #[error(transparent)]
    State(#[from] StateError),
    /// The file that its client's conversation is drawn into.
    #[error(transparent)]
    Conversation(#[from] TranscriptError),
    /// The policy that the session began under is gone and nothing was recorded yet.
    #[error("the policy vanished while the session was being opened: put it back and try again")]
    Vanished,
    /// The session began here before, and its rows are gone.
    #[error("the record of this session is gone although it began here before: put {} back, or start a new session", folder.display())]
    Lost {
        /// Where its folder was.
        folder: PathBuf,
    },
    /// What it has taken in cannot be read.
    #[error("what this session has read is not known: {} is gone or was changed; start a new session", path.display())]
    Taint {
        /// The file.
        path: PathBuf,
    },
    /// The session was decided by something else.
    #[error(
        "the session {session} is under something else than this Agentfile as it is: leave `--session` out, or name another"
    )]
    Other {
        /// The session.
        session: SessionId,
    },
    /// The session is under no policy.
    #[error("no policy governs this session: only claims are on record")]
    Ungoverned,
}

/// An open session.
pub struct Session<'a> {
    /// The store it lives in.
    pub store: &'a Store,
    /// Its id.
    pub id: SessionId,
    /// The state after the last row; every appended row carries it on.
    pub state: State,
    /// The circumstances of decisions, as the genesis row recorded them, at this moment.
    pub setting: Setting,
    /// The moment of this call: decisions and rows share it.
    pub now: Timestamp,
    /// When the session began.
    pub began: Timestamp,
    /// The user's folders.
    pub home: &'a Home,
    /// The agent's client; `None` where this version of Writ does not know it.
    pub client: Option<&'static dyn Client>,
    /// Whether this call wrote the genesis row.
    pub fresh: bool,
    /// The run that this event happens in, if the session is one's.
    pub within: Option<Within>,
    /// The labels of what it has taken in.
    pub taint: Taint,
    /// Whether the record begins in the middle of the session.
    pub begins_late: bool,
    /// Whether the call is of a tool that its server has changed since a human let it in.
    pub redefined: bool,
    /// Who makes the call, where a policy asks for that.
    pub agent: Option<Known>,
    /// Their identity, as the call's row names it.
    pub named: Option<IdentityRef>,
    guard: LedgerGuard,
    /// Whether it was over after the last row.
    over: bool,
    in_force: OnceCell<Result<InForce, Blocked>>,
}

impl<'a> Session<'a> {
    /// A row about the session itself rather than a call.
    pub fn event(&self, event: &str, detail: impl Serialize) -> Draft {
        self.draft(RowDecision::Checkpoint, rows::Titled { event, detail })
    }

    /// A row with this session's time; the caller adds the call's own members.
    pub fn draft(&self, decision: RowDecision, detail: impl Serialize) -> Draft {
        Draft {
            timestamp: self.now,
            call_id: None,
            tool_name: None,
            decision,
            denial_reason: None,
            result_hash: None,
            detail: json::to_value(&detail),
        }
    }

    /// Appends a row that carries the state on; names and ids of calls go without their tokens (R8). Durable on return.
    pub fn append(&mut self, draft: Draft) -> Result<u64, SessionError> {
        let sequence = self.write(draft)?;
        self.seal_late()?;
        Ok(sequence)
    }

    /// The same, without the seal that a row behind the session's end has.
    fn write(&mut self, draft: Draft) -> Result<u64, SessionError> {
        let draft = self.carrying(draft);
        let sequence = self.guard.append(draft)?.sequence;
        self.wrote();
        Ok(sequence)
    }

    /// Appends a row that is durable with the next one.
    pub fn append_unflushed(&mut self, draft: Draft) -> Result<u64, SessionError> {
        let draft = self.carrying(draft);
        let sequence = self.guard.append_unflushed(draft)?.sequence;
        self.wrote();
        self.seal_late()?;
        Ok(sequence)
    }

    /// Seals a row that came when the session was over, or whose client tells no end: no stop will come that seals it. Where another process
    /// has the key that signs, that one is asked once this is done (`notary::late`), and of a session that is over alone.
    fn seal_late(&mut self) -> Result<(), SessionError> {
        let endless = self.client.is_some_and(|client| !client.tells_of_ends());
        let late = mem::replace(&mut self.over, self.state.over) || endless;
        let elsewhere = self.state.custody.is_some() && self.home.keeper.is_none();
        if late && !elsewhere { seal::seal(self) } else { Ok(()) }
    }

    fn carrying(&self, mut draft: Draft) -> Draft {
        for word in draft.call_id.iter_mut().chain(&mut draft.tool_name) {
            if let Cow::Owned(masked) = mask_id(word) {
                *word = masked;
            }
        }
        rows::Carried { recovered: self.guard.recovered().map(ToString::to_string), state: &self.state }.by(&mut draft);
        draft
    }

    /// Keeps a policy and its layers in the session's folder, each under its digest, and the list of them. Gives the rules that it names
    /// in files of their own, which are kept so too: one that cannot be read is left out, and no verification can ask it.
    pub fn keep_policy(&self, governing: &Governing) -> Result<Rules, SessionError> {
        for layer in &governing.layers {
            self.keep_file(layer.at.file, &layer.bytes)?;
        }
        if !governing.layers.is_empty() {
            let list = layers::to_bytes(&governing.list());
            self.guard.keep(&layers::file_name(Digest::of(&list)), &list)?;
        }
        self.keep_file(governing.file, &governing.bytes)?;
        let mut rules = Rules::new();
        for (file, path) in governing.rules() {
            let Ok(bytes) = regular_file::read(&path, MAX_RULE) else { continue };
            let digest = Digest::of(&bytes);
            self.keep_file(digest, &bytes)?;
            rules.insert(file, digest);
        }
        Ok(rules)
    }

    /// Keeps a policy's file in the session's folder, under its digest.
    pub fn keep_file(&self, file: Digest, bytes: &[u8]) -> Result<(), SessionError> {
        Ok(self.guard.keep(&format!("policies/{}", file.hex()), bytes)?)
    }

    /// Keeps bytes in the session's folder. Durable on return.
    pub fn keep(&self, name: &str, bytes: &[u8]) -> Result<(), SessionError> {
        Ok(self.guard.keep(name, bytes)?)
    }

    /// Keeps bytes that can be made again in the session's folder.
    pub fn keep_soon(&self, name: &'static str, bytes: &[u8]) -> Result<(), SessionError> {
        Ok(self.guard.keep_soon(name, bytes)?)
    }

    /// Now, for what counts time.
    pub fn moment(&self) -> Timestamp {
        self.state.steady(self.now)
    }

    /// Looks at the clock again, where it is open for long.
    pub fn look_at_the_clock(&mut self) {
        let now = Timestamp::now();
        self.state.put_back(self.now, now);
        self.now = now;
    }

    /// What the session has used so far.
    pub fn tally(&self) -> Tally<'_> {
        let tally = self.state.tally(millis_between(self.began, self.moment()));
        Tally { taint: Some(&self.taint), unread: tally.unread || self.begins_late, ..tally }
    }

    /// Takes every row so far, one after the other.
    pub fn each_row(&self, take: impl FnMut(Row)) -> Result<(), SessionError> {
        Ok(self.store.each_row(&self.id, take)?)
    }

    /// The rows from the last to the first, until `take` says that it has enough.
    pub fn each_row_back(&self, take: impl FnMut(Row) -> bool) -> Result<(), SessionError> {
        Ok(self.store.each_row_back(&self.id, take)?)
    }

    /// The seal of the first row, which no other session has.
    pub fn genesis(&self) -> Result<Digest, SessionError> {
        Ok(self.store.first_row(&self.id)?.ok_or(SessionError::Vanished)?.entry_hash)
    }

    /// The locked ledger.
    pub const fn ledger(&mut self) -> &mut LedgerGuard {
        &mut self.guard
    }
}

/// Milliseconds from one moment to another; none where the clock was put back.
pub fn millis_between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.millis().saturating_sub(from.millis())).unwrap_or_default()
}

/// A run in a sandbox that what happens is held by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Within {
    /// The run's call.
    pub run: String,
    /// What needs no question in it.
    pub held: Held,
    /// The only work tree that git is asked about: what lies elsewhere may have settings that the agent wrote.
    pub repository: PathBuf,
}

/// Why the accepted policy cannot be applied now.
#[derive(Debug)]
pub enum Blocked {
    /// Its kept copy cannot be read or no longer verifies.
    Unusable(GoverningError),
    /// There is none.
    Ungoverned,
}

/// The id under which claims are kept where no policy governs.
pub fn ungoverned(id: &SessionId) -> SessionId {
    SessionId::new(format!("{}{UNGOVERNED}", id.as_str()))
}

/// The process namespace of this process, where the system has such.
pub fn namespace() -> Option<String> {
    std::fs::read_link("/proc/self/ns/pid").ok().map(|link| link.to_string_lossy().into_owned())
}
