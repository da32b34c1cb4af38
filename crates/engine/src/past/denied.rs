//! The last call that was stopped in a repository, as its row tells it, with what would let it through.
//!
//! Judges the row's facts again under the policy that was accepted then, so that each reason comes with its remedy; the record is what counts,
//! and reasons that it does not name are left out. Invariant: what is told of a call is what its row holds (R8): programs, never a line.

use std::path::Path;

use serde::Serialize;
use writ_core::json::{self, Value};
use writ_core::{Reason, SessionId, Timestamp};
use writ_evidence::row::{Row, RowDecision};
use writ_policy::{Facts, Layer, Setting, Tally, judge};
use writ_store::{Store, StoreError};

use crate::confine::tracked::identity;
use crate::decide::surveyed::JudgedLayer;
use crate::governing::{Governing, protect};
use crate::session::kept_policy;
use crate::session::shown::{Rules, Shown};

/// A call that was stopped.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stopped {
    /// The session.
    pub session: String,
    /// Its row.
    pub row: u64,
    /// When.
    pub at: Timestamp,
    /// `DENIED`, or `ASKED`.
    pub decision: &'static str,
    /// What the call would have touched.
    pub call: Shown,
    /// The policy that governed, where it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The rules that stopped it.
    pub reasons: Vec<Told>,
}

/// A rule that stopped it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Told {
    /// Verdict and pointer, as the row has them.
    pub rule: String,
    /// How it is written in the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What is wrong.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What would let it through.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub instead: String,
}

/// The last call that was denied here, or asked about where `asked` is said too.
pub fn last(store: &Store, here: &Path, asked: bool) -> Result<Option<Stopped>, StoreError> {
    let own = identity(here);
    let mut sessions: Vec<(Timestamp, SessionId, Value)> = Vec::new();
    for id in store.sessions()? {
        // A record that does not read is its verification's to tell.
        let (Ok(Some(first)), Ok(Some(last))) = (store.first_row(&id), store.last_row(&id)) else { continue };
        let cwd = first.detail.get("cwd").and_then(Value::as_str);
        if cwd.is_some_and(|cwd| identity(Path::new(cwd)) == own) {
            sessions.push((last.timestamp, id, first.detail.clone()));
        }
    }
    sessions.sort_by_key(|(last, ..)| std::cmp::Reverse(*last));
    let mut found: Option<(SessionId, Value, Row)> = None;
    for (last, id, genesis) in sessions {
        if found.as_ref().is_some_and(|(.., row)| row.timestamp >= last) {
            break;
        }
        let mut own: Option<Row> = None;
        store.each_row(&id, |row| {
            let stops = row.decision == RowDecision::Denied || asked && row.decision == RowDecision::Asked;
            if stops && row.tool_name.is_some() {
                own = Some(row);
            }
        })?;
        if let Some(row) = own.filter(|own| found.as_ref().is_none_or(|(.., known)| own.timestamp > known.timestamp)) {
            found = Some((id, genesis, row));
        }
    }
    Ok(found.map(|(id, genesis, row)| stopped(store, &id, &genesis, &row)))
}

fn stopped(store: &Store, id: &SessionId, genesis: &Value, row: &Row) -> Stopped {
    let policy = kept_policy(store, id, row);
    Stopped {
        session: id.to_string(),
        row: row.sequence,
        at: row.timestamp,
        decision: row.decision.as_str(),
        call: Shown::of(row),
        reasons: told(policy.as_ref(), genesis, row),
        policy: policy.as_ref().map(|policy| policy.path.to_string_lossy().into_owned()),
    }
}

/// The rules that stopped the call of a row, as the row names them, each with its words where the policy is at hand.
pub fn told(policy: Option<&Governing>, genesis: &Value, row: &Row) -> Vec<Told> {
    let again = policy.and_then(|policy| again(policy, genesis, row)).unwrap_or_default();
    let told = |rule: String| {
        let pointer = rule.split_once(' ').map_or(rule.as_str(), |(_, pointer)| pointer);
        let reason = again.iter().find(|reason| format!("{} {}", reason.verdict, reason.rule) == rule);
        Told {
            text: policy.and_then(|policy| policy.text(pointer)),
            message: reason.map(|reason| reason.message.clone()).unwrap_or_default(),
            instead: reason.map(|reason| reason.instead.clone()).unwrap_or_default(),
            rule,
        }
    };
    Shown::of(row).rules.into_iter().filter(|rule| !rule.starts_with("allow")).map(told).collect()
}

/// The reasons that the facts of a row give under a policy; limits are left out, whose counts stand elsewhere.
fn again(policy: &Governing, genesis: &Value, row: &Row) -> Option<Vec<Reason>> {
    let facts: Facts = json::from_value(row.detail.get("facts")?).ok()?;
    let setting = protect::recorded(genesis)?;
    let setting = protect::with_layers(Setting { now: row.timestamp, ..setting }, &policy.list());
    let judged: Vec<JudgedLayer> =
        row.detail.get("layers").and_then(|layers| json::from_value(layers).ok()).unwrap_or_default();
    let mut layers = vec![Layer::own(&policy.policy, &facts)];
    for layer in &judged {
        let known = policy.layers.iter().find(|known| known.at.name == layer.name);
        layers.extend(known.map(|known| Layer::named(&layer.name, &known.policy, &layer.facts).uncounted()));
    }
    Some(judge(&layers, &setting, Tally::default()).reasons)
}
