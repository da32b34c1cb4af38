//! Claude Code: hooks, settings and transcripts, as measured with version 2.1.329.
//!
//! Owns the mapping between this client's JSON and Writ's words. Refuses to guess: bytes that are not what the client
//! sends are an error, and [`payload::hints`] says as much as can still be said. The invariant: an answer is
//! exactly one JSON object, because this client takes anything else for plain text and lets the tool run. Format page:
//! `spec/clients/claude-code.md`.

use writ_core::{Answer, Event};

use crate::{Client, Hints, PayloadError};

pub mod answer;
pub mod outcome;
pub mod payload;
pub mod servers;
pub mod settings;
pub mod story;
pub mod transcript;
pub mod version;

pub use answer::to_json;
pub use outcome::{Outcome, batch_outcome};
pub use payload::{hints, parse};
pub use version::ClientVersion;

/// The name by which rows and `--client` know it.
pub const NAME: &str = "claude-code";

/// This client.
#[derive(Clone, Copy, Debug)]
pub struct ClaudeCode;

impl Client for ClaudeCode {
    fn name(&self) -> &'static str {
        NAME
    }

    fn parse(&self, bytes: &[u8]) -> Result<Event, PayloadError> {
        parse(bytes)
    }

    fn hints(&self, bytes: &[u8]) -> Hints {
        hints(bytes)
    }

    fn render(&self, answer: &Answer) -> String {
        to_json(answer)
    }
}

/// The events that Writ listens to, in the order in which [`settings::install`] writes them.
pub const EVENTS: [&str; 13] = [
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "PermissionRequest",
    "UserPromptSubmit",
    "SessionStart",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "PreCompact",
    "SessionEnd",
    "ConfigChange",
];

/// Whether a hook entry of this event is filtered by tool name and so carries `"matcher": "*"`.
pub fn matches_tools(event: &str) -> bool {
    matches!(event, "PreToolUse" | "PostToolUse" | "PostToolUseFailure" | "PermissionRequest")
}
