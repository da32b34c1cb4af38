//! An open session: its ledger locked, its state read, its genesis written when it is new.
//!
//! Owns the order of things on every hook call; decides nothing. While a [`Session`] lives, no other process can append to
//! its ledger, so the state it read is the state its next row follows.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use writ_clients::Client;
use writ_core::json::{self, Value};
use writ_core::{Digest, SessionId, Timestamp};
use writ_core::{Event, EventKind};
use writ_evidence::row::{Draft, Row, RowDecision};
use writ_policy::Setting;
use writ_store::{LedgerGuard, Store, StoreError};

use crate::governing::{self, Governing, GoverningError, Signed};
use crate::home::NoStateDir;
use crate::standing::{self, Change, InForce, Open};
use crate::state::{PolicyRef, State, StateError};
use crate::trust::Trust;
use crate::{Home, protect, rows, watch};

/// The ledger key's public half, in each session's folder.
pub const PUBLIC_KEY: &str = "ledger.pub";
/// What the id of a session's record ends in where no policy governs and only claims are kept. A policy that comes to govern
/// the same session later begins a record of its own.
const UNGOVERNED: &str = "+claims";
/// How long a hook waits for the others before it gives up and denies.
const LOCK_DEADLINE: Duration = Duration::from_secs(20);

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
    /// The policy that the session began under is gone and nothing was recorded yet.
    #[error("the policy vanished while the session was being opened: put it back and try again")]
    Vanished,
    /// The session began here before, and its rows are gone.
    #[error("the record of this session is gone although it began here before: put {} back, or start a new session", folder.display())]
    Lost {
        /// Where its folder was.
        folder: PathBuf,
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
    /// The user's folders.
    pub home: &'a Home,
    /// The agent's client; `None` where this version of Writ does not know it.
    pub client: Option<&'static dyn Client>,
    /// Whether this call wrote the genesis row.
    pub fresh: bool,
    guard: LedgerGuard,
    in_force: OnceCell<Result<InForce, Blocked>>,
}

impl<'a> Session<'a> {
    /// Locks the session's ledger and reads its state; writes the genesis row when the session is new.
    pub fn open(
        store: &'a Store,
        id: &SessionId,
        input: &Event,
        home: &'a Home,
        now: Timestamp,
    ) -> Result<Self, SessionError> {
        let guard = store.session(id)?.lock(LOCK_DEADLINE)?;
        if let Some(row) = guard.last() {
            let state = State::from_detail(&row.detail).ok_or(StateError { sequence: row.sequence })?;
            let (setting, _) = recorded(store, id)?;
            return Ok(Self {
                store,
                id: id.clone(),
                state,
                setting: Setting { now, ..setting },
                now,
                home,
                client: writ_clients::named(input.client),
                fresh: false,
                guard,
                in_force: OnceCell::new(),
            });
        }
        if store.is_known(id) {
            return Err(SessionError::Lost { folder: store.folder(id) });
        }
        if id.as_str().ends_with(UNGOVERNED) {
            return Self::begin_ungoverned(store, id, input, home, now, guard);
        }
        let (governing, pending) = first_policy(store, Path::new(&input.cwd), &Trust::open(home.state.as_deref()))?;
        let state = State { pending, ..State::fresh(Some(PolicyRef::to(&governing))) };
        let mut setting = protect::setting(home, &governing.path, now);
        setting.protected.extend(protect::transcript(input.transcript.as_deref(), &setting.protected));
        let mut session = Self {
            store,
            id: id.clone(),
            state,
            setting,
            now,
            home,
            client: writ_clients::named(input.client),
            fresh: true,
            guard,
            in_force: OnceCell::new(),
        };
        session.keep_policy(&governing)?;
        let governed = Governed::of(input, &session, &governing);
        let draft =
            session.event("session-start", GovernedGenesis { genesis: Genesis::of(input, &session)?, governed });
        session.begin(draft, &input.cwd)?;
        Ok(session)
    }

    /// Begins the record of claims where no policy governs.
    fn begin_ungoverned(
        store: &'a Store,
        id: &SessionId,
        input: &Event,
        home: &'a Home,
        now: Timestamp,
        guard: LedgerGuard,
    ) -> Result<Self, SessionError> {
        let setting = Setting { now, home: home.user_text(), protected: Vec::new() };
        let mut session = Self {
            store,
            id: id.clone(),
            state: State::fresh(None),
            setting,
            now,
            home,
            client: writ_clients::named(input.client),
            fresh: true,
            guard,
            in_force: OnceCell::new(),
        };
        let genesis = Genesis::of(input, &session)?;
        let draft = session.event("session-start", genesis);
        session.begin(draft, &input.cwd)?;
        Ok(session)
    }

