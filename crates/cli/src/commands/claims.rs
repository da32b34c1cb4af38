//! `writ claims`: what the agents of a session said, next to what was found. The answer is no when the last word of one is false.

use writ_core::SessionId;
use writ_core::json::{Object, Value};
use writ_engine::claims::ungoverned;
use writ_engine::verify::claims::{is_false, last_of_each, tell};
use writ_evidence::row::Row;

use crate::args::{ClaimsArgs, Format};
use crate::commands::approve::{session, store};
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
        Format::Json => output::print_json(&Value::Array(claims.iter().map(|row| json(row)).collect())),
        Format::Human if claims.is_empty() => output::line("no claims on record"),
        Format::Human => claims.iter().for_each(|row| show(row)),
    }
    if last_of_each(&claims).into_iter().any(is_false) { Err(Failure::No) } else { Ok(()) }
}

fn json(row: &Row) -> Value {
    let mut out = Object::new();
    out.push("sequence", Value::from(row.sequence));
    out.push("timestamp", Value::from(row.timestamp.to_string()));
    out.push("claim", row.detail.get("claim").cloned().unwrap_or(Value::Null));
    out.push("statement", row.detail.get("statement").cloned().unwrap_or(Value::Null));
    Value::Object(out)
}

fn show(row: &Row) {
    let text = output::plain(&tell(row));
    output::line(if is_false(row) { output::bad(text) } else { text });
}
