//! `writ hook`: standard input to standard output, and nothing that fails open in between.
//!
//! The client lets a tool run when a hook exits with 1, prints anything that is not one JSON object, or dies of a signal;
//! so this file always prints one object, and where it cannot, exits with 2, which denies. At a stop 2 would send the agent back
//! to work, so there, and at the other events that stop nothing, it exits with 0: what fails then fails open (R6).

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use nix::sys::signal::{SigSet, Signal};
use nix::unistd::alarm;
use signal_hook::consts::SIGALRM;
use writ_clients::Client;
use writ_clients::settings::TIMEOUT_SECONDS;
use writ_core::{Answer, visible};
use writ_engine::hook::wire::Told;
use writ_engine::notary::Asked;
use writ_engine::run::exchange;
use writ_engine::{Home, hook, notary};

use crate::args::HookArgs;
use crate::environment;
use crate::exit::Failure;

/// Largest payload: the client's own limits on tool input are far below.
const MAX_BYTES: u64 = 64 << 20;

/// Exit code that denies whatever stands on standard output.
const DENIES: u8 = 2;

/// Seconds that an answer may take: well below what the settings give the hook.
const DEADLINE: u32 = TIMEOUT_SECONDS as u32 - 6;

/// Who answers for a hook, in words.
const NOTARY: &str = "the notary, which may have recorded this call,";

/// The answer that says nothing: a client that gets none does the same.
const NOTHING: &str = "{}";

/// The payload that is being answered; a failure asks it which event it is about.
static PAYLOAD: OnceLock<(&dyn Client, Vec<u8>)> = OnceLock::new();

/// The client of a command line `hook [--client NAME]`; `None` where other words stand on it.
pub fn client(words: impl Iterator<Item = OsString>) -> Option<&'static dyn Client> {
    let words: Vec<OsString> = words.take(4).collect();
    match words.as_slice() {
        [hook] if hook == "hook" => Some(writ_clients::DEFAULT),
        [hook, option, name] if hook == "hook" && option == "--client" => writ_clients::named(name.to_str()?),
        _ => None,
    }
}

/// Answers one call.
pub fn run(client: &'static dyn Client) -> ExitCode {
    std::panic::set_hook(Box::new(|info| {
        let code = failed();
        let then = if code == DENIES { "denies" } else { "lets the agent stop" };
        drop(writeln!(std::io::stderr(), "writ failed, and {then}: {}", visible::lines(&info.to_string())));
        // A panic would end in a signal, which lets the tool run.
        #[expect(clippy::exit, reason = "the only way to choose the exit code of a panic")]
        std::process::exit(i32::from(code))
    }));
    if print(&answer(client)) { ExitCode::SUCCESS } else { ExitCode::from(failed()) }
}

/// Ends the hook before the client would: one that is killed says nothing, and clients without `onFailure` then run the tool.
/// What holds up the answer, a line that takes long to read or input that never ends, cannot hold up a signal. It costs two
/// system calls, a thread that sleeps a seventh of the whole: from the first thread on every allocation takes a lock.
fn watch() -> std::io::Result<(Arc<AtomicBool>, Arc<AtomicBool>)> {
    let (denies, passes) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(false)));
    for (status, now) in [(i32::from(DENIES), &denies), (0, &passes)] {
        signal_hook::flag::register_conditional_shutdown(SIGALRM, status, Arc::clone(now))?;
    }
    // Whoever started the hook may have held the signal back.
    SigSet::from(Signal::SIGALRM).thread_unblock()?;
    alarm::set(DEADLINE);
    Ok((denies, passes))
}

/// The same, when other words stood on the command line.
pub fn from_command(args: &HookArgs) -> Result<(), Failure> {
    let client = writ_clients::named(&args.client)
        .ok_or_else(|| Failure::malformed(format!("there is no client `{}`", args.client)))?;
    if print(&answer(client)) { Ok(()) } else { Err(Failure::could_not("standard output is closed")) }
}

