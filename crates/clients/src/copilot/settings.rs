//! Where this client keeps its hooks, and what of Writ is in them.
//!
//! Owns a file of its own among the client's hook files, the places, and the switches that would take the hooks' effect away. Refuses to touch
//! any other of those files. The invariant: every file named here is protected from the agent (R19). Format page: `spec/clients/copilot.md`.

use std::path::{Path, PathBuf};

use writ_core::json::{Value, parse_with};

use super::NAME;
use crate::guard;
use crate::hooks_file::{self, Form, LIMITS, Timeout, object};
use crate::settings::{Edited, HookSpec, Installed, Pin, Places, SettingsError, TIMEOUT_SECONDS};

/// The events that Writ listens to.
const EVENTS: [&str; 11] = [
    "preToolUse",
    "postToolUse",
    "postToolUseFailure",
    "permissionRequest",
    "userPromptSubmitted",
    "sessionStart",
    "subagentStart",
    "subagentStop",
    "agentStop",
    "preCompact",
    "sessionEnd",
];

/// The name of Writ's own file among the client's.
const FILE: &str = "writ.json";
/// The only version that the client reads.
const VERSION: u64 = 1;
/// The administrator's folder.
const MANAGED: &str = "/etc/github-copilot/policy.d";

/// What holds the switches.
pub const PIN: Pin = Pin {
    file: "/etc/github-copilot/policy.d/writ.json",
    is_in: pins,
    how: "as root, run `writ init --client copilot --managed`: no settings file switches those hooks off",
    held: &["`\"disableAllHooks\": true` in a trusted repository's .github/copilot/settings.json"],
    holds: &["disableAllHooks"],
    moved_by: None,
    open: &[],
};

const FORM: Form = Form { events: &EVENTS, grouped: false, item: entry, is_ours, head: &[("version", VERSION)] };

const TIMEOUT: Timeout = Timeout { member: "timeoutSec", second: 1, least: TIMEOUT_SECONDS };

fn entry(event: &'static str, spec: &HookSpec) -> Value {
    object([
        ("type", Value::from("command")),
        ("bash", Value::from(guard::line(&spec.command, NAME, event))),
        ("timeoutSec", Value::from(TIMEOUT_SECONDS)),
    ])
}

fn is_ours(entry: &Value) -> bool {
    entry.get("bash").and_then(Value::as_str).is_some_and(|line| guard::is_of(line, NAME))
}

/// The user's own folder.
pub fn own_folder(home: &Path, folder: Option<&Path>) -> PathBuf {
    folder.map_or_else(|| home.join(".copilot"), Path::to_owned)
}

/// The files that the client reads in `project`.
pub fn places(project: &Path, home: &Path, folder: Option<&Path>) -> Places {
    let own = own_folder(home, folder);
    let managed = Path::new(MANAGED).join(FILE);
    let (user, repository) = (own.join("hooks").join(FILE), project.join(".github/hooks").join(FILE));
    let named = |path: PathBuf| (path, "the client's settings");
    let others = vec![
        (own.join("hooks"), "a hook of the client"),
        (project.join(".github/hooks"), "a hook of the client"),
        named(own.join("settings.json")),
        named(own.join("config.json")),
        named(own.join("mcp-config.json")),
        named(project.join(".github/copilot/settings.json")),
        named(project.join(".github/copilot/settings.local.json")),
        (PathBuf::from(MANAGED), "the client's settings"),
        (own.join("session-state/**/*.jsonl"), "a transcript of the client"),
    ];
    Places {
        settings: vec![user.clone(), repository.clone(), managed.clone()],
        user,
        project: repository,
        managed: Some(managed),
        others,
    }
}

/// Looks at a hook file.
pub fn inspect(text: Option<&str>) -> Result<Installed, SettingsError> {
    let mut installed = hooks_file::inspect(text, &FORM, "bash", &TIMEOUT)?;
    let file = text.and_then(|text| parse_with(text.as_bytes(), LIMITS).ok()).unwrap_or(Value::Null);
    if text.is_some() && file.get("version").and_then(Value::as_u64) != Some(VERSION) {
        installed.rejected.push("/version".to_owned());
    }
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
    let settings = parse_with(text.as_bytes(), LIMITS).unwrap_or(Value::Null);
    // In a file with hooks the member means nothing.
    let off =
        settings.get("version").is_none() && settings.get("disableAllHooks").and_then(Value::as_bool) == Some(true);
    off.then(|| "disableAllHooks".to_owned()).into_iter().collect()
}

/// Whether the administrator's file has Writ's hooks.
fn pins(text: &str) -> bool {
    inspect(Some(text)).is_ok_and(|installed| installed.missing.is_empty() && installed.rejected.is_empty())
}
