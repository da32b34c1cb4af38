//! Qwen Code: hooks, settings and transcripts, as measured with version 0.24.4.
//!
//! Owns the mapping between this client's JSON and Writ's words. Its hooks are Claude Code's, with names of its own for tools and another
//! member for a call's id. Refuses to ask: without somebody at the terminal the client takes a question for a no, so a no is what it
//! gets. The invariant: an answer is exactly one JSON object, and a refusal has a reason. Format page: `spec/clients/qwen.md`.

use std::path::{Path, PathBuf};

use writ_core::json::{JsonError, Value};
use writ_core::{Answer, Event, Outcome};

use crate::claude_code::payload::{Dialect, Ids, hints, parse_in};
use crate::claude_code::to_json;
use crate::jsonl::{LineFiles, Lines};
use crate::past::{Past, PastCall, Unseen};
use crate::servers::{Server, Servers};
use crate::settings::{Edited, HookSpec, Installed, Pin, Places, Settings, SettingsError};
use crate::transcript::{Listing, TranscriptError, Transcripts};
use crate::usage::AgentNote;
use crate::{Client, Hints, PayloadError, answers};

mod settings;
mod tools;
mod transcript;

/// The name by which rows and `--client` know it.
pub const NAME: &str = "qwen";

/// This client.
#[derive(Clone, Copy, Debug)]
pub struct Qwen;

const DIALECT: Dialect = Dialect {
    client: NAME,
    event: |name| name,
    ids: Ids::Call,
    call: |tool, input, cwd, _server| tools::call(tool, input, cwd),
    batch: batched,
    failure: |_response| None,
    own_transcripts: false,
};

/// What a batch says of a call: one that has not begun was stopped by the client itself, unless a hook was asked.
fn batched(_tool: &str, response: &Value) -> Option<Outcome> {
    let text = |name: &str| response.get(name).and_then(Value::as_str);
    if text("execution_status") != Some("not_started") {
        return None;
    }
    Some(tools::stopped(text("error_type").unwrap_or_default()))
}

impl Client for Qwen {
    fn name(&self) -> &'static str {
        NAME
    }

    fn read(&self, bytes: &[u8]) -> Result<Event, PayloadError> {
        parse_in(bytes, &DIALECT)
    }

    fn hints(&self, bytes: &[u8]) -> Hints {
        Hints { call_id: None, ..hints(bytes) }
    }

    fn render(&self, answer: &Answer) -> String {
        to_json(&answers::plain(answer))
    }

    fn settings(&self) -> Option<&dyn Settings> {
        Some(self)
    }

    fn servers(&self) -> Option<&dyn Servers> {
        Some(self)
    }

    fn transcripts(&self) -> Option<&dyn Transcripts> {
        Some(self)
    }

    fn past(&self) -> Option<&dyn Past> {
        Some(self)
    }

    fn variable_files(&self) -> &'static [&'static str] {
        &[".qwen/.env", ".env"]
    }

    fn programs(&self) -> &'static [&'static str] {
        &["qwen"]
    }
}

impl Settings for Qwen {
    fn folder_variable(&self) -> Option<&'static str> {
        Some("QWEN_HOME")
    }

    fn places(&self, project: &Path, user: &Path, folder: Option<&Path>) -> Places {
        settings::places(project, user, folder)
    }

    fn is_personal(&self) -> bool {
        true
    }

    fn inspect(&self, text: Option<&str>) -> Result<Installed, SettingsError> {
        settings::inspect(text)
    }

    fn install(&self, text: Option<&str>, spec: &HookSpec) -> Result<Edited, SettingsError> {
        settings::install(text, spec)
    }

    fn remove(&self, text: &str) -> Result<Edited, SettingsError> {
        settings::remove(text)
    }

    fn switches(&self, text: &str) -> Vec<String> {
        settings::switches(text)
    }

    fn pin(&self) -> Option<Pin> {
        Some(settings::PIN)
    }
}

impl Servers for Qwen {
    fn files(&self, cwd: &Path, user: &Path, folder: Option<&Path>) -> Vec<PathBuf> {
        settings::places(cwd, user, folder).settings
    }

    fn defined(&self, text: &str, name: &str) -> Result<Vec<Server>, JsonError> {
        crate::claude_code::servers::servers(text, name)
    }
}

impl LineFiles for Qwen {
    fn each_line(&self) -> &'static dyn Lines {
        &transcript::Chats
    }

    fn all(&self, main: &Path) -> Result<Listing, TranscriptError> {
        transcript::files(main)
    }

    fn noted(&self, path: &Path) -> AgentNote {
        transcript::note(path)
    }
}

impl Past for Qwen {
    fn kept(&self, project: &Path, user: &Path, folder: Option<&Path>) -> Vec<PathBuf> {
        transcript::kept(project, &settings::own_folder(user, folder))
    }

    fn is_one(&self, path: &Path) -> bool {
        transcript::is_one(path)
    }

    fn calls(&self, main: &Path, take: &mut dyn FnMut(PastCall)) -> Result<Unseen, TranscriptError> {
        transcript::calls(main, take)
    }
}
