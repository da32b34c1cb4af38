//! A look at a settings file: what of Writ is in it, and what keeps it from working.
//!
//! Owns the findings that `writ doctor` prints. Refuses to soften: whatever makes the client leave out a hook of Writ's
//! is a finding. The invariant: a file that [`super::install`] has just written is [`Installed::complete`], unless it was
//! switched off or broken by something else in it, which is then named. Format page: `spec/clients/claude-code.md`.

use writ_core::json::{Object, Value};

use super::{Found, SettingsError, checked, matches_all, ours, split_mark};
use crate::claude_code::EVENTS;

/// What one settings file says about hooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// The events that no entry of Writ's listens to.
    pub missing: Vec<&'static str>,
    /// The programs that entries of Writ's start, each once. More than one means that an old one is still there.
    pub commands: Vec<String>,
    /// Events with more than one entry of Writ's: each call would be recorded twice.
    pub twice: Vec<&'static str>,
    /// Events whose entry does not say `"onFailure": "block"`: a crash lets the tool run.
    pub fails_open: Vec<&'static str>,
    /// Entries of Writ's that do not see everything or whose answer is not waited for, as JSON pointers: a matcher, `if`,
    /// `async`, `asyncRewake`, `once`.
    pub narrowed: Vec<String>,
    /// Entries that are not what the client accepts, as JSON pointers: because of one, it ignores every hook of the event.
    pub rejected: Vec<String>,
    /// `disableAllHooks` is on.
    pub disabled: bool,
    /// `allowManagedHooksOnly` is on; only the administrator's file can say so.
    pub managed_only: bool,
    /// How many entries belong to others.
    pub others: usize,
}

impl Installed {
    /// Whether every event reaches one hook of Writ's that sees everything. Says nothing about `onFailure`, which old
    /// clients do not know, nor about other settings files.
    pub fn complete(&self) -> bool {
        let broken = [&self.narrowed, &self.rejected].iter().any(|pointers| !pointers.is_empty());
        self.missing.is_empty() && self.twice.is_empty() && self.commands.len() == 1 && !broken && !self.disabled
    }
}

/// Looks at a settings file; `None` is a file that does not exist.
pub fn inspect(text: Option<&str>) -> Result<Installed, SettingsError> {
    let Some(text) = text else {
        return Ok(Installed { missing: EVENTS.to_vec(), ..Installed::default() });
    };
    let settings = checked(split_mark(text).1)?;
    let mut installed = Installed {
        disabled: flag(&settings, "disableAllHooks"),
        managed_only: flag(&settings, "allowManagedHooksOnly"),
        ..Installed::default()
    };
    let found = ours(&settings);
    for event in EVENTS {
        let here = || found.iter().filter(|found| found.event == event);
        match here().count() {
            0 => installed.missing.push(event),
            1 => {}
            _ => installed.twice.push(event),
        }
        if here().any(|found| found.entry_value.get("onFailure").and_then(Value::as_str) != Some("block")) {
            installed.fails_open.push(event);
        }
    }
    for found in &found {
        let command = found.entry_value.get("command").and_then(Value::as_str).unwrap_or_default();
        if !installed.commands.iter().any(|known| known == command) {
            installed.commands.push(command.to_owned());
        }
        if is_narrowed(found) {
            installed.narrowed.push(pointer(found.event, found.group, found.entry));
        }
    }
    look_at_all(&settings, &mut installed);
    installed.others -= found.len();
    Ok(installed)
}

fn is_narrowed(found: &Found<'_>) -> bool {
    let on = |name| flag(found.entry_value, name);
    let filtered = found.entry_value.get("if").is_some() || !matches_all(found.group_value);
    filtered || on("async") || on("asyncRewake") || on("once")
}

/// Counts the entries and notes the wrong ones.
fn look_at_all(settings: &Value, installed: &mut Installed) {
    for (event, groups) in settings.get("hooks").and_then(Value::as_object).into_iter().flat_map(Object::iter) {
        let listened = EVENTS.contains(&event);
        for (group, value) in groups.as_array().unwrap_or_default().iter().enumerate() {
            let entries = value.get("hooks").and_then(Value::as_array);
            let matcher = value.get("matcher").is_none_or(|matcher| matcher.as_str().is_some());
            if listened && (entries.is_none() || !matcher) {
                installed.rejected.push(format!("/hooks/{event}/{group}"));
            }
            for (entry, value) in entries.unwrap_or_default().iter().enumerate() {
                installed.others += 1;
                if listened && !is_acceptable(value) {
                    installed.rejected.push(pointer(event, group, entry));
                }
            }
        }
    }
}

/// The kinds of hook that version 2.1.329 knows, and the member each cannot do without.
fn is_acceptable(entry: &Value) -> bool {
    let text = |name| entry.get(name).and_then(Value::as_str);
    let failure = entry.get("onFailure").is_none_or(|word| matches!(word.as_str(), Some("block" | "continue")));
    let needed = match text("type") {
        Some("command") => "command",
        Some("prompt" | "agent") => "prompt",
        Some("http") => "url",
        Some("mcp_tool") => "tool",
        _ => return false,
    };
    failure && text(needed).is_some()
}

fn pointer(event: &str, group: usize, entry: usize) -> String {
    format!("/hooks/{event}/{group}/hooks/{entry}")
}

fn flag(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(false)
}
