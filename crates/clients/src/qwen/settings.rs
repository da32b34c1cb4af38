//! Where this client keeps its settings, and what of Writ is in them.
//!
//! Owns the form of its entries, the places, and the switches that would take the hooks' effect away. Refuses files with comments, which the
//! client reads: an edit could not keep them where they are. The invariant: every file named here is protected from the agent (R19).
//! Format page: `spec/clients/qwen.md`.

use std::path::{Path, PathBuf};

use writ_core::json::{Value, parse_with};

use super::NAME;
use crate::guard;
use crate::hooks_file::{self, Form, LIMITS, Timeout, object, split_mark};
use crate::settings::{Edited, HookSpec, Installed, Pin, Places, SettingsError, TIMEOUT_SECONDS};
use crate::text::without_comments;

/// The events that Writ listens to.
const EVENTS: [&str; 12] = [
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
];

/// What lies in the client's own folder and comes back into a session by itself.
const RELOADED: [(&str, &str); 4] = [
    (".env", "variables of the client"),
    ("trustedFolders.json", "the client's settings"),
    ("extensions", "an extension of the client"),
    ("projects/**/*.jsonl", "a transcript of the client"),
];

/// The administrator's file.
const MANAGED: &str = "/etc/qwen-code/settings.json";

/// What holds the switches.
pub const PIN: Pin = Pin {
    file: MANAGED,
    is_in: pins,
    how: "as root, put `\"disableAllHooks\": false` into /etc/qwen-code/settings.json: no project switches hooks off then",
    held: &["`\"disableAllHooks\": true` in the user's or the project's settings"],
    holds: &["disableAllHooks"],
    moved_by: Some("QWEN_CODE_SYSTEM_SETTINGS_PATH"),
    open: &["`--safe-mode` and `--bare`"],
};

const FORM: Form = Form { events: &EVENTS, grouped: true, item: group, is_ours, head: &[] };

/// The client takes a number below some limit for seconds, and others for milliseconds.
const TIMEOUT: Timeout = Timeout { member: "timeout", second: 1000, least: TIMEOUT_SECONDS };

fn group(event: &'static str, spec: &HookSpec) -> Value {
    let entry = object([
        ("type", Value::from("command")),
        ("command", Value::from(guard::line(&spec.command, NAME, event))),
        ("timeout", Value::from(TIMEOUT.second * TIMEOUT_SECONDS)),
    ]);
    object([("hooks", Value::Array(vec![entry]))])
}

fn is_ours(entry: &Value) -> bool {
    entry.get("command").and_then(Value::as_str).is_some_and(|line| guard::is_of(line, NAME))
}

/// The user's own folder of this client.
pub fn own_folder(home: &Path, folder: Option<&Path>) -> PathBuf {
    folder.map_or_else(|| home.join(".qwen"), Path::to_owned)
}

/// The settings files that the client reads in `project`.
pub fn places(project: &Path, home: &Path, folder: Option<&Path>) -> Places {
    let own = own_folder(home, folder);
    let settings = vec![own.join("settings.json"), project.join(".qwen/settings.json"), MANAGED.into()];
    let mut others: Vec<_> = RELOADED.iter().map(|(name, what)| (own.join(name), *what)).collect();
    others.push((project.join(".qwen/.env"), "variables of the client"));
    others.push(("/etc/qwen-code/system-defaults.json".into(), "the client's settings"));
    Places {
        user: own.join("settings.json"),
        project: project.join(".qwen/settings.json"),
        managed: Some(MANAGED.into()),
        settings,
        others,
    }
}

/// Looks at a settings file.
pub fn inspect(text: Option<&str>) -> Result<Installed, SettingsError> {
    let mut installed = hooks_file::inspect(text, &FORM, "command", &TIMEOUT)?;
    installed.disabled = text.is_some_and(|text| !switches(text).is_empty());
    Ok(installed)
}

/// Puts the hooks in.
pub fn install(text: Option<&str>, spec: &HookSpec) -> Result<Edited, SettingsError> {
    hooks_file::install(text, spec, &FORM)
}

/// Takes them out.
pub fn remove(text: &str) -> Result<Edited, SettingsError> {
    hooks_file::remove(text, &FORM)
}

/// Members of a settings file that switch hooks off.
pub fn switches(text: &str) -> Vec<String> {
    let settings = parse_with(without_comments(split_mark(text).1).as_bytes(), LIMITS).unwrap_or(Value::Null);
    let off = settings.get("disableAllHooks").and_then(Value::as_bool) == Some(true);
    off.then(|| "disableAllHooks".to_owned()).into_iter().collect()
}

/// Whether the administrator's settings hold the switch.
fn pins(text: &str) -> bool {
    let settings = parse_with(without_comments(split_mark(text).1).as_bytes(), LIMITS).unwrap_or(Value::Null);
    settings.get("disableAllHooks").and_then(Value::as_bool) == Some(false)
}
