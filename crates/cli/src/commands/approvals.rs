//! `writ approvals`: the calls that wait for a human, in every session.

use serde::Serialize;
use writ_core::{SessionId, Timestamp};
use writ_engine::decide::approvals::pending::Asking;
use writ_engine::decide::approvals::{self, Requests, Waiting};

use crate::args::{ApprovalsArgs, Format};
use crate::commands::session_lookup::{session, store};
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Lists what waits.
pub fn run(args: &ApprovalsArgs) -> Result<(), Failure> {
    let store = store(&environment::home())?;
    let now = Timestamp::now();
    let requests = match &args.session {
        Some(name) => {
            let id = session(&store, Some(name))?;
            let waiting = approvals::waiting(&store, &id, now).map_err(Failure::could_not)?;
            vec![Requests { session: id, waiting: Ok(waiting) }]
        }
        None => approvals::everywhere(&store, now).map_err(Failure::could_not)?,
    };
    let (found, unread) = found(requests);
    if args.format.format == Format::Json {
        let listed: Vec<Listed<'_>> = found.iter().map(|(session, call)| Listed::of(session, call, now)).collect();
        output::print_json(&listed);
    } else {
        for (id, call) in &found {
            show(id, call, now);
        }
        if found.is_empty() && unread.is_empty() {
            output::line("nothing waits");
        }
    }
    told(&unread)
}

/// What waits, each with its session, and why that is not known of others.
pub fn found(requests: Vec<Requests>) -> (Vec<(SessionId, Waiting)>, Vec<String>) {
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    for Requests { session, waiting } in requests {
        match waiting {
            Ok(waiting) => found.extend(waiting.into_iter().map(|call| (session.clone(), call))),
            Err(error) => unread.push(format!("session {session}: {error}")),
        }
    }
    (found, unread)
}

/// A list that is not whole says so, and does not end well.
fn told(unread: &[String]) -> Result<(), Failure> {
    let Some(first) = unread.first() else { return Ok(()) };
    unread.iter().skip(1).for_each(|why| output::note(format!("{} {}", output::bad("error:"), output::plain(why))));
    Err(Failure::could_not(first))
}

/// A request as scripts take it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    id: String,
    session: &'a str,
    tool: &'a str,
    cwd: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a Asking>,
    asked: Timestamp,
    age_seconds: i64,
    rules: &'a [String],
    programs: &'a [String],
    paths: &'a [String],
    hosts: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    unresolved: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    loss: Option<&'a str>,
    action: String,
    input: String,
}

impl<'a> Listed<'a> {
    fn of(session: &'a SessionId, call: &'a Waiting, now: Timestamp) -> Self {
        Self {
            id: call.name(),
            session: session.as_str(),
            tool: &call.tool,
            cwd: &call.cwd,
            agent: call.agent.as_ref(),
            asked: call.asked,
            age_seconds: seconds(call, now),
            rules: &call.rules,
            programs: &call.shown.programs,
            paths: &call.shown.paths,
            hosts: &call.shown.hosts,
            text: call.text.as_deref(),
            unresolved: &call.shown.unresolved,
            loss: call.shown.loss.as_deref(),
            action: call.action.to_string(),
            input: call.input.to_string(),
        }
    }
}

fn seconds(call: &Waiting, now: Timestamp) -> i64 {
    now.millis().saturating_sub(call.asked.millis()).max(0) / 1000
}

fn age(call: &Waiting, now: Timestamp) -> String {
    match seconds(call, now) {
        seconds @ ..120 => format!("{seconds} s ago"),
        seconds @ 120..7200 => format!("{} min ago", seconds / 60),
        seconds => format!("{} h ago", seconds / 3600),
    }
}

/// What a call says and would do, and which rules want a human's yes. Its text, secrets masked, is on no record (R8).
pub fn show(session: &SessionId, call: &Waiting, now: Timestamp) {
    output::line(format!("{}  {}  {}", output::bold(call.name()), output::plain(&call.tool), age(call, now)));
    let unresolved: Vec<String> = call.shown.unresolved.iter().map(|kind| format!("{kind} is not known")).collect();
    let loss: Vec<String> = call.shown.loss.iter().cloned().collect();
    let agent = call.agent.iter().map(|agent| match &agent.kind {
        Some(kind) => format!("{} ({kind})", agent.id),
        None => agent.id.clone(),
    });
    let (folder, agent, session) = (vec![call.cwd.clone()], agent.collect(), vec![session.as_str().to_owned()]);
    let text: Vec<String> = call.text.iter().flat_map(|text| text.lines()).map(str::to_owned).collect();
    let lists = [
        ("says", &text),
        ("programs", &call.shown.programs),
        ("paths", &call.shown.paths),
        ("hosts", &call.shown.hosts),
        ("folder", &folder),
        ("agent", &agent),
        ("session", &session),
        ("unknown", &unresolved),
        ("loses", &loss),
        ("rules", &call.rules),
    ];
    for (name, items) in lists {
        for (at, item) in items.iter().enumerate() {
            let head = if at == 0 { name } else { "" };
            output::line(format!("  {}  {}", output::dim(format!("{head:<8}")), output::plain(item)));
        }
    }
}
