//! `writ session`: what is on record.

use serde::Serialize;
use writ_core::json::Value;
use writ_core::{SessionId, Timestamp};
use writ_engine::session::kept_policy;
use writ_engine::session::shown::Rules;
use writ_engine::session::state::State;
use writ_evidence::row::Row;
use writ_store::Store;

use crate::args::{Format, FormatArgs, SessionCommand};
use crate::commands::session_lookup::{session, store};
use crate::commands::{ledger, open};
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Lists or shows.
pub fn run(command: &SessionCommand) -> Result<(), Failure> {
    match command {
        SessionCommand::Open(args) => open::run(args),
        SessionCommand::List(args) => list(args),
        SessionCommand::Show { session: named, format } => {
            let store = store(&environment::home())?;
            let id = session(&store, named.as_deref())?;
            let rows = store.rows(&id).map_err(Failure::could_not)?;
            let policy = rows.last().and_then(|last| kept_policy(&store, &id, last));
            ledger::show_rows(&rows, policy.as_ref().map(|policy| policy as &dyn Rules), format.format);
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
        output::print_json(&items);
        return Ok(());
    }
    for item in &items {
        let item = match item {
            Listed::Problem { session, problem } => {
                let (id, what) = (output::bold(output::plain(session)), output::bad(output::plain(problem)));
                output::line(format!("{id}  {what}"));
                continue;
            }
            Listed::Described(item) => item,
        };
        let counts = format!(
            "{} allowed, {} asked, {} denied",
            item.calls.unwrap_or_default(),
            item.asked.unwrap_or_default(),
            item.denied.unwrap_or_default()
        );
        let text = |text: &Option<String>| output::plain(text.as_deref().unwrap_or_default());
        output::line(format!(
            "{}  {}  {counts}  {}  {}",
            output::bold(text(&item.session)),
            item.started,
            text(&item.policy),
            output::dim(text(&item.cwd))
        ));
    }
    Ok(())
}

/// A session on record.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Listed {
    /// One that its rows describe.
    Described(Summary),
    /// One that cannot be described.
    Problem {
        /// Its id.
        session: String,
        /// Why.
        problem: String,
    },
}

/// A session in one object, or what is wrong with it; `None` where nothing is on record.
pub fn summary(store: &Store, id: &SessionId) -> Option<Listed> {
    match (store.first_row(id), store.last_row(id)) {
        (Ok(first), Ok(last)) => first.zip(last).map(|(first, last)| Listed::Described(describe(&first, &last))),
        (Err(error), _) | (_, Err(error)) => Some(problem(id.as_str(), &error.to_string())),
    }
}

/// A session that cannot be described.
pub fn problem(id: &str, what: &str) -> Listed {
    Listed::Problem { session: id.to_owned(), problem: what.to_owned() }
}

/// A session in one object.
#[derive(Serialize)]
pub struct Summary {
    /// Its id.
    pub session: Option<String>,
    /// When it began.
    pub started: Timestamp,
    last: Timestamp,
    cwd: Option<String>,
    policy: Option<String>,
    /// How many rows it has.
    pub rows: u64,
    /// Calls that were allowed.
    pub calls: Option<u64>,
    /// Calls that were asked about.
    pub asked: Option<u64>,
    /// Calls that were denied.
    pub denied: Option<u64>,
    observed: Option<u64>,
    /// Prompts.
    pub turns: Option<u64>,
}

/// Its first and last row say it all.
pub fn describe(first: &Row, last: &Row) -> Summary {
    let text = |name| first.detail.get(name).and_then(Value::as_str).map(str::to_owned);
    let state = State::from_detail(&last.detail);
    let count = |pick: fn(&State) -> u64| state.as_ref().map(pick);
    Summary {
        session: text("session"),
        started: first.timestamp,
        last: last.timestamp,
        cwd: text("cwd"),
        policy: state.as_ref().map(|state| state.policy_name().to_owned()),
        rows: last.sequence + 1,
        calls: count(|state| state.calls),
        asked: count(|state| state.asked),
        denied: count(|state| state.denied),
        observed: count(|state| state.observed),
        turns: count(|state| state.turns),
    }
}
