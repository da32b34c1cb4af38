//! A look at a file with hooks: what of Writ is in it, and what keeps it from working.
//!
//! Owns the findings that every client with such a file has; what only one client knows its own folder adds. Refuses to soften: whatever
//! makes a client leave out a hook of Writ's is a finding. The invariant: a file that [`super::install`] has just written is
//! [`Installed::complete`], unless something else in it switches hooks off or breaks them.

use writ_core::json::{Object, Value};

use super::{Form, checked, matches_all, ours, split_mark};
use crate::guard;
use crate::settings::{Installed, SettingsError, Start};

/// The member that says how long the client waits for a hook, and what a second is in it.
pub(crate) struct Timeout {
    pub member: &'static str,
    pub second: u64,
    /// The least time, in seconds, in which Writ has certainly answered.
    pub least: u64,
}

/// Looks at a file; `None` is one that does not exist. `command` is the member that holds an entry's shell line.
pub(crate) fn inspect(
    text: Option<&str>,
    form: &Form,
    command: &str,
    timeout: &Timeout,
) -> Result<Installed, SettingsError> {
    let Some(text) = text else {
        return Ok(Installed { missing: form.events.to_vec(), ..Installed::default() });
    };
    let settings = checked(split_mark(text).1, form)?;
    let mut installed = Installed::default();
    let found = ours(&settings, form);
    for event in form.events.iter().copied() {
        let here = || found.iter().filter(|found| found.event == event);
        match here().count() {
            0 => installed.missing.push(event),
            1 => {}
            _ => installed.twice.push(event),
        }
        let least = (timeout.least * timeout.second) as f64;
        let time = |value: &Value| value.get(timeout.member).map(Value::as_f64);
        if here().any(|found| time(found.entry_value).is_some_and(|time| time.is_none_or(|time| time < least))) {
            installed.hurried.push(event);
        }
        let line = |value: &Value| value.get(command).and_then(Value::as_str).map(str::to_owned).unwrap_or_default();
        if guard::decides(event) && here().any(|found| !guard::is_guarded(&line(found.entry_value))) {
            installed.fails_open.push(event);
        }
    }
    for found in &found {
        let line = found.entry_value.get(command).and_then(Value::as_str).unwrap_or_default();
        let start = Start { command: line.to_owned(), args: None };
        if !installed.starts.contains(&start) {
            installed.starts.push(start);
        }
        let program = guard::program(line).unwrap_or_default();
        if !installed.commands.contains(&program) {
            installed.commands.push(program);
        }
        let waits = found.entry_value.get("async").and_then(Value::as_bool) != Some(true);
        if !matches_all(found.group_value) || !waits {
            installed.narrowed.push(found.pointer(form));
        }
    }
    for (event, items) in settings.get("hooks").and_then(Value::as_object).into_iter().flat_map(Object::iter) {
        for (at, item) in items.as_array().unwrap_or_default().iter().enumerate() {
            let entries =
                if form.grouped { item.get("hooks").and_then(Value::as_array).map(<[Value]>::len) } else { Some(1) };
            match entries {
                Some(entries) => installed.others += entries,
                None => installed.rejected.push(format!("/hooks/{event}/{at}")),
            }
        }
    }
    installed.others -= found.len();
    Ok(installed)
}
