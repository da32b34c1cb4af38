//! Calls of sessions that are over, out of a client's own transcripts, with their whole input.
//!
//! Owns what tools that look back are told: `writ replay`, `writ policy learn`, `writ policy diff`. A transcript is its client's word and can be
//! edited, so nothing here is evidence. Invariant: a line that cannot be read is counted, and no call is made up. Page: `spec/replay.md`.

use std::path::{Path, PathBuf};

use writ_core::{Outcome, Timestamp, ToolCall};

use crate::transcript::TranscriptError;

/// A client whose transcripts hold its calls as the model made them.
pub trait Past {
    /// The transcripts of main conversations that the client keeps of a project, the oldest first. `folder` is the client's own, where a
    /// variable moves it.
    fn kept(&self, project: &Path, user: &Path, folder: Option<&Path>) -> Vec<PathBuf>;

    /// Whether a file looks like one of its transcripts, by its beginning.
    fn is_one(&self, path: &Path) -> bool;

    /// Tells the calls of a session, those of its sub-agents included, each transcript in the order of its lines.
    fn calls(&self, main: &Path, take: &mut dyn FnMut(PastCall)) -> Result<Unseen, TranscriptError>;
}

/// One call of a session that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct PastCall {
    /// The call's id, as the client wrote it.
    pub id: String,
    /// The call.
    pub call: ToolCall,
    /// The sub-agent that made it.
    pub agent: Option<PastAgent>,
    /// When the model made it, by the client's clock.
    pub at: Option<Timestamp>,
    /// What became of it; `None` where the transcript does not say.
    pub outcome: Option<Outcome>,
}

impl PastCall {
    /// Whether somebody stopped it then, or there was nothing to run.
    pub const fn was_stopped(&self) -> bool {
        matches!(
            self.outcome,
            Some(Outcome::DeniedByHook | Outcome::DeniedByClient | Outcome::NoSuchTool | Outcome::Refused)
        )
    }
}

/// A sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastAgent {
    /// Its id.
    pub id: String,
    /// Its type, where the client notes one.
    pub kind: Option<String>,
}

/// What of a session's transcripts tells of no call that could be judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unseen {
    /// Lines, or calls, that cannot be read.
    pub unreadable: u64,
    /// Calls that the model's provider ran: no hook ever saw them.
    pub server_side: u64,
    /// Sub-agents beyond the number that is read.
    pub agents: u64,
}
