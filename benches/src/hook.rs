//! The hook as a client starts it: one process a call, against starting a program that does nothing.

use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::measure::{Bar, Figure, percentile};
use crate::policy::document;

/// Measured starts of each program, in turns.
const RUNS: usize = 2000;
/// Starts before that.
const WARM_UP: usize = 50;

/// Measures allowed calls of one session under 20 rules.
pub fn run() -> Result<Vec<Figure>> {
    let bench = Bench::new()?;
    let (mut hook, mut nothing) = (Vec::new(), Vec::new());
    for number in 0..WARM_UP + RUNS {
        let payload = bench.payload(number);
        let (ours, output) = timed(bench.command(&bench.writ), payload.as_bytes())?;
        check(&output)?;
        let (theirs, _) = timed(bench.command(Path::new("/bin/true")), payload.as_bytes())?;
        if number >= WARM_UP {
            hook.push(ours);
            nothing.push(theirs);
        }
    }
    let rows = bench.rows()?;
    ensure!(rows >= WARM_UP + RUNS, "{rows} rows of {} calls", WARM_UP + RUNS);
    let mut figure = |percent, bar| {
        let (ours, theirs) = (percentile(&mut hook, percent), percentile(&mut nothing, percent));
        Figure::time(format!("hook: whole process, p{percent}"), ours, ("/bin/true", theirs), bar)
    };
    Ok(vec![figure(50, Bar::AtMost(Duration::from_micros(2500))), figure(99, Bar::AtMost(Duration::from_millis(8)))])
}

/// Measures a call under a limit of what is spent, whose transcript grows by a message each time.
pub fn limited(transcript: &Path) -> Result<Vec<Figure>> {
    const CALLS: usize = 300;
    let limits = r#""version":"1.0","limits":{"maxSpendUSD":1000000}"#;
    let policy = document(20).replacen(r#""version":"1.0""#, limits, 1);
    let (with, without) = (Bench::under(&policy, transcript)?, Bench::under(&document(20), transcript)?);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for number in 0..CALLS {
        let line = format!(
            r#"{{"type":"assistant","message":{{"id":"more_{number}","model":"claude-sonnet-4-5","usage":{{"input_tokens":3,"output_tokens":5}}}}}}"#
        );
        fs::OpenOptions::new().append(true).open(transcript)?.write_all((line + "\n").as_bytes())?;
        for (bench, times) in [(&with, &mut ours), (&without, &mut theirs)] {
            let (time, output) = timed(bench.command(&bench.writ), bench.payload(number).as_bytes())?;
            check(&output)?;
            if number > 0 {
                times.push(time);
            }
        }
    }
    let (ours, theirs) = (percentile(&mut ours, 50), percentile(&mut theirs, 50));
    let bar = Bar::AboveBaseline(Duration::from_millis(5));
    Ok(vec![Figure::time("limits: hook that counts 100 MB, p50", ours, ("the same without limits", theirs), bar)])
}

/// A repository with a policy, and an empty state folder.
pub struct Bench {
    folder: TempDir,
    writ: PathBuf,
    transcript: PathBuf,
}

impl Bench {
    pub fn new() -> Result<Self> {
        let mut bench = Self::under(&document(20), Path::new(""))?;
        bench.transcript = bench.repository().join("transcript.jsonl");
        Ok(bench)
    }

    fn under(policy: &str, transcript: &Path) -> Result<Self> {
        let writ = env::var_os("WRIT_BIN").map(PathBuf::from);
        let writ = writ.context("WRIT_BIN does not say where the release `writ` is; run `cargo xtask bench`")?;
        let folder = tempfile::tempdir()?;
        let bench = Self { folder, writ, transcript: transcript.to_owned() };
        let repository = bench.repository();
        fs::create_dir_all(repository.join("src/dir0"))?;
        let git = Command::new("git").args(["init", "--quiet"]).current_dir(&repository).status()?;
        ensure!(git.success(), "`git init` failed");
        fs::write(repository.join(".aflock"), policy)?;
        Ok(bench)
    }

    pub fn repository(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = self.surrounded(program);
        command.arg("hook");
        command
    }

    /// The measured program with other words.
    pub fn command_of(&self, words: &[&str]) -> Command {
        let mut command = self.surrounded(&self.writ);
        command.args(words);
        command
    }

    fn surrounded(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.repository()).env_clear();
        command.env("HOME", self.folder.path()).env("XDG_STATE_HOME", self.state()).env("WRIT_STATE_DIR", self.state());
        command
    }

    fn payload(&self, number: usize) -> String {
        self.payload_of("bench", number)
    }

    /// A call of a session.
    pub fn payload_of(&self, session: &str, number: usize) -> String {
        let repository = self.repository();
        let (repository, transcript) = (repository.display(), self.transcript.display());
        format!(
            r#"{{"session_id":"{session}","transcript_path":"{transcript}","cwd":"{repository}",
"permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Write",
"tool_input":{{"file_path":"{repository}/src/dir0/module.rs","content":"pub fn answer() -> u32 {{ 42 }}\n"}},
"tool_use_id":"toolu_{number:024}"}}"#
        )
    }

    /// Lines in the session's ledger.
    pub fn rows(&self) -> Result<usize> {
        let sessions = fs::read_dir(self.state().join("sessions"))?;
        let mut rows = 0;
        for session in sessions {
            let ledger = fs::read(session?.path().join("ledger.jsonl"))?;
            rows += ledger.iter().filter(|&&byte| byte == b'\n').count();
        }
        Ok(rows)
    }
}

/// Runs a program to its end.
pub fn timed(mut command: Command, input: &[u8]) -> Result<(Duration, Output)> {
    let start = Instant::now();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    // A program that does not read its input may have ended by now: what it says is looked at, not this write.
    drop(child.stdin.take().map(|mut stdin| stdin.write_all(input)));
    let output = child.wait_with_output()?;
    Ok((start.elapsed(), output))
}

fn check(output: &Output) -> Result<()> {
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "`writ hook` ended with {}: {text}", output.status);
    ensure!(text.starts_with('{') && !text.contains("\"deny\""), "`writ hook` does not allow the call: {text}");
    Ok(())
}
