//! Whether the record bears a notary's answer out.
//!
//! Owns the hook's own look at the ledger after it was answered: whoever listens at a socket of this user may be no notary. Refuses an answer
//! that lets a call run, or takes a prompt, without a row that says so. Invariant: what the call runs with is worked out from that row here, and never taken over.
//! Page: `spec/notary.md`.

use writ_clients::{Client, keys};
use writ_core::secret::mask_id;
use writ_core::{Answer, Event, EventKind, Reply, ToolUse, Verdict};
use writ_evidence::row::{Row, RowDecision};
use writ_store::Store;

use crate::confine::order;
use crate::session::SessionError;
use crate::session::rows::{PROMPT, event};
use crate::{Home, hook};

/// Why an answer does not count.
#[derive(Debug, thiserror::Error)]
pub enum Unconfirmed {
    /// It is about a payload that cannot be read, and stops nothing.
    #[error("it lets pass what cannot be read")]
    Unreadable,
    /// It decides where no policy governs.
    #[error("it decides where no policy governs")]
    Ungoverned,
    /// There is no row of the call.
    #[error("the call is not on record")]
    NoRow,
    /// No row since it was asked takes the prompt.
    #[error("the prompt is not on record")]
    NoPrompt,
    /// The row says otherwise.
    #[error("row {row} says `{decision}`")]
    Otherwise {
        /// The row.
        row: u64,
        /// What it says.
        decision: RowDecision,
    },
    /// The record.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The folder.
    #[error(transparent)]
    Store(#[from] writ_store::StoreError),
}

/// The answer, with what the call is to run with, where the record bears it out. `since` is how many [`rows`] there were before.
pub fn confirm(
    answer: Answer,
    payload: &[u8],
    client: &dyn Client,
    home: &Home,
    since: u64,
) -> Result<Answer, Unconfirmed> {
    match client.parse(payload) {
        Ok(input) if matches!(input.kind, EventKind::UserPromptSubmit { .. }) => {
            let governed = lets_run(&answer) && hook::is_governed(&input, home)?;
            if governed && !is_taken(&input, home, since)? { Err(Unconfirmed::NoPrompt) } else { Ok(answer) }
        }
        Ok(input) => of_event(answer, &input.masked(), client, home),
        Err(_) if lets_run(&answer) => Err(Unconfirmed::Unreadable),
        Err(_) => Ok(answer),
    }
}

const fn lets_run(answer: &Answer) -> bool {
    !matches!(answer.reply, Reply::Decided { verdict: Verdict::Deny, .. } | Reply::Block { .. })
}

/// The same of an event that is read already.
pub fn of_event(answer: Answer, input: &Event, client: &dyn Client, home: &Home) -> Result<Answer, Unconfirmed> {
    let EventKind::PreToolUse(used) = &input.kind else { return Ok(answer) };
    if !lets_run(&answer) {
        return Ok(answer);
    }
    if !hook::is_governed(input, home)? {
        return if answer.reply == Reply::Silent { Ok(answer) } else { Err(Unconfirmed::Ungoverned) };
    }
    let row = row(input, used, home)?.ok_or(Unconfirmed::NoRow)?;
    let asks = matches!(answer.reply, Reply::Decided { verdict: Verdict::Ask, .. });
    if row.decision != RowDecision::Approved && !(asks && row.decision == RowDecision::Asked) {
        return Err(Unconfirmed::Otherwise { row: row.sequence, decision: row.decision });
    }
    let wraps = order::granted(&row.detail).is_some();
    let with = if wraps { order::wrapped_input(client, &used.call, (&input.session, &used.id), home) } else { None };
    Ok(Answer { input: with, ..answer })
}

/// The newest row that decides this call.
fn row(input: &Event, used: &ToolUse, home: &Home) -> Result<Option<Row>, SessionError> {
    let store = store(home)?;
    let (id, digest) = (mask_id(&used.id), used.call.digest().to_string());
    let decides = |row: &Row| {
        let decided = matches!(row.decision, RowDecision::Approved | RowDecision::Asked | RowDecision::Denied);
        let same = row.detail.get("input").and_then(writ_core::json::Value::as_str) == Some(digest.as_str());
        // Where the client tells no id, the record has made one.
        let is_its = |found: &str| found == id || id.is_empty() && keys::key_of(found).is_some();
        decided && same && row.call_id.as_deref().is_some_and(is_its)
    };
    Ok(store.last_row_where(&input.session, decides)?)
}

/// How many rows the session of a payload has.
pub fn rows(payload: &[u8], client: &dyn Client, home: &Home) -> u64 {
    let last = || store(home).ok()?.last_row(&client.parse(payload).ok()?.session).ok()?;
    last().map_or(0, |row| row.sequence + 1)
}

/// Whether a row from a place on takes a prompt of this session.
fn is_taken(input: &Event, home: &Home, since: u64) -> Result<bool, SessionError> {
    let taken = |row: &Row| row.sequence >= since && event(row) == PROMPT;
    Ok(store(home)?.last_row_where(&input.session, taken)?.is_some())
}

fn store(home: &Home) -> Result<Store, SessionError> {
    Ok(Store::open(home.state()?.to_owned())?)
}

/// Whether a payload is about something that stops nothing when nobody answers in time: then the hook decides by itself.
pub fn is_prompt(payload: &[u8], client: &dyn Client) -> bool {
    client.hints(payload).event.as_deref() == Some("UserPromptSubmit")
}
