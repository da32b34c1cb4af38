//! What rows say of every event: who asked, and the state that goes on.
//!
//! Owns the members that rows of different kinds share; what a kind says beside them stands where its rows are made. A row
//! keeps `detail` in canonical form, so that the order of members here means nothing. Page: `spec/ledger.md`.

use serde::{Deserialize, Serialize};
use writ_clients::Client;
use writ_core::json::{self, Value};
use writ_core::{Digest, Event, SessionId, visible};
use writ_evidence::row::{Draft, Row};

use super::state::State;
use crate::governing::layers::Caller;

/// `detail.event`.
pub fn event(row: &Row) -> &str {
    row.detail.get("event").and_then(Value::as_str).unwrap_or_default()
}

/// The event of a row about a payload that could not be read.
pub const UNREADABLE: &str = "unreadable-payload";
/// A call that was denied because nobody answered who could have decided it.
pub const UNANSWERED: &str = "unanswered";

/// The event of the row of a client that begins.
pub const STARTED: &str = "client-started";
/// The event of the row of a client that goes on with a session.
pub const RESUMED: &str = "session-resumed";
/// The event of the row of a session's end.
pub const SESSION_END: &str = "session-end";
/// The event of the row of a client that was seen to make calls, and to tell of no beginning.
pub const SEEN: &str = "client-seen";
/// What made the session of a run begin.
pub const BEGAN: &str = "run";
/// The event of the row that ends a run.
pub const ENDED: &str = "run-ended";
/// The event of the row about a policy that was learnt of a run.
pub const LEARNT: &str = "policy-learnt";
/// The event of the row of a call.
pub const CALL: &str = "tool-call";
/// The event of the row of what is run as a whole.
pub const RUN: &str = "run";
/// The event of the row of a prompt that was taken.
pub const PROMPT: &str = "prompt";
/// The event of the row of a prompt that was refused because a limit was reached.
pub const PROMPT_REFUSED: &str = "prompt-refused";
/// The event of the row of a turn that was ended because of one.
pub const TURN_ENDED: &str = "turn-ended";
/// The event of the row that says of which limits the agent was told that they are near.
pub const NEAR: &str = "limit-near";
/// The event of the row of a limit that a human raised.
pub const RAISED: &str = "limit-raised";
/// The event of the row from which on another key signs.
pub const CUSTODY: &str = "custody";
/// The event of the row about rows that another process wrote than the one that signs.
pub const BESIDE: &str = "rows-beside";
/// The event of the row that names the prices.
pub const PRICED: &str = "prices";
/// The client of a session in which a command was run that is no client.
pub const COMMAND: &str = "command";

/// Whether a record begins with its session, as its genesis row says.
pub fn begins_whole(genesis: &Value) -> bool {
    let began = genesis.get("began").and_then(Value::as_str);
    began.is_none_or(|began| matches!(began, "startup" | "clear" | BEGAN))
}

/// An identity as a row names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentityRef {
    /// The identity.
    pub hash: Digest,
    /// Digest of the document that holds its parts.
    pub document: Digest,
}

impl IdentityRef {
    /// The identity that a row names, if it does.
    pub fn of(detail: &Value) -> Option<Self> {
        json::from_value(detail.get("identity")?).ok()
    }
}

/// Who asked and in which mode: the members that every row about a call carries.
#[derive(Serialize)]
pub struct Who<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<Agent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'a str>,
    /// The client's own id of its session, where that is one of several in a run.
    #[serde(rename = "clientSession", skip_serializing_if = "Option::is_none")]
    client_session: Option<&'a str>,
}

#[derive(Serialize)]
struct Agent<'a> {
    id: &'a str,
    r#type: Option<&'a str>,
}

impl<'a> Who<'a> {
    /// Whoever the client says.
    pub fn of(input: &'a Event) -> Self {
        let agent = input.agent.as_ref().map(|agent| Agent { id: &agent.id, r#type: agent.kind.as_deref() });
        let client_session = input.client_session.as_ref().map(SessionId::as_str);
        Self { agent, mode: input.permission_mode.as_deref(), client_session }
    }
}

/// Whether a row about a call is of whom an event says, and in its folder.
pub fn is_of(detail: &Value, input: &Event, folder: &str) -> bool {
    let text = |name: &str| detail.get(name).and_then(Value::as_str);
    let told = detail.get("agent");
    let of = |name: &str| told.and_then(|agent| agent.get(name)).and_then(Value::as_str);
    let agent = input.agent.as_ref();
    text("cwd") == Some(folder)
        && told.is_some() == agent.is_some()
        && of("id") == agent.map(|agent| agent.id.as_str())
        && of("type") == agent.and_then(|agent| agent.kind.as_deref())
        && text("mode") == input.permission_mode.as_deref()
        && text("clientSession") == input.client_session.as_ref().map(SessionId::as_str)
}

/// Who made the call of a row.
pub fn caller(detail: &Value) -> Caller<'_> {
    match detail.get("agent") {
        None => Caller::Main,
        Some(agent) => Caller::typed(agent.get("type").and_then(Value::as_str)),
    }
}

/// The sub-agent of a row.
pub fn agent(detail: &Value) -> Option<writ_core::Agent> {
    let agent = detail.get("agent")?;
    let text = |name: &str| agent.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(writ_core::Agent { id: text("id")?, kind: text("type") })
}

/// A detail under the name of its event.
#[derive(Serialize)]
pub struct Titled<'a, T> {
    /// The event.
    pub event: &'a str,
    /// What else is said.
    #[serde(flatten)]
    pub detail: T,
}

/// What is carried on by every row.
#[derive(Serialize)]
pub struct Carried<'a> {
    /// What a crash left behind the last row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovered: Option<String>,
    /// The state after this row.
    pub state: &'a State,
}

impl Carried<'_> {
    /// Has a row carry it on.
    pub fn by(&self, draft: &mut Draft) {
        if let (Value::Object(detail), Value::Object(carried)) = (&mut draft.detail, json::to_value(self)) {
            detail.extend(carried);
        }
    }
}

/// The client of a session that was recorded by its genesis row's detail, or the name that nobody here knows.
pub fn client(genesis: &Value) -> Result<&'static dyn Client, String> {
    let name = genesis.get("client").and_then(Value::as_str).unwrap_or_default();
    writ_clients::named(name).ok_or_else(|| visible::line(name).into_owned())
}
