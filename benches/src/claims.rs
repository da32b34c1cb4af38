//! A subagent's stop as a client starts it: snapshot of the tree, verdict, signed record, against `git status` alone.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::hook::timed;
use crate::measure::{Bar, Figure, percentile};

/// Files of a work tree, and measured stops in it.
const TREES: [(usize, usize, Bar); 2] =
    [(50, 200, Bar::AtMost(Duration::from_millis(8))), (20_000, 40, Bar::TimesBaseline(1.2))];

/// Measures honest stops with five changed files.
pub fn run() -> Result<Vec<Figure>> {
    TREES.into_iter().map(|(files, runs, bar)| Tree::new(files)?.stops(files, runs, bar)).collect()
}

/// A repository, and an empty state folder.
struct Tree {
    folder: TempDir,
    writ: PathBuf,
}

impl Tree {
    fn new(files: usize) -> Result<Self> {
        let writ = env::var_os("WRIT_BIN").map(PathBuf::from);
        let writ = writ.context("WRIT_BIN does not say where the release `writ` is; run `cargo xtask bench`")?;
        let tree = Self { folder: tempfile::tempdir()?, writ };
        for number in 0..files {
            let path = tree.file(number);
            fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
            fs::write(path, format!("value = {number}\n"))?;
        }
        tree.git(&["init", "--quiet"])?;
        tree.git(&["add", "."])?;
        tree.git(&["-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "--quiet", "-m", "first"])?;
        Ok(tree)
    }

    fn stops(&self, files: usize, runs: usize, bar: Bar) -> Result<Figure> {
        self.hook("SubagentStart", "")?;
        for number in 0..5 {
            fs::write(self.file(number), "changed\n")?;
        }
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for run in 0..=runs {
            let stop = self.hook("SubagentStop", "Status: DONE\\nFiles changed: d0/f0.py, d0/f1.py, d0/f2.py")?;
            let mut status = Command::new("git");
            status.args(["status", "--porcelain"]).current_dir(self.repository());
            let (alone, output) = timed(status, b"")?;
            ensure!(output.stdout.split(|byte| *byte == b'\n').count() == 6, "`git status` does not show five files");
            if run > 0 {
                ours.push(stop);
                theirs.push(alone);
            }
        }
        let name = format!("claims: stop, {files} files, p50");
        Ok(Figure::time(name, percentile(&mut ours, 50), ("git status", percentile(&mut theirs, 50)), bar))
    }

    fn hook(&self, event: &str, words: &str) -> Result<Duration> {
        let repository = self.repository();
        let payload = format!(
            r#"{{"session_id":"bench","transcript_path":"{0}/none.jsonl","cwd":"{0}","agent_id":"a1","agent_type":"general-purpose",
"hook_event_name":"{event}","stop_hook_active":false,"last_assistant_message":"{words}"}}"#,
            repository.display()
        );
        let mut command = Command::new(&self.writ);
        command.arg("hook").current_dir(&repository).env("HOME", self.folder.path());
        command.env("WRIT_STATE_DIR", self.folder.path().join("state")).env("ATTEST_ENFORCE", "1");
        let (time, output) = timed(command, payload.as_bytes())?;
        // It may tell the user what it saw; what it must not do is send the agent back.
        let answer = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success() && !answer.contains("block"), "the honest claim is not let pass: {answer}");
        let notes = String::from_utf8_lossy(&output.stderr);
        ensure!(words.is_empty() || notes.contains("OBSERVED [d0/f0.py"), "no verdict: {notes}");
        Ok(time)
    }

    fn repository(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    fn file(&self, number: usize) -> PathBuf {
        self.repository().join(format!("d{}/f{}.py", number / 100, number % 100))
    }

    fn git(&self, arguments: &[&str]) -> Result<()> {
        let status = Command::new("git").args(arguments).current_dir(self.repository()).status()?;
        ensure!(status.success(), "`git {}` failed", arguments.join(" "));
        Ok(())
    }
}
