//! `writ exec`: the line of an allowed call in its sandbox. The hook puts it in the place of the model's line.
//!
//! It is the client's shell that runs it: standard streams are the line's own, and the exit code is the line's. Descriptor 9 gets
//! the folder that the line ended in. What was refused on the way is said at the end on standard error, for the agent.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use writ_core::{SessionId, visible};
use writ_engine::confine::exec::{ExecError, Line, exec};
use writ_engine::confine::supervise::SuperviseError;

use crate::args::ExecArgs;
use crate::environment;
use crate::exit::Failure;

/// Shells that run a line as the client would.
const SHELLS: [&str; 4] = ["bash", "sh", "dash", "zsh"];

/// The line of a command line as the hook writes it, which is not kept waiting for a parser of every other; `None` of another.
pub fn line(words: impl Iterator<Item = OsString>) -> Option<ExecArgs> {
    let words: Option<Vec<String>> = words.take(8).map(|word| word.into_string().ok()).collect();
    match words?.as_slice() {
        [exec, first, session, second, call, end, line]
            if [exec, first, second, end].map(String::as_str) == ["exec", "--session", "--call", "--"] =>
        {
            Some(ExecArgs { session: session.clone(), call: call.clone(), line: line.clone() })
        }
        _ => None,
    }
}

/// Runs the line.
pub fn run(args: &ExecArgs) -> Result<(), Failure> {
    let session = SessionId::new(args.session.as_str());
    let (shell, arguments) = parent();
    let line = Line { session: &session, call: &args.call, text: &args.line, shell, arguments };
    let ran = match exec(&line, &environment::home()) {
        Ok(ran) => ran,
        Err(error) => {
            let ran = matches!(error, ExecError::Run(SuperviseError::Unrecorded(_)));
            say(&if ran { error.to_string() } else { format!("it did not run: {error}") });
            return Err(Failure::Said(error.exit_code()));
        }
    };
    let mut refused = ran.refused;
    refused.dedup();
    refused.iter().for_each(|text| say(text));
    if let Some(folder) = ran.folder
        && let Ok(mut told) = fs::File::options().write(true).open("/proc/self/fd/9")
    {
        // Nobody may be listening, and then nobody wants to know.
        let _told = told.write_all(folder.as_os_str().as_bytes()).is_ok();
    }
    if ran.code == 0 { Ok(()) } else { Err(Failure::Said(ran.code)) }
}

fn say(text: &str) {
    drop(writeln!(std::io::stderr(), "writ: {}", visible::line(text)));
}

/// The shell that started this process, and its arguments: bash if it is none.
fn parent() -> (PathBuf, Vec<String>) {
    let parent = std::os::unix::process::parent_id();
    let shell = fs::read_link(format!("/proc/{parent}/exe")).ok();
    let shell = shell.filter(|path| path.file_name().is_some_and(|name| SHELLS.iter().any(|shell| name == *shell)));
    let bytes = fs::read(format!("/proc/{parent}/cmdline")).unwrap_or_default();
    let arguments: Vec<String> =
        bytes.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned()).collect();
    // By the name it was started by, which it says in what it tells.
    let called = arguments.first().map(PathBuf::from).filter(|name| name.is_absolute());
    let called = called.filter(|name| shell.is_some() && fs::canonicalize(name).ok() == shell);
    (called.or(shell).unwrap_or_else(|| PathBuf::from("/bin/bash")), arguments)
}
