//! `cargo xtask fuzz`: the fuzz targets, for a while each.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::run::{call, output, step};
use crate::tools::{answers, cargo_tool};

/// How long a target runs when nobody says.
const SECONDS: u32 = 60;

/// Fuzzes the target named in `words`, or each one; a number in `words` is the time for each, in seconds.
pub fn run(words: &[&str]) -> Result<()> {
    let seconds = words.iter().find_map(|word| word.parse::<u32>().ok()).unwrap_or(SECONDS);
    let named: Vec<&str> = words.iter().copied().filter(|word| word.parse::<u32>().is_err()).collect();
    if !answers("cargo", &["+nightly", "--version"]) {
        bail!("fuzzing needs a nightly toolchain\nhelp: `rustup toolchain install nightly`");
    }
    cargo_tool("fuzz", "cargo-fuzz")?;
    let known = String::from_utf8(output(fuzz().arg("list"))?).context("the list of targets is not text")?;
    if let Some(unknown) = named.iter().find(|name| !known.lines().any(|line| line == **name)) {
        bail!("unknown fuzz target `{unknown}`\nhelp: one of {}", known.lines().collect::<Vec<_>>().join(", "));
    }
    for target in known.lines().filter(|line| named.is_empty() || named.contains(line)) {
        let time = format!("-max_total_time={seconds}");
        step(&format!("fuzz {target}"), || call(fuzz().args(["run", target, "--", &time, "-timeout=10"])))?;
    }
    Ok(())
}

fn fuzz() -> Command {
    let mut command = Command::new("cargo");
    command.args(["+nightly", "fuzz"]).current_dir(root());
    command
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}