/// The exit code of a failure at the event that is being answered.
fn failed() -> u8 {
    let event = PAYLOAD.get().and_then(|(client, bytes)| client.hints(bytes).event);
    if event.is_some_and(|event| Answer::fails_open(&event)) { 0 } else { DENIES }
}

fn answer(client: &'static dyn Client) -> String {
    let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let watch = watch();
    if let Err(error) = &watch {
        drop(writeln!(std::io::stderr(), "writ cannot watch the time: {error}"));
    }
    let mut bytes = Vec::new();
    if let Err(error) = std::io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes) {
        return client.render(&Answer::refuse(None, &format!("writ cannot read its input: {error}")));
    }
    let (_, bytes) = PAYLOAD.get_or_init(|| (client, bytes));
    if let (0, Ok((denies, passes))) = (failed(), &watch) {
        passes.store(true, Ordering::Relaxed);
        denies.store(false, Ordering::Relaxed);
    }
    if let Some(why) = environment::moved(client, &cwd) {
        return client.render(&Answer::refuse(client.hints(bytes).event.as_deref(), &why));
    }
    // The environment here is the client's: it says which shell runs what is allowed.
    let zsh = environment::runs_zsh();
    if let Some(supervisor) = std::env::var_os(exchange::VARIABLE) {
        return ask(&supervisor.to_string_lossy(), client, &cwd.to_string_lossy(), zsh, bytes);
    }
    let home = Home { zsh, ..environment::home() };
    let answer = match notary::ask(&home, client, &cwd, bytes) {
        Asked::Told(answer) => answer,
        // It may have decided: another decision beside it would be a second row of one call.
        Asked::Broken(error) => {
            notary::unanswered::of_payload(bytes, client, &home, &error.to_string());
            return refuse(client, NOTARY, bytes, &error);
        }
        Asked::NotThere(_) => hook::answer(bytes, client, &home, &cwd),
    };
    answer.notes.iter().for_each(|note| drop(writeln!(std::io::stderr(), "{}", visible::line(note))));
    client.render(&answer)
}

/// What the supervisor of the run that this is in answers; a supervisor that cannot be asked denies.
fn ask(supervisor: &str, client: &dyn Client, cwd: &str, zsh: bool, bytes: &[u8]) -> String {
    let told = exchange::ask(supervisor, client.name(), cwd, zsh, bytes);
    told.and_then(print_told).unwrap_or_else(|error| refuse(client, "the supervisor of this run", bytes, &error))
}

/// What is answered where whoever should have answered cannot be asked.
fn refuse(client: &dyn Client, who: &str, bytes: &[u8], error: &std::io::Error) -> String {
    let why = format!("writ denies: {who} cannot be asked ({error}): make the call again");
    client.render(&Answer::refuse(client.hints(bytes).event.as_deref(), &why))
}

/// Says what is for standard error, and gives what is for standard output.
fn print_told(told: Told) -> std::io::Result<String> {
    let text = String::from_utf8(told.text).map_err(std::io::Error::other)?;
    let notes = String::from_utf8_lossy(&told.notes);
    notes.lines().for_each(|note| drop(writeln!(std::io::stderr(), "{}", visible::line(note))));
    Ok(text)
}

/// Whether the answer got to where somebody can read it.
///
/// Rust opens `/dev/null` where a program is started with standard output closed, and takes writing to a descriptor that is not
/// open for writing as done. Both would lose a denial in silence.
fn print(text: &str) -> bool {
    let file = std::io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let written = file.and_then(|mut out| {
        out.write_all(text.as_bytes())?;
        let (out, nowhere) = (out.metadata()?, std::fs::metadata("/dev/null"));
        let lost = nowhere.is_ok_and(|nowhere| out.file_type().is_char_device() && out.rdev() == nowhere.rdev());
        if lost && text != NOTHING { Err(std::io::Error::other("it goes nowhere")) } else { Ok(()) }
    });
    if let Err(error) = &written {
        drop(writeln!(std::io::stderr(), "writ cannot give its answer on standard output: {error}"));
    }
    written.is_ok()
}
