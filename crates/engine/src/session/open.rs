//! How a session is opened: its genesis row when it is new, its state when it is not.

use std::cell::OnceCell;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use writ_clients::Client;
use writ_core::{Digest, Event, EventKind, SessionId, Timestamp};
use writ_evidence::row::{Draft, Row};
use writ_policy::{Setting, Taint};
use writ_store::{LedgerGuard, Store};

use super::custody::Named;
use super::policy::{Wanted, first_policy, named_policy};
use super::process::{self, ClientProcess};
use super::rows::{BEGAN, COMMAND, Carried};
use super::state::{State, StateError};
use super::{Rules, Session, SessionError, UNGOVERNED, namespace, rows, taint};
use crate::governing::in_force::PolicyRef;
use crate::governing::{Governing, Trust, kept, protect};
use crate::setup::watch;
use crate::{Asker, Home};

/// The ledger key's public half, in each session's folder.
pub const PUBLIC_KEY: &str = "ledger.pub";
/// How long a hook waits for the others before it gives up and denies.
const LOCK_DEADLINE: Duration = Duration::from_secs(20);

impl<'a> Session<'a> {
    /// Locks the session's ledger and reads its state; writes the genesis row when the session is new.
    pub fn open(
        store: &'a Store,
        id: &SessionId,
        input: &Event,
        home: &'a Home,
        now: Timestamp,
    ) -> Result<Self, SessionError> {
        Self::open_under(store, id, input, home, now, Wanted::Found)
    }

