//! Claims next to facts: every recorded verdict against its signed statement.

use std::path::Path;

use writ_core::Digest;
use writ_core::json::{self, Value};
use writ_evidence::dsse::Envelope;
use writ_evidence::keys::PublicKey;
use writ_evidence::row::Row;
use writ_evidence::tally::Tally;

use super::decisions::event;
use super::report::{Outcome, Phase, Standing};
use crate::claims::PREDICATE_TYPE;

/// Most claims that the summary tells one by one.
const MOST: usize = 50;

/// The claims on record, checked one by one.
pub struct Claims<'a> {
    folder: &'a Path,
    key: Option<&'a PublicKey>,
    count: u64,
    false_done: u64,
    blocked: u64,
    told: Vec<String>,
    wrong: Tally,
    /// False claims that stand: agent and line. One that was sent back falls when the agent then says what is so.
    standing: Vec<(String, bool, String)>,
}

impl<'a> Claims<'a> {
    /// Claims whose statements lie in `folder`, signed with `key`.
    pub fn of(folder: &'a Path, key: Option<&'a PublicKey>) -> Self {
        let (told, standing) = (Vec::new(), Vec::new());
        Self { folder, key, count: 0, false_done: 0, blocked: 0, told, wrong: Tally::new(), standing }
    }

    /// Takes the next row.
    pub fn row(&mut self, row: &Row) {
        if event(row) != "claim" {
            return;
        }
        self.count += 1;
        self.false_done += u64::from(truth(row, "falseDone"));
        self.blocked += u64::from(truth(row, "blocked"));
        if self.told.len() < MOST {
            self.told.push(tell(row));
        }
        if let Err(why) = statement(row, self.folder, self.key) {
            self.wrong.add(row.sequence, &why);
        }
        let agent = row.detail.get("claim").and_then(|claim| claim.get("agent")).and_then(Value::as_str);
        let agent = agent.unwrap_or_default();
        if !truth(row, "falseDone") {
            self.standing.retain(|(other, blocked, _)| !blocked || other != agent);
        } else if self.standing.len() < MOST {
            self.standing.push((agent.to_owned(), truth(row, "blocked"), tell(row)));
        }
    }

    /// One phase on the claims, one on those that are false; nothing when there are none.
    pub fn phases(self) -> Vec<Phase> {
        if self.count == 0 {
            return Vec::new();
        }
        let phase = |outcome, summary, findings| Phase {
            name: "claims",
            outcome,
            standing: Standing::Observed,
            summary,
            findings,
        };
        if self.wrong.total() > 0 {
            let summary = "a claim is not what was recorded".to_owned();
            return vec![phase(Outcome::Failed, summary, self.wrong.texts())];
        }
        let summary = format!(
            "{} claims with their signed statements: {} false, {} sent back",
            self.count, self.false_done, self.blocked
        );
        let mut phases = vec![phase(Outcome::Passed, summary, self.told)];
        if !self.standing.is_empty() {
            let summary = format!("{} claims are false and stand", self.standing.len());
            let findings = self.standing.into_iter().map(|(_, _, told)| told).collect();
            phases.push(Phase { name: "false claims", ..phase(Outcome::Absent, summary, findings) });
        }
        phases
    }
}

fn statement(row: &Row, folder: &Path, key: Option<&PublicKey>) -> Result<(), String> {
    let named = row.detail.get("statement").and_then(Value::as_str).and_then(|text| Digest::parse(text).ok());
    let named = named.ok_or("it names no statement")?;
    let path = folder.join(format!("claims/{}.json", named.hex()));
    let bytes = super::optional(&path).ok().flatten().ok_or("its statement is not there")?;
    if Digest::of(&bytes) != named {
        return Err("its statement was changed".to_owned());
    }
    let envelope = Envelope::parse(&bytes).map_err(|error| error.to_string())?;
    let keys: Vec<PublicKey> = key.cloned().into_iter().collect();
    let payload = envelope.verify(&keys).map_err(|error| format!("its statement: {error}"))?.into_payload();
    let statement = json::parse(&payload).map_err(|error| error.to_string())?;
    let says = |name: &str| statement.get(name);
    let kind = says("predicateType").and_then(Value::as_str);
    if kind != Some(PREDICATE_TYPE) || says("predicate") != row.detail.get("claim") {
        return Err("its statement says something else".to_owned());
    }
    Ok(())
}

fn truth(row: &Row, name: &str) -> bool {
    row.detail.get("claim").and_then(|claim| claim.get(name)).and_then(Value::as_bool).unwrap_or(false)
}

/// Whether a row's claim is false: a file or the tests say otherwise beyond doubt.
pub fn is_false(row: &Row) -> bool {
    truth(row, "falseDone") || truth(row, "blocked")
}

/// The last claim of each agent, in the order of the rows: what an agent said before it was sent back no longer counts.
pub fn last_of_each<'a>(rows: &[&'a Row]) -> Vec<&'a Row> {
    let agent = |row: &Row| row.detail.get("claim").and_then(|claim| claim.get("agent")).cloned();
    let later = |at: usize, row: &Row| rows.iter().skip(at + 1).any(|other| agent(other) == agent(row));
    rows.iter().enumerate().filter(|(at, row)| !later(*at, row)).map(|(_, row)| *row).collect()
}

/// One line: who said what, what became of each file, why the claim is false, and the code that decided.
pub fn tell(row: &Row) -> String {
    let claim = row.detail.get("claim");
    let text = |name: &str| claim.and_then(|claim| claim.get(name)).and_then(Value::as_str);
    let files = claim.and_then(|claim| claim.get("files")).and_then(Value::as_array).unwrap_or_default();
    let file = |file: &Value| {
        let text = |name: &str| file.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        format!("{} {}", text("claimed"), text("verdict"))
    };
    let files: Vec<String> = files.iter().take(20).map(file).collect();
    let files = if files.is_empty() { "no files".to_owned() } else { files.join(", ") };
    let tests = text("tests").map_or_else(String::new, |tests| format!("; tests claimed: {tests}"));
    let why = if is_false(row) {
        text("reason").map_or_else(String::new, |why| format!("; false: {why}"))
    } else {
        String::new()
    };
    let code = text("code").map_or_else(String::new, |code| format!(" [{code}]"));
    let end = if truth(row, "blocked") { " — sent back" } else { "" };
    let agent = text("agent").unwrap_or("an agent without an id");
    let kind = text("type").filter(|kind| !kind.is_empty() && *kind != agent);
    let kind = kind.map_or_else(String::new, |kind| format!(" ({kind})"));
    let said = text("status").unwrap_or("nothing");
    format!("row {}: {agent}{kind} said {said}: {files}{tests}{why}{code}{end}", row.sequence)
}
