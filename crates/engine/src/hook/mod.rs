//! One hook call: bytes in, one JSON object out.
//!
//! This is the hot path. It never panics outward and never leaves a governed call without an answer: whatever keeps it from
//! deciding is turned into a denial that says how to repair it (R6). With no policy in reach it is silent. Invariant: an
//! answer that lets a call run has its row on disk first.

mod lifecycle;
mod stops;
pub mod wire;

use std::error::Error;
use std::path::{Component, Path, PathBuf};

use serde::Serialize;
use writ_clients::{Client, Hints};
use writ_core::json::Value;
use writ_core::secret::mask_id;
use writ_core::{Answer, Digest, Event, EventKind, Reply, SessionId, Timestamp};
use writ_evidence::row::{RowDecision, RowError};
use writ_store::{Store, StoreError};

use crate::confine::{keeper, left};
use crate::decide::call;
use crate::governing::Trust;
use crate::governing::in_force::{self, PolicyRef};
use crate::identity::image::{self, Image};
use crate::identity::workload::{self, Told};
use crate::session::drawn::Conversation;
use crate::session::rows::UNREADABLE;
use crate::session::state::State;
use crate::session::{self, Session, SessionError, Within, keyed, unhooked};
use crate::turns::attest as turns;
use crate::turns::work_tree::WorkTree;
use crate::{Home, claims, governing, identity};

/// A run that a hook is asked in: its session is that of all clients in it.
#[derive(Clone, Debug)]
pub struct Inside {
    /// The run's session.
    pub session: SessionId,
    /// What holds it.
    pub within: Within,
    /// The folders that transcripts are read from: who asks may not have anything else read for it.
    pub transcripts: Vec<PathBuf>,
}

impl Inside {
    /// The event as one of the run's session.
    fn adopt(&self, input: Event) -> Event {
        let ours = |path: &String| {
            let path = Path::new(path);
            let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
            plain && self.transcripts.iter().any(|folder| path.starts_with(folder))
        };
        let mut input = Event {
            client_session: Some(SessionId::new(mask_id(input.session.as_str()))),
            session: self.session.clone(),
            transcript: input.transcript.filter(ours),
            ..input
        };
        if let EventKind::SubagentStop { transcript, .. } = &mut input.kind {
            *transcript = transcript.take().filter(ours);
        }
        input
    }
}

/// Answers one hook call. `cwd` is the process's own directory, used only when the payload does not say.
pub fn answer(bytes: &[u8], client: &dyn Client, home: &Home, cwd: &Path) -> Answer {
    answer_in(bytes, client, home, cwd, None)
}

/// The same, in a run where there is one.
pub fn answer_in(bytes: &[u8], client: &dyn Client, home: &Home, cwd: &Path, run: Option<&Inside>) -> Answer {
    match client.parse(bytes) {
        Ok(input) => {
            let input = input.masked();
            let input = run.map_or_else(|| input.clone(), |run| run.adopt(input.clone()));
            claims::capture::copy(bytes, &input, home);
            dispatch(&input, home, run, false).unwrap_or_else(|error| {
                // What is too long for a row has one all the same: of the payload, as of one that cannot be read.
                if let SessionError::Store(StoreError::Row(RowError::TooLong { .. })) = &error {
                    return unreadable(bytes, client, &error, home, cwd, run);
                }
                failed(&input, home, &error)
            })
        }
        Err(error) => unreadable(bytes, client, &error, home, cwd, run),
    }
}

/// Deals with an event that is read already: of a call that stands between an agent and a server. `redefined` says that the server
/// changed the tool since a human let it in.
pub fn event(input: Event, home: &Home, redefined: bool) -> Answer {
    let input = input.masked();
    dispatch(&input, home, None, redefined).unwrap_or_else(|error| failed(&input, home, &error))
}

