//! Calls that were asked about and that a human's word here answered: they no longer count, and what runs of them does (R17).
//!
//! A client may have asked its user as well, so that the call runs after all: its result then makes it count again. Invariant: both are
//! read from rows, so that verification finds the same. Page: `spec/limits.md`.

use std::collections::BTreeSet;

use writ_core::json::{self, Value};
use writ_core::secret::mask_id;
use writ_evidence::row::{Row, RowDecision};
use writ_policy::Facts;

use super::starts;
use crate::governing::layers::Caller;
use crate::governing::{Trust, kept};
use crate::session::rows::{self, CALL, event};
use crate::session::{Session, SessionError};

/// What an asked call counted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Whose call it is: a sub-agent, and its type.
    agent: Option<writ_core::Agent>,
    /// The type of the sub-agent that it gives a task.
    pub starts: Option<String>,
}

impl Asked {
    /// Of the row of a call that asks.
    pub fn of(row: &Row) -> Option<Self> {
        let facts = row.detail.get("facts").filter(|_| row.decision == RowDecision::Asked && event(row) == CALL)?;
        let facts: Facts = json::from_value(facts).ok()?;
        Some(Self { agent: rows::agent(&row.detail), starts: facts.starts().map(str::to_owned) })
    }

    /// Whose call it is.
    pub fn caller(&self) -> Caller<'_> {
        Caller::of(self.agent.as_ref())
    }
}

/// The call that the row of a human's word answers.
pub fn answers(row: &Row) -> Option<&str> {
    row.detail.get("answers").and_then(Value::as_str)
}

/// Counts an asked call no more; `again` where it ran after all. What it counted for, the accepted policy says: without that nothing is
/// known, and nothing changes.
pub fn settle(session: &mut Session<'_>, asked: &Asked, again: bool) -> bool {
    let Some(accepted) = &session.state.policy else { return false };
    let folder = session.store.folder(&session.id);
    let Ok(accepted) = kept::open(accepted, &folder, &Trust::open(None)) else { return false };
    let own = accepted.applying(asked.caller()).into_iter();
    let own = own.filter_map(|layer| accepted.of_agent(layer, &layer.policy));
    let calls: BTreeSet<&str> = own.filter(|own| !own.limits.is_empty()).map(|own| own.layer).collect();
    let turns = starts::limited(&accepted, asked.starts.as_deref());
    let turns: BTreeSet<&str> = turns.iter().map(|(own, _)| own.layer).collect();
    session.state.answer(&calls, &turns, again);
    true
}

/// Counts a call again whose result has come although a human's word had answered it.
pub fn came(session: &mut Session<'_>, id: &str) -> Result<(), SessionError> {
    if session.state.answered == 0 {
        return Ok(());
    }
    let id = mask_id(id);
    let (mut answered, mut found) = (false, None);
    session.each_row_back(|row| {
        answered |= answers(&row) == Some(&id);
        // Whatever else is on record about it, but that it was refused, it has run already, or is another one of that name.
        let about = row.call_id.as_deref() == Some(&id) && row.decision != RowDecision::Denied;
        if about && answered {
            found = Asked::of(&row);
        }
        !about
    })?;
    if let Some(asked) = found {
        settle(session, &asked, true);
    }
    Ok(())
}