    /// The same; where it is new, under the policy that a human `wanted`.
    pub fn open_under(
        store: &'a Store,
        id: &SessionId,
        input: &Event,
        home: &'a Home,
        now: Timestamp,
        wanted: Wanted<'_>,
    ) -> Result<Self, SessionError> {
        let guard = store.session(id)?.lock(LOCK_DEADLINE)?;
        if let Some(row) = guard.last() {
            let mut state = State::from_detail(&row.detail).ok_or(StateError { sequence: row.sequence })?;
            let now = going_on(&mut state, row.timestamp, now);
            let Recorded { setting, began, begins_late, .. } = recorded(store, id)?;
            let setting = under(setting, &state, store, id)?;
            let taint = taint::kept(state.taint, &store.folder(id))?;
            return Ok(Self {
                store,
                id: id.clone(),
                over: state.over,
                state,
                setting: Setting { now, ..setting },
                now,
                began,
                home,
                client: writ_clients::named(input.client),
                fresh: false,
                within: None,
                taint,
                begins_late,
                redefined: false,
                agent: None,
                named: None,
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
        let (cwd, trust) = (Path::new(&input.cwd), Trust::open(home.state.as_deref()));
        let (governing, pending) = match wanted {
            Wanted::File(path) => named_policy(store, cwd, path, &trust)?,
            Wanted::Found => first_policy(store, cwd, &trust)?,
            Wanted::Own(bytes, path) => (kept::open_whole(path, bytes.to_owned(), &trust)?, false),
        };
        let own = matches!(wanted, Wanted::Own(..));
        let state = State { pending, ..State::fresh(Some(PolicyRef { own, ..PolicyRef::to(&governing) })) };
        let mut setting = protect::setting(home, &governing.path, now);
        setting.protected.extend(protect::transcript(input.transcript.as_deref(), &setting.protected));
        setting.protected.extend(protect::attestations(&governing));
        setting.protected.extend(protect::rules(&governing));
        let mut session = Self {
            store,
            id: id.clone(),
            over: false,
            state,
            setting,
            now,
            began: now,
            home,
            client: writ_clients::named(input.client),
            fresh: true,
            within: None,
            taint: Taint::default(),
            begins_late: !matches!(began(&input.kind), "startup" | "clear" | rows::BEGAN),
            redefined: false,
            agent: None,
            named: None,
            guard,
            in_force: OnceCell::new(),
        };
        session.state.custody = session.held();
        session.state.clients.extend(client_of(input, home));
        let rules = session.keep_policy(&governing)?;
        let governed = Governed::of(input, &session, &governing, rules);
        let draft =
            session.event("session-start", GovernedGenesis { genesis: Genesis::of(input, &session)?, governed });
        session.begin(draft, &input.cwd)?;
        session.setting = protect::with_layers(session.setting, &governing.list());
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
            over: false,
            state: State::fresh(None),
            setting,
            now,
            began: now,
            home,
            client: writ_clients::named(input.client),
            fresh: true,
            within: None,
            taint: Taint::default(),
            begins_late: false,
            redefined: false,
            agent: None,
            named: None,
            guard,
            in_force: OnceCell::new(),
        };
        session.state.custody = session.held();
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
        let mut state = State::from_detail(&row.detail).ok_or(StateError { sequence: row.sequence })?;
        let now = going_on(&mut state, row.timestamp, now);
        let Recorded { setting, client, began, begins_late } = recorded(store, id)?;
        let setting = under(setting, &state, store, id)?;
        let taint = taint::kept(state.taint, &store.folder(id))?;
        let (setting, in_force) = (Setting { now, ..setting }, OnceCell::new());
        Ok(Self {
            store,
            id: id.clone(),
            over: state.over,
            state,
            setting,
            now,
            began,
            home,
            client,
            fresh: false,
            within: None,
            taint,
            begins_late,
            redefined: false,
            agent: None,
            named: None,
            guard,
            in_force,
        })
    }
}

/// The moment at which a session goes on. Who waited for the ledger may have looked at the clock before the row was written; where it is
/// still of a later moment than the clock's, the clock was put back.
fn going_on(state: &mut State, last: Timestamp, now: Timestamp) -> Timestamp {
    let now = if now < last { Timestamp::now().max(now) } else { now };
    state.put_back(last, now);
    now
}

/// What the genesis row says of the session.
#[derive(Clone)]
struct Recorded {
    setting: Setting,
    client: Option<&'static dyn Client>,
    began: Timestamp,
    begins_late: bool,
}

/// Most genesis rows of which a process remembers what they say.
const MOST_RECORDED: usize = 16;

/// What genesis rows say, by their seals: a row that was read is sealed by its own, so that another text has another.
static RECORDED: Mutex<Vec<(Digest, Recorded)>> = Mutex::new(Vec::new());

fn recorded(store: &Store, id: &SessionId) -> Result<Recorded, SessionError> {
    let genesis = store.first_row(id)?.ok_or(StateError { sequence: 0 })?;
    let find = |known: &[(Digest, Recorded)]| {
        known.iter().find(|(seal, _)| *seal == genesis.entry_hash).map(|(_, recorded)| recorded.clone())
    };
    if let Some(recorded) = find(&RECORDED.lock().unwrap_or_else(PoisonError::into_inner)) {
        return Ok(recorded);
    }
    let (client, begins_late) = (rows::client(&genesis.detail).ok(), !rows::begins_whole(&genesis.detail));
    let setting = protect::recorded(&genesis.detail).ok_or(StateError { sequence: 0 })?;
    let recorded = Recorded { setting, client, began: genesis.timestamp, begins_late };
    let mut known = RECORDED.lock().unwrap_or_else(PoisonError::into_inner);
    if find(&known).is_none() {
        known.truncate(MOST_RECORDED - 1);
        known.insert(0, (genesis.entry_hash, recorded.clone()));
    }
    Ok(recorded)
}

/// Does what the next row needs, but for writing one: what a process has done once it does in half the time, and who waits for something else
/// has that now.
pub fn rehearse(store: &Store, id: &SessionId) {
    // What cannot be read is told where it is needed.
    drop(rehearsed(store, id));
}

fn rehearsed(store: &Store, id: &SessionId) -> Result<(), SessionError> {
    let Recorded { setting, .. } = recorded(store, id)?;
    let Some(row) = store.last_row(id)? else { return Ok(()) };
    let Some(state) = State::from_detail(&row.detail) else { return Ok(()) };
    under(setting, &state, store, id)?;
    let mut draft = Draft {
        timestamp: row.timestamp,
        call_id: row.call_id.clone(),
        tool_name: row.tool_name.clone(),
        decision: row.decision,
        denial_reason: None,
        result_hash: None,
        detail: row.detail.clone(),
    };
    Carried { recovered: None, state: &state }.by(&mut draft);
    taint::kept(state.taint, &store.folder(id))?;
    drop(Row::seal_line(Some(&row), draft));
    Ok(())
}

/// The setting under the policy that is accepted now.
fn under(setting: Setting, state: &State, store: &Store, id: &SessionId) -> Result<Setting, SessionError> {
    let Some(policy) = &state.policy else { return Ok(setting) };
    Ok(protect::with_layers(setting, &kept::list(policy, &store.folder(id))?))
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
    #[serde(skip_serializing_if = "Option::is_none")]
    custody: Option<Named>,
}

/// What it says beside that of one under policy.
#[derive(Serialize)]
struct Governed<'a> {
    transcript: Option<&'a str>,
    began: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    signers: Option<Vec<String>>,
    /// The client that asked, where it asks by processes of its own: one whose start could not be recorded is known all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<&'a ClientProcess>,
    /// Where the session's processes live: a human's word from elsewhere needs more than a terminal.
    namespace: Option<String>,
    hooks: Vec<watch::Hooks>,
    /// The policy's rules in files of their own.
    #[serde(skip_serializing_if = "Rules::is_empty")]
    rules: Rules,
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
            custody: session.introduced()?,
        })
    }
}

impl<'a> Governed<'a> {
    fn of(input: &'a Event, session: &'a Session<'_>, governing: &'a Governing, rules: Rules) -> Self {
        Self {
            rules,
            process: session.state.clients.first(),
            transcript: input.transcript.as_deref(),
            began: began(&input.kind),
            signers: governing.signed.signers(),
            namespace: namespace(),
            hooks: session
                .client
                .map(|client| watch::installed(session.home, client, Path::new(&input.cwd)))
                .unwrap_or_default(),
        }
    }
}

/// The client that asks; of one that posts its hooks [`crate::hook`] makes a row, and above what is run as a whole is a human.
fn client_of(input: &Event, home: &Home) -> Option<ClientProcess> {
    let posted = matches!(home.asker, Asker::Client(_) | Asker::Unknown);
    if posted || input.client == COMMAND || began(&input.kind) == BEGAN { None } else { process::client(home.asker) }
}

/// What made the session begin here: the client's word for a start, or the event that found no record.
fn began(event: &EventKind) -> &str {
    if let EventKind::SessionStart { source } = event { source.as_deref().unwrap_or("startup") } else { event.name() }
}
