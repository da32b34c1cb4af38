//! Where this client keeps its hooks, and what of Writ is in them.
//!
//! Owns the form of its entries, the places, and the switches that would take the hooks' effect away. Hooks go into `settings.json`, which
//! every version reads; a `hooks.json` beside it takes an event's place there, and is a switch. Refuses files with comments. The invariant:
//! every file named here is protected from the agent (R19). Format page: `spec/clients/droid.md`.

use std::path::{Path, PathBuf};

use writ_core::json::{Value, parse_with};

use super::NAME;
use crate::guard;
use crate::hooks_file::{self, Form, LIMITS, Timeout, object, split_mark};
use crate::settings::{Edited, HookSpec, Installed, Places, SettingsError, TIMEOUT_SECONDS};
use crate::text::without_comments;

/// The events that Writ listens to.
const EVENTS: [&str; 7] =
    ["PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart", "Stop", "PreCompact", "SessionEnd"];

/// What lies in the client's own folder, of the user or of a project, and is obeyed.
const OBEYED: [(&str, &str); 7] = [
    ("hooks.json", "the client's hooks"),
    ("hooks", "the client's hooks"),
    ("settings.local.json", "the client's settings"),
    ("mcp.json", "the client's settings"),
    ("droids", "an agent of the client"),
    ("plugins", "an extension of the client"),
    ("config.json", "the client's settings"),
];

/// The administrator's folder.
const MANAGED: &str = "/etc/factory";

const FORM: Form = Form { events: &EVENTS, grouped: true, item: group, is_ours, head: &[] };

const TIMEOUT: Timeout = Timeout { member: "timeout", second: 1, least: TIMEOUT_SECONDS };

fn group(event: &'static str, spec: &HookSpec) -> Value {
    let entry = object([
        ("type", Value::from("command")),
        ("command", Value::from(guard::line(&spec.command, NAME, event))),
        ("timeout", Value::from(TIMEOUT_SECONDS)),
    ]);
    object([("hooks", Value::Array(vec![entry]))])
}

fn is_ours(entry: &Value) -> bool {
    entry.get("command").and_then(Value::as_str).is_some_and(|line| guard::is_of(line, NAME))
}

/// The files that the client reads in `project`. The variable moves the home, not the folder in it.
pub fn places(project: &Path, home: &Path, folder: Option<&Path>) -> Places {
    let own = folder.unwrap_or(home).join(".factory");
    let (user, theirs) = (own.join("settings.json"), project.join(".factory/settings.json"));
    let managed = Path::new(MANAGED).join("settings.json");
    let folders = [own.clone(), project.join(".factory")];
    let obeyed = folders.iter().flat_map(|folder| OBEYED.iter().map(|(name, what)| (folder.join(name), *what)));
    let mut others: Vec<(PathBuf, &'static str)> = obeyed.collect();
    others.push((PathBuf::from(MANAGED), "the client's settings"));
    others.push((own.join("sessions/**/*.jsonl"), "a transcript of the client"));
    Places {
        settings: vec![user.clone(), theirs.clone(), managed.clone()],
        user,
        project: theirs,
        managed: Some(managed),
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

/// What in one of the client's files switches hooks off: the member for that, under `hooks` or at the top of a `hooks.json`, and events at
/// the top of one, which take the place of those in the settings.
pub fn switches(text: &str) -> Vec<String> {
    let file = parse_with(without_comments(split_mark(text).1).as_bytes(), LIMITS).unwrap_or(Value::Null);
    let off = |value: &Value| value.get("hooksDisabled").and_then(Value::as_bool) == Some(true);
    let mut found = Vec::new();
    if file.get("hooks").is_some_and(off) {
        found.push("hooks.hooksDisabled".to_owned());
    }
    if off(&file) {
        found.push("hooksDisabled".to_owned());
    }
    found.extend(EVENTS.iter().filter(|event| file.get(event).is_some()).map(|event| (*event).to_owned()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_beside_the_settings_takes_their_place() {
        assert_eq!(switches(r#"{"hooks":{"hooksDisabled":true}}"#), ["hooks.hooksDisabled"]);
        assert_eq!(switches(r#"{"PreToolUse":[]}"#), ["PreToolUse"]);
        assert_eq!(switches("// off\n{\"hooksDisabled\":true}"), ["hooksDisabled"]);
        let spec = HookSpec { command: "writ".to_owned(), on_failure_block: false, name: None };
        let text = install(None, &spec).unwrap().text;
        assert_eq!((switches(&text), inspect(Some(&text)).unwrap().complete()), (vec![], true));
        assert_eq!(remove(&text).unwrap().text, "{}\n");
    }
}
