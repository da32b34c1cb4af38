//! `writ claims`: what the agents of a session said, next to what was found. The answer is no when the last word of one is false.

use serde::Serialize;
use writ_core::json::Value;
use writ_core::{SessionId, Timestamp};
use writ_engine::claims::ungoverned;
use writ_engine::verify::claims::{is_false, last_of_each, tell};
use writ_evidence::row::Row;

use crate::args::{ClaimsArgs, Format};
use crate::commands::session_lookup::{session, store};
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Lists them.
pub fn run(args: &ClaimsArgs) -> Result<(), Failure> {
    let store = store(&environment::home())?;
    // Where no policy governs, a session's claims are kept under an id of their own.
    let apart = args.session.as_ref().map(|named| ungoverned(&SessionId::new(named.as_str())));
    let id = match apart.filter(|apart| store.exists(apart)) {
        Some(apart) if !args.session.as_ref().is_some_and(|named| store.exists(&SessionId::new(named.as_str()))) => {
            apart
        }
        _ => session(&store, args.session.as_deref())?,
    };
    let rows = store.rows(&id).map_err(Failure::could_not)?;
    let claims: Vec<&Row> = rows.iter().filter(|row| row.detail.get("claim").is_some()).collect();
    match args.format.format {
        Format::Json => output::print_json(&claims.iter().map(|row| listed(row)).collect::<Vec<_>>()),
        Format::Human if claims.is_empty() => output::line("no claims on record"),
        Format::Human => claims.iter().for_each(|row| show(row)),
    }
    if last_of_each(&claims).into_iter().any(is_false) { Err(Failure::No) } else { Ok(()) }
}

/// A claim on record.
#[derive(Serialize)]
struct Listed<'a> {
    sequence: u64,
    timestamp: Timestamp,
    claim: Option<&'a Value>,
    statement: Option<&'a Value>,
}

fn listed(row: &Row) -> Listed<'_> {
    let (claim, statement) = (row.detail.get("claim"), row.detail.get("statement"));
    Listed { sequence: row.sequence, timestamp: row.timestamp, claim, statement }
}

fn show(row: &Row) {
    let text = output::plain(&tell(row));
    output::line(if is_false(row) { output::bad(text) } else { text });
}
