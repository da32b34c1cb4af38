//! What rows tell of an agent's turns since its attestation before.
//!
//! Owns the way there: from the end of the ledger for the main agent, so that a stop costs the same however long the session is; from its
//! beginning for a sub-agent, whose statements share names with others'. Refuses rows from before anybody asked for attestations. Invariant:
//! both ways find the same. Page: `spec/turns.md`.

use std::collections::HashSet;

use writ_clients::transcript::MAIN;
use writ_core::Digest;
use writ_core::json::Value;
use writ_evidence::row::Row;

use super::gathered::{self, Gathered};
use super::named::Named;
use crate::governing::kept::PolicyRef;
use crate::session::{Session, SessionError};

/// Most rows that are held.
const MOST: usize = 20_000;

/// What is new of an agent.
pub struct Since {
    /// That attestation.
    pub last: Option<Named>,
    /// Names that statements of sub-agents have.
    pub used: HashSet<String>,
    /// The seal of the first row.
    pub genesis: Digest,
    /// The turns.
    pub turns: Vec<Gathered>,
    /// The last row.
    pub end: u64,
}

impl Since {
    fn begin(genesis: Digest) -> Self {
        Self { last: None, used: HashSet::new(), genesis, turns: Vec::new(), end: 0 }
    }

    /// From all rows.
    pub fn of(session: &Session<'_>, name: &str, policy: &PolicyRef) -> Result<Self, SessionError> {
        let (mut since, mut asked) = (Self::begin(Digest::ZERO), false);
        session.each_row(|row| {
            let policy_now = row.detail.get("state").and_then(|state| state.get("policy"));
            asked |= policy_now.and_then(|policy| policy.get("attests")).and_then(Value::as_bool).unwrap_or(false);
            if row.sequence == 0 {
                since.genesis = row.entry_hash;
            }
            since.row(&row, name, policy, asked);
        })?;
        Ok(since)
    }

    /// The main agent's, from the rows behind its attestation before: none of its statements has the name of another.
    pub fn of_main(session: &Session<'_>, policy: &PolicyRef) -> Result<Self, SessionError> {
        let (mut rows, mut spoken) = (Vec::new(), None);
        session.each_row_back(|row| {
            if spoken.is_none() && gathered::agent(&row) == MAIN {
                spoken = Named::of(&row).and_then(Result::ok).map(|named| named.rows[1]);
            }
            let more = spoken.is_none_or(|to| row.sequence > to);
            rows.push(row);
            more && rows.len() < MOST
        })?;
        let whole = spoken.is_some_and(|to| rows.last().is_some_and(|row| row.sequence <= to));
        if !whole {
            return Self::of(session, MAIN, policy);
        }
        let mut since = Self::begin(session.genesis()?);
        // Somebody asked, or there were no attestation before.
        rows.iter().rev().for_each(|row| since.row(row, MAIN, policy, true));
        Ok(since)
    }

    fn row(&mut self, row: &Row, name: &str, policy: &PolicyRef, asked: bool) {
        self.end = row.sequence;
        if let Some(Ok(named)) = Named::of(row) {
            self.used.insert(named.name.clone());
            if gathered::agent(row) == name {
                self.turns.retain(|turn: &Gathered| turn.first > named.rows[1]);
                self.last = Some(named);
            }
        } else if asked && gathered::agent(row) == name {
            gathered::take(&mut self.turns, row, policy.root());
        }
    }
}