/// A payload that cannot be read, of a session under policy, is denied and on record: whoever can make one such payload must not
/// get a call past its policy with it, nor off the record.
fn unreadable(
    bytes: &[u8],
    client: &dyn Client,
    error: &dyn Error,
    home: &Home,
    cwd: &Path,
    run: Option<&Inside>,
) -> Answer {
    let mut hints = client.hints(bytes);
    if let Some(run) = run {
        hints.sessions = vec![run.session.clone()];
    }
    let store = home.state().ok().and_then(|state| Store::open(state.to_owned()).ok());
    let is_known = |id: &&SessionId| store.as_ref().is_some_and(|store| store.exists(id) || store.is_known(id));
    let known = hints.sessions.iter().find(is_known);
    let places = hints.cwds.iter().map(Path::new).chain([cwd]).chain(home.project.as_deref());
    let governed = places.into_iter().find(|place| place.is_absolute() && governing::find(place).is_some());
    if known.is_none() && governed.is_none() {
        return Reply::Silent.into();
    }
    let mut why = format!("writ denies what it cannot read: {error}. Run `writ doctor`");
    let mut limited = true;
    if let Some((store, id)) = store.as_ref().zip(known.or(hints.sessions.first())) {
        let input = Event {
            client: client.name(),
            session: id.clone(),
            client_session: None,
            transcript: None,
            cwd: governed.unwrap_or(cwd).to_string_lossy().into_owned(),
            agent: None,
            permission_mode: None,
            prompt_id: None,
            kind: EventKind::Other(hints.event.clone().unwrap_or_else(|| UNREADABLE.to_owned())),
        };
        limited = may_be_limited(&input, home);
        let recorded = Session::open(store, id, &input, home, Timestamp::now()).and_then(|mut session| {
            session.take_custody()?;
            record_unreadable(&mut session, bytes, &hints)
        });
        if let Err(error) = recorded {
            why = format!("{why}. It is not on record: {error}");
        }
    }
    match hints.event.as_deref() {
        // It would not be counted.
        Some("UserPromptSubmit") if limited => Reply::Block { reason: why }.into(),
        // The call has run, and nothing that comes next is held by anything but limits.
        Some("PostToolUse" | "PostToolUseFailure" | "PostToolBatch") if !limited => {
            Answer::from(Reply::Silent).with_message(why)
        }
        event => Answer::refuse(event, &why),
    }
}

#[derive(Serialize)]
struct Unreadable<'a> {
    payload: Digest,
    bytes: usize,
    hint: Option<&'a str>,
}

/// The row of such a payload. One that may be about a call counts as a denied one.
fn record_unreadable(session: &mut Session<'_>, bytes: &[u8], hints: &Hints) -> Result<u64, SessionError> {
    let detail = Unreadable { payload: Digest::of(bytes), bytes: bytes.len(), hint: hints.event.as_deref() };
    let mut draft = session.event(UNREADABLE, detail);
    if hints.event.as_deref().is_none_or(|event| event == "PreToolUse") {
        session.state.denied += 1;
        draft.decision = RowDecision::Denied;
        draft.denial_reason = Some(format!("writ:{UNREADABLE}"));
        draft.call_id.clone_from(&hints.call_id);
        draft.tool_name.clone_from(&hints.tool);
    }
    session.append(draft)
}

/// The answer to an event that could not be dealt with: where a call can be stopped, stop it, and where a limit may be reached, the
/// next request to the model too; elsewhere tell the user. Blocking a stop, or a prompt that no limit holds, would keep the user from
/// repairing what is broken.
fn failed(input: &Event, home: &Home, error: &SessionError) -> Answer {
    match &input.kind {
        event @ (EventKind::PreToolUse(_) | EventKind::PermissionRequest { .. }) => {
            Answer::refuse(Some(event.name()), &format!("writ denies what it cannot decide: {error}"))
        }
        EventKind::UserPromptSubmit { .. } | EventKind::PostToolBatch { .. } if may_be_limited(input, home) => {
            let reason = format!(
                "writ stops what it cannot count against the policy's limits: {error}. Run `writ doctor` in a terminal"
            );
            let answer = Answer::from(Reply::Block { reason: reason.clone() });
            // Why a prompt is not taken its user is told anyway.
            if matches!(input.kind, EventKind::PostToolBatch { .. }) { answer.with_message(reason) } else { answer }
        }
        EventKind::SessionStart { .. } if matches!(error, SessionError::Governing(_)) => {
            Answer::from(Reply::Silent).with_message(format!("writ: {error}: every call is denied"))
        }
        _ => Answer::from(Reply::Silent).with_message(format!("writ could not record this event: {error}")),
    }
}

