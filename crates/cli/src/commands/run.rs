//! `writ run`: an agent's client, or any command, with all its children in one sandbox.
//!
//! Terminal, standard streams and exit code are the command's own. What Writ has to say stands on standard error: before, when it does
//! not run; at the end, what was refused, and on a terminal one line about the session.

use std::io::IsTerminal;
use std::path::Path;

use writ_core::{Digest, Timestamp, Verdict};
use writ_engine::decide::approvals;
use writ_engine::decide::call::DecidedRun;
use writ_engine::run::{Run, RunError, Wish, exchange};
use writ_engine::session::state::short;
use writ_engine::setup::watch;
use writ_engine::{Home, session};

use crate::args::RunArgs;
use crate::environment;
use crate::exit::Failure;
use crate::human_check::{self, SessionStart};
use crate::output;

/// The exit code when the policy does not let it run.
const DENIED: u8 = 126;
/// The exit code when Writ could not run it.
const FAILED: u8 = 125;
/// Most refusals that are told at the end.
const TOLD: usize = 8;

/// Runs it.
pub fn run(args: &RunArgs) -> Result<(), Failure> {
    if std::env::var_os(exchange::VARIABLE).is_some() {
        return refuse(FAILED, "this runs in a sandbox of Writ's already, and a sandbox inside a sandbox cannot be");
    }
    human_check::not_agent("run this")?;
    let (home, cwd) = (environment::home(), environment::cwd()?);
    let policy = args.policy.as_ref().map(|path| path.canonicalize()).transpose();
    let policy = match policy {
        Ok(policy) => policy,
        Err(error) => return refuse(FAILED, &format!("the policy cannot be read: {error}")),
    };
    let wish = Wish { words: &args.words, cwd: &cwd, policy: policy.as_deref(), copy: args.copy };
    let run = match Run::begin(wish, &home) {
        Ok(run) => run,
        Err(error) => return refuse(error.exit_code(), &error.to_string()),
    };
    warn(&run, &home, &cwd);
    let decided = match decide(&run, &home) {
        Ok(decided) => decided,
        Err(error) => return end_refused(run, FAILED, &error.to_string()),
    };
    let Some((grant, prepared)) = decided.sandbox.as_ref() else {
        return end_refused(run, DENIED, &decided.why);
    };
    let session = run.session.clone();
    let ran = match run.carry_out(grant, prepared) {
        Ok(ran) => ran,
        Err(error) => return end_failed(run, &error),
    };
    let calls = run.end(ran.code, None).map_err(Failure::could_not)?;
    if args.copy {
        say(&format!(
            "the folder is as it was: `writ sandbox diff {session}` shows what was written, `writ sandbox apply` carries it out"
        ));
    }
    let refused = ran.refused.len();
    let mut words = ran.refused;
    words.sort();
    words.dedup();
    words.iter().take(TOLD).for_each(|text| say(text));
    if std::io::stderr().is_terminal() {
        say(&format!("{calls} calls, {refused} refused connections; `writ verify {session}`"));
    }
    if ran.code == 0 { Ok(()) } else { Err(Failure::Said(ran.code)) }
}

/// Says what of the client's calls nobody would see.
fn warn(run: &Run<'_>, home: &Home, cwd: &Path) {
    let Some(client) = run.client else { return };
    if watch::installed(home, client, cwd).is_empty() {
        say("its hooks are not installed, so its calls are held and not on record: `writ init` installs them");
    }
}

/// Decides it; where a human is to say yes, they are asked here.
fn decide(run: &Run<'_>, home: &Home) -> Result<DecidedRun, RunError> {
    let decided = run.decide()?;
    if decided.verdict != Verdict::Ask {
        return Ok(decided);
    }
    say(&decided.why);
    let began = SessionStart { began: Timestamp::now(), namespace: session::namespace() };
    if human_check::human("let this run", &began, home).is_err() || !approve(run, decided.action, home) {
        return Ok(decided);
    }
    run.decide()
}

fn approve(run: &Run<'_>, action: Digest, home: &Home) -> bool {
    output::note_start("let it run? [y/N] ");
    let mut answer = String::new();
    let yes = std::io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "yes");
    yes && approvals::approve(&run.store, &run.session, &short(action), home).is_ok()
}

/// The end of a session whose command did not begin.
fn end_refused(run: Run<'_>, code: u8, why: &str) -> Result<(), Failure> {
    run.end(code, Some("it was not let run")).map_err(Failure::could_not)?;
    refuse(code, why)
}

/// The end of a session whose command did not begin, or did and could not be recorded.
fn end_failed(run: Run<'_>, error: &RunError) -> Result<(), Failure> {
    let code = error.exit_code();
    let ran = error.ran();
    let why = error.to_string();
    // What ran and has no row is not to look as if it had not run.
    let ended = run.end(code, Some(why.as_str()).filter(|_| !ran));
    if let Err(other) = ended {
        say(&format!("the session could not be ended: {other}"));
    }
    if !ran {
        return refuse(code, &why);
    }
    say(&why);
    Err(Failure::Said(code))
}

fn refuse(code: u8, why: &str) -> Result<(), Failure> {
    let why = why.strip_prefix("writ: ").unwrap_or(why);
    say(&format!("it did not run: {why}"));
    Err(Failure::Said(code))
}

fn say(text: &str) {
    let text = text.strip_prefix("writ: ").unwrap_or(text);
    output::note(format!("writ: {}", output::plain(text)));
}
