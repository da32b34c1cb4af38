//! A shell call as a client runs it, in the sandbox that the hook's answer puts it in, against the same line without.
//!
//! What the hook itself costs is not in it: the client waits for that before, and [`crate::hook`] measures it.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use writ_core::json::{self, Value};

use crate::hook::timed;
use crate::measure::{Bar, Figure, percentile};

/// Measured calls of each kind, in turns.
const RUNS: usize = 200;
/// Calls before that.
const WARM_UP: usize = 5;
/// The line: what it does itself costs nothing.
const LINE: &str = "true";
/// What a call may cost more.
const BAR: Duration = Duration::from_millis(6);

/// Measures calls under a policy with files and hosts, and under one that leaves the host's network open.
pub fn run() -> Result<Vec<Figure>> {
    let files = r#""files":{"deny":["**/.env"],"readOnly":["infra/**"]}"#;
    let hosts = format!(r#"{files},"domains":{{"allow":["allowed.example"]}}"#);
    let mut figures = Vec::new();
    for (name, rules) in [("confined call", hosts.as_str()), ("confined call, open network", files)] {
        let bench = Bench::new(rules)?;
        let (mut confined, mut plain) = (Vec::new(), Vec::new());
        for number in 0..WARM_UP + RUNS {
            let line = bench.confined(number)?;
            let (theirs, output) = timed(bench.shell(LINE), b"")?;
            ensure!(output.status.success(), "the plain call failed");
            let (ours, output) = timed(bench.shell(&line), b"")?;
            check(&output)?;
            if number >= WARM_UP {
                confined.push(ours);
                plain.push(theirs);
            }
        }
        for (percent, bar) in [(50, Bar::AboveBaseline(BAR)), (95, Bar::None)] {
            let (ours, theirs) = (percentile(&mut confined, percent), percentile(&mut plain, percent));
            figures.push(Figure::time(format!("{name}, p{percent}"), ours, ("the line without Writ", theirs), bar));
        }
    }
    Ok(figures)
}

/// A repository with a policy, an empty state folder, and a client's shell snapshot.
struct Bench {
    folder: TempDir,
    writ: PathBuf,
}

impl Bench {
    fn new(rules: &str) -> Result<Self> {
        let writ = env::var_os("WRIT_BIN").map(PathBuf::from);
        let writ = writ.context("WRIT_BIN does not say where the release `writ` is; run `cargo xtask bench`")?;
        let bench = Self { folder: tempfile::tempdir()?, writ };
        let repository = bench.repository();
        fs::create_dir_all(repository.join("src"))?;
        let git = Command::new("git").args(["init", "--quiet"]).current_dir(&repository).status()?;
        ensure!(git.success(), "`git init` failed");
        let policy = format!(r#"{{"version":"1.0","name":"bench","enforce":"calls",{rules}}}"#);
        fs::write(repository.join(".aflock"), policy)?;
        fs::write(repository.join(".env"), "KEY=secret\n")?;
        fs::write(bench.folder.path().join("snapshot.sh"), "shopt -s expand_aliases\nexport EDITOR=true\n")?;
        bench.hook("SessionStart", r#","source":"startup""#)?;
        Ok(bench)
    }

    fn repository(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.repository()).env_clear().env("HOME", self.folder.path());
        command.env("WRIT_STATE_DIR", self.folder.path().join("state"));
        command.env("PATH", env::var_os("PATH").unwrap_or_default());
        command
    }

    fn hook(&self, event: &str, members: &str) -> Result<Value> {
        let repository = self.repository();
        let repository = repository.display();
        let payload = format!(
            r#"{{"session_id":"bench","transcript_path":"{repository}/none.jsonl","cwd":"{repository}",
"permission_mode":"default","hook_event_name":"{event}"{members}}}"#
        );
        let mut hook = self.command(&self.writ.to_string_lossy());
        hook.arg("hook");
        let (_, output) = timed(hook, payload.as_bytes())?;
        ensure!(output.status.success(), "`writ hook` ended with {}", output.status);
        json::from_slice(&output.stdout).context("`writ hook` answers no JSON")
    }

    /// The line that the hook puts in the place of [`LINE`].
    fn confined(&self, number: usize) -> Result<String> {
        let call =
            format!(r#","tool_name":"Bash","tool_input":{{"command":"{LINE}"}},"tool_use_id":"toolu_{number:024}""#);
        let answer = self.hook("PreToolUse", &call)?;
        let line = ["hookSpecificOutput", "updatedInput", "command"]
            .iter()
            .try_fold(&answer, |value, name| value.get(name))
            .and_then(Value::as_str);
        line.map(str::to_owned).with_context(|| format!("`writ hook` confines nothing: {answer:?}"))
    }

    /// A line as the client runs it.
    fn shell(&self, line: &str) -> Command {
        let folder = self.folder.path().display();
        let line = line.replace('\'', "'\"'\"'");
        let script = format!(
            "source {folder}/snapshot.sh 2>/dev/null || true && shopt -u extglob 2>/dev/null || true && \
             eval '{line}' < /dev/null && pwd -P >| {folder}/folder"
        );
        let mut shell = self.command("/bin/bash");
        shell.args(["-c", &script]);
        shell
    }
}

fn check(output: &Output) -> Result<()> {
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the confined call ended with {}: {text}", output.status);
    Ok(())
}
