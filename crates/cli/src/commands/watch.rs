//! `writ watch`: a session as it goes on, one line for each thing that happens.

use std::thread;
use std::time::Duration;

use serde::Serialize;
use writ_core::SessionId;
use writ_engine::governing;
use writ_engine::verify::{self, VerifyError};
use writ_engine::view::{Became, Entry, View};
use writ_store::Store;

use crate::args::{Format, WatchArgs};
use crate::commands::session_lookup::{self, store};
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(250);

/// One thing that happened, and in which session.
#[derive(Serialize)]
struct Line<'a> {
    session: &'a str,
    #[serde(flatten)]
    entry: &'a Entry,
}

/// Follows it to its end.
pub fn run(args: &WatchArgs) -> Result<(), Failure> {
    let store = store(&environment::home())?;
    let (id, began) = match &args.session {
        Some(named) => (session_lookup::session(&store, Some(named))?, false),
        None => newest(&store, args)?,
    };
    let mut view = View::of(&store, &id).map_err(Failure::could_not)?;
    let mut shown = if args.all || began { 0 } else { view.entries.len() };
    // What has not come to its end when it is told: a call's result comes later, and has no line of its own.
    if args.format.format == Format::Human {
        output::note(format!(
            "session {} ({})",
            output::plain(&view.session),
            output::plain(view.policy.as_deref().unwrap_or("no policy"))
        ));
    }
    loop {
        for entry in view.entries.iter().skip(shown) {
            if !args.stopped || matches!(entry.became, Became::Asked | Became::Denied | Became::NoTool) {
                tell(&view.session, entry, args.format.format);
            }
        }
        shown = view.entries.len();
        if view.ended {
            return Ok(());
        }
        // A reader that went away needs no more lines.
        while !view.is_behind(&store, &id).map_err(Failure::could_not)? {
            thread::sleep(PAUSE);
            if output::gone() {
                return Ok(());
            }
        }
        view.follow(&store, &id).map_err(Failure::could_not)?;
    }
}

/// The newest session of this repository: with `--all` whatever became of it, else one that is open, for which it waits.
/// Whether it began meanwhile.
fn newest(store: &Store, args: &WatchArgs) -> Result<(SessionId, bool), Failure> {
    let cwd = environment::cwd()?;
    let (mut waited, mut over) = (false, None);
    loop {
        match verify::newest(store, governing::repository(&cwd)) {
            Ok(id) if over.as_ref() != Some(&id) => {
                if waited || args.all || !View::of(store, &id).map_err(Failure::could_not)?.ended {
                    return Ok((id, waited));
                }
                over = Some(id);
            }
            Ok(_) | Err(VerifyError::NoSession { .. }) => {}
            Err(error) => return Err(session_lookup::failure(error)),
        }
        if !std::mem::replace(&mut waited, true) && args.format.format != Format::Json {
            output::note("waiting for a session of this repository");
        }
        if output::gone() {
            return Err(Failure::No);
        }
        thread::sleep(PAUSE);
    }
}

fn tell(session: &str, entry: &Entry, format: Format) {
    if format == Format::Json {
        output::print_json_line(&Line { session, entry });
        return;
    }
    let word = match entry.became {
        Became::Allowed => output::good("allowed"),
        Became::Asked => output::warn("asked  "),
        Became::Denied => output::bad("denied "),
        Became::NoTool => output::bad("no tool"),
        Became::Nothing => output::dim("·      "),
    };
    let agent = entry.agent.as_ref().map_or_else(String::new, |agent| format!(" [{agent}]"));
    output::line(format!(
        "{:>5}  {}  {word}  {}{} {}",
        entry.row,
        entry.at,
        output::plain(&entry.name),
        output::dim(output::plain(&agent)),
        output::plain(&entry.what)
    ));
    for told in &entry.reasons {
        let text = told.text.as_ref().map_or_else(String::new, |text| format!("`{text}`, "));
        output::line(output::dim(output::plain(&format!("       {text}{}: {}", told.rule, told.message))));
    }
}
