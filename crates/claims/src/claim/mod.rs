//! The claim in an agent's last words.

use writ_core::json::Value;

/// What the agent says became of its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Finished.
    Done,
    /// Finished, with doubts.
    DoneWithConcerns,
    /// Not finished: something is in the way.
    Blocked,
    /// Not finished: it does not know enough.
    NeedsContext,
}

/// Where the claim stood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// In a `## Handoff` block.
    Handoff,
    /// In lines of their own.
    Lines,
    /// Nowhere.
    None,
}

/// A claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// What became of the work.
    pub status: Option<Status>,
    /// The paths it says it changed, each once, as they would be written for `git`.
    pub files: Vec<String>,
    /// What is in the way.
    pub blockers: Option<String>,
    /// Whether it says that it ran tests.
    pub ran_tests: bool,
    /// Where it stood.
    pub source: Source,
    /// Entries of its lists that do not look like a path: they cannot be verified.
    pub unparsed: Vec<String>,
}

impl Claim {
    /// Reads a claim. Never fails: what is not understood is left out.
    pub fn parse(_text: &str) -> Self {
        Self {
            status: None,
            files: Vec::new(),
            blockers: None,
            ran_tests: false,
            source: Source::None,
            unparsed: Vec::new(),
        }
    }

    /// `{status, files, blockers, ran_tests, source, unparsed}`.
    pub fn to_json(&self) -> Value {
        Value::Null
    }
}
