//! What one agent did and said, as its client's transcript tells, in words that fit every client.
//!
//! Owns the actions that may have changed a file. What a reader is not sure of it says: an action whose kind nobody knows may
//! have changed anything.

use writ_core::{Timestamp, ToolKind};

/// What a transcript tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// What may have changed a file, in order: by the agent's calls, and by others whom the client noticed meanwhile.
    pub actions: Vec<Action>,
    /// The text of the last turn that has any.
    pub last_message: Option<String>,
    /// Every line could be read.
    pub whole: bool,
}

/// A call that wrote a file or ran a command, or may have; or what somebody else did.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// The call's id; empty where it was none of the agent's.
    pub call_id: String,
    /// The tool as the client spells it, or who else it was.
    pub tool: String,
    /// What it did, and with what.
    pub kind: ToolKind,
    /// What it made of its file.
    pub change: Change,
    /// The working directory then.
    pub cwd: Option<String>,
    /// Whether it may still be at work after its result: in the background, or as another agent.
    pub lasting: bool,
    /// Whether the tool reported success; `None` when the transcript has no result.
    pub succeeded: Option<bool>,
    /// The tool wrote something else than it was asked to: a human or a hook changed that first.
    pub altered: bool,
    /// When its result came, by the client's clock.
    pub ended: Option<Timestamp>,
}

/// What became of a file, as far as the call itself says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing is known.
    Unknown,
    /// The file as a whole.
    Content(String),
    /// Parts of it, in order.
    Edits(Vec<Replacement>),
}

/// A text in the place of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// What was there.
    pub old: String,
    /// What came there.
    pub new: String,
    /// Wherever it was, not only at the one place.
    pub all: bool,
}
