//! `cargo xtask bench`: the benches, on a release build.

use anyhow::Result;

use crate::run::{call, cargo, step};
use crate::test::binary;

/// Builds `writ` and the benches for release and runs the benches; `words` pick groups by name.
pub fn run(words: &[&str]) -> Result<()> {
    let writ = step("build writ", || binary("release"))?;
    step("bench", || {
        let mut benches = cargo(["run", "--locked", "--release", "--quiet", "-p", "writ-benches", "--"]);
        call(benches.args(words).env("WRIT_BIN", writ))
    })
}
