//! What stands between an agent's client and an MCP server: each call decided and recorded on the road of all calls.
//!
//! Owns which session a call belongs to and which tools are shown. Decides nothing itself: [`crate::hook`] does. Refuses nothing where
//! no policy governs. Invariant: a call that is let through has its row on disk, its own or the one that the client's hook wrote for
//! the same call. Page: `spec/mcp.md`.

pub mod pins;
pub mod under;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use writ_clients::{Client, mcp as own};
use writ_core::json::Value;
use writ_core::{
    Answer, Decision, Digest, Event, EventKind, Reply, SessionId, Timestamp, ToolCall, ToolKind, ToolUse, Verdict,
};
use writ_evidence::keys::{KeyError, random};
use writ_evidence::row::{Row, RowDecision};
use writ_store::Store;

use crate::governing::layers::Caller;
use crate::governing::{Governing, GoverningError, Trust, in_force};
use crate::identity::TRUST_DOMAIN;
use crate::identity::shown::{Shown, ShownError, shown};
use crate::notary::tokens::{Request, Told};
use crate::notary::{Asked, ask, unanswered};
use crate::session::Session;
use crate::session::state::State;
use crate::{Home, governing, hook};
use pins::{News, Pins};
use under::HeldTo;

/// Between a client and one server.
pub struct Gate {
    home: Home,
    cwd: String,
    server: String,
    /// The client and its session, where its environment names one.
    joined: Option<(&'static str, SessionId)>,
    own: SessionId,
    /// What calls are held to, where that is not what governs the folder.
    held: Option<HeldTo>,
    /// What the ids of calls without one begin with.
    calls: String,
    count: AtomicU64,
    /// Calls of the client's hook that were let through: each once.
    passed: Mutex<BTreeSet<String>>,
}

/// A call that was let through.
#[derive(Debug)]
pub struct Passed {
    session: SessionId,
    client: &'static str,
    used: ToolUse,
    /// The input that it runs with, where that is not its own: a line in its sandbox.
    pub input: Option<Value>,
    /// Its row, and that of its result, are its client's hook's.
    hooked: bool,
}

/// What a server is asked for.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// The tool; of another request, what it is decided as.
    pub tool: &'a str,
    /// What it is called with.
    pub input: Value,
    /// The numbers that `input` does not keep ([`writ_core::json::rounded`]).
    pub rounded: Vec<String>,
    /// Whether it is a tool, whose definition is pinned.
    pub is_tool: bool,
}

impl<'a> Wanted<'a> {
    /// A tool, with an input that keeps every number.
    pub const fn tool(tool: &'a str, input: Value) -> Self {
        Self { tool, input, rounded: Vec::new(), is_tool: true }
    }
}

/// What becomes of a call.
#[derive(Debug)]
pub enum Ruling {
    /// It is let through.
    Pass(Box<Passed>),
    /// It is not.
    Refused {
        /// Whether a human could let it run.
        verdict: Verdict,
        /// Which rule, why, and what would help.
        reason: String,
    },
}

/// A tool as its server describes it.
#[derive(Clone, Copy, Debug)]
pub struct Offered<'a> {
    /// Its name.
    pub name: &'a str,
    /// All that the server says of it.
    pub definition: &'a Value,
}

