//! The files that another is built on, where they are named.
//!
//! Owns which tools the sets of such a file bring: its list's, as a call of one of them finds it. Refuses a list that is not the locked one.

use std::path::{Path, PathBuf};

use writ_agentfile::Agent;
use writ_agentfile::ceiling::Level;

use super::{base, usable};
use crate::commands::tool::brought;
use crate::exit::Failure;

/// What a file is built on, nearest first: the files that were named, else what its lock leads to.
pub fn inherited(file: &Path, agent: &Agent, named: &[PathBuf]) -> Result<Vec<Level>, Failure> {
    if named.is_empty() { base::locked(file, agent) } else { levels(named) }
}

/// The files that another is built on.
pub fn levels<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> Result<Vec<Level>, Failure> {
    files
        .into_iter()
        .map(|file| {
            let linted = usable(file)?;
            let lock = base::lock_of(file, &linted.agent);
            // A list that is another than its lock says is nobody's.
            let tools = brought(&linted, file)?;
            Ok(Level::bringing(linted, lock, tools))
        })
        .collect()
}
