//! `writ session`: what is on record.

use writ_core::SessionId;
use writ_core::json::{Object, Value};
use writ_engine::human;
use writ_engine::state::State;
use writ_evidence::row::Row;
use writ_store::Store;

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
        items.extend(summary(&store, &id));
    }
    let lost = store.known().map_err(Failure::could_not)?.into_iter().filter(|known| !known.has_rows());
    items.extend(lost.map(|known| {
        let name = known.folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let id = known.id.map(|id| id.to_string()).or(name);
        problem(&id.unwrap_or_default(), "lost: it began here, and its rows are gone")
    }));
    if args.format == Format::Json {
        output::print_json(&Value::Array(items.into_iter().map(Value::Object).collect()));
        return Ok(());
    }
    for item in &items {
        if let Some(what) = item.get("problem").and_then(Value::as_str) {
            let id = item.get("session").and_then(Value::as_str).unwrap_or_default();
            output::line(format!("{}  {}", output::bold(output::plain(id)), output::bad(output::plain(what))));
            continue;
        }
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

/// A session in one object, or what is wrong with it; `None` where nothing is on record.
pub fn summary(store: &Store, id: &SessionId) -> Option<Object> {
    match (store.first_row(id), store.last_row(id)) {
        (Ok(first), Ok(last)) => Some(describe(&first?, &last?)),
        (Err(error), _) | (_, Err(error)) => Some(problem(id.as_str(), &error.to_string())),
    }
}

/// A session that cannot be described.
pub fn problem(id: &str, what: &str) -> Object {
    let mut out = Object::new();
    out.push("session", Value::from(id));
    out.push("problem", Value::from(what));
    out
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
