//! Agent clients: their hook JSON, their settings files, their transcripts.
//!
//! One folder per client, each turning that client's formats into the words of `writ-core` and of the files beside it, and back. Nothing here
//! decides about a call or writes a file; only the transcript readers touch the disk, and they only read. The
//! invariant: whatever bytes a client or an agent hands over, a reader here answers with a value or an error, never a
//! panic, and within stated limits. Format pages: `spec/clients/`.

pub mod ahead;
mod answers;
pub mod claude_code;
pub mod codex;
pub mod copilot;
pub mod crush;
pub mod cursor;
pub mod cursor_agent;
pub mod droid;
pub mod gemini;
pub mod generic;
pub mod guard;
mod hints;
mod hooks_file;
mod input;
mod jsonl;
pub mod keys;
pub mod mcp;
pub mod meter;
pub mod opencode;
pub mod past;
mod patch;
pub mod program;
pub mod qwen;
pub mod servers;
pub mod settings;
pub mod shell_calls;
pub mod text;
pub mod transcript;
pub mod usage;
pub mod work;

use std::path::{Path, PathBuf};

pub use hints::Hints;
use past::Past;
use program::Program;
use servers::Servers;
use settings::Settings;
use shell_calls::ShellCalls;
use transcript::{Drawn, Transcripts};
use writ_core::json::{FormatError, rounded};
use writ_core::{Answer, Event, EventKind, ToolUse};

/// A client: what every one has, and what one may have.
pub trait Client: Sync {
    /// The name by which rows and `--client` know it.
    fn name(&self) -> &'static str;
    /// Reads one payload, as [`Client::parse`] does, but for the numbers that a call's input does not keep.
    fn read(&self, bytes: &[u8]) -> Result<Event, PayloadError>;
    /// What can still be told from a payload that [`Client::parse`] refuses.
    fn hints(&self, bytes: &[u8]) -> Hints;
    /// The answer as this client takes it, for standard output.
    fn render(&self, answer: &Answer) -> String;

    /// Reads one payload.
    fn parse(&self, bytes: &[u8]) -> Result<Event, PayloadError> {
        let mut event = self.read(bytes)?;
        if let EventKind::PreToolUse(ToolUse { call, .. }) | EventKind::PermissionRequest { call } = &mut event.kind {
            call.rounded = rounded(bytes);
        }
        Ok(event)
    }

    /// Whether this was tried with the real client, and not taken from its documents alone.
    fn is_tried(&self) -> bool {
        true
    }

    /// Whether its hooks are told the ids that calls have in its transcripts.
    fn tells_ids(&self) -> bool {
        true
    }

    /// Whether it tells of prompts, stops and sub-agents, and not of single calls alone.
    fn tells_of_turns(&self) -> bool {
        true
    }

    /// Whether it tells when a turn or a session is over, which is when a record is sealed; else each row is.
    fn tells_of_ends(&self) -> bool {
        true
    }

    /// Its settings files; `None` where no file of the client's installs hooks.
    fn settings(&self) -> Option<&dyn Settings> {
        None
    }

    /// Its MCP servers' definitions; `None` where they are not known.
    fn servers(&self) -> Option<&dyn Servers> {
        None
    }

    /// Its calls of a shell; `None` where it takes no other input for a call than the model's, or nobody knows how.
    fn shell_calls(&self) -> Option<&dyn ShellCalls> {
        None
    }

    /// It as a program that is run as a whole in a sandbox; `None` where nobody knows what it needs.
    fn program(&self) -> Option<&dyn Program> {
        None
    }

    /// The types of sub-agents that there can be in a project, as far as files say; `None` where nobody knows. `folder` is the
    /// client's own.
    fn agent_types(&self, _project: &Path, _folder: Option<&Path>) -> Option<Vec<String>> {
        None
    }

    /// The names of its program, by which it is found on a machine; none where nobody installs it as one.
    fn programs(&self) -> &'static [&'static str] {
        &[]
    }

    /// A payload of a harmless read in a folder, as it would come before the call: what an installation is tried with.
    fn sample(&self, cwd: &str) -> String {
        hints::sample(cwd)
    }

    /// The variable that tells its session to the servers that it starts; `None` where it tells none.
    fn session_variable(&self) -> Option<&'static str> {
        None
    }

    /// Files of variables that it puts into its own environment, and so into its hooks': looked for in its folder, in each above, and in the
    /// user's.
    fn variable_files(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whose models it asks, where that is one company's alone.
    fn provider(&self) -> Option<&'static str> {
        None
    }

    /// Where the main transcript of a session is, of a client that does not tell it with every event. `folder` is the user's own folder of
    /// this client, where a variable moves it.
    fn transcript_of(&self, _session: &str, _user: &Path, _folder: Option<&Path>) -> Option<PathBuf> {
        None
    }

    /// Its transcripts; `None` where it keeps none that can be read.
    fn transcripts(&self) -> Option<&dyn Transcripts> {
        None
    }

    /// How its conversations are drawn off, where it keeps them in a database that its events name as their transcript.
    fn drawn(&self) -> Option<&dyn Drawn> {
        None
    }

    /// Its past calls; `None` where its transcripts do not hold them, or nobody reads them yet.
    fn past(&self) -> Option<&dyn Past> {
        None
    }
}

/// The client that is meant where none is named.
pub const DEFAULT: &dyn Client = &claude_code::ClaudeCode;

/// Every client.
pub const CLIENTS: [&dyn Client; 11] = [
    DEFAULT,
    &codex::Codex,
    &copilot::Copilot,
    &crush::Crush,
    &cursor_agent::Cursor,
    &droid::Droid,
    &gemini::Gemini,
    &opencode::OpenCode,
    &qwen::Qwen,
    &generic::Generic,
    &mcp::Mcp,
];

/// The client of a name.
pub fn named(name: &str) -> Option<&'static dyn Client> {
    CLIENTS.into_iter().find(|client| client.name() == name)
}

/// The client that a program of this name is.
pub fn of_program(name: &str) -> Option<&'static dyn Client> {
    CLIENTS.into_iter().find(|client| client.program().is_some_and(|program| program.is(name)))
}

/// Why a payload cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// Not a JSON object, or beyond the limits of foreign texts. What is wrong is not told: it may quote the payload.
    #[error("the hook's input is not acceptable JSON")]
    Json(#[from] FormatError),
    /// Not of the form that Writ itself sets.
    #[error("the hook's input: {0}")]
    Format(FormatError),
    /// A member that the event cannot do without is missing or of the wrong kind.
    #[error("the hook's input has no `{member}` that is {expected}")]
    Member {
        /// The member's name.
        member: &'static str,
        /// What it should be.
        expected: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two calls that differ in a number that a double does not keep are two to a human's word.
    #[test]
    fn numbers_that_are_not_kept_make_another_call() {
        let digest = |client: &str, number: &str| {
            let payload = format!(
                r#"{{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/w","tool_name":"mcp__bank__pay",
                "tool_use_id":"t","tool_input":{{"cents":{number}}}}}"#
            );
            let event = named(client).unwrap().parse(payload.as_bytes()).unwrap();
            let EventKind::PreToolUse(used) = event.kind else { panic!("{:?}", event.kind) };
            used.call.digest()
        };
        for client in ["claude-code", "codex"] {
            assert_ne!(digest(client, "9007199254740993"), digest(client, "9007199254740992"));
            assert_ne!(digest(client, "0.10000000000000000001"), digest(client, "0.1"));
            assert_eq!(digest(client, "100.0"), digest(client, "1e2"));
        }
    }
}
