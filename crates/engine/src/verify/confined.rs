//! Calls that were to run in a sandbox: did each, and in the one that was granted?
//!
//! Owns the comparison of grants with the rows of runs and of results. Believes a run's row only with the order it names, from the
//! session's folder. Invariant: *enforced* is said only of calls whose row of the run is there.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use writ_core::Digest;
use writ_evidence::row::{Row, RowDecision};
use writ_evidence::tally::Tally;
use writ_policy::Grant;
use writ_sandbox::Level;

use super::decisions::event;
use super::report::{Outcome, Phase, Standing};
use crate::confine::order::{Order, granted};
use crate::confine::strength;
use crate::confine::supervise::{CONFINED, told};
use crate::confine::traffic::CONNECTION;

/// Largest order that was kept.
const MAX_ORDER: u64 = 64 << 20;

/// What a call was granted, and whether questions were left out because of it.
struct Granted {
    grant: Grant,
    unasked: bool,
}

/// The calls that were granted a sandbox.
pub struct Confined {
    folder: PathBuf,
    /// Those that have not run in it yet.
    waiting: HashMap<String, Granted>,
    /// Those that have a result and no row of a run yet: one in the background has its result first.
    unseen: HashMap<String, (u64, Granted)>,
    /// Those that have.
    ran: u64,
    weakest: Option<Level>,
    connections: u64,
    refused: u64,
    /// Orders that were found as they are named.
    orders: HashMap<Digest, bool>,
    findings: Tally,
}

impl Confined {
    /// Before the first row of the evidence in `folder`.
    pub fn of(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            waiting: HashMap::new(),
            unseen: HashMap::new(),
            ran: 0,
            weakest: None,
            connections: 0,
            refused: 0,
            orders: HashMap::new(),
            findings: Tally::default(),
        }
    }

    /// Takes the next row.
    pub fn row(&mut self, row: &Row) {
        let Some(id) = &row.call_id else {
            // What several calls share may have been reached by any of them.
            if event(row) == CONNECTION {
                self.connection(row);
            }
            return;
        };
        match (row.decision, event(row)) {
            (RowDecision::Approved | RowDecision::Asked, "tool-call") => {
                if let Some(grant) = granted(&row.detail) {
                    let held = row.detail.get("facts").and_then(|facts| facts.get("held"));
                    self.waiting.insert(id.clone(), Granted { grant, unasked: held.is_some() });
                }
            }
            (RowDecision::Completed, _) => {
                if let Some(grant) = self.waiting.remove(id) {
                    self.unseen.insert(id.clone(), (row.sequence, grant));
                }
            }
            // A call that failed may have been refused before it ran.
            (RowDecision::Failed, _) => drop(self.waiting.remove(id)),
            (RowDecision::Checkpoint, CONNECTION) => self.connection(row),
            (RowDecision::Checkpoint, CONFINED) => {
                let grant = self.waiting.remove(id).or_else(|| Some(self.unseen.remove(id)?.1));
                if let Err(why) = self.ran(row, grant) {
                    self.findings.add(row.sequence, why);
                }
            }
            _ => {}
        }
    }

    fn connection(&mut self, row: &Row) {
        let connection = row.detail.get("connection");
        let refused = connection.is_some_and(|connection| connection.get("refusal").is_some());
        *(if refused { &mut self.refused } else { &mut self.connections }) += 1;
    }

    fn ran(&mut self, row: &Row, granted: Option<Granted>) -> Result<(), &'static str> {
        let Granted { grant, unasked } = granted.ok_or("it ran in a sandbox that no row grants")?;
        let (order, level) = told(&row.detail).ok_or("it does not say in what sandbox it ran")?;
        if order != grant.confinement() {
            return Err("it ran in another sandbox than it was granted");
        }
        if unasked && level < Level::Namespaces {
            return Err("questions were left out for a sandbox that is stronger than the one it ran in");
        }
        let folder = &self.folder;
        let found = self.orders.entry(order).or_insert_with(|| {
            let path = folder.join(Order::file_name(order));
            writ_store::regular_file::read(&path, MAX_ORDER).is_ok_and(|bytes| Digest::of(&bytes) == order)
        });
        if !*found {
            return Err("the sandbox it names is not in the session's folder");
        }
        self.ran += 1;
        self.weakest = Some(self.weakest.map_or(level, |weakest| weakest.min(level)));
        Ok(())
    }

    /// What it comes to; nothing where no call was granted a sandbox.
    pub fn phase(mut self) -> Option<Phase> {
        let mut unseen: Vec<u64> = self.unseen.drain().map(|(_, (sequence, _))| sequence).collect();
        unseen.sort_unstable();
        for sequence in unseen {
            self.findings.add(sequence, "it ran, and not in the sandbox it was granted");
        }
        let any = self.ran > 0 || !self.waiting.is_empty() || self.findings.total() > 0;
        let level = self.weakest.map_or("none", strength::word);
        let network = match (self.connections, self.refused) {
            (0, 0) => String::new(),
            (all, refused) => format!(", {all} connections, {refused} refused"),
        };
        let (outcome, summary) = match (self.findings.total(), self.waiting.len()) {
            (0, 0) => (Outcome::Passed, format!("{} calls ran in their sandboxes ({level}){network}", self.ran)),
            // The client was killed, or the call is still running.
            (0, open) => {
                (Outcome::Absent, format!("{} calls ran in their sandboxes, of {open} nothing is known", self.ran))
            }
            (wrong, _) => (Outcome::Failed, format!("{wrong} calls were not held as granted")),
        };
        let findings = self.findings.texts();
        any.then_some(Phase { name: "sandbox", outcome, standing: Standing::Enforced, summary, findings })
    }
}