    /// Writes the genesis row. What is remembered apart from it comes after: a crash in between leaves a session that is known by
    /// its rows, never one that is known and has none.
    fn begin(&mut self, draft: Draft, cwd: &str) -> Result<(), SessionError> {
        self.append(draft)?;
        Ok(self.store.remember(&self.id, cwd, self.now)?)
    }

    /// Opens a session that exists, for a human's command.
    pub fn resume(store: &'a Store, id: &SessionId, home: &'a Home, now: Timestamp) -> Result<Self, SessionError> {
        let guard = store.session(id)?.lock(LOCK_DEADLINE)?;
        let row = guard.last().ok_or(SessionError::Vanished)?;
        let state = State::from_detail(&row.detail).ok_or(StateError { sequence: row.sequence })?;
        let (setting, client) = recorded(store, id)?;
        let (setting, in_force) = (Setting { now, ..setting }, OnceCell::new());
        Ok(Self { store, id: id.clone(), state, setting, now, home, client, fresh: false, guard, in_force })
    }

    /// The policy as a human last accepted it and what became of its file, or what stands in its way. Looked at once.
    pub fn policy(&self) -> Result<&InForce, &Blocked> {
        let look = || {
            let accepted = self.state.policy.as_ref().ok_or(Blocked::Ungoverned)?;
            let trust = Trust::open(self.home.state.as_deref());
            standing::in_force(accepted, &self.store.folder(&self.id), &trust).map_err(Blocked::Unusable)
        };
        self.in_force.get_or_init(look).as_ref()
    }

    /// Records it once when the policy's file is no longer the accepted one, or is again. Gives what the human is to be told.
    pub fn notice(&mut self) -> Result<Option<String>, SessionError> {
        let Some(policy) = self.state.policy.clone() else { return Ok(None) };
        // Most events need no more than to know that nothing changed.
        let same = || governing::read(&policy.path).is_ok_and(|bytes| Digest::of(&bytes) == policy.file);
        if self.in_force.get().is_none() && self.state.told.is_none() && !self.state.pending && same() {
            return Ok(None);
        }
        let Ok(in_force) = self.policy() else { return Ok(None) };
        let (key, message) = match &in_force.change {
            Some(change) => (Some(change.key()), Some(format!("writ: {}", change.tell(&policy.path)))),
            None => (None, None),
        };
        if key == self.state.told {
            let pending = self.fresh && self.state.pending;
            return Ok(pending.then(|| format!("writ: {}", standing::pending(&policy.path))));
        }
        if let Some(layer) = in_force.change.as_ref().and_then(Change::layer) {
            self.keep_policy(layer)?;
        }
        let repository = standing::repository(policy.root());
        let event = if key.is_some() { "policy-changed" } else { "policy-restored" };
        if key.is_some() {
            let open = Open { path: policy.path.clone(), file: policy.file };
            self.store.leave_open(repository, &open.to_bytes())?;
        } else if !self.state.pending {
            self.store.settle(repository)?;
        }
        let draft = self.event(event, Found { file: key.as_deref() });
        self.state.told = key;
        self.append(draft)?;
        Ok(message)
    }

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

    /// Appends a row that carries the state on. Durable on return.
    pub fn append(&mut self, mut draft: Draft) -> Result<u64, SessionError> {
        let carried = rows::Carried { recovered: self.guard.recovered().map(ToString::to_string), state: &self.state };
        if let (Value::Object(detail), Value::Object(carried)) = (&mut draft.detail, json::to_value(&carried)) {
            detail.extend(carried);
        }
        Ok(self.guard.append(draft)?.sequence)
    }

    /// Keeps the policy's bytes in the session's folder, under their digest.
    pub fn keep_policy(&self, governing: &Governing) -> Result<(), SessionError> {
        Ok(self.guard.keep(&format!("policies/{}", governing.file.hex()), &governing.bytes)?)
    }

    /// Keeps bytes in the session's folder. Durable on return.
    pub fn keep(&self, name: &str, bytes: &[u8]) -> Result<(), SessionError> {
        Ok(self.guard.keep(name, bytes)?)
    }

    /// Every row so far.
    pub fn rows(&self) -> Result<Vec<Row>, SessionError> {
        Ok(self.store.rows(&self.id)?)
    }

    /// The locked ledger.
    pub const fn ledger(&mut self) -> &mut LedgerGuard {
        &mut self.guard
    }
}

