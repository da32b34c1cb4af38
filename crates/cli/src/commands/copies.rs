//! `writ sandbox diff` and `apply`: what a run wrote that left the folder as it is, for a human to say yes or no.

use std::io::IsTerminal;

use writ_core::SessionId;
use writ_engine::copy::shown::{Entry, Shown, Side, What};
use writ_engine::copy::{self, Beyond, Copy, CopyError};
use writ_engine::run::exchange;
use writ_engine::{Home, governing};
use writ_store::Store;

use crate::args::{CopyApplyArgs, CopyDiffArgs, Format};
use crate::commands::session_lookup::{self, session_start, store};
use crate::environment;
use crate::exit::Failure;
use crate::human_check;
use crate::output;

/// Largest text that is compared.
const MAX_TEXT: u64 = 256 << 10;
/// Most lines of one difference that people are shown.
const MOST_LINES: usize = 400;

/// Shows the changes.
pub fn diff(args: &CopyDiffArgs) -> Result<(), Failure> {
    let home = environment::home();
    let (store, id) = find(&home, args.session.as_deref())?;
    let copy = Copy::open(&store, &id, &home).map_err(failure)?;
    let shown = copy.shown(MAX_TEXT).map_err(failure)?;
    match args.format.format {
        Format::Json => output::print_json(&shown),
        Format::Human => show(&shown, true),
    }
    Ok(())
}

/// Carries them out, or throws them away.
pub fn apply(args: &CopyApplyArgs) -> Result<(), Failure> {
    if std::env::var_os(exchange::VARIABLE).is_some() {
        return no("this runs in a sandbox of Writ's: apply from outside of it");
    }
    human_check::not_agent("apply changes")?;
    let home = environment::home();
    let (store, id) = find(&home, args.session.as_deref())?;
    let what = if args.discard { "throw these changes away" } else { "apply these changes" };
    // What binds agents, and what others wrote, is a human's word, never a script's.
    if args.all || args.over || !args.yes {
        human_check::human(what, &session_start(&store, &id)?, &home)?;
    }
    if args.discard {
        if !args.yes && !asked(&format!("throw away what `{}` wrote", output::plain(id.as_str()))) {
            return no("nothing is changed");
        }
        Copy::discard(&store, &id, &home).map_err(failure)?;
        output::line(format!("{} the changes are thrown away", output::good("✓")));
        return Ok(());
    }
    let copy = Copy::open(&store, &id, &home).map_err(failure)?;
    if !args.yes {
        show(&copy.shown(0).map_err(failure)?, false);
        if !asked(what) {
            return no("nothing is changed");
        }
    }
    let count = copy.apply(&store, &home, Beyond { all: args.all, over: args.over }).map_err(failure)?;
    output::line(format!("{} {count} changes are applied", output::good("✓")));
    Ok(())
}

fn asked(what: &str) -> bool {
    output::note_start(&format!("{what}? [y/N] "));
    let mut answer = String::new();
    std::io::stdin().is_terminal()
        && std::io::stdin().read_line(&mut answer).is_ok()
        && matches!(answer.trim(), "y" | "yes")
}

fn no(why: &str) -> Result<(), Failure> {
    output::note(format!("{} {why}", output::bad("error:")));
    Err(Failure::No)
}

/// The named copy, or the newest of this repository that was neither applied nor thrown away.
fn find(home: &Home, named: Option<&str>) -> Result<(Store, SessionId), Failure> {
    let store = store(home)?;
    let id = match named {
        Some(_) => session_lookup::session(&store, named)?,
        None => newest(&store)?,
    };
    Ok((store, id))
}

fn newest(store: &Store) -> Result<SessionId, Failure> {
    let cwd = environment::cwd()?;
    let here = governing::repository(&cwd);
    let found = copy::newest(store, here).map_err(failure)?;
    found.ok_or_else(|| Failure::could_not("no copy is open here: `writ run --copy -- COMMAND` makes one"))
}

fn failure(error: CopyError) -> Failure {
    match error {
        CopyError::Changed(_) | CopyError::Protected(_) | CopyError::Other(_) => {
            output::note(format!("{} {}", output::bad("error:"), output::plain(&error.to_string())));
            Failure::No
        }
        CopyError::Kept(_) => Failure::malformed(error),
        CopyError::Session(_)
        | CopyError::Store(_)
        | CopyError::None(_)
        | CopyError::Over { .. }
        | CopyError::Running(_)
        | CopyError::Disk { .. } => Failure::could_not(output::plain(&error.to_string())),
    }
}

fn show(shown: &Shown, texts: bool) {
    if shown.changes.is_empty() {
        output::line("nothing was changed");
        return;
    }
    let first: Vec<&Entry> = shown.changes.iter().filter(|entry| entry.later.is_some()).collect();
    if !first.is_empty() {
        output::line(output::warn("would run outside later, or bind somebody:"));
        for entry in first {
            let protected = if entry.protected { output::bad(" (needs --all)") } else { String::new() };
            let why = output::dim(entry.later.unwrap_or_default());
            output::line(format!("  {}  {why}{protected}", output::plain(&entry.path)));
        }
        output::line("");
    }
    output::line(output::bold("changes:"));
    for entry in &shown.changes {
        one(entry, texts);
    }
    output::line(format!("session {}", output::plain(&shown.session)));
}

fn one(entry: &Entry, texts: bool) {
    let word = match entry.change {
        What::Made => output::good("made   "),
        What::Changed => output::warn("changed"),
        What::Removed => output::bad("removed"),
    };
    let outside = if entry.changed_outside { output::bad(" (changed outside too)") } else { String::new() };
    output::line(format!("{word}  {}  {}{outside}", output::plain(&entry.path), output::dim(sides(entry))));
    let Some(diff) = entry.diff.as_ref().filter(|_| texts) else { return };
    for line in diff.lines().take(MOST_LINES) {
        let text = output::plain(line);
        output::line(match line.chars().next() {
            Some('+') => output::good(text),
            Some('-') => output::bad(text),
            Some(_) | None => text,
        });
    }
    if diff.lines().nth(MOST_LINES).is_some() {
        output::line(output::dim("… and more: `--format json` has all of it"));
    }
}

/// What was there and what comes, in a few words.
fn sides(entry: &Entry) -> String {
    let words = |side: &Side| {
        let size = side.size.map(|size| format!(" of {size} bytes")).unwrap_or_default();
        let target = side.target.as_ref().map(|target| format!(" to {}", output::plain(target))).unwrap_or_default();
        let digest = side.digest.filter(|_| side.size.is_some() && entry.diff.is_none());
        let digest = digest.map(|digest| format!(" {digest}")).unwrap_or_default();
        format!("{}{size}{target} {}{digest}", side.kind, side.mode)
    };
    match (&entry.before, &entry.after) {
        (Some(before), Some(after)) => format!("{} → {}", words(before), words(after)),
        (Some(side), None) | (None, Some(side)) => words(side),
        (None, None) => String::new(),
    }
}