/// Whether the policy of the session limits what it uses; where that cannot be told, the one that governs where it happens.
fn may_be_limited(input: &Event, home: &Home) -> bool {
    let store = home.state().ok().and_then(|state| Store::open(state.to_owned()).ok());
    let last = store.and_then(|store| store.last_row(&input.session).ok().flatten());
    if let Some(policy) = last.and_then(|row| State::from_detail(&row.detail)).map(|state| state.policy) {
        return policy.is_some_and(|policy| policy.limited);
    }
    let trust = Trust::open(home.state.as_deref());
    governing::find(Path::new(&input.cwd))
        .is_some_and(|path| governing::open(&path, None, &trust).map_or(true, |found| PolicyRef::to(&found).limited))
}

/// Whether an event's session is on record, or a policy governs where it happens, or should.
pub fn is_governed(input: &Event, home: &Home) -> Result<bool, SessionError> {
    let cwd = Path::new(&input.cwd);
    let Ok(state) = home.state() else { return Ok(governing::find(cwd).is_some()) };
    let store = Store::open(state.to_owned())?;
    let known = store.exists(&input.session) || store.is_known(&input.session);
    Ok(known || governing::find(cwd).is_some() || in_force::is_lost(&store, cwd))
}

fn dispatch(input: &Event, home: &Home, run: Option<&Inside>, redefined: bool) -> Result<Answer, SessionError> {
    if matches!(input.kind, EventKind::Other(_)) {
        return Ok(Reply::Silent.into());
    }
    let id = &input.session;
    if !is_governed(input, home)? {
        // What it names is no transcript that can be read, and nothing is drawn where nothing is on record.
        let drawn = writ_clients::named(input.client).is_some_and(|client| client.drawn().is_some());
        let bare = drawn.then(|| Event { transcript: None, ..input.clone() });
        return Ok(ungoverned(bare.as_ref().unwrap_or(input), home).unwrap_or_else(|error| {
            let mut answer = Answer::from(Reply::Silent);
            answer.notes.push(format!("writ: claims are not checked: {error}"));
            answer
        }));
    }
    let store = Store::open(home.state()?.to_owned())?;
    let conversation = Conversation::of(input, &store);
    if let Some(conversation) = &conversation {
        conversation.catch_up(&input.kind);
    }
    let main = conversation.as_ref().map(|conversation| conversation.main.to_string_lossy().into_owned());
    let main = main.map_or_else(|| main_transcript(input, home, &store), |main| Ok(Some(main)))?;
    let told = main.map(|main| Event { transcript: Some(main), ..input.clone() });
    let input = told.as_ref().unwrap_or(input);
    let within = run.map(|run| &run.within);
    let prepared = Prepared::of(input, home, &store, within);
    let mut session = Session::open(&store, id, input, home, Timestamp::now())?;
    (session.within, session.redefined) = (within.cloned(), redefined);
    session.take_custody()?;
    if let Some(conversation) = &conversation {
        conversation.begin()?;
    }
    lifecycle::see(&mut session)?;
    let named = keyed::with_id(&mut session, input)?;
    let input = named.as_ref().unwrap_or(input);
    if matches!(input.kind, EventKind::PreToolUse(_)) {
        // A call is judged under it anyway; the notice then needs no look of its own.
        let _looked = session.policy().is_ok();
    }
    let notice = session.notice()?;
    let answer = answered(&mut session, input, prepared)?;
    Ok(match (notice, answer.message.clone()) {
        (None, _) => answer,
        (Some(notice), None) => answer.with_message(notice),
        (Some(notice), Some(message)) => answer.with_message(format!("{notice}\n{message}")),
    })
}

