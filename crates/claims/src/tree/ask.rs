//! Asking git about a repository.
//!
//! Owns which repository git may be asked about, and with which settings. Refuses any other where one is named. Invariant: where whoever
//! is watched may write while git reads, nothing of the repository's settings counts that has git run a program.

use std::path::Path;

use super::Limits;
use super::aside::Aside;
use super::git::{GitError, Repository, carry_out, command};

/// Runs `git` in `dir` and gives what it prints.
pub fn run(dir: &Path, arguments: &[&str], limits: &Limits) -> Result<Vec<u8>, GitError> {
    run_with_input(dir, arguments, &[], limits)
}

/// The same, with something to read.
pub fn run_with_input(dir: &Path, arguments: &[&str], input: &[u8], limits: &Limits) -> Result<Vec<u8>, GitError> {
    let found = Repository::containing(dir);
    let mut command = command(dir, found.as_ref().map_or(dir, |found| &found.root))?;
    let aside;
    if let Some(only) = limits.only {
        // Whoever may write it may arm it while git reads.
        let repository = found.ok().filter(|found| only.is(found));
        aside = Aside::of(&repository.ok_or_else(|| GitError::NoRepository(dir.to_owned()))?, limits)?;
        command.env("GIT_DIR", &aside.git).env("GIT_WORK_TREE", &aside.tree);
    } else if let Some(own) = Some(dir.join(".git")).filter(|own| own.is_dir()) {
        // A folder of this name is all of a repository. A file in it could name another, whose settings would then count.
        command.env("GIT_COMMON_DIR", own);
    }
    let name = arguments.first().copied().unwrap_or_default();
    command.args(arguments);
    carry_out(command, name, input, limits)
}
