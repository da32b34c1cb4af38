//! Which asked calls a human's word answered, followed from row to row: those count no more, unless they ran all the same.
//!
//! Refuses a word that says it answers a call that did not wait for it.

use std::collections::HashMap;

use writ_core::Digest;
use writ_evidence::row::{Row, RowDecision};

use super::recorded::digest;
use crate::decide::answered::{Asked, answers};
use crate::decide::approvals::{GRANT, REFUSAL};
use crate::session::rows::event;

/// Asked calls by their ids.
#[derive(Default)]
pub struct Answered {
    waiting: HashMap<String, (Digest, Asked)>,
    answered: HashMap<String, Asked>,
}

impl Answered {
    /// Takes the next row: an asked call that counts no more from here on, or one that counts again (`true`).
    pub fn row(&mut self, row: &Row) -> Result<Option<(Asked, bool)>, String> {
        if let (RowDecision::Checkpoint, GRANT | REFUSAL) = (row.decision, event(row)) {
            let Some(id) = answers(row) else { return Ok(None) };
            let action = row.detail.get("grant").and_then(|grant| digest(grant.get("action")));
            let waited = self.waiting.remove(id).filter(|(asked, _)| Some(*asked) == action);
            let (_, asked) = waited.ok_or("the call that it answers did not wait for a human's word")?;
            self.answered.insert(id.to_owned(), asked.clone());
            return Ok(Some((asked, false)));
        }
        if (row.decision, event(row)) == (RowDecision::Checkpoint, "policy-accepted") {
            self.waiting.clear();
        }
        // One that was refused meanwhile, by a second hook that was asked about it, waits all the same.
        let told = row.call_id.as_deref().filter(|_| row.decision != RowDecision::Denied);
        let Some(id) = told else { return Ok(None) };
        self.waiting.remove(id);
        let answered = self.answered.remove(id);
        if let (Some(asked), Some(action)) = (Asked::of(row), digest(row.detail.get("action"))) {
            self.waiting.insert(id.to_owned(), (action, asked));
        }
        let ran = matches!(row.decision, RowDecision::Completed | RowDecision::Failed);
        Ok(answered.filter(|_| ran).map(|asked| (asked, true)))
    }
}
