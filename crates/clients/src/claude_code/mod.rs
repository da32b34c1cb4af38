//! Claude Code: hooks, settings and transcripts, as measured with version 2.1.329.
//!
//! Owns the mapping between this client's JSON and Writ's words. Refuses to guess: bytes that are not what the client
//! sends are an error, and [`payload::hints`] says as much as can still be said. The invariant: an answer is
//! exactly one JSON object, because this client takes anything else for plain text and lets the tool run. Format page:
//! `spec/clients/claude-code.md`.

use std::path::{Path, PathBuf};

use writ_core::json::{JsonError, Value};
use writ_core::{Answer, Event};

use crate::past::{Past, PastCall, Unseen};
use crate::program::{Needs, Program};
use crate::servers::{Server, Servers};
use crate::settings::{Edited, HookSpec, Installed, Places, Settings, SettingsError};
use crate::shell_calls::ShellCalls;
use crate::transcript::{Line, Listing, Reach, Told, TranscriptError, Transcripts};
use crate::usage::{AgentNote, Spoken};
use crate::work::Work;
use crate::{Client, Hints, PayloadError};

mod agents;
pub mod answer;
pub mod outcome;
mod past;
pub mod payload;
mod program;
pub mod servers;
pub mod settings;
mod shell_calls;
pub mod transcript;
mod turns;
mod usage;
pub mod version;
pub mod work;

pub use answer::to_json;
pub use outcome::batch_outcome;
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

    fn read(&self, bytes: &[u8]) -> Result<Event, PayloadError> {
        parse(bytes)
    }

    fn hints(&self, bytes: &[u8]) -> Hints {
        hints(bytes)
    }

    fn agent_types(&self, project: &Path, folder: Option<&Path>) -> Option<Vec<String>> {
        Some(agents::agent_types(project, folder))
    }

    fn render(&self, answer: &Answer) -> String {
        to_json(answer)
    }

    fn settings(&self) -> Option<&dyn Settings> {
        Some(self)
    }

    fn servers(&self) -> Option<&dyn Servers> {
        Some(self)
    }

    fn shell_calls(&self) -> Option<&dyn ShellCalls> {
        Some(self)
    }

    fn program(&self) -> Option<&dyn Program> {
        Some(self)
    }

    fn programs(&self) -> &'static [&'static str] {
        &[program::PROGRAM]
    }

    fn session_variable(&self) -> Option<&'static str> {
        Some("CLAUDE_CODE_SESSION_ID")
    }

    fn provider(&self) -> Option<&'static str> {
        Some("anthropic")
    }

    fn transcripts(&self) -> Option<&dyn Transcripts> {
        Some(self)
    }

    fn past(&self) -> Option<&dyn Past> {
        Some(self)
    }
}

impl Past for ClaudeCode {
    fn kept(&self, project: &Path, user: &Path, folder: Option<&Path>) -> Vec<PathBuf> {
        past::kept(project, user, folder)
    }

    fn is_one(&self, path: &Path) -> bool {
        past::is_one(path)
    }

    fn calls(&self, main: &Path, take: &mut dyn FnMut(PastCall)) -> Result<Unseen, TranscriptError> {
        past::calls(main, take)
    }
}

impl Program for ClaudeCode {
    fn is(&self, name: &str) -> bool {
        name == program::PROGRAM
    }

    fn needs(&self, user: &Path, folder: Option<&Path>) -> Needs {
        program::needs(user, folder)
    }
}

impl ShellCalls for ClaudeCode {
    fn with_line(&self, input: &Value, line: &str) -> Value {
        shell_calls::with_line(input, line)
    }

    fn prelude(&self, arguments: &[String]) -> Option<String> {
        shell_calls::prelude(arguments)
    }

    fn lasts(&self, input: &Value) -> bool {
        input.get("run_in_background") == Some(&Value::Bool(true))
    }

    fn exit_code(&self, error: &str) -> Option<u8> {
        error.lines().next()?.strip_prefix("Exit code ")?.trim().parse().ok()
    }
}

impl Settings for ClaudeCode {
    fn folder_variable(&self) -> Option<&'static str> {
        Some("CLAUDE_CONFIG_DIR")
    }

    fn places(&self, project: &Path, user: &Path, folder: Option<&Path>) -> Places {
        settings::places(project, user, folder)
    }

    fn inspect(&self, text: Option<&str>) -> Result<Installed, SettingsError> {
        settings::inspect(text)
    }

    fn install(&self, text: Option<&str>, spec: &HookSpec) -> Result<Edited, SettingsError> {
        let installed = settings::install(text, spec)?;
        let pinned = settings::pin_shell(&installed.text)?;
        Ok(Edited { changed: [installed.changed, pinned.changed].concat(), ..pinned })
    }

    fn remove(&self, text: &str) -> Result<Edited, SettingsError> {
        let removed = settings::remove(text)?;
        Ok(Edited { text: settings::unpin_shell(&removed.text)?.text, ..removed })
    }

    fn variable(&self, text: &str, name: &str) -> Option<String> {
        settings::variable(text, name)
    }
}

impl Servers for ClaudeCode {
    fn files(&self, cwd: &Path, user: &Path, folder: Option<&Path>) -> Vec<PathBuf> {
        servers::files(cwd, user, folder)
    }

    fn defined(&self, text: &str, name: &str) -> Result<Vec<Server>, JsonError> {
        servers::servers(text, name)
    }
}

impl Transcripts for ClaudeCode {
    fn files(&self, main: &Path) -> Result<Listing, TranscriptError> {
        transcript::files(main)
    }

    fn read(&self, path: &Path, from: u64, take: &mut dyn FnMut(Told<'_>)) -> Result<Reach, TranscriptError> {
        transcript::read(path, from, take)
    }

    fn work(&self, path: &Path) -> Option<Work> {
        work::read(path)
    }

    fn usage(&self, path: &Path, from: u64, take: &mut dyn FnMut(Spoken)) -> Result<Reach, TranscriptError> {
        usage::read(path, from, take)
    }

    fn lines(&self, path: &Path, from: u64, take: &mut dyn FnMut(Line<'_>)) -> Result<Reach, TranscriptError> {
        turns::read(path, from, take)
    }

    fn tells_of(&self, path: &Path, call: &str) -> bool {
        usage::tells_of(path, call)
    }

    fn model(&self, path: &Path, call: Option<&str>) -> Option<String> {
        usage::model(path, call)
    }

    fn note(&self, path: &Path) -> AgentNote {
        usage::note(path)
    }

    fn beside(&self, path: &Path) -> Vec<PathBuf> {
        vec![usage::note_file(path)]
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
