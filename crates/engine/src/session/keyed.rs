//! Ids of calls whose client gives none: what they are, and a number that tells equal ones apart.
//!
//! Owns the number: of a call that is about to run, that of its row, which no other call has; of a result, that of the newest equal call that
//! runs and has none. Refuses to keep a list beside the ledger: the rows say which calls run. Invariant: two calls never have the same id,
//! also where they are equal and run at once.

use std::cell::RefCell;
use std::collections::HashSet;

use writ_clients::keys;
use writ_core::{Event, EventKind, ToolUse};
use writ_evidence::row::{Row, RowDecision};

use super::{Session, SessionError};

/// Stands for the number of a result whose call is not on record.
const UNSEEN: &str = "unseen";

/// The event with its call's id, where the client told none.
pub fn with_id(session: &mut Session<'_>, input: &Event) -> Result<Option<Event>, SessionError> {
    if session.client.is_none_or(|client| client.tells_ids()) {
        return Ok(None);
    }
    let mut input = input.clone();
    if let EventKind::PreToolUse(used) = &mut input.kind {
        let next = session.ledger().last().map_or(0, |row| row.sequence + 1);
        used.id = keys::numbered(&key(used), next);
        return Ok(Some(input));
    }
    if let EventKind::PostToolUse { call: used, .. } | EventKind::PostToolUseFailure { call: used, .. } =
        &mut input.kind
    {
        let key = key(used);
        used.id = running(session, &key)?.unwrap_or_else(|| keys::numbered(&key, UNSEEN));
        return Ok(Some(input));
    }
    Ok(None)
}

fn key(used: &ToolUse) -> String {
    keys::of(&used.call.tool, &used.call.input)
}

/// The newest call of a key that was let run and has no result yet.
fn running(session: &Session<'_>, key: &str) -> Result<Option<String>, SessionError> {
    let ended: RefCell<HashSet<String>> = RefCell::default();
    let runs = |row: &Row| {
        let Some(id) = row.call_id.as_deref().filter(|id| keys::key_of(id) == Some(key)) else { return false };
        match row.decision {
            RowDecision::Completed | RowDecision::Failed => {
                ended.borrow_mut().insert(id.to_owned());
                false
            }
            RowDecision::Approved | RowDecision::Asked => !ended.borrow().contains(id),
            RowDecision::Denied | RowDecision::Hallucinated | RowDecision::Checkpoint => false,
        }
    };
    Ok(session.store.last_row_where(&session.id, runs)?.and_then(|row| row.call_id))
}