impl Gate {
    /// For the calls of one client to `server` in `cwd`. `joined` is the client and its session, where those are known.
    pub fn new(
        home: Home,
        cwd: &Path,
        server: &str,
        joined: Option<(&'static dyn Client, SessionId)>,
    ) -> Result<Self, KeyError> {
        let own = SessionId::new(format!("mcp-{server}-{:016x}", random()? >> 64));
        Ok(Self {
            home,
            cwd: cwd.to_string_lossy().into_owned(),
            server: server.to_owned(),
            joined: joined.map(|(client, session)| (client.name(), session)),
            calls: own.as_str().to_owned(),
            own,
            held: None,
            count: AtomicU64::new(1),
            passed: Mutex::default(),
        })
    }

    /// For calls that Writ makes under an Agentfile, in a session that may have begun before.
    pub fn under(home: Home, cwd: &Path, server: &str, session: SessionId, held: HeldTo) -> Result<Self, KeyError> {
        let calls = format!("tool-{:016x}", random()? >> 64);
        Ok(Self { own: session, held: Some(held), calls, ..Self::new(home, cwd, server, None)? })
    }

    /// Whether a policy governs here now.
    pub fn is_governed(&self) -> bool {
        let cwd = Path::new(&self.cwd);
        let store = self.store();
        self.held.is_some()
            || governing::find(cwd).is_some()
            || store.as_ref().is_some_and(|store| {
                let (_, session) = self.session(store);
                store.exists(&session) || store.is_known(&session) || in_force::is_lost(store, cwd)
            })
    }

    /// The session that calls belong to now.
    pub fn session_id(&self) -> SessionId {
        self.store().map_or_else(|| self.own.clone(), |store| self.session(&store).1)
    }

    /// Decides what a server is asked for and records that. `id` is the client's own of the call, where it says one.
    pub fn before(&self, wanted: Wanted<'_>, id: Option<&str>) -> Ruling {
        let Wanted { tool, input, rounded, is_tool } = wanted;
        let store = self.store();
        self.begin();
        let name = format!("mcp__{}__{tool}", self.server);
        let kind = ToolKind::Mcp { server: self.server.clone(), tool: tool.to_owned() };
        let call = ToolCall { rounded, ..ToolCall::of(name, kind, input, self.cwd.clone()) };
        let redefined = is_tool && store.as_ref().is_some_and(|store| self.is_redefined(store, tool));
        self.decide(call, id, redefined)
    }

    /// Decides a call that Writ itself is to run, and records that.
    pub fn own(&self, call: ToolCall) -> Ruling {
        self.begin();
        self.decide(call, None, false)
    }

    fn decide(&self, call: ToolCall, id: Option<&str>, redefined: bool) -> Ruling {
        if let Err(error) = self.ready() {
            let reason = format!("writ denies what it cannot decide: {error}");
            return Ruling::Refused { verdict: Verdict::Deny, reason };
        }
        let store = self.store();
        let (client, session) = store.as_ref().map_or_else(|| (own::NAME, self.own.clone()), |it| self.session(it));
        if let (Some(store), Some(id), false) = (&store, id, redefined)
            && self.is_hooked(store, &session, id, &call)
        {
            let used = ToolUse { id: id.to_owned(), call };
            return Ruling::Pass(Box::new(Passed { session, client, used, input: None, hooked: true }));
        }
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let id = id.map_or_else(|| format!("{}-{number}", self.calls), str::to_owned);
        let used = ToolUse { id, call };
        let event = self.event(client, &session, EventKind::PreToolUse(used.clone()));
        let Answer { reply, input, .. } = self.deal(event, redefined);
        match reply {
            Reply::Silent | Reply::Context { .. } | Reply::Decided { verdict: Verdict::Allow, .. } => {
                Ruling::Pass(Box::new(Passed { session, client, used, input, hooked: false }))
            }
            Reply::Decided { verdict, reason } => {
                let which = format!(" (`--session {}`), and the same call then passes once", session.as_str());
                let reason = if verdict == Verdict::Ask { reason + &which } else { reason };
                Ruling::Refused { verdict, reason }
            }
            Reply::DenyPermission { reason } | Reply::Block { reason } => {
                Ruling::Refused { verdict: Verdict::Deny, reason }
            }
        }
    }

    /// Records what came of a call: the digest of its result, or of its error. Gives what the human is to be told.
    pub fn after(&self, passed: &Passed, outcome: Result<Value, String>) -> Option<String> {
        if passed.hooked {
            return None;
        }
        let call = passed.used.clone();
        let kind = match outcome {
            Ok(response) => EventKind::PostToolUse { call, response, duration_ms: None },
            Err(error) => EventKind::PostToolUseFailure { call, error, interrupted: false, duration_ms: None },
        };
        self.tell(passed.client, &passed.session, kind).message
    }

    /// Which tools of a list the client is shown, and what the human is to be told: those that are denied whatever their input are left
    /// out, and so are those that the server has changed since they were first seen. `last` says that no more of the list comes.
    pub fn shown(&self, tools: &[Offered<'_>], last: bool) -> (Vec<bool>, Option<String>) {
        if !self.is_governed() {
            return (vec![true; tools.len()], None);
        }
        let Some(store) = self.store() else { return (vec![true; tools.len()], None) };
        self.begin();
        if let Err(error) = self.ready() {
            return (vec![false; tools.len()], Some(error.to_string()));
        }
        let repository = in_force::repository(Path::new(&self.cwd));
        let news = match Pins::update(&store, repository, &self.cwd, &self.server, tools, last) {
            Ok(news) => news,
            Err(error) => return (vec![false; tools.len()], Some(format!("its tools cannot be pinned: {error}"))),
        };
        let said = self.record(&store, &news).err();
        let denied = self.denied(&store, tools);
        let shown = tools.iter().zip(denied).map(|(tool, denied)| !denied && !news.changed.contains(tool.name));
        (shown.collect(), said.or_else(|| news.tell(&self.server)))
    }

    /// Begins the session that is the proxy's own, where calls belong to it.
    pub fn begin(&self) {
        if self.held.is_some() {
            // It begins where a call is decided, which is refused where it cannot.
            return;
        }
        let begins = |store: &Store| self.session(store).1 == self.own && !store.exists(&self.own);
        if self.store().as_ref().is_some_and(begins) {
            let source = Some("startup".to_owned());
            self.tell(own::NAME, &self.own, EventKind::SessionStart { source });
        }
    }

    /// The folder that calls hang off.
    pub fn cwd(&self) -> &Path {
        Path::new(&self.cwd)
    }

    /// What a call would come to, without a record.
    pub fn ask(&self, call: &ToolCall) -> Result<Option<Decision>, GoverningError> {
        let Some(governing) = self.policy()? else { return Ok(None) };
        Ok(Some(crate::decide::now(&governing, call, Caller::Main, &own::Mcp, &self.home)))
    }

    /// The policy that governs here.
    pub fn policy(&self) -> Result<Option<Governing>, GoverningError> {
        let trust = Trust::open(self.home.state.as_deref());
        if let Some(held) = &self.held {
            return governing::kept::open_whole(&held.path, held.bytes.clone(), &trust).map(Some);
        }
        governing::find(self.cwd()).map(|path| governing::open(&path, None, &trust)).transpose()
    }

    /// What the session has come to so far; `None` before its first call.
    pub fn state(&self) -> Option<State> {
        let row = self.store()?.last_row(&self.session_id()).ok()??;
        State::from_detail(&row.detail)
    }

    /// The identities that the session has on record.
    pub fn identities(&self) -> Result<Vec<Shown>, ShownError> {
        let Some(store) = self.store() else { return Ok(Vec::new()) };
        shown(&store, &self.session_id(), TRUST_DOMAIN)
    }

    /// What the notary that runs here says to a wish for a token; `None` where none answers.
    pub fn token(&self) -> Option<Told> {
        ask::token(&self.home, &Request::Issue { session: self.session_id(), agent: None }).ok()
    }

    /// Where the session's statements are made; `None` without a state folder.
    pub fn of_session(&self) -> Option<(Store, SessionId, &Home)> {
        let store = self.store()?;
        let (_, session) = self.session(&store);
        Some((store, session, &self.home))
    }

    /// Ends the session that is the proxy's own, if it began.
    pub fn close(&self) {
        if self.store().is_some_and(|store| store.exists(&self.own)) {
            self.tell(own::NAME, &self.own, EventKind::SessionEnd { reason: None });
        }
    }

    fn store(&self) -> Option<Store> {
        Store::open(self.home.state().ok()?.to_owned()).ok()
    }

    /// The client's session once that is on record, else one of the proxy's own.
    fn session(&self, store: &Store) -> (&'static str, SessionId) {
        match &self.joined {
            Some((client, session)) if store.exists(session) => (client, session.clone()),
            Some(_) | None => (own::NAME, self.own.clone()),
        }
    }

    fn event(&self, client: &'static str, session: &SessionId, kind: EventKind) -> Event {
        let joined = self.joined.as_ref().map(|(_, joined)| joined).filter(|joined| *joined != session);
        Event {
            client,
            session: session.clone(),
            client_session: joined.cloned(),
            transcript: self.transcript(session),
            cwd: self.cwd.clone(),
            agent: None,
            permission_mode: None,
            prompt_id: None,
            kind,
        }
    }

    /// The transcript of the client's session, as its beginning has it on record: what is used is counted there.
    fn transcript(&self, session: &SessionId) -> Option<String> {
        let first = self.store()?.first_row(session).ok()??;
        first.detail.get("transcript").and_then(Value::as_str).map(str::to_owned)
    }

    fn tell(&self, client: &'static str, session: &SessionId, kind: EventKind) -> Answer {
        self.deal(self.event(client, session, kind), false)
    }

    /// Has the notary that runs here deal with an event, as a hook has; without one it is dealt with here.
    fn deal(&self, event: Event, redefined: bool) -> Answer {
        match ask::event(&self.home, &event, redefined) {
            Asked::Told(answer) => answer,
            // It may have decided: another decision beside it would be a second row of one call.
            Asked::Broken(error) => {
                unanswered::of_event(&event.clone().masked(), &self.home, &error.to_string());
                let why = format!(
                    "writ denies: the notary, which may have recorded this call, cannot be asked ({error}): make the call again"
                );
                Answer::refuse(Some(event.kind.name()), &why)
            }
            Asked::NotThere(_) => hook::event(event, &self.home, redefined),
        }
    }

    fn is_redefined(&self, store: &Store, tool: &str) -> bool {
        let repository = in_force::repository(Path::new(&self.cwd));
        // Pins that cannot be read are none that a human has accepted.
        Pins::read(store, repository, &self.server).map_or(true, |pins| pins.is_some_and(|pins| pins.is_changed(tool)))
    }

    /// Whether the client's hook has let exactly this call run, or its user has, whom the client asked; and nothing came of it yet.
    fn is_hooked(&self, store: &Store, session: &SessionId, id: &str, call: &ToolCall) -> bool {
        let about = |row: &Row| row.call_id.as_deref() == Some(id) && row.tool_name.is_some();
        let Ok(Some(row)) = store.last_row_where(session, about) else { return false };
        let text = |name| row.detail.get(name).and_then(Value::as_str);
        let same = row.tool_name.as_deref() == Some(&call.tool) && text("input") == Some(&call.digest().to_string());
        let open = matches!(row.decision, RowDecision::Approved | RowDecision::Asked);
        let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        same && open && passed.insert(id.to_owned())
    }

    /// Which tools every policy in force denies whatever their input.
    fn denied(&self, store: &Store, tools: &[Offered<'_>]) -> Vec<bool> {
        let names = tools.iter().map(|tool| format!("mcp__{}__{}", self.server, tool.name));
        let (client, session) = self.session(store);
        let event = self.event(client, &session, EventKind::Other(String::new()));
        let opened = Session::open(store, &session, &event, &self.home, Timestamp::now());
        let Ok(session) = opened else { return vec![false; tools.len()] };
        let Ok(in_force) = session.policy() else { return vec![false; tools.len()] };
        let layers = in_force.policies(Caller::Main);
        names.map(|name| layers.iter().any(|policy| policy.never_allows(&name))).collect()
    }

    /// The row about tools that were first seen, or changed.
    fn record(&self, store: &Store, news: &News) -> Result<(), String> {
        if news.is_nothing() {
            return Ok(());
        }
        let (client, session) = self.session(store);
        let event = self.event(client, &session, EventKind::Other(String::new()));
        let mut session = Session::open(store, &session, &event, &self.home, Timestamp::now())
            .map_err(|error| format!("its tools are not on record: {error}"))?;
        let names = |names: &BTreeSet<String>| names.iter().take(MOST_NAMED).cloned().collect();
        let detail = Seen {
            server: &self.server,
            pins: news.digest,
            first: names(&news.first),
            changed: names(&news.newly_changed),
        };
        let draft = session.event("server-tools", detail);
        session.append(draft).map(drop).map_err(|error| format!("its tools are not on record: {error}"))
    }
}

/// Most names of tools that a row has.
const MOST_NAMED: usize = 64;

/// What the row about a server's tools says.
#[derive(Serialize)]
struct Seen<'a> {
    server: &'a str,
    /// Digest of all that is pinned.
    pins: Digest,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    first: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed: Vec<String>,
}
