//! A look at a settings file: what of Writ is in it, and what keeps it from working.
//!
//! Owns the findings that `writ doctor` prints. Refuses to soften: whatever makes the client leave out a hook of Writ's
//! is a finding. The invariant: a file that [`super::install`] has just written is [`Installed::complete`], unless it was
//! switched off or broken by something else in it, which is then named. Format page: `spec/clients/claude-code.md`.

use serde::{Deserialize, Serialize};
use writ_core::json::{Object, Value};

use super::shell::{self, is_bash};
use super::{Found, SettingsError, TIMEOUT_SECONDS, checked, matches_all, ours, split_mark};
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
    /// How its entries start the program, each once.
    pub starts: Vec<Start>,
    /// Events whose entry gives the hook less time than Writ takes at most.
    pub hurried: Vec<&'static str>,
    /// The shell that `env` names for the client.
    pub shell: Option<String>,
    /// Variables in `env` that would have the hook look for Writ's state elsewhere.
    pub moves: Vec<&'static str>,
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

/// A command line of a hook entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The program; a whole shell line where there are no arguments.
    pub command: String,
    /// Its arguments: then the client starts it without a shell.
    pub args: Option<Vec<String>>,
}

/// Variables that decide where the hook finds its state and its user.
const MOVES: [&str; 4] = ["WRIT_STATE_DIR", "XDG_STATE_HOME", "HOME", "CLAUDE_CONFIG_DIR"];

impl Installed {
    /// Whether a session under `before` would be held less by what is there now.
    pub fn weaker_than(&self, before: &Self) -> Option<String> {
        let gone: Vec<&str> = self.missing.iter().filter(|event| !before.missing.contains(event)).copied().collect();
        let more = |now: &[String], then: &[String]| now.iter().any(|pointer| !then.contains(pointer));
        let open = |now: &[&'static str], then: &[&'static str]| now.iter().any(|event| !then.contains(event));
        match () {
            () if self.disabled && !before.disabled => Some("switches all hooks off".to_owned()),
            () if !gone.is_empty() => Some(format!("takes Writ's hooks for {} away", gone.join(", "))),
            () if self.starts.iter().any(|start| !before.starts.contains(start)) => {
                Some("starts another program as Writ's hook".to_owned())
            }
            () if more(&self.narrowed, &before.narrowed) => Some("keeps calls from Writ's hooks".to_owned()),
            () if more(&self.rejected, &before.rejected) => {
                Some("holds an entry for which the client ignores every hook".to_owned())
            }
            () if open(&self.fails_open, &before.fails_open) => Some("lets tools run when a hook fails".to_owned()),
            () if open(&self.hurried, &before.hurried) => Some("gives the hook too little time".to_owned()),
            () if self.moves.iter().any(|name| !before.moves.contains(name)) => {
                Some("has the hook look for its state elsewhere".to_owned())
            }
            () if before.shell.as_deref().is_some_and(is_bash) && !self.shell.as_deref().is_some_and(is_bash) => {
                Some("has the client run another shell than bash".to_owned())
            }
            () => None,
        }
    }

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
        shell: shell::pinned(&settings).map(str::to_owned),
        moves: MOVES.into_iter().filter(|name| settings.get("env").and_then(|env| env.get(name)).is_some()).collect(),
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
        let seconds = |found: &Found<'_>| found.entry_value.get("timeout").map(Value::as_f64);
        if here().any(|found| seconds(found).is_some_and(|time| time.is_none_or(|time| time < TIMEOUT_SECONDS as f64)))
        {
            installed.hurried.push(event);
        }
        if here().any(|found| found.entry_value.get("onFailure").and_then(Value::as_str) != Some("block")) {
            installed.fails_open.push(event);
        }
    }
    for found in &found {
        let command = found.entry_value.get("command").and_then(Value::as_str).unwrap_or_default();
        let args = found.entry_value.get("args").and_then(Value::as_array);
        let args = args.map(|args| args.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        let start = Start { command: command.to_owned(), args };
        if !installed.starts.contains(&start) {
            installed.starts.push(start);
        }
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
