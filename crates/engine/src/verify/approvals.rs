//! Humans' words: each signed, for one action, at its place; and what the rows around it make of it.
//!
//! Refuses a word that is not what its signature covers, or that stands at another place than it was signed for. One by a key
//! that is not known here is nobody's word: an exception of the report.

use std::collections::BTreeMap;
use std::path::Path;

use writ_core::{Digest, json};
use writ_evidence::keys::PublicKey;
use writ_evidence::row::{Row, RowDecision};
use writ_evidence::tally::{Tally, listed};

use super::policies::{Kept, document_of};
use super::report::{APPROVALS, Outcome, Phase, Standing};
use crate::Home;
use crate::decide::approvals::keys;
use crate::decide::approvals::signed::{self, NotGood};
use crate::decide::approvals::{GRANT, Grant, REFUSAL, REVOKED, VOID};
use crate::governing::Trust;
use crate::session::rows::event;
use crate::session::state::{State, Uses};

/// Most words that a report tells one by one.
const MOST: usize = 20;

/// What a row about a human's word makes of the state.
pub fn follow(row: &Row, state: &mut State) -> Result<(), String> {
    if event(row) == VOID {
        let action = row.detail.get("action").and_then(json::Value::as_str).and_then(|text| Digest::parse(text).ok());
        let taken = action.and_then(|action| state.take_back(action));
        return taken.map(|_given| ()).ok_or_else(|| "what it calls void was never given".to_owned());
    }
    let grant = row.detail.get("grant").and_then(|grant| json::from_value::<Grant>(grant).ok());
    let grant = grant.ok_or("it names no approval")?;
    match event(row) {
        REVOKED => {
            let same = state.take_back(grant.action) == Some(grant.given());
            same.then_some(()).ok_or_else(|| "the approval it takes back was never given".to_owned())
        }
        event if (event == REFUSAL) != (grant.uses == Uses::Never) => Err("it is a yes and a no".to_owned()),
        _ => state
            .give(grant.action, grant.given(), row.timestamp)
            .ok_or_else(|| "more approvals are open than may be".to_owned()),
    }
}

/// The words on record, checked one by one.
pub struct Approvals<'a> {
    policies: &'a Kept,
    keys: Vec<PublicKey>,
    /// The ledger's own key.
    own: Option<Digest>,
    /// Why the pinned keys cannot be had.
    unread: Option<String>,
    count: u64,
    told: Vec<String>,
    /// The place of the newest told word on an action.
    open: BTreeMap<Digest, usize>,
    wrong: Tally,
    unknown: Tally,
}

impl<'a> Approvals<'a> {
    /// Words signed with the ledger's key, or one that is pinned here.
    pub fn of(home: &Home, key: Option<&PublicKey>, policies: &'a Kept) -> Self {
        let (pinned, unread) = match Trust::open(home.state.as_deref()).keys() {
            Ok(keys) => (keys, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        Self {
            policies,
            keys: key.cloned().into_iter().chain(pinned).collect(),
            own: key.map(PublicKey::key_id),
            unread,
            count: 0,
            told: Vec::new(),
            open: BTreeMap::new(),
            wrong: Tally::new(),
            unknown: Tally::new(),
        }
    }

    /// Takes the next row.
    pub fn row(&mut self, row: &Row) {
        match (row.decision, event(row)) {
            (RowDecision::Checkpoint, GRANT | REFUSAL) => self.word(row),
            (RowDecision::Checkpoint, REVOKED) => {
                let grant = row.detail.get("grant");
                self.note(grant.and_then(|grant| grant.get("action")), "taken back in", row);
            }
            (RowDecision::Checkpoint, VOID) => self.note(row.detail.get("action"), "void in", row),
            (RowDecision::Approved, _) if row.detail.get("granted").is_some() => {
                self.note(row.detail.get("action"), "used in", row);
            }
            _ => {}
        }
    }

    fn word(&mut self, row: &Row) {
        self.count += 1;
        match signed::check(row, &self.keys) {
            Err(NotGood::UnknownKey) => self.unknown.add(row.sequence, &NotGood::UnknownKey.to_string()),
            Err(why) => self.wrong.add(row.sequence, &why.to_string()),
            Ok(checked) => {
                let policy = |file| document_of(Path::new("/.aflock"), file, self.policies);
                if checked.grant.uses != Uses::Never
                    && let Err(why) = keys::accepted(&checked.files, &checked.signers, policy)
                {
                    self.wrong.add(row.sequence, &why);
                    return;
                }
                if self.told.len() >= MOST {
                    return;
                }
                let grant = &checked.grant;
                let uses = match grant.uses {
                    Uses::Once => "yes, once,",
                    Uses::Any => "yes, as often as called,",
                    Uses::Never => "no,",
                };
                let until = grant.until.map_or_else(|| "for the session".to_owned(), |until| format!("until {until}"));
                let machine = self.own.is_some_and(|own| checked.signers.contains(&own));
                let signer = match checked.signers.first() {
                    Some(key) if !machine => format!("the pinned key {key}"),
                    Some(_) | None => "this ledger's key".to_owned(),
                };
                self.open.insert(grant.action, self.told.len());
                self.told.push(format!(
                    "row {}: {} {}: {uses} {until}; signed by {signer}, given {}",
                    row.sequence,
                    grant.tool,
                    grant.name(),
                    checked.presence.as_str()
                ));
            }
        }
    }

    /// What became of the newest word on an action.
    fn note(&mut self, action: Option<&json::Value>, what: &str, row: &Row) {
        let action = action.and_then(json::Value::as_str).and_then(|text| Digest::parse(text).ok());
        let at = action.and_then(|action| self.open.get(&action).copied());
        // A word for many runs says where the first was.
        if let Some(told) = at.and_then(|at| self.told.get_mut(at)).filter(|told| !told.contains(what)) {
            told.push_str(&format!("; {what} row {}", row.sequence));
        }
    }

    /// What it comes to; nothing where no human said anything.
    pub fn phase(self) -> Option<Phase> {
        if self.count == 0 {
            return None;
        }
        let (outcome, summary, findings) = if self.wrong.total() > 0 {
            let summary = format!("{} of {} words of humans are not what was signed", self.wrong.total(), self.count);
            (Outcome::Failed, summary, self.wrong.texts())
        } else if self.unknown.total() > 0 || self.unread.is_some() {
            let summary =
                format!("{} of {} words of humans are by no key known here", self.unknown.total(), self.count);
            (Outcome::Absent, summary, self.unread.into_iter().chain(self.unknown.texts()).collect())
        } else {
            let summary = format!("{} words of humans, each signed and for one action", self.count);
            (Outcome::Passed, summary, listed(self.told, self.count))
        };
        Some(Phase { name: APPROVALS, outcome, standing: Standing::Observed, summary, findings })
    }
}
