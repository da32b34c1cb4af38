//! `cargo xtask`: the repository's own chores.
//!
//! Owns what is run to test, measure and fuzz Writ, and which crate may use which. Refuses to skip a step: what is missing
//! is installed, or the run fails and says what to do. Invariant: exit code 0 means every step ran and passed. How it is
//! used: `CONTRIBUTING.md`.

mod bench;
mod dist;
mod fuzz;
mod import_cycles;
mod layers;
mod licences;
mod metadata;
mod run;
mod test;
mod tools;

use std::process::ExitCode;

use crate::run::say;

const HELP: &str = "\
The repository's own chores.

Usage: cargo xtask <command>

  test                        format, lints, layers, doc tests and all tests; installs what they need
  layers                      which crate uses which, import cycles, lint tables, licences
  bench [NAME]                build what ships and measure against baselines; NAME picks the groups that hold it
  dist [--check]              what a release is made of: archive, SBOM, provenance, digests; --check builds twice
  fuzz [TARGET] [SECONDS]     fuzz one target, or each of them, 60 seconds each unless told otherwise
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        [] | ["help"] => usage(),
        words if words.iter().any(|word| matches!(*word, "-h" | "--help")) => usage(),
        ["test"] => test::run(),
        ["layers"] => layers::run(),
        ["bench", rest @ ..] => bench::run(rest),
        ["dist", rest @ ..] => dist::run(rest),
        ["fuzz", rest @ ..] => fuzz::run(rest),
        other => Err(anyhow::anyhow!("unknown command `{}`\nhelp: `cargo xtask --help` lists them", other.join(" "))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            run::complain(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn usage() -> anyhow::Result<()> {
    say(HELP.trim_end());
    Ok(())
}
