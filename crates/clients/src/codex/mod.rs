//! Codex CLI: hooks, settings and rollouts, as measured with version 0.169.0.
//!
//! Owns the mapping between this client's JSON and Writ's words. Refuses what the client would take for no answer: it lets the tool run
//! when an answer has a member that it does not know, a reason that is blank, or a question. The invariant: a refusal is exactly the one
//! shape that was measured to hold. Format page: `spec/clients/codex.md`.

use std::path::{Path, PathBuf};

use writ_core::json::{JsonError, Value};
use writ_core::{Answer, Event};

use crate::claude_code::payload::{Dialect, Ids, hints, parse_in};
use crate::claude_code::to_json;
use crate::jsonl;
use crate::past::{Past, PastCall, Unseen};
use crate::servers::{Server, Servers};
use crate::settings::{Companion, Edited, HookSpec, Installed, Pin, Places, Settings, SettingsError};
use crate::transcript::{Line, Listing, Reach, Told, TranscriptError, Transcripts};
use crate::usage::{AgentNote, Spoken};
use crate::work::Work;
use crate::{Client, Hints, PayloadError, answers};

mod rollout;
mod settings;
mod tools;
mod trust;

/// The name by which rows and `--client` know it.
pub const NAME: &str = "codex";

/// This client.
#[derive(Clone, Copy, Debug)]
pub struct Codex;

const DIALECT: Dialect = Dialect {
    client: NAME,
    event: |name| name,
    ids: Ids::Use,
    call: |tool, input, cwd, _server| tools::call(tool, input, cwd),
    batch: |_tool: &str, _response: &Value| None,
    failure: |_response| None,
    own_transcripts: true,
};

impl Client for Codex {
    fn name(&self) -> &'static str {
        NAME
    }

    fn read(&self, bytes: &[u8]) -> Result<Event, PayloadError> {
        parse_in(bytes, &DIALECT)
    }

    fn hints(&self, bytes: &[u8]) -> Hints {
        hints(bytes)
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

    fn programs(&self) -> &'static [&'static str] {
        &["codex"]
    }
}

impl Settings for Codex {
    fn folder_variable(&self) -> Option<&'static str> {
        Some("CODEX_HOME")
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

    fn companion(&self) -> Option<&dyn Companion> {
        Some(self)
    }

    fn switches(&self, text: &str) -> Vec<String> {
        trust::switches(text)
    }

    fn pin(&self) -> Option<Pin> {
        Some(trust::PIN)
    }
}

impl Companion for Codex {
    fn path(&self, user: &Path, folder: Option<&Path>) -> PathBuf {
        settings::own_folder(user, folder).join("config.toml")
    }

    fn install(&self, text: Option<&str>, settings: &Path, installed: &str) -> Result<Edited, SettingsError> {
        trust::install(text, settings, installed)
    }

    fn remove(&self, text: &str, settings: &Path) -> Result<Edited, SettingsError> {
        trust::remove(text, settings)
    }

    fn missing(&self, text: Option<&str>, settings: &Path, installed: &str) -> Vec<String> {
        trust::missing(text, settings, installed)
    }
}

impl Servers for Codex {
    fn files(&self, cwd: &Path, user: &Path, folder: Option<&Path>) -> Vec<PathBuf> {
        let own = settings::own_folder(user, folder).join("config.toml");
        cwd.ancestors().map(|folder| folder.join(".codex/config.toml")).chain([own]).collect()
    }

    fn defined(&self, text: &str, name: &str) -> Result<Vec<Server>, JsonError> {
        Ok(trust::servers(text, name))
    }
}

impl Transcripts for Codex {
    fn files(&self, main: &Path) -> Result<Listing, TranscriptError> {
        rollout::files(main)
    }

    fn read(&self, path: &Path, from: u64, take: &mut dyn FnMut(Told<'_>)) -> Result<Reach, TranscriptError> {
        jsonl::read(&rollout::Rollout::default(), path, from, take)
    }

    fn work(&self, path: &Path) -> Option<Work> {
        jsonl::work(&rollout::Rollout::default(), path)
    }

    fn usage(&self, path: &Path, from: u64, take: &mut dyn FnMut(Spoken)) -> Result<Reach, TranscriptError> {
        rollout::usage(path, from, take)
    }

    fn lines(&self, path: &Path, from: u64, take: &mut dyn FnMut(Line<'_>)) -> Result<Reach, TranscriptError> {
        jsonl::each(&rollout::speaking(path, from), path, from, take)
    }

    fn tells_of(&self, path: &Path, call: &str) -> bool {
        jsonl::tells_of(path, call)
    }

    fn model(&self, path: &Path, call: Option<&str>) -> Option<String> {
        rollout::model(path, call)
    }

    fn note(&self, path: &Path) -> AgentNote {
        rollout::note(path)
    }

    fn beside(&self, _path: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    fn unseen(&self) -> &'static [&'static str] {
        &rollout::UNSEEN
    }
}

impl Past for Codex {
    fn kept(&self, project: &Path, user: &Path, folder: Option<&Path>) -> Vec<PathBuf> {
        rollout::kept(project, &settings::own_folder(user, folder))
    }

    fn is_one(&self, path: &Path) -> bool {
        rollout::is_one(path)
    }

    fn calls(&self, main: &Path, take: &mut dyn FnMut(PastCall)) -> Result<Unseen, TranscriptError> {
        rollout::calls(main, take)
    }
}
