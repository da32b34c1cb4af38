//! `writ claims`: what the agents of a session said, next to what was found.

use writ_core::json::{Object, Value};
use writ_engine::verify::claims::tell;
use writ_evidence::row::Row;

use crate::args::{ClaimsArgs, Format};
use crate::commands::approve::{session, store};
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Lists them.
pub fn run(args: &ClaimsArgs) -> Result<(), Failure> {
    let store = store(&environment::home())?;
    let id = session(&store, args.session.as_deref())?;
    let rows = store.rows(&id).map_err(Failure::could_not)?;
    let claims: Vec<&Row> = rows.iter().filter(|row| row.detail.get("claim").is_some()).collect();
    match args.format.format {
        Format::Json => output::print_json(&Value::Array(claims.iter().map(|row| json(row)).collect())),
        Format::Human if claims.is_empty() => output::line("no claims on record"),
        Format::Human => claims.iter().for_each(|row| show(row)),
    }
    Ok(())
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
    let is = |name: &str| {
        row.detail.get("claim").and_then(|claim| claim.get(name)).and_then(Value::as_bool).unwrap_or(false)
    };
    let text = output::plain(&tell(row));
    output::line(if is("blocked") || is("falseDone") { output::bad(text) } else { text });
}
