//! Calls that wait for a human.
//!
//! The row that asked is the request: there is no second list that could disagree with the ledger. Bounded: the newest
//! [`MOST`] of a session, for a day. A request ends when its call runs, is asked again or is denied (but by limits alone), by a human's
//! word, and with the policy that asked.

use std::collections::VecDeque;

use serde::Serialize;
use writ_core::json::Value;
use writ_core::{Digest, SessionId, Timestamp};
use writ_evidence::row::{Row, RowDecision};
use writ_store::{Store, StoreError};

use crate::decide::answered::Asked;
use crate::decide::outcome::{flows, is_limit};
use crate::session::kept_policy;
use crate::session::rows::event;
use crate::session::shown::{Rules, Shown, cite};
use crate::session::state::{Action, State, short};

/// Most requests of one session.
pub const MOST: usize = 64;
/// How long a request waits.
const WAITS_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// A call that was asked about and not run since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its tool.
    pub tool: String,
    /// [`writ_core::ToolCall::digest`].
    pub input: Digest,
    /// Digest of the whole action: tool, what it does, input, folder, agent, session and policy (R71).
    pub action: Digest,
    /// The folder it would run in.
    pub cwd: String,
    /// The sub-agent that asks, if it is one.
    pub agent: Option<Asking>,
    /// When it was asked.
    pub asked: Timestamp,
    /// The rules that asked, each with its text: `ask `Bash:git push`, /tools/requireApproval/0`.
    pub rules: Vec<String>,
    /// What it would run, touch and contact.
    pub shown: Shown,
    /// The attested evaluation it was asked about with, if there is one.
    pub evaluation: Option<Digest>,
    /// Digest of the policy's file that asked.
    pub policy: Option<Digest>,
    /// Digests of the files of all layers that were judged too.
    pub layers: Vec<Digest>,
    /// Where symlinks lead its words.
    pub leads: Option<Digest>,
    /// Whether the tool's server defines it in another way than was accepted.
    pub redefined: bool,
    /// What it says, secrets masked, where that was kept.
    pub text: Option<String>,
    call: Option<String>,
    counts: Option<Asked>,
}

/// A sub-agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Asking {
    /// Its id.
    pub id: String,
    /// Its type, where the client says it.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

impl Waiting {
    /// The name `writ approve` takes: calls alike but for their folder, agent or policy have different ones.
    pub fn name(&self) -> String {
        short(self.action)
    }

    /// Whether `name` begins the digest of its action or of its input.
    pub fn is_named(&self, name: &str) -> bool {
        !name.is_empty() && (self.action.hex().starts_with(name) || self.input.hex().starts_with(name))
    }

    /// Its id and what it counts for while it waits.
    pub fn counted(&self) -> Option<(&str, &Asked)> {
        self.call.as_deref().zip(self.counts.as_ref())
    }

    /// The rules that what the session has taken in speaks for.
    pub fn flows(&self) -> Vec<&str> {
        flows(&self.shown.rules)
    }

