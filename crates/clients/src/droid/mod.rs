//! Droid: hooks and settings, from its documents and its program's text (version 0.215.0). Not tried with the real client.
//!
//! Owns the mapping between this client's JSON and Writ's words. Its hooks are Claude Code's, with names of its own for tools and no id for a
//! call. Refuses to ask: headless nobody is there to be asked. The invariant: whatever is refused has `permissionDecision`, the one word
//! that holds a call here. Format page: `spec/clients/droid.md`.

use std::path::Path;

use serde::Serialize;
use writ_core::json::to_compact;
use writ_core::{Answer, Event, Reply};

use crate::claude_code::payload::{Dialect, Ids, hints, parse_in};
use crate::settings::{Edited, HookSpec, Installed, Places, Settings, SettingsError};
use crate::text::bounded;
use crate::{Client, Hints, PayloadError, answers};

mod settings;
mod tools;

/// The name by which rows and `--client` know it.
pub const NAME: &str = "droid";

/// This client.
#[derive(Clone, Copy, Debug)]
pub struct Droid;

const DIALECT: Dialect = Dialect {
    client: NAME,
    event: |name| name,
    ids: Ids::Nothing,
    call: |tool, input, cwd, _server| tools::call(tool, input, cwd),
    batch: |_tool, _response| None,
    failure: |_response| None,
    own_transcripts: false,
};

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
    hook_specific_output: Option<Specific>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Specific {
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_decision_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_context: Option<String>,
}

fn render(answer: &Answer) -> String {
    let answer = answers::plain(answer);
    let mut out = Output { system_message: answer.message.as_deref().map(bounded), ..Output::default() };
    match &answer.reply {
        Reply::Silent => {}
        // A refusal that holds whatever the event is: `decision` holds a stop, and no call.
        Reply::Decided { reason, .. } | Reply::DenyPermission { reason } | Reply::Block { reason } => {
            let reason = bounded(reason);
            (out.decision, out.reason) = (Some("block"), Some(reason.clone()));
            out.hook_specific_output = Some(Specific {
                permission_decision: Some("deny"),
                permission_decision_reason: Some(reason),
                ..Specific::default()
            });
        }
        Reply::Context { text, .. } => {
            out.hook_specific_output =
                Some(Specific { additional_context: Some(bounded(text)), ..Specific::default() });
        }
    }
    to_compact(&out)
}

impl Client for Droid {
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
        render(answer)
    }

    fn is_tried(&self) -> bool {
        false
    }

    fn tells_ids(&self) -> bool {
        false
    }

    fn settings(&self) -> Option<&dyn Settings> {
        Some(self)
    }

    fn programs(&self) -> &'static [&'static str] {
        &["droid"]
    }
}

impl Settings for Droid {
    fn folder_variable(&self) -> Option<&'static str> {
        Some("FACTORY_HOME_OVERRIDE")
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_has_the_word_that_holds_a_call() {
        for answer in [
            Answer::refuse(Some("PreToolUse"), "no"),
            Answer::refuse(None, "no"),
            Answer::refuse(Some("PermissionRequest"), ""),
        ] {
            let out = render(&answer);
            assert!(out.contains(r#""permissionDecision":"deny""#) && out.contains(r#""decision":"block""#), "{out}");
        }
        assert_eq!(render(&Reply::Silent.into()), "{}");
    }
}
