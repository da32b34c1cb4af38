//! `cargo xtask bench`: the benches, on a build of the profile that ships.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::run::{call, step};
use crate::test::build;

/// Builds `writ` and the benches as they ship, in one go and so of one feature set, and runs the benches; `words` pick groups by
/// name. What is measured is a copy, as an installed program is: what the linker has written lies in the kernel's memory page by page,
/// and a program starts from there a third of a millisecond later.
pub fn run(words: &[&str]) -> Result<()> {
    let built = step("build", || build(&["--profile", "dist", "-p", "writ", "-p", "writ-benches"]))?;
    let (writ, benches) = (built.named("writ")?, built.named("writ-benches")?);
    let installed = writ.with_file_name("writ-installed");
    fs::copy(writ, &installed).context("copy the program")?;
    step("bench", || call(Command::new(benches).args(words).env("WRIT_BIN", &installed)))
}