    /// All that a human's word on it is for, with its [`Self::flows`].
    pub fn action<'a>(&'a self, session: &'a SessionId, flows: &'a [&'a str]) -> Action<'a> {
        Action {
            session: session.as_str(),
            tool: &self.tool,
            input: self.input,
            cwd: &self.cwd,
            agent: self.agent.as_ref().map(|agent| agent.id.as_str()),
            policy: self.policy,
            layers: &self.layers,
            leads: self.leads,
            redefined: self.redefined,
            flows,
        }
    }
}

/// The requests of one session.
pub struct Requests {
    /// The session.
    pub session: SessionId,
    /// What waits, oldest first; why that cannot be told.
    pub waiting: Result<Vec<Waiting>, StoreError>,
}

/// The requests of every session on record that wait, those of the session written last first.
pub fn everywhere(store: &Store, now: Timestamp) -> Result<Vec<Requests>, StoreError> {
    let mut out = Vec::new();
    for session in store.sessions()? {
        let last = match store.last_row(&session) {
            Ok(Some(row)) => row,
            Ok(None) => continue,
            Err(error) => {
                out.push(Requests { session, waiting: Err(error) });
                continue;
            }
        };
        let asked = State::from_detail(&last.detail).is_none_or(|state| state.asked > 0);
        if asked && is_young(last.timestamp, now) {
            let waiting = waiting(store, &session, now);
            out.push(Requests { session, waiting });
        }
    }
    Ok(out)
}

/// The requests of a session, oldest first.
pub fn waiting(store: &Store, id: &SessionId, now: Timestamp) -> Result<Vec<Waiting>, StoreError> {
    let policy = store.last_row(id)?.and_then(|row| kept_policy(store, id, &row));
    let policy = policy.as_ref().map(|policy| policy as &dyn Rules);
    let mut open = VecDeque::new();
    store.each_row(id, |row| take(&mut open, row, id, policy))?;
    open.retain(|call: &Waiting| is_young(call.asked, now));
    let folder = store.folder(id);
    open.iter_mut().for_each(|call| call.text = super::text::of(&folder, call.action));
    Ok(open.into())
}

fn is_young(asked: Timestamp, now: Timestamp) -> bool {
    now.millis().saturating_sub(asked.millis()) <= WAITS_MILLIS
}

/// Takes the next row: it may ask, or end what was asked.
fn take(open: &mut VecDeque<Waiting>, row: Row, id: &SessionId, policy: Option<&dyn Rules>) {
    match (row.decision, event(&row)) {
        (RowDecision::Checkpoint, "policy-accepted") => open.clear(),
        (RowDecision::Checkpoint, "grant" | "refusal") => {
            let action = row.detail.get("grant").and_then(|grant| digest(grant.get("action")));
            open.retain(|call| Some(call.action) != action);
        }
        // It ran: at the client's own prompt somebody said yes.
        (RowDecision::Completed | RowDecision::Failed, _) => open.retain(|call| call.call != row.call_id),
        // It may be asked again once there is room.
        (RowDecision::Denied, _) if limits_refused(&row) => {}
        (RowDecision::Approved | RowDecision::Denied | RowDecision::Asked, _) => {
            let Some(action) = digest(row.detail.get("action")) else { return };
            open.retain(|call| call.action != action);
            if row.decision == RowDecision::Asked
                && let Some(call) = request(row, id, action, policy)
            {
                if open.len() >= MOST {
                    open.pop_front();
                }
                open.push_back(call);
            }
        }
        (RowDecision::Checkpoint | RowDecision::Hallucinated, _) => {}
    }
}

/// Whether nothing but limits that are reached refused a call.
fn limits_refused(row: &Row) -> bool {
    let rules = row.detail.get("rules").and_then(Value::as_array).unwrap_or_default();
    let mut refused = rules.iter().filter_map(Value::as_str).filter_map(|rule| rule.strip_prefix("deny ")).peekable();
    refused.peek().is_some() && refused.all(is_limit)
}

/// The request that a row is. One whose members do not make its action is none: nobody could approve it.
fn request(row: Row, id: &SessionId, action: Digest, policy: Option<&dyn Rules>) -> Option<Waiting> {
    let detail = &row.detail;
    let agent = detail.get("agent");
    let agent = agent.and_then(|agent| Some(Asking { id: text(agent.get("id"))?, kind: text(agent.get("type")) }));
    let shown = Shown::of(&row);
    let layers = detail.get("layers").and_then(Value::as_array).unwrap_or_default();
    let call = Waiting {
        input: digest(detail.get("input"))?,
        action,
        cwd: text(detail.get("cwd")).unwrap_or_default(),
        agent,
        asked: row.timestamp,
        rules: shown.rules.iter().map(|rule| cited(policy, rule)).collect(),
        shown,
        evaluation: detail.get("attestation").and_then(|named| digest(named.get("digest"))),
        policy: State::from_detail(detail)?.policy.map(|policy| policy.file),
        layers: layers.iter().map(|layer| digest(layer.get("file"))).collect::<Option<_>>()?,
        leads: digest(detail.get("leads")),
        redefined: detail.get("redefined").and_then(Value::as_bool) == Some(true),
        text: None,
        counts: Asked::of(&row),
        tool: row.tool_name?,
        call: row.call_id,
    };
    (call.action(id, &call.flows()).digest() == action).then_some(call)
}

fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(str::to_owned)
}

fn digest(value: Option<&Value>) -> Option<Digest> {
    value.and_then(Value::as_str).and_then(|text| Digest::parse(text).ok())
}

/// `ask /tools/deny/0` with the rule's own text.
fn cited(policy: Option<&dyn Rules>, rule: &str) -> String {
    match rule.split_once(' ') {
        Some((verdict, pointer)) => format!("{verdict} {}", cite(policy, pointer)),
        None => rule.to_owned(),
    }
}
