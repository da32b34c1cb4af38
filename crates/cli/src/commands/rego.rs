//! `writ rego`: the process that runs a rule of a policy. `writ verify` starts it, and it bounds itself first.

use std::io::{stdin, stdout};

use writ_evaluators::rego::child;

use crate::exit::Failure;

/// Reads a job, and writes what came of it.
pub fn run() -> Result<(), Failure> {
    Ok(child::serve(stdin().lock(), stdout().lock())?)
}
