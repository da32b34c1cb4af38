//! OpenCode: a plugin of Writ's that asks, as measured with version 1.18.33.
//!
//! The client starts no commands for hooks; a plugin that Writ writes runs in its process, hands each event over in the form of
//! `spec/clients/generic.md`, and throws where it is told no. Owns that plugin and the client's tools. Refuses to let anything but one word
//! of consent let a tool run. The invariant: an answer is exactly one JSON object, which says `go` or why not. Format page:
//! `spec/clients/opencode.md`.

use std::path::{Path, PathBuf};

use serde::Serialize;
use writ_core::json::to_compact;
use writ_core::{Answer, Event, EventKind, Reply};

use crate::generic::{self, Generic};
use crate::jsonl::{LineFiles, Lines};
use crate::past::{Past, PastCall, Unseen};
use crate::settings::{Edited, HookSpec, Installed, Pin, Places, Settings, SettingsError};
use crate::text::bounded;
use crate::transcript::{Drawn, Listing, Told, TranscriptError, Transcripts};
use crate::usage::AgentNote;
use crate::{Client, Hints, PayloadError, answers};

mod database;
mod log;
mod past;
mod plugin;
mod tools;

/// The name by which rows and `--client` know it.
pub const NAME: &str = "opencode";

/// This client.
#[derive(Clone, Copy, Debug)]
pub struct OpenCode;

/// An answer as the plugin reads it.
#[derive(Serialize)]
struct Output {
    go: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

impl Client for OpenCode {
    fn name(&self) -> &'static str {
        NAME
    }

    fn read(&self, bytes: &[u8]) -> Result<Event, PayloadError> {
        let mut event = Event { client: NAME, ..generic::read(bytes)? };
        if let EventKind::PreToolUse(used)
        | EventKind::PostToolUse { call: used, .. }
        | EventKind::PostToolUseFailure { call: used, .. } = &mut event.kind
        {
            used.call = tools::call(used.call.tool.clone(), used.call.input.clone(), &event.cwd);
        }
        Ok(event)
    }

    fn hints(&self, bytes: &[u8]) -> Hints {
        Generic.hints(bytes)
    }

    fn render(&self, answer: &Answer) -> String {
        let answer = answers::plain(answer);
        let refused = match &answer.reply {
            Reply::Silent | Reply::Context { .. } => None,
            Reply::Decided { reason, .. } | Reply::DenyPermission { reason } | Reply::Block { reason } => {
                Some(bounded(reason))
            }
        };
        to_compact(&Output { go: refused.is_none(), refused })
    }

    fn sample(&self, cwd: &str) -> String {
        plugin::sample(cwd)
    }

    fn settings(&self) -> Option<&dyn Settings> {
        Some(self)
    }

    fn programs(&self) -> &'static [&'static str] {
        &["opencode"]
    }

    fn transcripts(&self) -> Option<&dyn Transcripts> {
        Some(self)
    }

    fn drawn(&self) -> Option<&dyn Drawn> {
        Some(self)
    }

    fn past(&self) -> Option<&dyn Past> {
        Some(self)
    }
}

impl Past for OpenCode {
    fn kept(&self, project: &Path, user: &Path, _folder: Option<&Path>) -> Vec<PathBuf> {
        past::kept(project, user)
    }

    fn is_one(&self, path: &Path) -> bool {
        past::is_one(path)
    }

    fn calls(&self, main: &Path, take: &mut dyn FnMut(PastCall)) -> Result<Unseen, TranscriptError> {
        past::calls(main, take)
    }
}

impl Drawn for OpenCode {
    fn main(&self, folder: &Path, session: &str) -> PathBuf {
        database::main(folder, session)
    }

    fn begin(&self, main: &Path, database: &Path) -> Result<(), TranscriptError> {
        database::begin(main, database)
    }

    fn draw(&self, main: &Path) -> Result<(), TranscriptError> {
        database::draw(main)
    }
}

impl LineFiles for OpenCode {
    fn each_line(&self) -> &'static dyn Lines {
        &log::Log
    }

    fn all(&self, main: &Path) -> Result<Listing, TranscriptError> {
        Ok(log::files(main))
    }

    fn noted(&self, path: &Path) -> AgentNote {
        log::note(path)
    }

    fn untold(&self) -> &'static [&'static str] {
        &log::UNSEEN
    }

    fn kept_now(&self, main: &Path, take: &mut dyn FnMut(Told<'_>)) -> Result<(), TranscriptError> {
        database::now(main, &mut |line| log::tell_lines(line, take))
    }
}

impl Settings for OpenCode {
    fn folder_variable(&self) -> Option<&'static str> {
        None
    }

    fn places(&self, project: &Path, user: &Path, _folder: Option<&Path>) -> Places {
        plugin::places(project, user)
    }

    fn is_personal(&self) -> bool {
        true
    }

    fn inspect(&self, text: Option<&str>) -> Result<Installed, SettingsError> {
        Ok(plugin::inspect(text))
    }

    fn install(&self, text: Option<&str>, spec: &HookSpec) -> Result<Edited, SettingsError> {
        plugin::install(text, spec)
    }

    fn remove(&self, text: &str) -> Result<Edited, SettingsError> {
        Ok(plugin::remove(text))
    }

    fn pin(&self) -> Option<Pin> {
        Some(plugin::PIN)
    }
}
