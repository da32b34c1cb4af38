//! What a policy that only observes would have stopped: how often each rule spoke, with examples.
//!
//! Reads rows, in order; decides nothing. A row that ran and would have been stopped says so in `detail.observed`, and
//! `detail.rules` names the rules. Page: `spec/policy.md`.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use writ_core::SessionId;
use writ_core::json::Value;
use writ_evidence::row::{Row, RowDecision};
use writ_store::{Store, StoreError};

use super::shown::{Rules, Shown, cite};

/// Most examples of one rule.
const EXAMPLES: usize = 3;

/// What would have been stopped, so far.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Whether some call was judged by a policy that observes.
    pub any: bool,
    rules: BTreeMap<String, Seen>,
    /// Calls that would have been asked about, and calls that would have been denied.
    counts: (u64, u64),
}

#[derive(Clone, Debug, Default, Serialize)]
struct Seen {
    rule: String,
    verdict: String,
    count: u64,
    examples: Vec<String>,
}

impl Observed {
    /// Reads a session's rows, under the policy that governs them now.
    pub fn of(store: &Store, id: &SessionId, policy: &dyn Rules) -> Result<Self, StoreError> {
        let mut out = Self::default();
        store.each_row(id, |row| {
            if row.decision == RowDecision::Approved {
                out.take(&row, policy, true);
            }
        })?;
        Ok(out)
    }

    /// Takes the next call's row.
    pub fn take(&mut self, row: &Row, policy: &dyn Rules, observes: bool) {
        self.any |= observes;
        match row.detail.get("observed").and_then(Value::as_str) {
            Some("ask") => self.counts.0 += 1,
            Some("deny") => self.counts.1 += 1,
            _ => return,
        }
        let mut known: Vec<&str> = Vec::new();
        let rules = row.detail.get("rules").and_then(Value::as_array).unwrap_or_default();
        for (verdict, rule) in rules.iter().filter_map(Value::as_str).filter_map(|rule| rule.split_once(' ')) {
            if verdict == "allow" || known.contains(&rule) {
                continue;
            }
            known.push(rule);
            let seen = self.rules.entry(format!("{verdict} {rule}")).or_default();
            if seen.count == 0 {
                (seen.rule, seen.verdict) = (cite(Some(policy), rule), verdict.to_owned());
            }
            seen.count += 1;
            if seen.examples.len() < EXAMPLES {
                let what = Shown::of(row).summary();
                seen.examples.push(format!("row {} {what}", row.sequence));
            }
        }
    }

    /// How many calls would have been stopped.
    pub const fn count(&self) -> u64 {
        self.counts.0 + self.counts.1
    }

    /// One sentence.
    pub fn summary(&self) -> String {
        let (asked, denied) = self.counts;
        match self.count() {
            0 => "the policy observes and stops nothing; nothing would have been stopped".to_owned(),
            1 => format!(
                "the policy observes and stops nothing; 1 call would have been stopped ({asked} ask, {denied} deny)"
            ),
            all => format!(
                "the policy observes and stops nothing; {all} calls would have been stopped ({asked} ask, {denied} deny)"
            ),
        }
    }

    /// One line a rule, the most frequent first: `3 × deny `Bash:git push --force*`, /tools/deny/0: row 4 Bash git …`.
    pub fn lines(&self) -> Vec<String> {
        let mut seen: Vec<&Seen> = self.rules.values().collect();
        seen.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.rule.cmp(&b.rule)));
        let line =
            |seen: &&Seen| format!("{} × {} {}: {}", seen.count, seen.verdict, seen.rule, seen.examples.join(", "));
        seen.iter().map(line).collect()
    }
}

#[derive(Serialize)]
struct Document<'a> {
    calls: u64,
    ask: u64,
    deny: u64,
    rules: Vec<&'a Seen>,
}

impl Serialize for Observed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (ask, deny) = self.counts;
        Document { calls: self.count(), ask, deny, rules: self.rules.values().collect() }.serialize(serializer)
    }
}