/// The main transcript of an event that does not name it: where its client keeps it, or, of a subagent's, that which the session began
/// with.
fn main_transcript(input: &Event, home: &Home, store: &Store) -> Result<Option<String>, SessionError> {
    if input.transcript.is_some() {
        return Ok(None);
    }
    let client = writ_clients::named(input.client);
    let known = client.and_then(|client| {
        let folder = home.folder(client);
        client.transcript_of(input.session.as_str(), home.user.as_deref().or(folder)?, folder)
    });
    if known.is_some() || input.agent.is_none() || !store.exists(&input.session) {
        return Ok(known.map(|path| path.to_string_lossy().into_owned()));
    }
    let genesis = store.first_row(&input.session)?;
    let main = genesis.as_ref().and_then(|row| row.detail.get("transcript")).and_then(Value::as_str);
    Ok(main.map(str::to_owned))
}

/// What was found out before the ledger was locked: git and transcripts may be slow, and no call waits for them.
struct Prepared {
    claims: claims::Prepared,
    news: Option<unhooked::Prepared>,
    tree: Option<Result<WorkTree, String>>,
    workload: Option<Told>,
    image: Option<Image>,
}

impl Prepared {
    fn of(input: &Event, home: &Home, store: &Store, within: Option<&Within>) -> Self {
        Self::under(input, home, store, &input.session, within)
    }

    fn under(input: &Event, home: &Home, store: &Store, id: &SessionId, within: Option<&Within>) -> Self {
        let only = within.map(|within| within.repository.clone()).or_else(|| {
            // Only there is git asked anything.
            let asks = matches!(
                input.kind,
                EventKind::UserPromptSubmit { .. }
                    | EventKind::SubagentStart
                    | EventKind::SubagentStop { .. }
                    | EventKind::Stop { .. }
                    | EventKind::SessionEnd { .. }
            );
            asks.then(|| session::confined_repository(store, id)).flatten()
        });
        if matches!(input.kind, EventKind::SessionEnd { .. }) && within.is_none() {
            keeper::retire(store, id);
            keeper::settle_all(store, id, home);
            if let Some(repository) = &only {
                left::untie(&repository.join(".git"));
            }
        }
        let claims = claims::prepare(input, home, store, id, only.as_deref());
        let tree = turns::prepare(input, store, id, home.user.as_deref());
        let starts = matches!(input.kind, EventKind::SessionStart { .. });
        let workload = home.workload.as_ref().filter(|_| starts).map(|workload| workload::ask(workload, home.asker));
        let image = if starts { image::ask(home) } else { None };
        Self { claims, news: unhooked::prepare(input, store, id), tree, workload, image }
    }
}

fn answered(session: &mut Session<'_>, input: &Event, prepared: Prepared) -> Result<Answer, SessionError> {
    if matches!(input.kind, EventKind::PreToolUse(_) | EventKind::PermissionRequest { .. }) {
        identity::of_call(session, input)?;
    }
    match &input.kind {
        EventKind::PreToolUse(call) => call::before(session, input, call),
        EventKind::PermissionRequest { call } => call::permission(session, input, call),
        EventKind::PostToolUse { call, response, .. } => {
            call::after(session, input, call, Ok(response))?;
            stops::warn(session, input, "PostToolUse")
        }
        EventKind::PostToolUseFailure { call, error, .. } => {
            call::after(session, input, call, Err(error))?;
            stops::warn(session, input, "PostToolUseFailure")
        }
        other => lifecycle::record(session, input, other, prepared),
    }
}

/// Where no policy governs, only claims are looked at; this fails open (R6).
fn ungoverned(input: &Event, home: &Home) -> Result<Answer, SessionError> {
    let about = matches!(input.kind, EventKind::SubagentStart | EventKind::SubagentStop { .. });
    let ends = matches!(input.kind, EventKind::Stop { .. } | EventKind::SessionEnd { .. });
    let main = matches!(input.kind, EventKind::UserPromptSubmit { .. } | EventKind::Stop { .. })
        && home.claims.includes_main(None);
    if !about && !ends && !main {
        return Ok(Reply::Silent.into());
    }
    let store = Store::open(home.state()?.to_owned())?;
    let id = session::ungoverned(&input.session);
    if ends && !store.exists(&id) {
        return Ok(Reply::Silent.into());
    }
    let prepared = Prepared::under(input, home, &store, &id, None);
    let mut session = Session::open(&store, &id, input, home, Timestamp::now())?;
    lifecycle::record(&mut session, input, &input.kind, prepared)
}
