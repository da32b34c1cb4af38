//! Where this client keeps its settings, and what of Writ is in them.
//!
//! Owns the form of its entries and the places. Refuses a file with a member that the client does not know: it ignores the whole of it. The
//! invariant: every file named here is protected from the agent (R19). Format page: `spec/clients/codex.md`.

use std::path::{Path, PathBuf};

use writ_core::json::{Object, Value, parse_with};

use super::NAME;
use crate::guard;
use crate::hooks_file::{self, Form, LIMITS, Timeout, object};
use crate::settings::{Edited, HookSpec, Installed, Places, SettingsError, TIMEOUT_SECONDS};

/// The events that Writ listens to.
pub const EVENTS: [&str; 10] = [
    "PreToolUse",
    "PostToolUse",
    "PermissionRequest",
    "UserPromptSubmit",
    "SessionStart",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "PreCompact",
    "SessionEnd",
];

/// What the client waits at the end of a session, whatever it is told.
pub const AT_END: u64 = 3;

/// Members of the file that the client knows.
const MEMBERS: [&str; 2] = ["description", "hooks"];

/// The administrator's folder.
const MANAGED: &str = "/etc/codex";

pub const FORM: Form = Form { events: &EVENTS, grouped: true, item: group, is_ours, head: &[] };

const TIMEOUT: Timeout = Timeout { member: "timeout", second: 1, least: TIMEOUT_SECONDS };

fn group(event: &'static str, spec: &HookSpec) -> Value {
    let entry = object([
        ("type", Value::from("command")),
        ("command", Value::from(guard::line(&spec.command, NAME, event))),
        ("timeout", Value::from(if event == "SessionEnd" { AT_END } else { TIMEOUT_SECONDS })),
    ]);
    object([("hooks", Value::Array(vec![entry]))])
}

fn is_ours(entry: &Value) -> bool {
    entry.get("command").and_then(Value::as_str).is_some_and(|line| guard::is_of(line, NAME))
}

/// The user's own folder.
pub fn own_folder(home: &Path, folder: Option<&Path>) -> PathBuf {
    folder.map_or_else(|| home.join(".codex"), Path::to_owned)
}

/// The settings files that the client reads in `project`.
pub fn places(project: &Path, home: &Path, folder: Option<&Path>) -> Places {
    let own = own_folder(home, folder);
    let managed = Path::new(MANAGED).join("hooks.json");
    let settings = vec![own.join("hooks.json"), project.join(".codex/hooks.json"), managed.clone()];
    let named = |path: PathBuf| (path, "the client's settings");
    let others = vec![
        named(own.join("config.toml")),
        named(project.join(".codex/config.toml")),
        named(Path::new(MANAGED).join("config.toml")),
        named(Path::new(MANAGED).join("requirements.toml")),
        (own.join("rules"), "a rule of the client"),
        (own.join("sessions/**/*.jsonl"), "a transcript of the client"),
    ];
    Places {
        user: own.join("hooks.json"),
        project: project.join(".codex/hooks.json"),
        managed: Some(managed),
        settings,
        others,
    }
}

/// Looks at a settings file.
pub fn inspect(text: Option<&str>) -> Result<Installed, SettingsError> {
    let mut installed = hooks_file::inspect(text, &FORM, "command", &TIMEOUT)?;
    installed.hurried.retain(|event| *event != "SessionEnd");
    let settings = text.and_then(|text| parse_with(text.as_bytes(), LIMITS).ok()).unwrap_or(Value::Null);
    for (name, _) in settings.as_object().into_iter().flat_map(Object::iter) {
        if !MEMBERS.contains(&name) {
            installed.rejected.push(format!("/{name}"));
        }
    }
    Ok(installed)
}

/// Puts the hooks in.
pub fn install(text: Option<&str>, spec: &HookSpec) -> Result<Edited, SettingsError> {
    // The client does not take a byte order mark.
    let marked = text.is_some_and(|text| text.starts_with('\u{feff}'));
    if marked || !inspect(text)?.rejected.is_empty() {
        let expected = "a file that the client reads: it holds `hooks` and `description` and nothing else";
        return Err(SettingsError::Shape { pointer: "/".to_owned(), expected });
    }
    hooks_file::install(text, spec, &FORM)
}

/// Takes them out.
pub fn remove(text: &str) -> Result<Edited, SettingsError> {
    hooks_file::remove(text, &FORM)
}
