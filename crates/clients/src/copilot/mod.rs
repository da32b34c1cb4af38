//! Copilot CLI: hooks, hook files and event logs, as measured with version 1.0.102.
//!
//! Owns the mapping between this client's JSON and Writ's words, in its own (camel case) form of events. Refuses to ask: without somebody at
//! the terminal a question is a no. The client tells neither the event nor a call's id; which event it is, the members say. The invariant:
//! a refusal of a call has `permissionDecision` at the top. Format page: `spec/clients/copilot.md`.

use std::path::{Path, PathBuf};

use serde::Serialize;
use writ_core::json::to_compact;
use writ_core::{Answer, Event, Reply};

use crate::jsonl::{LineFiles, Lines};
use crate::past::{Past, PastCall, Unseen};
use crate::settings::{Edited, HookSpec, Installed, Pin, Places, Settings, SettingsError};
use crate::text::bounded;
use crate::transcript::{Listing, TranscriptError, Transcripts};
use crate::{Client, Hints, PayloadError, answers};

mod events;
mod payload;
mod settings;
mod tools;

/// The name by which rows and `--client` know it.
pub const NAME: &str = "copilot";

/// This client.
#[derive(Clone, Copy, Debug)]
pub struct Copilot;

/// An answer as the client reads it; each event takes its own members.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Output {
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_decision_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    behavior: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_context: Option<String>,
}

fn render(answer: &Answer) -> String {
    let answer = answers::plain(answer);
    let mut out = Output::default();
    match &answer.reply {
        // There is no member for a message to the user alone.
        Reply::Silent => {}
        Reply::Decided { reason, .. } => {
            (out.permission_decision, out.permission_decision_reason) = (Some("deny"), Some(bounded(reason)));
        }
        Reply::DenyPermission { reason } => (out.behavior, out.message) = (Some("deny"), Some(bounded(reason))),
        // The refusal that holds whatever the event is.
        Reply::Block { reason } => {
            let reason = bounded(reason);
            (out.permission_decision, out.permission_decision_reason) = (Some("deny"), Some(reason.clone()));
            (out.decision, out.reason) = (Some("block"), Some(reason));
        }
        Reply::Context { text, .. } => out.additional_context = Some(bounded(text)),
    }
    to_compact(&out)
}

impl Client for Copilot {
    fn name(&self) -> &'static str {
        NAME
    }

    fn read(&self, bytes: &[u8]) -> Result<Event, PayloadError> {
        payload::parse(bytes)
    }

    fn hints(&self, bytes: &[u8]) -> Hints {
        payload::hints(bytes)
    }

    fn render(&self, answer: &Answer) -> String {
        render(answer)
    }

    fn tells_ids(&self) -> bool {
        false
    }

    fn sample(&self, cwd: &str) -> String {
        payload::sample(cwd)
    }

    fn settings(&self) -> Option<&dyn Settings> {
        Some(self)
    }

    fn transcripts(&self) -> Option<&dyn Transcripts> {
        Some(self)
    }

    fn past(&self) -> Option<&dyn Past> {
        Some(self)
    }

    fn transcript_of(&self, session: &str, user: &Path, folder: Option<&Path>) -> Option<PathBuf> {
        let plain = session.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let own = settings::own_folder(user, folder);
        plain.then(|| own.join("session-state").join(session).join("events.jsonl"))
    }

    fn programs(&self) -> &'static [&'static str] {
        &["copilot"]
    }
}

impl Settings for Copilot {
    fn folder_variable(&self) -> Option<&'static str> {
        Some("COPILOT_HOME")
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

impl LineFiles for Copilot {
    fn each_line(&self) -> &'static dyn Lines {
        &events::Events
    }

    fn all(&self, main: &Path) -> Result<Listing, TranscriptError> {
        Ok(Listing { files: vec![(crate::transcript::MAIN.to_owned(), main.to_owned())], unread: 0 })
    }

    fn untold(&self) -> &'static [&'static str] {
        &events::UNSEEN
    }

    fn late(&self) -> bool {
        true
    }
}

impl Past for Copilot {
    fn kept(&self, project: &Path, user: &Path, folder: Option<&Path>) -> Vec<PathBuf> {
        events::kept(project, &settings::own_folder(user, folder))
    }

    fn is_one(&self, path: &Path) -> bool {
        events::is_one(path)
    }

    fn calls(&self, main: &Path, take: &mut dyn FnMut(PastCall)) -> Result<Unseen, TranscriptError> {
        events::calls(self.files(main)?, take)
    }
}
