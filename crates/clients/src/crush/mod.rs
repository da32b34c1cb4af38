//! Crush: hooks and settings, from its documents. Not tried with the real client.
//!
//! Owns the mapping between this client's JSON and Writ's words. It has one event, before a call of its main agent. Refuses to say yes: that
//! would be a consent in the user's name; and refuses calls that start another agent, of whose calls no hook is told. The invariant: a
//! refusal has `decision: "deny"`. Format page: `spec/clients/crush.md`.

use std::path::Path;

use serde::{Deserialize, Serialize};
use writ_core::json::{self, Limits, Loose, Value, to_compact};
use writ_core::{Answer, Event, EventKind, Reply, SessionId, ToolUse};

use crate::settings::{Edited, HookSpec, Installed, Places, Settings, SettingsError};
use crate::text::bounded;
use crate::{Client, Hints, PayloadError, answers, hints};

mod settings;
mod tools;

/// The name by which rows and `--client` know it.
pub const NAME: &str = "crush";

/// This client.
#[derive(Clone, Copy, Debug)]
pub struct Crush;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Payload {
    event: Loose<String>,
    session_id: Loose<String>,
    cwd: Loose<String>,
    tool_name: Loose<String>,
    #[serde(deserialize_with = "json::given")]
    tool_input: Option<Value>,
}

/// An answer as the client reads it.
#[derive(Default, Serialize)]
struct Output {
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<String>,
}

fn render(answer: &Answer) -> String {
    let mut out = Output::default();
    match answers::plain(answer).reply {
        // There is no member for a message to the user alone.
        Reply::Silent => {}
        Reply::Decided { reason, .. } | Reply::DenyPermission { reason } | Reply::Block { reason } => {
            (out.decision, out.reason) = (Some("deny"), Some(bounded(&reason)));
        }
        Reply::Context { text, .. } => out.context = Some(bounded(&text)),
    }
    to_compact(&out)
}

fn read(bytes: &[u8]) -> Result<Event, PayloadError> {
    let payload: Payload = json::from_slice_with(bytes, Limits::FOREIGN)?;
    let text = |found: Loose<String>, member| {
        let found = found.0.filter(|text| !text.is_empty());
        found.ok_or(PayloadError::Member { member, expected: "a text that is not empty" })
    };
    let (name, cwd) = (text(payload.event, "event")?, text(payload.cwd, "cwd")?);
    let kind = match name.as_str() {
        "PreToolUse" => {
            let input = payload.tool_input.ok_or(PayloadError::Member { member: "tool_input", expected: "there" })?;
            let call = tools::call(text(payload.tool_name, "tool_name")?, input, &cwd);
            EventKind::PreToolUse(ToolUse { id: String::new(), call })
        }
        _ => EventKind::Other(name),
    };
    Ok(Event {
        client: NAME,
        session: SessionId::new(text(payload.session_id, "session_id")?),
        client_session: None,
        transcript: None,
        agent: None,
        permission_mode: None,
        prompt_id: None,
        kind,
        cwd,
    })
}

impl Client for Crush {
    fn name(&self) -> &'static str {
        NAME
    }

    fn read(&self, bytes: &[u8]) -> Result<Event, PayloadError> {
        read(bytes)
    }

    fn hints(&self, bytes: &[u8]) -> Hints {
        Hints { call_id: None, ..hints::find(bytes, ["session_id", "cwd", "event", "tool_use_id", "tool_name"]) }
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

    fn tells_of_turns(&self) -> bool {
        false
    }

    fn tells_of_ends(&self) -> bool {
        false
    }

    fn sample(&self, cwd: &str) -> String {
        let input = Value::Object([("file_path", Value::from(format!("{cwd}/README.md").as_str()))].into());
        let payload = [
            ("event", Value::from("PreToolUse")),
            ("session_id", Value::from("writ-doctor")),
            ("cwd", Value::from(cwd)),
            ("tool_name", Value::from("view")),
            ("tool_input", input),
        ];
        json::compact(&Value::Object(payload.into()))
    }

    fn settings(&self) -> Option<&dyn Settings> {
        Some(self)
    }

    fn programs(&self) -> &'static [&'static str] {
        &["crush"]
    }
}

impl Settings for Crush {
    fn folder_variable(&self) -> Option<&'static str> {
        Some("CRUSH_GLOBAL_CONFIG")
    }

    fn places(&self, project: &Path, user: &Path, folder: Option<&Path>) -> Places {
        settings::places(project, user, folder)
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
    fn a_yes_is_never_said() {
        let allowed = Answer::from(Reply::Decided { verdict: writ_core::Verdict::Allow, reason: "fine".to_owned() });
        assert_eq!((render(&allowed), render(&Reply::Silent.into())), ("{}".to_owned(), "{}".to_owned()));
        for event in [Some("PreToolUse"), None] {
            assert_eq!(render(&Answer::refuse(event, "no")), r#"{"decision":"deny","reason":"no"}"#);
        }
    }

    #[test]
    fn a_payload_is_read_in_full_or_not_at_all() {
        let event = |more: &str| read(format!(r#"{{"session_id":"s","cwd":"/w","event":{more}}}"#).as_bytes());
        assert!(matches!(
            event(r#""PreToolUse","tool_name":"bash","tool_input":{"command":"ls"}"#).unwrap().kind,
            EventKind::PreToolUse(_)
        ));
        assert!(event(r#""PreToolUse","tool_name":"bash""#).is_err() && event(r#""PreToolUse""#).is_err());
        assert!(matches!(event(r#""PreCompact""#).unwrap().kind, EventKind::Other(_)));
        assert!(Crush.parse(Crush.sample("/w").as_bytes()).is_ok());
    }
}
