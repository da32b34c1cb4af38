//! `cargo xtask bench`: the benches, on a build of the profile that ships.

use std::process::Command;

use anyhow::Result;

use crate::run::{call, step};
use crate::test::build;

/// Builds `writ` and the benches as they ship, in one go and so of one feature set, and runs the benches; `words` pick groups by
/// name.
pub fn run(words: &[&str]) -> Result<()> {
    let built = step("build", || build(&["--profile", "dist", "-p", "writ", "-p", "writ-benches"]))?;
    let (writ, benches) = (built.named("writ")?, built.named("writ-benches")?);
    step("bench", || call(Command::new(benches).args(words).env("WRIT_BIN", writ)))
}
