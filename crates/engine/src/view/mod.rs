//! A session as people look at it: what happened, in order, and what it came to.
//!
//! Owns the reading of rows for `writ session open`, `writ report` and `writ watch`. Checks nothing: what the record is worth says
//! [`crate::verify`]. Invariant: it shows what rows hold, and so no line, no input and no secret (R8). Page: `spec/looking.md`.

mod add;

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use writ_core::{SessionId, Timestamp};
use writ_store::{Store, StoreError};

use crate::governing::Governing;
use crate::limits::shown::{Standing, standing};
use crate::past::denied::Told;

/// Most files, and most hosts, of one session that are counted apart.
const MOST: usize = 10_000;

/// A session.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct View {
    /// Its id.
    pub session: String,
    /// The client.
    pub client: String,
    /// Where it began.
    pub cwd: String,
    /// The policy that governs, where it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began: Option<Timestamp>,
    /// Its last row's moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Timestamp>,
    /// Whether it has ended.
    pub ended: bool,
    /// What was counted.
    pub counts: Counts,
    /// What happened, in order.
    pub entries: Vec<Entry>,
    /// The files that calls were about, by path.
    pub files: BTreeMap<String, FileSeen>,
    /// The hosts that calls were about, or that were reached.
    pub hosts: BTreeMap<String, HostSeen>,
    /// What agents claimed.
    pub claims: Vec<Claim>,
    /// What it used of its limits, where its policy has some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Standing>,
    #[serde(skip)]
    reading: Reading,
}

/// What is needed to take the next row.
#[derive(Clone, Debug, Default)]
struct Reading {
    /// Calls without a result, by their ids: their places among the entries.
    open: HashMap<String, usize>,
    genesis: writ_core::json::Value,
    policy: Option<Governing>,
    /// The policy's file that is at hand.
    file: Option<writ_core::Digest>,
    /// How many rows were taken.
    rows: u64,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Rows.
    pub rows: u64,
    /// Calls that were allowed.
    pub allowed: u64,
    /// Calls that a human was asked about.
    pub asked: u64,
    /// Calls that were denied.
    pub denied: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Prompts.
    pub prompts: u64,
    /// Connections that were refused.
    pub refused: u64,
}

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A call of a tool.
    Call,
    /// A human's prompt.
    Prompt,
    /// What an agent claimed.
    Claim,
    /// A connection of a confined call.
    Connection,
    /// What happened to the session itself.
    Event,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Became {
    /// It was let run.
    Allowed,
    /// A human was asked.
    Asked,
    /// It was denied.
    Denied,
    /// There is no such tool.
    NoTool,
    /// Nothing was decided.
    Nothing,
}

/// One thing that happened.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Its row.
    pub row: u64,
    /// When.
    pub at: Timestamp,
    /// What kind of thing.
    pub kind: Kind,
    /// What became of it.
    pub became: Became,
    /// The tool, or the event.
    pub name: String,
    /// What it was about: programs, paths, hosts.
    pub what: String,
    /// The sub-agent that did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The rules that stopped it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Told>,
    /// The rule that named it, where it was allowed by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_by: Option<String>,
    /// Whether it failed, once its result is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<bool>,
    /// Milliseconds to its result.
    #[serde(rename = "tookMilliseconds", skip_serializing_if = "Option::is_none")]
    pub took: Option<i64>,
    /// Whether it ran in a sandbox.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sandboxed: bool,
}

/// A file that calls were about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileSeen {
    /// Calls that read it.
    pub reads: u64,
    /// Calls that wrote it.
    pub writes: u64,
    /// Calls about it that were stopped.
    pub stopped: u64,
}

/// A host that calls were about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostSeen {
    /// Calls that name it.
    pub calls: u64,
    /// Connections to it that were let through.
    pub connections: u64,
    /// Calls that were stopped, and connections that were refused.
    pub stopped: u64,
}

/// What an agent claimed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// In words.
    pub text: String,
    /// Whether it is false.
    #[serde(rename = "isFalse")]
    pub is_false: bool,
}

impl View {
    /// A session's rows so far.
    pub fn of(store: &Store, id: &SessionId) -> Result<Self, StoreError> {
        let mut view = Self { session: id.to_string(), ..Self::default() };
        view.follow(store, id)?;
        Ok(view)
    }

    /// Takes the rows that have come since. Gives how many entries there were before.
    pub fn follow(&mut self, store: &Store, id: &SessionId) -> Result<usize, StoreError> {
        let before = self.entries.len();
        let taken = self.reading.rows;
        store.each_row(id, |row| {
            if row.sequence >= taken {
                self.add(&row, store, id);
            }
        })?;
        self.limits = standing(store, id, self.last.filter(|_| self.ended).unwrap_or_else(Timestamp::now))?;
        Ok(before)
    }

    /// Whether there are rows that were not taken.
    pub fn is_behind(&self, store: &Store, id: &SessionId) -> Result<bool, StoreError> {
        Ok(store.last_row(id)?.is_some_and(|last| last.sequence >= self.reading.rows))
    }
}
