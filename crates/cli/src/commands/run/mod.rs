//! `writ run`: an agent's client, or any command, with all its children in one sandbox.
//!
//! Terminal, standard streams and exit code are the command's own. What Writ has to say stands on standard error: before, when it does
//! not run; at the end, what was refused, and on a terminal one line about the session.

mod agent;
mod secrets;

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use writ_core::{Digest, Verdict};
use writ_engine::Home;
use writ_engine::decide::approvals::{self, Presence, Word};
use writ_engine::decide::call::DecidedRun;
use writ_engine::run::learn::Learnt;
use writ_engine::run::{Run, RunError, Wish, exchange};
use writ_engine::session::state::short;
use writ_engine::setup::watch;

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
    let target = match args.output.as_deref().map(Target::new).transpose() {
        Ok(target) => target,
        Err(error) => return refuse(FAILED, &format!("the learnt policy could not be written: {error}")),
    };
    let agent = match agent::target(&args.words).map(|target| agent::prepare(&target, args, &home, &cwd)) {
        Some(Ok(agent)) => Some(agent),
        Some(Err(refused)) => return Err(agent::refuse(refused)),
        None => None,
    };
    if let (None, true) = (&agent, args.manifest.is_some()) {
        return refuse(FAILED, "`--manifest` is for an agent, and this is neither an Agentfile nor a package");
    }
    if let (Some(_), true) = (&agent, args.learn || args.policy.is_some()) {
        return refuse(FAILED, "an agent is held to its Agentfile: leave `--policy` and `--learn` out");
    }
    let (learn, copy) = (args.learn, args.copy);
    let words = agent.as_ref().map_or(&args.words, |agent| &agent.words);
    let cwd = agent.as_ref().map_or(cwd, |agent| agent.cwd.clone());
    let held = agent.as_ref().map(|agent| (agent.held.as_slice(), agent.path.as_path()));
    let wish = Wish { words, cwd: &cwd, policy: policy.as_deref(), agent: held, learn, copy };
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
    let learnt = run.learn(&ran, prepared).map_err(Failure::could_not)?;
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
    if agent.is_some() || std::io::stderr().is_terminal() {
        say(&format!("{calls} calls, {refused} refused connections; `writ verify {session}`"));
    }
    if let Some(learnt) = learnt {
        give(&learnt, target).map_err(Failure::could_not)?;
    }
    if ran.code == 0 { Ok(()) } else { Err(Failure::Said(ran.code)) }
}

/// A file that is to be made. Its folder is held open: what runs meanwhile cannot put another in its place.
struct Target {
    folder: File,
    name: OsString,
    path: PathBuf,
}

impl Target {
    fn new(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or_else(|| io::Error::other("it names no file"))?.to_owned();
        if path.symlink_metadata().is_ok() {
            return Err(io::Error::other(format!("`{}` is there already, and may govern", path.display())));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(Self { folder: File::open(folder)?, name, path: path.to_owned() })
    }

    /// What is there meanwhile stays.
    fn write(&self, text: &str) -> io::Result<()> {
        let path = Path::new("/proc/self/fd").join(self.folder.as_raw_fd().to_string()).join(&self.name);
        OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
    }
}

/// Gives the policy that was learnt, and says what it does not know.
fn give(learnt: &Learnt, target: Option<Target>) -> io::Result<()> {
    match &target {
        Some(target) => {
            target.write(&learnt.policy)?;
            say(&format!(
                "learnt: {}; `writ policy check` reads it, and a human puts it in place",
                target.path.display()
            ));
        }
        None => io::stdout().write_all(learnt.policy.as_bytes())?,
    }
    say(&format!("learnt: {}", learnt.remarks.join("; ")));
    Ok(())
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
    let began = SessionStart::now();
    match human_check::human("let this run", &began, home) {
        Ok(presence) if approve(run, decided.action, presence, home) => run.decide(),
        Ok(_) | Err(_) => Ok(decided),
    }
}

fn approve(run: &Run<'_>, action: Digest, presence: Presence, home: &Home) -> bool {
    output::note_start("let it run? [y/N] ");
    let mut answer = String::new();
    let yes = std::io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "yes");
    let word = Word { presence, ..Word::YES };
    yes && approvals::answer(&run.store, &run.session, &short(action), &word, home).is_ok()
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
    // What several rules refuse is one text, a line for each.
    text.split("\nwrit: ").for_each(|text| output::note(format!("writ: {}", output::plain(text))));
}
