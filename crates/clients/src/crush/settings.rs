//! Where this client keeps its hooks, and what of Writ is in them.
//!
//! Owns the form of its entries and the places. A project's hooks go before the user's; so a project's own are a switch where Writ's are not
//! among them. Refuses files with comments. The invariant: every file named here is protected from the agent (R19). Format page:
//! `spec/clients/crush.md`.

use std::path::{Path, PathBuf};

use writ_core::json::{Object, Value, parse_with};

use super::NAME;
use crate::guard;
use crate::hooks_file::{self, Form, LIMITS, Timeout, object, split_mark};
use crate::settings::{Edited, HookSpec, Installed, Places, SettingsError, TIMEOUT_SECONDS};
use crate::text::without_comments;

/// The one event that every version knows.
const EVENTS: [&str; 1] = ["PreToolUse"];

const FORM: Form = Form { events: &EVENTS, grouped: false, item: entry, is_ours, head: &[] };

const TIMEOUT: Timeout = Timeout { member: "timeout", second: 1, least: TIMEOUT_SECONDS };

fn entry(event: &'static str, spec: &HookSpec) -> Value {
    object([
        ("command", Value::from(guard::line(&spec.command, NAME, event))),
        ("timeout", Value::from(TIMEOUT_SECONDS)),
    ])
}

fn is_ours(entry: &Value) -> bool {
    entry.get("command").and_then(Value::as_str).is_some_and(|line| guard::is_of(line, NAME))
}

/// The files that the client reads in `project`.
pub fn places(project: &Path, home: &Path, folder: Option<&Path>) -> Places {
    let own = folder.map_or_else(|| home.join(".config/crush"), Path::to_owned);
    let (user, theirs) = (own.join("crush.json"), project.join("crush.json"));
    let named = |path: PathBuf| (path, "the client's settings");
    Places {
        settings: vec![user.clone(), theirs.clone(), project.join(".crush.json")],
        user,
        project: theirs,
        managed: None,
        others: vec![
            named(home.join(".local/share/crush/crush.json")),
            (own.join("skills"), "an instruction of the client"),
        ],
    }
}

/// Looks at a settings file.
pub fn inspect(text: Option<&str>) -> Result<Installed, SettingsError> {
    hooks_file::inspect(text, &FORM, "command", &TIMEOUT)
}

/// Puts the hooks in.
pub fn install(text: Option<&str>, spec: &HookSpec) -> Result<Edited, SettingsError> {
    hooks_file::install(text, spec, &FORM)
}

/// Takes them out.
pub fn remove(text: &str) -> Result<Edited, SettingsError> {
    hooks_file::remove(text, &FORM)
}

/// Lists of hooks before a call that Writ's is not in: they may stand in the place of the list that has it.
pub fn switches(text: &str) -> Vec<String> {
    let file = parse_with(without_comments(split_mark(text).1).as_bytes(), LIMITS).unwrap_or(Value::Null);
    // The client takes an event's name in any case, with underscores or without.
    let is_call = |name: &str| name.replace('_', "").eq_ignore_ascii_case("PreToolUse");
    let hooks = file.get("hooks").and_then(Value::as_object).into_iter().flat_map(Object::iter);
    let lists = hooks.filter(|(name, _)| is_call(name)).map(|(name, list)| (name, list.as_array().unwrap_or_default()));
    let without = lists.filter(|(_, list)| !list.iter().any(is_ours));
    without.map(|(name, _)| format!("hooks.{name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_without_writs_hook_is_a_switch() {
        assert_eq!(switches(r#"{"hooks":{"pre_tool_use":[{"command":"true"}]}}"#), ["hooks.pre_tool_use"]);
        let spec = HookSpec { command: "writ".to_owned(), on_failure_block: false, name: None };
        let text = install(Some(r#"{"hooks":{"PreToolUse":[{"command":"true"}]}}"#), &spec).unwrap().text;
        assert_eq!((switches(&text), inspect(Some(&text)).unwrap().complete()), (vec![], true));
        assert_eq!(remove(&text).unwrap().text, r#"{"hooks":{"PreToolUse":[{"command":"true"}]}}"#);
    }
}
