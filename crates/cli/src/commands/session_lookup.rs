//! The sessions on record, as every command finds them: the store, one session in it, and what it means when there is none.

use std::fs;
use std::path::Path;

use writ_core::json::Value;
use writ_core::{SessionId, Timestamp};
use writ_engine::session::process;
use writ_engine::session::rows::{SEEN, SESSION_END, event};
use writ_engine::session::state::State;
use writ_engine::verify::{self, VerifyError};
use writ_engine::{Home, governing};
use writ_store::Store;

use crate::environment;
use crate::exit::Failure;
use crate::human_check::SessionStart;

/// The store.
pub fn store(home: &Home) -> Result<Store, Failure> {
    Store::open(home.state().map_err(Failure::could_not)?.to_owned()).map_err(Failure::could_not)
}

/// Refuses to write what somebody asked for into Writ's own folder: what lies there is the record, and a file that no row names breaks it.
pub fn outside_state(to: &Path, home: &Home) -> Result<(), Failure> {
    let Some(state) = home.state.as_deref().and_then(|state| fs::canonicalize(state).ok()) else { return Ok(()) };
    let folder = to.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    let inside = |path: &Path| fs::canonicalize(path).is_ok_and(|real| real.starts_with(&state));
    if !inside(to) && !inside(folder) {
        return Ok(());
    }
    let (to, state) = (to.display(), state.display());
    Err(Failure::could_not(format!("{to} lies in {state}, where records and keys are kept: give another place")))
}

/// The named session, or the newest of this repository.
pub fn session(store: &Store, named: Option<&str>) -> Result<SessionId, Failure> {
    if let Some(name) = named {
        let id = SessionId::new(name);
        verify::on_record(store, &id).map_err(failure)?;
        return if store.exists(&id) {
            Ok(id)
        } else {
            Err(Failure::could_not(format!("no session `{name}` is on record; `writ session list` shows them")))
        };
    }
    let cwd = environment::cwd()?;
    match verify::newest(store, governing::repository(&cwd)) {
        // Before anything is on record there is nothing to do.
        Err(error @ VerifyError::NoSession { .. }) => Err(Failure::could_not(error)),
        found => found.map_err(failure),
    }
}

/// What a human's word about a session is held against.
pub fn session_start(store: &Store, id: &SessionId) -> Result<SessionStart, Failure> {
    let mut about = began(store, id)?;
    if process::running(&about.clients).is_empty() {
        // Whoever posted its hooks may have done so for a client above it.
        store.each_row(id, |row| about.crowded |= event(&row) == SEEN).map_err(Failure::could_not)?;
    }
    // Another session whose record cannot be read keeps nobody from answering this one.
    let others = may_run(store)?.into_iter().filter_map(|other| began(store, &other).ok());
    about.clients.extend(others.flat_map(|other| other.clients));
    Ok(about)
}

/// What a human's word about the whole machine is held against: a process of no session that may still run is to give it, so what shows a
/// human has to be older than the oldest of them.
pub fn every_start(store: &Store) -> Result<SessionStart, Failure> {
    let mut about = SessionStart::now();
    for id in may_run(store)? {
        let one = began(store, &id)?;
        about.crowded |= one.crowded;
        if one.began < about.began {
            (about.began, about.namespace) = (one.began, one.namespace);
        }
        about.clients.extend(one.clients);
    }
    Ok(about)
}

/// How long a session without an end may have processes that its client left, in milliseconds.
const LEFT: i64 = 24 * 60 * 60 * 1000;

/// The sessions that may still have processes: a client runs or none was seen, or there was no end and the last row is of today. None but
/// those of which one runs has outlived the machine's start. One that cannot be read may be any.
fn may_run(store: &Store) -> Result<Vec<SessionId>, Failure> {
    let (now, started) = (Timestamp::now().millis(), process::machine_started().unwrap_or_default());
    let may = |id: &SessionId| {
        let row = match store.last_row(id) {
            Ok(Some(row)) => row,
            Ok(None) => return false,
            Err(_) => return true,
        };
        let state = State::from_detail(&row.detail);
        let runs = state.as_ref().is_some_and(|state| !process::running(&state.clients).is_empty());
        let unknown = state.is_none_or(|state| state.crowded || state.clients.is_empty());
        let left = event(&row) != SESSION_END && now.saturating_sub(row.timestamp.millis()) < LEFT;
        runs || (unknown || left) && row.timestamp.millis() >= started
    };
    let mut all = store.sessions().map_err(Failure::could_not)?;
    all.retain(may);
    Ok(all)
}

fn began(store: &Store, id: &SessionId) -> Result<SessionStart, Failure> {
    let genesis = store.first_row(id).map_err(Failure::could_not)?;
    let began = genesis.as_ref().map_or_else(Timestamp::now, |row| row.timestamp);
    let namespace = genesis.as_ref().and_then(|row| row.detail.get("namespace")).and_then(Value::as_str);
    let last = store.last_row(id).map_err(Failure::could_not)?;
    let state = last.and_then(|row| State::from_detail(&row.detail));
    let (clients, crowded) = state.map(|state| (state.clients, state.crowded)).unwrap_or_default();
    Ok(SessionStart { session: Some(id.clone()), began, namespace: namespace.map(str::to_owned), clients, crowded })
}

/// The code that goes with a record that cannot be verified.
pub fn failure(error: VerifyError) -> Failure {
    match error {
        VerifyError::Lost { .. } | VerifyError::NoLedger { .. } | VerifyError::NoSession { .. } => {
            Failure::malformed(error)
        }
        VerifyError::Io { .. } | VerifyError::Store(_) => Failure::could_not(error),
    }
}
