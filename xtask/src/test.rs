//! `cargo xtask test`: everything that must hold before a commit is taken.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::run::{call, cargo, output, say, step};
use crate::{layers, tools};

/// Runs all checks, then all tests; the runner's summary comes last.
pub fn run() -> Result<()> {
    step("tools", tools::require)?;
    step("format", || call(&mut cargo(["fmt", "--all", "--check"])))?;
    step("layers", layers::run)?;
    step("lints", || {
        call(&mut cargo([
            "clippy",
            "--locked",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
            "--force-warn",
            "clippy::wildcard_enum_match_arm",
            "--force-warn",
            "clippy::too_many_lines",
        ]))
    })?;
    // All of it at once, as the tests are built: of one feature set, so that nothing is built twice.
    let built = step("build", || build(&["--workspace", "--all-targets"]))?;
    let writ = built.named("writ")?;
    step("doc tests", doc_tests)?;
    step("tests", || call(cargo(["nextest", "run", "--locked", "--workspace"]).env("WRIT_BIN", writ)))
}

/// The programs of a build, by name.
pub struct Built(Vec<(String, PathBuf)>);

impl Built {
    /// Where the program of this name is.
    pub fn named(&self, name: &str) -> Result<&PathBuf> {
        let found = self.0.iter().find(|(own, _)| own == name);
        found.map(|(_, path)| path).with_context(|| format!("cargo built no program called `{name}`"))
    }
}

/// Builds what `words` say and tells which programs that gave; test harnesses are none.
pub fn build(words: &[&str]) -> Result<Built> {
    let mut build = cargo(["build", "--locked", "--message-format", "json-render-diagnostics"]);
    let messages = String::from_utf8(output(build.args(words))?).context("cargo's messages are not text")?;
    let programs = messages.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        let harness = message.pointer("/profile/test")?.as_bool()?;
        let name = message.pointer("/target/name")?.as_str().filter(|_| !harness)?;
        Some((name.to_owned(), message.get("executable")?.as_str().map(PathBuf::from)?))
    });
    Ok(Built(programs.collect()))
}

/// Runs the examples in the documentation; quiet while there are none.
fn doc_tests() -> Result<()> {
    let finished = cargo(["test", "--locked", "--workspace", "--doc"]).output().context("cannot start `cargo test`")?;
    let text = String::from_utf8_lossy(&finished.stdout);
    let ran: u32 =
        text.lines().filter_map(|line| line.strip_prefix("running ")?.split(' ').next()?.parse::<u32>().ok()).sum();
    if ran > 0 || !finished.status.success() {
        say(&format!("{text}{}", String::from_utf8_lossy(&finished.stderr)));
    }
    if !finished.status.success() {
        bail!("`cargo test --doc` ended with {}", finished.status);
    }
    Ok(())
}