/// The id under which claims are kept where no policy governs.
pub fn ungoverned(id: &SessionId) -> SessionId {
    SessionId::new(format!("{}{UNGOVERNED}", id.as_str()))
}

/// The setting and the client in the genesis row.
fn recorded(store: &Store, id: &SessionId) -> Result<(Setting, Option<&'static dyn Client>), SessionError> {
    let genesis = store.first_row(id)?;
    let found = genesis.and_then(|first| Some((protect::recorded(&first.detail)?, rows::client(&first.detail).ok())));
    Ok(found.ok_or(StateError { sequence: 0 })?)
}

/// Why the accepted policy cannot be applied now.
#[derive(Debug)]
pub enum Blocked {
    /// Its kept copy cannot be read or no longer verifies.
    Unusable(GoverningError),
    /// There is none.
    Ungoverned,
}

/// The policy that a new session begins under, and whether a human has to settle something first (R82). Where an earlier
/// session's policy changed or vanished, one that nobody has accepted here does not begin a session: the accepted one does.
fn first_policy(store: &Store, cwd: &Path, trust: &Trust) -> Result<(Governing, bool), SessionError> {
    let repository = standing::repository(cwd);
    let left = standing::left_open(store, cwd)?;
    let found = governing::find(cwd);
    let opened = match (&found, &left) {
        (Some(path), _) => Some(governing::open(path, None, trust)),
        (None, Some(_)) => None,
        (None, None) => return Err(SessionError::Vanished),
    };
    if let Some(Ok(governing)) = &opened
        && (left.is_none() || store.accepted(repository, governing.file)?.is_some())
    {
        store.keep_accepted(repository, governing.file, &governing.bytes)?;
        return Ok((governing.clone(), false));
    }
    let kept = match &left {
        Some(open) => store.accepted(repository, open.file)?.map(|bytes| (open, bytes)),
        None => None,
    };
    match (kept, opened) {
        (Some((open, bytes)), _) => Ok((governing::open_kept(&open.path, bytes, trust)?, true)),
        (None, Some(opened)) => Ok((opened?, left.is_some())),
        (None, None) => Err(SessionError::Vanished),
    }
}

/// What became of the policy's file: `null` when it is the accepted one again.
#[derive(Serialize)]
struct Found<'a> {
    file: Option<&'a str>,
}

/// What the first row says of any session.
#[derive(Serialize)]
struct Genesis<'a> {
    session: &'a SessionId,
    client: &'static str,
    writ: &'static str,
    cwd: &'a str,
    setting: &'a Setting,
    key: Digest,
}

/// What it says beside that of one under policy.
#[derive(Serialize)]
struct Governed<'a> {
    transcript: Option<&'a str>,
    began: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    signers: Option<&'a [String]>,
    /// Where the session's processes live: a human's word from elsewhere needs more than a terminal.
    namespace: Option<String>,
    hooks: Vec<watch::Hooks>,
}

#[derive(Serialize)]
struct GovernedGenesis<'a> {
    #[serde(flatten)]
    genesis: Genesis<'a>,
    #[serde(flatten)]
    governed: Governed<'a>,
}

impl<'a> Genesis<'a> {
    /// Keeps the ledger key's public half, which the row names.
    fn of(input: &'a Event, session: &'a Session<'_>) -> Result<Self, SessionError> {
        let key = session.store.ledger_key()?;
        session.guard.keep(PUBLIC_KEY, key.public().to_pem().as_bytes())?;
        Ok(Self {
            session: &session.id,
            client: input.client,
            writ: env!("CARGO_PKG_VERSION"),
            cwd: &input.cwd,
            setting: &session.setting,
            key: key.public().key_id(),
        })
    }
}

impl<'a> Governed<'a> {
    fn of(input: &'a Event, session: &Session<'_>, governing: &'a Governing) -> Self {
        Self {
            transcript: input.transcript.as_deref(),
            began: began(&input.kind),
            signers: if let Signed::By(signers) = &governing.signed { Some(signers) } else { None },
            namespace: namespace(),
            hooks: session
                .client
                .map(|client| watch::installed(session.home, client, Path::new(&input.cwd)))
                .unwrap_or_default(),
        }
    }
}

/// What made the session begin here: the client's word for a start, or the event that found no record.
fn began(event: &EventKind) -> &str {
    if let EventKind::SessionStart { source } = event { source.as_deref().unwrap_or("startup") } else { event.name() }
}

/// The process namespace of this process, where the system has such.
pub fn namespace() -> Option<String> {
    std::fs::read_link("/proc/self/ns/pid").ok().map(|link| link.to_string_lossy().into_owned())
}
