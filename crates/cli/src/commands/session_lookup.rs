//! The sessions on record, as every command finds them: the store, one session in it, and what it means when there is none.

use writ_core::json::Value;
use writ_core::{SessionId, Timestamp};
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
    let genesis = store.first_row(id).map_err(Failure::could_not)?;
    let began = genesis.as_ref().map_or_else(Timestamp::now, |row| row.timestamp);
    let namespace = genesis.as_ref().and_then(|row| row.detail.get("namespace")).and_then(Value::as_str);
    let last = store.last_row(id).map_err(Failure::could_not)?;
    let clients = last.and_then(|row| State::from_detail(&row.detail)).map(|state| state.clients).unwrap_or_default();
    Ok(SessionStart { began, namespace: namespace.map(str::to_owned), clients })
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
