//! Claims next to facts: every recorded verdict against its signed statement.

use std::path::Path;

use writ_core::Digest;
use writ_core::json::{self, Value};
use writ_evidence::dsse::Envelope;
use writ_evidence::keys::PublicKey;
use writ_evidence::row::Row;

use super::decisions::event;
use super::report::{Outcome, Phase, Standing};
use crate::claims::PREDICATE_TYPE;

/// Most claims that the summary tells one by one.
const MOST: usize = 50;

/// Checks the claims on record; nothing when there are none.
pub fn check(rows: &[Row], folder: &Path, key: Option<&PublicKey>) -> Option<Phase> {
    let claims: Vec<&Row> = rows.iter().filter(|row| event(row) == "claim").collect();
    if claims.is_empty() {
        return None;
    }
    let wrong = claims.iter().filter_map(|row| {
        let error = statement(row, folder, key).err()?;
        Some(format!("row {}: {error}", row.sequence))
    });
    let wrong: Vec<String> = wrong.collect();
    let is = |name: &str| claims.iter().filter(|row| truth(row, name)).count();
    let (outcome, findings, summary) = if wrong.is_empty() {
        let summary = format!(
            "{} claims with their signed statements: {} false, {} sent back",
            claims.len(),
            is("falseDone"),
            is("blocked")
        );
        (Outcome::Passed, claims.iter().take(MOST).map(|row| tell(row)).collect(), summary)
    } else {
        (Outcome::Failed, wrong, "a claim is not what was recorded".to_owned())
    };
    Some(Phase { name: "claims", outcome, standing: Standing::Observed, summary, findings })
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
