//! Rego in a process of its own, which is ended when it takes too long or too much.
//!
//! Owns both sides: the process that is started, with nothing of this one's environment, and the one that asks. Refuses to wait: what is
//! not answered in time is a FAIL. Invariant: the process bounds itself before it reads a byte, and the kernel holds it to that.

use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use writ_core::json::{self, Limits};

use super::{Job, Said, run};

/// The hidden command of `writ` that is the process.
pub const COMMAND: &str = "rego";
/// How long a module may take, by the clock and by the processor.
pub(super) const TIME: Duration = Duration::from_secs(10);
/// What it may take of memory, in bytes of addresses.
const MEMORY: u64 = 1 << 30;
/// Longest job.
const MAX_JOB: usize = 256 << 20;
/// Longest answer.
const MAX_ANSWER: u64 = 1 << 20;
/// The stack of the thread that runs it: the library's parser and rules recurse.
const STACK: usize = 64 << 20;

/// Why a module was ended that had not taken what one may take: there was less than that left.
#[derive(Debug, thiserror::Error)]
#[error("it was ended after {:.1} s, which is what was left", .0.as_secs_f64())]
pub struct CutShort(Duration);

/// Has a module run by `writ` at `program`, for so long at most.
pub fn ask(program: &Path, job: &Job, within: Duration) -> Result<Said, CutShort> {
    match asked(program, job, within) {
        Ok(said) => Ok(said),
        Err(Failed::CutShort) => Err(CutShort(within)),
        Err(Failed::Said(why)) => Ok(Said { error: Some(format!("{}: {why}", job.place)), ..Said::default() }),
    }
}

/// Why there is no answer.
enum Failed {
    /// It was given less than one may take, and took that.
    CutShort,
    /// What the module, or its process, came to.
    Said(String),
}

impl From<String> for Failed {
    fn from(why: String) -> Self {
        Self::Said(why)
    }
}

fn asked(program: &Path, job: &Job, within: Duration) -> Result<Said, Failed> {
    let mut command = Command::new(program);
    command.arg(COMMAND).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("cannot start {}: {error}", program.display()))?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let (Some(mut stdin), Some(stdout)) = (stdin, stdout) else {
        return Err("its process has no pipes".to_owned().into());
    };
    let job = json::to_canonical(job);
    // One that has ended reads nothing; how it ended tells why.
    thread::scope(|scope| {
        scope.spawn(move || drop(stdin.write_all(job.as_bytes())));
        let (sender, answered) = mpsc::channel();
        scope.spawn(move || {
            let mut text = Vec::new();
            drop(stdout.take(MAX_ANSWER).read_to_end(&mut text));
            drop(sender.send(text));
        });
        let answer = answered.recv_timeout(within);
        if matches!(answer, Err(RecvTimeoutError::Timeout)) {
            drop(child.kill());
        }
        let status = child.wait().map_err(|error| error.to_string())?;
        match answer {
            Ok(text) => json::from_slice(&text).map_err(|_no_answer| ended(status).into()),
            Err(RecvTimeoutError::Timeout) if within < TIME => Err(Failed::CutShort),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Err(too_long().into()),
        }
    })
}

fn too_long() -> String {
    format!("it did not end within {} s: does a rule make a list without an end?", TIME.as_secs())
}

/// Why there is no answer.
fn ended(status: ExitStatus) -> String {
    match status.signal() {
        // SIGXCPU, and SIGKILL after it.
        Some(9 | 24) => too_long(),
        // An allocation that fails aborts, and a stack that overflows is a fault.
        Some(6 | 7 | 11) => format!("it took more than {} MiB of memory, or nests too deep", MEMORY >> 20),
        _ => format!("its process ended without an answer ({status})"),
    }
}

/// The process: bounds itself, reads a job, and writes what came of it.
pub fn serve(mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    bound()?;
    let mut text = Vec::new();
    input.by_ref().take(MAX_JOB as u64 + 1).read_to_end(&mut text)?;
    let limits = Limits { bytes: MAX_JOB, ..Limits::FOREIGN };
    let job: Job = json::from_slice_with(&text, limits).map_err(io::Error::other)?;
    drop(text);
    let running = thread::Builder::new().stack_size(STACK).spawn(move || run(&job))?;
    let said = running.join().map_err(|_panicked| io::Error::other("the module made the evaluator panic"))?;
    output.write_all(json::to_canonical(&said).as_bytes())?;
    output.flush()
}

fn bound() -> io::Result<()> {
    let at_most = |most| Rlimit { current: Some(most), maximum: Some(most) };
    for (resource, most) in [
        (Resource::As, MEMORY),
        (Resource::Cpu, TIME.as_secs()),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nofile, 16),
    ] {
        setrlimit(resource, at_most(most))?;
    }
    Ok(())
}
