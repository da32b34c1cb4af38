//! How often each agent was sent back because of a false DONE.
//!
//! Every row repeats only the session's total and a digest; the agents, however many there are, lie in a file of that name in
//! the session's folder. Invariant: the file follows from the rows alone, so verification needs none. Page: `spec/ledger.md`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use writ_core::{Digest, json};
use writ_store::regular_file;

use crate::session::state::Blocks;
use crate::session::{Session, SessionError};

/// Largest file that is read: far more than any session's ceiling allows.
const MAX_FILE: u64 = 4 << 20;

/// The counts of the agents that were sent back.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentBlocks(BTreeMap<String, u64>);

impl AgentBlocks {
    /// Counts one more for an agent. Returns what every later row says.
    pub fn add(&mut self, agent: &str) -> Blocks {
        *self.0.entry(agent.to_owned()).or_default() += 1;
        Blocks { total: self.0.values().sum(), agents: Digest::of(json::to_canonical(self).as_bytes()) }
    }

    /// The counts as the session's folder holds them; `None` where the file is not there or not the one that the rows name.
    pub fn kept(session: &Session<'_>) -> Option<Self> {
        let Some(blocks) = session.state.blocks else { return Some(Self::default()) };
        let path = session.store.folder(&session.id).join(file_name(blocks.agents));
        let bytes = regular_file::read(&path, MAX_FILE).ok().filter(|bytes| Digest::of(bytes) == blocks.agents)?;
        json::from_slice(&bytes).ok()
    }

    /// How often `agent` was sent back.
    pub fn of(&self, agent: &str) -> u64 {
        self.0.get(agent).copied().unwrap_or_default()
    }

    /// Counts one more for an agent, in the folder and in the state of the rows to come.
    pub fn record(&mut self, session: &mut Session<'_>, agent: &str) -> Result<(), SessionError> {
        let blocks = self.add(agent);
        session.keep(&file_name(blocks.agents), json::to_canonical(self).as_bytes())?;
        session.state.blocks = Some(blocks);
        Ok(())
    }
}

fn file_name(agents: Digest) -> String {
    format!("blocks/{}.json", agents.hex())
}
