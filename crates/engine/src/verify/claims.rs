//! Claims next to facts: every recorded verdict against its signed statement.

use std::collections::HashMap;
use std::path::Path;

use writ_core::Digest;
use writ_core::json::{self, Value};
use writ_evidence::dsse::Envelope;
use writ_evidence::keys::PublicKey;
use writ_evidence::row::Row;
use writ_evidence::tally::{Tally, listed};

use super::report::{Outcome, Phase, Standing};
use crate::claims::PREDICATE_TYPE;
use crate::session::rows::event;

/// Most claims that a report tells one by one.
const MOST: usize = 20;

/// The claims on record, checked one by one.
pub struct Claims<'a> {
    folder: &'a Path,
    count: u64,
    false_done: u64,
    blocked: u64,
    told: Vec<String>,
    wrong: Tally,
    /// False claims that stand: agent and line. One that was sent back falls when the agent then says what is so.
    standing: Vec<(String, bool, String)>,
    /// The others, which find no room in the report: those that were sent back by their agents, and how many were not.
    further: (HashMap<String, u64>, u64),
}

impl<'a> Claims<'a> {
    /// Claims whose statements lie in `folder`.
    pub fn of(folder: &'a Path) -> Self {
        let (told, standing) = (Vec::new(), Vec::new());
        let (wrong, further) = (Tally::new(), (HashMap::new(), 0));
        Self { folder, count: 0, false_done: 0, blocked: 0, told, wrong, standing, further }
    }

    /// Takes the next row, and the key that signs there.
    pub fn row(&mut self, row: &Row, key: Option<&PublicKey>) {
        if event(row) != "claim" {
            return;
        }
        self.count += 1;
        self.false_done += u64::from(truth(row, "falseDone"));
        self.blocked += u64::from(truth(row, "blocked"));
        if self.told.len() < MOST {
            self.told.push(tell(row));
        }
        if let Err(why) = statement(row, self.folder, key) {
            self.wrong.add(row.sequence, &why);
        }
        let agent = row.detail.get("claim").and_then(|claim| claim.get("agent")).and_then(Value::as_str);
        let agent = agent.unwrap_or_default();
        if !truth(row, "falseDone") {
            self.standing.retain(|(other, blocked, _)| !blocked || other != agent);
            self.further.0.remove(agent);
        } else if self.standing.len() < MOST {
            self.standing.push((agent.to_owned(), truth(row, "blocked"), tell(row)));
        } else if truth(row, "blocked") {
            *self.further.0.entry(agent.to_owned()).or_default() += 1;
        } else {
            self.further.1 += 1;
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
        let mut phases = vec![phase(Outcome::Passed, summary, listed(self.told, self.count))];
        let (blocked, other) = self.further;
        let all = self.standing.len() as u64 + other + blocked.values().sum::<u64>();
        if all > 0 {
            let summary = format!("{all} claims are false and stand");
            let findings = listed(self.standing.into_iter().map(|(_, _, told)| told).collect(), all);
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
    let all = files.len() as u64;
    let files = listed(files.iter().take(20).map(file).collect(), all);
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

#[cfg(test)]
mod tests {
    use super::*;
    use writ_core::Timestamp;
    use writ_evidence::row::{Draft, RowDecision};

    fn claim(agent: &str, told: &str) -> Row {
        let detail =
            json::parse(format!(r#"{{"event":"claim","claim":{{"agent":"{agent}"{told}}}}}"#).as_bytes()).unwrap();
        let draft = Draft {
            timestamp: Timestamp::from_millis(0),
            call_id: None,
            tool_name: None,
            decision: RowDecision::Checkpoint,
            denial_reason: None,
            result_hash: None,
            detail,
        };
        Row::seal(None, draft).unwrap()
    }

    /// A count is a count, and a list that ends early says so.
    #[test]
    fn all_false_claims_are_counted() {
        const FALSE: &str = r#","falseDone":true"#;
        const BACK: &str = r#","falseDone":true,"blocked":true"#;
        let mut claims = Claims::of(Path::new("/none"));
        (0..152)
            .for_each(|number| claims.row(&claim(&format!("a{number}"), if number < 10 { BACK } else { FALSE }), None));
        claims.row(&claim("late", BACK), None);
        claims.row(&claim("late", BACK), None);
        claims.row(&claim("a3", ""), None);
        claims.wrong = Tally::new();
        let of = |claims: Claims<'_>| claims.phases().pop().unwrap();
        let phase = of(claims);
        assert_eq!(phase.summary, "153 claims are false and stand");
        assert_eq!((phase.findings.len(), phase.findings.last().unwrap().as_str()), (20, "and 134 more"));
        let mut claims = Claims::of(Path::new("/none"));
        (0..30).for_each(|number| claims.row(&claim(&format!("a{number}"), FALSE), None));
        claims.row(&claim("late", BACK), None);
        claims.row(&claim("late", ""), None);
        claims.wrong = Tally::new();
        assert_eq!(of(claims).summary, "30 claims are false and stand");
    }
}
