//! A call that is denied because its notary was asked and never answered.
//!
//! Owns the row that says so: a call of which no row tells is one that no policy was asked about. Refuses to write one beside a decision that
//! is on record. Invariant: it lets nothing run. Page: `spec/notary.md`, "Break".

use serde::Serialize;
use writ_clients::Client;
use writ_core::secret::mask_id;
use writ_core::{Digest, Event, EventKind, Timestamp, ToolUse};
use writ_evidence::row::RowDecision;
use writ_store::Store;

use super::confirm;
use crate::session::rows::UNANSWERED;
use crate::session::{Session, SessionError, keyed};
use crate::{Home, hook};

/// Longest reason that a row has.
const MAX_WHY: usize = 160;

#[derive(Serialize)]
struct Unanswered<'a> {
    asked: Digest,
    why: &'a str,
}

/// Puts on record that the call of a payload was denied, if nobody decided it by now.
pub fn of_payload(payload: &[u8], client: &dyn Client, home: &Home, why: &str) {
    if let Ok(input) = client.parse(payload) {
        of_event(&input.masked(), home, why);
    }
}

/// The same of an event that is read already.
pub fn of_event(input: &Event, home: &Home, why: &str) {
    let EventKind::PreToolUse(used) = &input.kind else { return };
    // The record of another user's notary is that user's. The call is denied, whether that can be recorded or not.
    if home.notary.as_deref().is_none_or(|of_other| !of_other.exists()) {
        drop(record(input, used, home, why));
    }
}

fn record(input: &Event, used: &ToolUse, home: &Home, why: &str) -> Result<(), SessionError> {
    if !hook::is_governed(input, home)? {
        return Ok(());
    }
    let store = Store::open(home.state()?.to_owned())?;
    let mut session = Session::open(&store, &input.session, input, home, Timestamp::now())?;
    // What was decided of a call without an id of its own is not told apart from what was decided of one like it.
    if !used.id.is_empty() && confirm::row(&store, input, used, 0)?.is_some() {
        return Ok(());
    }
    session.take_custody()?;
    let named = keyed::with_id(&mut session, input)?;
    let id = match named.as_ref().map(|named| &named.kind) {
        Some(EventKind::PreToolUse(named)) => &named.id,
        _ => &used.id,
    };
    let why: String = why.chars().take(MAX_WHY).collect();
    let mut draft = session.event(UNANSWERED, Unanswered { asked: used.call.digest(), why: &why });
    session.state.denied += 1;
    draft.decision = RowDecision::Denied;
    draft.denial_reason = Some(format!("writ:{UNANSWERED}"));
    draft.call_id = Some(id.clone());
    draft.tool_name = Some(mask_id(&used.call.tool).into_owned());
    session.append(draft)?;
    Ok(())
}
