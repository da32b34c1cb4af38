//! `writ session`: what is on record.

use writ_core::json::{Object, Value};
use writ_engine::human;
use writ_engine::state::State;
use writ_evidence::row::Row;

use crate::args::{Format, FormatArgs, SessionCommand};
use crate::commands::approve::{session, store};
use crate::commands::ledger;
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Lists or shows.
pub fn run(command: &SessionCommand) -> Result<(), Failure> {
    match command {
        SessionCommand::List(args) => list(args),
        SessionCommand::Show { session: named, format } => {
            let store = store(&environment::home())?;
            let id = session(&store, named.as_deref())?;
            let rows = store.rows(&id).map_err(Failure::could_not)?;
            let policy = rows.last().and_then(|last| human::kept_policy(&store, &id, last));
            ledger::show_rows(&rows, policy.as_ref(), format.format);
            Ok(())
        }
    }
}

fn list(args: &FormatArgs) -> Result<(), Failure> {
    let store = store(&environment::home())?;
    let mut items = Vec::new();
    for id in store.sessions().map_err(Failure::could_not)? {
        let first = store.first_row(&id).map_err(Failure::could_not)?;
        let last = store.last_row(&id).map_err(Failure::could_not)?;
        if let (Some(first), Some(last)) = (first, last) {
            items.push(describe(&first, &last));
        }
    }
    if args.format == Format::Json {
        output::print_json(&Value::Array(items.into_iter().map(Value::Object).collect()));
        return Ok(());
    }
    for item in &items {
        let text = |name| output::plain(item.get(name).and_then(Value::as_str).unwrap_or_default());
        let count = |name| item.get(name).and_then(Value::as_u64).unwrap_or_default();
        let counts = format!("{} allowed, {} asked, {} denied", count("calls"), count("asked"), count("denied"));
        output::line(format!(
            "{}  {}  {counts}  {}  {}",
            output::bold(text("session")),
            text("started"),
            text("policy"),
            output::dim(text("cwd"))
        ));
    }
    Ok(())
}

/// A session in one object: its first and last row say it all.
pub fn describe(first: &Row, last: &Row) -> Object {
    let text = |name| first.detail.get(name).and_then(Value::as_str);
    let state = State::from_detail(&last.detail);
    let count = |pick: fn(&State) -> u64| Value::from(state.as_ref().map(pick));
    let mut out = Object::new();
    out.push("session", Value::from(text("session")));
    out.push("started", Value::from(first.timestamp.to_string()));
    out.push("last", Value::from(last.timestamp.to_string()));
    out.push("cwd", Value::from(text("cwd")));
    out.push("policy", Value::from(state.as_ref().map(State::policy_name)));
    out.push("rows", Value::from(last.sequence + 1));
    out.push("calls", count(|state| state.calls));
    out.push("asked", count(|state| state.asked));
    out.push("denied", count(|state| state.denied));
    out.push("observed", count(|state| state.observed));
    out.push("turns", count(|state| state.turns));
    out
}
