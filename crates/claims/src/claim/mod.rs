//! The claim in an agent's last words.
//!
//! Owns the grammar of the seed's two tiers and of the paths in their lists. It refuses to read prose: what stands in a
//! fence or a quote, or in a sentence, claims nothing. The invariant: a path comes out only where the text lists it as
//! changed; what is listed and is no path for certain is `unparsed`. Page: `spec/claims.md`, "The claim". Rulings: R50,
//! R51, R53.

mod entry;
mod grammar;
mod list;
mod markdown;
mod name_kind;
mod path;
mod removal;
mod testing;
mod words;

pub use name_kind::{NameKind, name_kind};

use std::collections::BTreeSet;

use serde::Serialize;
use writ_core::json;

/// How much of a text is read, in bytes: its last lines, since the last claim counts.
const MAX_TEXT: usize = 1 << 20;

/// Most paths, and most entries that are no path, that a claim holds.
const MAX_FILES: usize = 1000;

/// What the agent says became of its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
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

impl Status {
    /// As the seed spells it.
    pub fn as_str(self) -> &'static str {
        json::word(&self)
    }
}

/// Where the claim stood.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// In a `## Handoff` block.
    Handoff,
    /// In lines of their own.
    #[serde(rename = "nl")]
    Lines,
    /// Nowhere.
    None,
}

impl Source {
    /// `handoff`, `nl` or `none`, as the seed spells it.
    pub fn as_str(self) -> &'static str {
        json::word(&self)
    }
}

/// A claim.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Claim {
    /// What became of the work.
    pub status: Option<Status>,
    /// The paths it says it changed, each once, as they would be written for `git`; at most 1000.
    pub files: Vec<String>,
    /// What is in the way.
    pub blockers: Option<String>,
    /// Whether it says that it ran tests.
    pub ran_tests: bool,
    /// Where it stood.
    pub source: Source,
    /// Entries of its lists that do not look like a path: they cannot be verified. At most 1000, long ones cut.
    pub unparsed: Vec<String>,
    /// Those of `files` that it says are no longer there: deleted, or the old name of a rename.
    #[serde(skip)]
    pub gone: BTreeSet<String>,
}

impl Claim {
    /// Reads a claim. Never fails: what is not understood is left out. Of a text above 1 MiB the last lines are read.
    pub fn parse(text: &str) -> Self {
        let text = markdown::without_invisible(text);
        let lines = markdown::lines(&text, MAX_TEXT);
        grammar::handoff(&lines).unwrap_or_else(|| grammar::lines(&lines))
    }
}
