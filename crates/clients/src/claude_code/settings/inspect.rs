//! A look at a settings file: what of Writ is in it, and what keeps it from working.
//!
//! Owns the findings that `writ doctor` prints. Refuses to soften: whatever makes the client leave out a hook of Writ's
//! is a finding. The invariant: a file that [`super::install`] has just written is [`Installed::complete`], unless it was
//! switched off or broken by something else in it, which is then named. Format page: `spec/clients/claude-code.md`.

use writ_core::json::{Limits, Object, Value, parse_with};

use super::shell;
use super::{FORM, Found, checked, ours};
use crate::claude_code::EVENTS;
use crate::hooks_file::{matches_all, split_mark};
use crate::settings::{Installed, SettingsError, Start, TIMEOUT_SECONDS};

/// Variables that decide where the hook finds its state and its user, or whom it asks.
const MOVES: [&str; 5] = ["WRIT_STATE_DIR", "XDG_STATE_HOME", "HOME", "CLAUDE_CONFIG_DIR", "WRIT_RUN"];

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
            installed.narrowed.push(found.pointer(&FORM));
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
                if posts(value) && value.get("onFailure").and_then(Value::as_str) != Some("block") {
                    installed.posted_open.push(pointer(event, group, entry));
                }
                if listened && !is_acceptable(value) {
                    installed.rejected.push(pointer(event, group, entry));
                }
            }
        }
    }
}

/// Whether an entry posts its calls to this machine, at an address as a notary has it (`spec/notary.md`).
fn posts(entry: &Value) -> bool {
    let url = entry.get("url").and_then(Value::as_str).and_then(|url| url.strip_prefix("http://"));
    let local = |host: &str| ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| host.starts_with(name));
    url.and_then(|rest| rest.split_once('/')).is_some_and(|(host, path)| local(host) && path.starts_with("hook/"))
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

/// What the settings set a variable to.
pub fn variable(text: &str, name: &str) -> Option<String> {
    let settings = parse_with(split_mark(text).1.as_bytes(), Limits::FOREIGN).ok()?;
    let value = settings.get("env")?.get(name)?;
    value.as_str().map(str::to_owned).or_else(|| value.as_u64().map(|number| number.to_string()))
}

fn flag(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(false)
}
