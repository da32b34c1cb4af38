//! Where this client keeps its settings, and what of Writ is in them.
//!
//! Owns the form of its entries, the places, and the switches that would take the hooks' effect away. Refuses files with comments, which the
//! client reads: an edit could not keep them where they are. The invariant: every file named here is protected from the agent (R19).
//! Format page: `spec/clients/gemini.md`.

use std::path::{Path, PathBuf};

use writ_core::json::{Value, parse_with};

use super::NAME;
use crate::guard;
use crate::hooks_file::{self, Form, LIMITS, Timeout, object, split_mark};
use crate::settings::{Edited, HookSpec, Installed, Pin, Places, SettingsError, TIMEOUT_SECONDS};
use crate::text::without_comments;

/// The events that Writ listens to.
const EVENTS: [&str; 6] = ["BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent", "SessionStart", "SessionEnd"];

/// What lies in the client's own folder and comes back into a session by itself.
const RELOADED: [(&str, &str); 5] = [
    (".env", "variables of the client"),
    ("trustedFolders.json", "the client's settings"),
    ("extensions", "an extension of the client"),
    ("policies", "a rule of the client"),
    ("tmp/**/*.jsonl", "a transcript of the client"),
];

/// What names of Writ's hooks begin with. The client switches off by name what has one, and by its command what has none.
const NAMED: &str = "writ-";

/// The administrator's file.
const MANAGED: &str = "/etc/gemini-cli/settings.json";

/// What holds the switches.
pub const PIN: Pin = Pin {
    file: MANAGED,
    is_in: pins,
    how: "as root, put `\"hooksConfig\": {\"enabled\": true}` into /etc/gemini-cli/settings.json: no project switches all hooks off then",
    held: &["`hooksConfig.enabled: false` in the user's or a trusted project's settings"],
    holds: &["hooksConfig.enabled"],
    moved_by: Some("GEMINI_CLI_SYSTEM_SETTINGS_PATH"),
    open: &[
        "`hooksConfig.disabled` with the hook's name (which `writ init` made up), in any settings file",
        "`\"hooks\": null` in a project, for the user's own hooks",
    ],
};

const FORM: Form = Form { events: &EVENTS, grouped: true, item: group, is_ours, head: &[] };

const TIMEOUT: Timeout = Timeout { member: "timeout", second: 1000, least: TIMEOUT_SECONDS };

fn group(event: &'static str, spec: &HookSpec) -> Value {
    let named = spec.name.iter().map(|name| ("name", Value::from(name.as_str())));
    let entry = object(named.chain([
        ("type", Value::from("command")),
        ("command", Value::from(guard::line(&spec.command, NAME, event))),
        ("timeout", Value::from(TIMEOUT.second * TIMEOUT_SECONDS)),
    ]));
    object([("hooks", Value::Array(vec![entry]))])
}

fn is_ours(entry: &Value) -> bool {
    entry.get("command").and_then(Value::as_str).is_some_and(|line| guard::is_of(line, NAME))
}

/// The user's own folder of this client.
pub fn own_folder(home: &Path, folder: Option<&Path>) -> PathBuf {
    folder.map_or_else(|| home.join(".gemini"), Path::to_owned)
}

/// The settings files that the client reads in `project`.
pub fn places(project: &Path, home: &Path, folder: Option<&Path>) -> Places {
    let own = own_folder(home, folder);
    let settings = vec![own.join("settings.json"), project.join(".gemini/settings.json"), MANAGED.into()];
    let mut others: Vec<_> = RELOADED.iter().map(|(name, what)| (own.join(name), *what)).collect();
    others.push((project.join(".gemini/.env"), "variables of the client"));
    others.push(("/etc/gemini-cli/system-defaults.json".into(), "the client's settings"));
    Places {
        user: own.join("settings.json"),
        project: project.join(".gemini/settings.json"),
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
    // One that has a name keeps it.
    let settings = read(text.unwrap_or_default());
    let found = hooks_file::ours(&settings, &FORM);
    let name = found.iter().find_map(|found| found.entry_value.get("name")?.as_str().map(str::to_owned));
    hooks_file::install(text, &HookSpec { name: name.or_else(|| spec.name.clone()), ..spec.clone() }, &FORM)
}

/// Takes them out.
pub fn remove(text: &str) -> Result<Edited, SettingsError> {
    hooks_file::remove(text, &FORM)
}

fn read(text: &str) -> Value {
    parse_with(without_comments(split_mark(text).1).as_bytes(), LIMITS).unwrap_or(Value::Null)
}

/// Members of a settings file that switch hooks off.
pub fn switches(text: &str) -> Vec<String> {
    let settings = read(text);
    let config = settings.get("hooksConfig");
    let off = config.and_then(|config| config.get("enabled")).and_then(Value::as_bool) == Some(false);
    let named = config.and_then(|config| config.get("disabled")).and_then(Value::as_array).unwrap_or_default();
    let ours = named.iter().filter_map(Value::as_str).any(|line| guard::is_of(line, NAME) || line.starts_with(NAMED));
    let none = settings.get("hooks") == Some(&Value::Null);
    let found = [(off, "hooksConfig.enabled"), (ours, "hooksConfig.disabled"), (none, "hooks")];
    found.into_iter().filter(|(is, _)| *is).map(|(_, name)| name.to_owned()).collect()
}

/// Whether the administrator's settings hold the switch.
fn pins(text: &str) -> bool {
    let settings = read(text);
    let config = settings.get("hooksConfig");
    config.and_then(|config| config.get("enabled")).and_then(Value::as_bool) == Some(true)
}
