//! Requests of an Agentfile's policies: how many are on record.
//!
//! Owns the exception that they make. Decides none of them again: no row holds a request's context (R8). Invariant: a record with one of
//! them is never plainly verified. Page: `spec/verify.md`, "Exceptions".

use writ_evidence::row::Row;

use super::report::{Outcome, Phase, REQUESTS, Standing};
use crate::decide::requests::DECIDED;
use crate::session::rows::event;

/// The requests of a session.
#[derive(Debug, Default)]
pub struct Requests(u64);

impl Requests {
    pub fn row(&mut self, row: &Row) {
        self.0 += u64::from(event(row) == DECIDED);
    }

    pub fn phase(&self) -> Option<Phase> {
        (self.0 > 0).then(|| Phase {
            name: REQUESTS,
            outcome: Outcome::Absent,
            standing: Standing::Observed,
            summary: format!(
                "{} requests were not decided again: rows hold the digests of their contexts alone",
                self.0
            ),
            findings: Vec::new(),
        })
    }
}
