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
    let writ = step("build writ", || binary("dev"))?;
    step("doc tests", doc_tests)?;
    step("tests", || call(cargo(["nextest", "run", "--locked", "--workspace"]).env("WRIT_BIN", writ)))
}

/// Builds the `writ` binary under a cargo profile and says where it is.
pub fn binary(profile: &str) -> Result<PathBuf> {
    let build =
        ["build", "--locked", "-p", "writ", "--profile", profile, "--message-format", "json-render-diagnostics"];
    let messages = output(&mut cargo(build))?;
    let messages = String::from_utf8(messages).context("cargo's messages are not text")?;
    let mut executables = messages.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        (message.pointer("/target/name")? == "writ").then_some(())?;
        message.get("executable")?.as_str().map(PathBuf::from)
    });
    executables.next_back().context("cargo built no binary called `writ`")
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
