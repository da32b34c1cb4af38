//! Cursor, its editor and its command line: hooks and settings, from its documents. Not tried with the real client.
//!
//! Owns the mapping between this client's JSON and Writ's words. The client wants an answer to everything, so silence is said as `allow`.
//! Refuses to ask: headless nobody is there to be asked. The invariant: a refusal says so in each member in which an event of this client
//! looks for it. Format page: `spec/clients/cursor.md`.

use std::path::Path;

use serde::Serialize;
use writ_core::json::to_compact;
use writ_core::{Answer, Event, Reply};

use crate::settings::{Edited, HookSpec, Installed, Places, Settings, SettingsError};
use crate::text::bounded;
use crate::{Client, Hints, PayloadError, answers};

mod payload;
mod settings;
mod tools;

/// The name by which rows and `--client` know it.
pub const NAME: &str = "cursor";

/// This client.
#[derive(Clone, Copy, Debug)]
pub struct Cursor;

/// An answer as the client reads it; each event takes its own members.
#[derive(Default, Serialize)]
struct Output {
    permission: &'static str,
    r#continue: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    followup_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_context: Option<String>,
}

fn render(answer: &Answer) -> String {
    let answer = answers::plain(answer);
    let allowed = Output { permission: "allow", r#continue: true, ..Output::default() };
    let denied = |reason: &str| {
        let reason = bounded(reason);
        let (user_message, agent_message) = (Some(reason.clone()), Some(reason));
        Output { permission: "deny", user_message, agent_message, ..Output::default() }
    };
    to_compact(&match &answer.reply {
        Reply::Silent => Output { user_message: answer.message.as_deref().map(bounded), ..allowed },
        Reply::Decided { reason, .. } | Reply::DenyPermission { reason } => denied(reason),
        Reply::Block { reason } => Output { followup_message: Some(bounded(reason)), ..denied(reason) },
        Reply::Context { text, .. } => Output { additional_context: Some(bounded(text)), ..allowed },
    })
}

impl Client for Cursor {
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

    fn is_tried(&self) -> bool {
        false
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

    fn programs(&self) -> &'static [&'static str] {
        &["cursor-agent"]
    }
}

impl Settings for Cursor {
    fn folder_variable(&self) -> Option<&'static str> {
        None
    }

    fn places(&self, project: &Path, user: &Path, _folder: Option<&Path>) -> Places {
        settings::places(project, user)
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_has_an_answer() {
        assert_eq!(render(&Reply::Silent.into()), r#"{"permission":"allow","continue":true}"#);
        for answer in [Answer::refuse(Some("PreToolUse"), "no"), Answer::refuse(None, "no")] {
            let out = render(&answer);
            assert!(out.starts_with(r#"{"permission":"deny","continue":false,"user_message":"no""#), "{out}");
        }
        assert!(render(&Answer::refuse(None, "no")).contains(r#""followup_message":"no""#));
    }
}
