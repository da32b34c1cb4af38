//! Where this client keeps its hooks, and what of Writ is in them.
//!
//! Owns the form of its entries and the places. Every event named here is in the client's documents: one that it does not know would void the
//! whole file. Refuses files with comments. The invariant: every file named here is protected from the agent (R19). Format page:
//! `spec/clients/cursor.md`.

use std::path::{Path, PathBuf};

use writ_core::json::{Value, parse_with};

use super::NAME;
use crate::guard;
use crate::hooks_file::{self, Form, LIMITS, Timeout, object};
use crate::settings::{Edited, HookSpec, Installed, Places, SettingsError, TIMEOUT_SECONDS};

/// The events that Writ listens to.
const EVENTS: [&str; 12] = [
    "preToolUse",
    "beforeShellExecution",
    "beforeMCPExecution",
    "beforeReadFile",
    "postToolUse",
    "postToolUseFailure",
    "beforeSubmitPrompt",
    "sessionStart",
    "subagentStart",
    "stop",
    "preCompact",
    "sessionEnd",
];

/// The only version that the client reads.
const VERSION: u64 = 1;
/// The administrator's file.
const MANAGED: &str = "/etc/cursor/hooks.json";

const FORM: Form = Form { events: &EVENTS, grouped: false, item: entry, is_ours, head: &[("version", VERSION)] };

const TIMEOUT: Timeout = Timeout { member: "timeout", second: 1, least: TIMEOUT_SECONDS };

fn entry(event: &'static str, spec: &HookSpec) -> Value {
    let line = ("command", Value::from(guard::line(&spec.command, NAME, event)));
    let time = ("timeout", Value::from(TIMEOUT_SECONDS));
    if guard::decides(event) { object([line, time, ("failClosed", Value::from(true))]) } else { object([line, time]) }
}

fn is_ours(entry: &Value) -> bool {
    entry.get("command").and_then(Value::as_str).is_some_and(|line| guard::is_of(line, NAME))
}

/// The files that the client reads in `project`.
pub fn places(project: &Path, home: &Path) -> Places {
    let (own, theirs) = (home.join(".cursor"), project.join(".cursor"));
    let (user, repository) = (own.join("hooks.json"), theirs.join("hooks.json"));
    let named = |path: PathBuf| (path, "the client's settings");
    Places {
        settings: vec![user.clone(), repository.clone(), MANAGED.into()],
        user,
        project: repository,
        managed: Some(MANAGED.into()),
        others: vec![
            (own.join("hooks"), "a hook of the client"),
            (theirs.join("hooks"), "a hook of the client"),
            named(own.join("mcp.json")),
            named(theirs.join("mcp.json")),
            named(own.join("cli-config.json")),
            named(theirs.join("cli.json")),
            named(PathBuf::from("/etc/cursor")),
            (own.join("projects/**/*.jsonl"), "a transcript of the client"),
        ],
    }
}

/// Looks at a hook file.
pub fn inspect(text: Option<&str>) -> Result<Installed, SettingsError> {
    let mut installed = hooks_file::inspect(text, &FORM, "command", &TIMEOUT)?;
    let file = text.and_then(|text| parse_with(text.as_bytes(), LIMITS).ok()).unwrap_or(Value::Null);
    if text.is_some() && file.get("version").and_then(Value::as_u64) != Some(VERSION) {
        installed.rejected.push("/version".to_owned());
    }
    // A hook that is late lets the tool run without it.
    let open = hooks_file::ours(&file, &FORM).into_iter().filter(|found| {
        guard::decides(found.event) && found.entry_value.get("failClosed").and_then(Value::as_bool) != Some(true)
    });
    let open: Vec<&str> = open.map(|found| found.event).collect();
    for event in EVENTS.into_iter().filter(|event| open.contains(event)) {
        if !installed.fails_open.contains(&event) {
            installed.fails_open.push(event);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_fails_closed() {
        let spec = HookSpec { command: "writ".to_owned(), on_failure_block: false, name: None };
        let text = install(None, &spec).unwrap().text;
        let found = inspect(Some(&text)).unwrap();
        assert!(found.complete() && found.fails_open.is_empty(), "{found:?}");
        assert_eq!(text.matches("\"failClosed\": true").count(), 4, "{text}");
        let late = text.replace(",\n        \"failClosed\": true", "");
        assert_eq!(inspect(Some(&late)).unwrap().fails_open.len(), 4, "{late}");
        assert_eq!(inspect(Some(r#"{"version":2,"hooks":{}}"#)).unwrap().rejected, ["/version"]);
    }
}
