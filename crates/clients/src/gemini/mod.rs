//! Gemini CLI: hooks, settings and chats, as measured with version 0.61.0.
//!
//! Owns the mapping between this client's JSON and Writ's words. Refuses to ask: a question hangs for ever where nobody is there to be asked.
//! The client tells no id of a call and no agent; calls are known by what they are. The invariant: an answer is exactly one JSON object
//! whose `decision` is `deny` or not there. Format page: `spec/clients/gemini.md`.

use std::path::{Path, PathBuf};

use serde::Serialize;
use writ_core::json::{JsonError, Value, to_compact};
use writ_core::{Answer, Event, Reply};

use crate::claude_code::payload::{Dialect, Ids, hints, parse_in};
use crate::jsonl::{LineFiles, Lines};
use crate::past::{Past, PastCall, Unseen};
use crate::servers::{Server, Servers};
use crate::settings::{Edited, HookSpec, Installed, Pin, Places, Settings, SettingsError};
use crate::text::bounded;
use crate::transcript::{Listing, TranscriptError, Transcripts};
use crate::{Client, Hints, PayloadError, answers};

mod chats;
mod settings;
mod tools;

/// The name by which rows and `--client` know it.
pub const NAME: &str = "gemini";

/// This client.
#[derive(Clone, Copy, Debug)]
pub struct Gemini;

const DIALECT: Dialect = Dialect {
    client: NAME,
    event: canonical,
    ids: Ids::Nothing,
    call: tools::call,
    batch: |_tool: &str, _response: &Value| None,
    failure: tools::failure,
    own_transcripts: false,
};

/// The canonical names of its events. It compresses before every turn, whether there is anything to compress or not.
fn canonical(event: &str) -> &str {
    match event {
        "BeforeTool" => "PreToolUse",
        "AfterTool" => "PostToolUse",
        "BeforeAgent" => "UserPromptSubmit",
        "AfterAgent" => "Stop",
        "SessionStart" | "SessionEnd" => event,
        _ => "Other",
    }
}

/// Its own name of an event.
fn own(event: &str) -> &str {
    match event {
        "PreToolUse" => "BeforeTool",
        "PostToolUse" | "PostToolUseFailure" => "AfterTool",
        "UserPromptSubmit" => "BeforeAgent",
        "Stop" => "AfterAgent",
        other => other,
    }
}

/// An answer as the client reads it.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Output {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook_specific_output: Option<Context>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Context {
    hook_event_name: String,
    additional_context: String,
}

fn render(answer: &Answer) -> String {
    let answer = answers::plain(answer);
    let mut out = Output { system_message: answer.message.as_deref().map(bounded), ..Output::default() };
    match &answer.reply {
        Reply::Silent => {}
        Reply::Decided { reason, .. } | Reply::DenyPermission { reason } | Reply::Block { reason } => {
            (out.decision, out.reason) = (Some("deny"), Some(bounded(reason)));
        }
        Reply::Context { event, text } => {
            let context = Context { hook_event_name: own(event).to_owned(), additional_context: bounded(text) };
            out.hook_specific_output = Some(context);
        }
    }
    to_compact(&out)
}

impl Client for Gemini {
    fn name(&self) -> &'static str {
        NAME
    }

    fn read(&self, bytes: &[u8]) -> Result<Event, PayloadError> {
        parse_in(bytes, &DIALECT)
    }

    fn hints(&self, bytes: &[u8]) -> Hints {
        let found = hints(bytes);
        Hints { event: found.event.as_deref().map(canonical).map(str::to_owned), call_id: None, ..found }
    }

    fn render(&self, answer: &Answer) -> String {
        render(answer)
    }

    fn tells_ids(&self) -> bool {
        false
    }

    fn sample(&self, cwd: &str) -> String {
        crate::hints::sample(cwd).replace("\"PreToolUse\"", "\"BeforeTool\"")
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
        &[".gemini/.env", ".env"]
    }

    fn programs(&self) -> &'static [&'static str] {
        &["gemini"]
    }

    fn provider(&self) -> Option<&'static str> {
        Some("google")
    }
}

impl Settings for Gemini {
    fn folder_variable(&self) -> Option<&'static str> {
        None
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

impl Servers for Gemini {
    fn files(&self, cwd: &Path, user: &Path, folder: Option<&Path>) -> Vec<PathBuf> {
        settings::places(cwd, user, folder).settings
    }

    fn defined(&self, text: &str, name: &str) -> Result<Vec<Server>, JsonError> {
        crate::claude_code::servers::servers(text, name)
    }
}

impl LineFiles for Gemini {
    fn each_line(&self) -> &'static dyn Lines {
        &chats::Chats
    }

    fn all(&self, main: &Path) -> Result<Listing, TranscriptError> {
        chats::files(main)
    }

    fn untold(&self) -> &'static [&'static str] {
        &chats::UNSEEN
    }
}

impl Past for Gemini {
    fn kept(&self, project: &Path, user: &Path, folder: Option<&Path>) -> Vec<PathBuf> {
        chats::kept(project, &settings::own_folder(user, folder))
    }

    fn is_one(&self, path: &Path) -> bool {
        chats::is_one(path)
    }

    fn calls(&self, main: &Path, take: &mut dyn FnMut(PastCall)) -> Result<Unseen, TranscriptError> {
        chats::past(main, take)
    }
}
