//! Whether the record bears a notary's answer out.
//!
//! Owns the hook's own look at the ledger after it was answered: whoever listens at a socket of this user may be no notary. Refuses an answer
//! that lets a call run, or takes a prompt, without a row that says so. Invariant: what the call runs with is worked out from that row here, and never taken over.
//! Page: `spec/notary.md`.

use writ_clients::{Client, keys};
use writ_core::json::Value;
use writ_core::secret::mask_id;
use writ_core::{Answer, Event, EventKind, Reply, SessionId, ToolUse, Verdict};
use writ_evidence::row::{Row, RowDecision};
use writ_store::Store;

use crate::confine::order;
use crate::decide::call::resolved;
use crate::session::SessionError;
use crate::session::rows::{self, PROMPT, event};
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
    /// The row is of somebody else, or of another folder.
    #[error("row {row} is of another folder, agent, mode, client or state of its tool than the call")]
    Another {
        /// The row.
        row: u64,
    },
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

/// The answer, with what the call is to run with, where the record bears it out. `since` is how many rows there were [`before`].
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
        Ok(input) => of_event(answer, &input.masked(), client, home, (since, false)),
        Err(_) if lets_run(&answer) => Err(Unconfirmed::Unreadable),
        Err(_) => Ok(answer),
    }
}

const fn lets_run(answer: &Answer) -> bool {
    !matches!(answer.reply, Reply::Decided { verdict: Verdict::Deny, .. } | Reply::Block { .. })
}

/// The same of an event that is read already.
pub fn of_event(
    answer: Answer,
    input: &Event,
    client: &dyn Client,
    home: &Home,
    (since, redefined): (u64, bool),
) -> Result<Answer, Unconfirmed> {
    let EventKind::PreToolUse(used) = &input.kind else { return Ok(answer) };
    if !lets_run(&answer) {
        return Ok(answer);
    }
    if !hook::is_governed(input, home)? {
        return if answer.reply == Reply::Silent { Ok(answer) } else { Err(Unconfirmed::Ungoverned) };
    }
    let store = store(home)?;
    let row = row(&store, input, used, since)?.ok_or(Unconfirmed::NoRow)?;
    // The notary may have been asked about another call than this one, by whoever stands between.
    let of_it = rows::is_of(&row.detail, input, &mask_id(&resolved(&input.cwd)))
        && row.detail.get("redefined").and_then(Value::as_bool).unwrap_or(false) == redefined;
    if !of_it || !is_clients(&store, input)? {
        return Err(Unconfirmed::Another { row: row.sequence });
    }
    let asks = matches!(answer.reply, Reply::Decided { verdict: Verdict::Ask, .. });
    if row.decision != RowDecision::Approved && !(asks && row.decision == RowDecision::Asked) {
        return Err(Unconfirmed::Otherwise { row: row.sequence, decision: row.decision });
    }
    let wraps = order::granted(&row.detail).is_some();
    let with = if wraps { order::wrapped_input(client, &used.call, (&input.session, &used.id), home) } else { None };
    Ok(Answer { input: with, ..answer })
}

/// Whether the session is of the client that asks.
fn is_clients(store: &Store, input: &Event) -> Result<bool, SessionError> {
    let first = store.first_row(&input.session)?;
    Ok(first.is_some_and(|first| rows::client(&first.detail).is_ok_and(|client| client.name() == input.client)))
}

/// The newest row that decides this call; where the client tells no id, of those since it was asked.
pub fn row(store: &Store, input: &Event, used: &ToolUse, since: u64) -> Result<Option<Row>, SessionError> {
    let (id, digest) = (mask_id(&used.id), used.call.digest().to_string());
    let decides = |row: &Row| {
        let decided = matches!(row.decision, RowDecision::Approved | RowDecision::Asked | RowDecision::Denied);
        let same = row.detail.get("input").and_then(Value::as_str) == Some(digest.as_str());
        // Where the client tells no id, the record has made one.
        let now = row.sequence >= since;
        let is_its = |found: &str| found == id || now && id.is_empty() && keys::key_of(found).is_some();
        decided && same && row.call_id.as_deref().is_some_and(is_its)
    };
    Ok(store.last_row_where(&input.session, decides)?)
}

/// How many rows the session of a payload has, where that is asked for.
pub fn before(payload: &[u8], client: &dyn Client, home: &Home) -> u64 {
    let session = (is_prompt(payload, client) || !client.tells_ids()).then(|| client.parse(payload).ok()).flatten();
    session.map_or(0, |input| rows_of(&input.session, home))
}

/// How many rows a session has.
pub fn rows_of(session: &SessionId, home: &Home) -> u64 {
    let last = || store(home).ok()?.last_row(session).ok()?;
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
