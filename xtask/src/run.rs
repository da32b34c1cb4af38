//! Steps: what runs, how long it took, and whether it worked.
//!
//! Owns the terminal. Refuses to go on after a step that failed. Invariant: each step prints its name before it starts and
//! its seconds when it ends.

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// A line on standard output, at once: it must stand before what the next child prints.
#[expect(clippy::print_stdout, reason = "a chore talks to the terminal it was started from")]
pub fn say(text: &str) {
    println!("{text}");
    drop(std::io::stdout().flush());
}

/// A line on standard error.
#[expect(clippy::print_stderr, reason = "a chore talks to the terminal it was started from")]
pub fn complain(text: &str) {
    eprintln!("{text}");
}

/// Runs `work` as a step called `name`.
pub fn step<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    say(&format!("==> {name}"));
    let start = Instant::now();
    let outcome = work();
    let end = if outcome.is_ok() { "done" } else { "FAILED" };
    say(&format!("    {name}: {end} after {:.1} s", start.elapsed().as_secs_f64()));
    outcome.with_context(|| format!("step `{name}` failed"))
}

/// Runs a command whose output goes to the terminal.
pub fn call(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", shown(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", shown(command));
    }
    Ok(())
}

/// Runs a command and gives its standard output; what it says on standard error goes to the terminal.
pub fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start {}", shown(command)))?;
    if !output.status.success() {
        bail!("{} ended with {}", shown(command), output.status);
    }
    Ok(output.stdout)
}

/// Runs a command with nothing on the terminal; `None` when it cannot be started.
pub fn quietly(program: &str, args: &[&str]) -> Option<Output> {
    Command::new(program).args(args).stdin(Stdio::null()).output().ok()
}

/// `cargo` with these arguments, as a shell would start it. What `cargo run` tells this program about itself stays here:
/// build scripts watch these variables, and each change would have `ring` and all above it built again.
pub fn cargo<const N: usize>(args: [&str; N]) -> Command {
    let mut command = Command::new("cargo");
    command.args(args);
    for (name, _) in std::env::vars_os() {
        let told = name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || TOLD.contains(&name));
        if told {
            command.env_remove(name);
        }
    }
    command
}

/// Variables beside `CARGO_PKG_…` that `cargo run` sets for the program it starts.
const TOLD: [&str; 6] = [
    "CARGO",
    "CARGO_BIN_NAME",
    "CARGO_CRATE_NAME",
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_PATH",
    "CARGO_PRIMARY_PACKAGE",
];

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    format!("`{}`", words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "))
}
