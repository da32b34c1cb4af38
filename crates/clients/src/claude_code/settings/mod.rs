//! The client's settings files: putting Writ's hooks in, taking them out, looking at what is there.
//!
//! Owns the form of its entries; the edit is that of every client (`hooks_file`), and whoever calls reads and writes the file. Refuses
//! text that is not strict JSON, as the client does: it ignores a settings file with a comment, a trailing comma or a wrong value, and
//! then runs without any hook. The invariant: outside the inserted or removed text every byte stays. Format page:
//! `spec/clients/claude-code.md`.

mod inspect;
mod places;
mod shell;

use serde::Serialize;
use writ_core::json::{Value, to_value};

pub use inspect::{inspect, variable};
pub use places::{managed_folder, places};
pub use shell::{SHELL_VARIABLE, pin_shell, unpin_shell};

use super::{EVENTS, matches_tools};
use crate::hooks_file::{self, Form, Found};
use crate::settings::{Edited, HookSpec, SettingsError, TIMEOUT_SECONDS};

/// How this client writes hooks down.
pub(super) const FORM: Form = Form { events: &EVENTS, grouped: true, item: group, is_ours, head: &[] };

/// Puts Writ's hooks into a settings file; `None` is a file that does not exist. Entries of Writ's that say something else
/// are replaced, everything else stays. A second run changes nothing.
pub fn install(text: Option<&str>, spec: &HookSpec) -> Result<Edited, SettingsError> {
    hooks_file::install(text, spec, &FORM)
}

/// Takes Writ's hooks out. Lists that this empties go too, so that the result is the text before [`install`], to the byte,
/// unless that had an empty `hooks` object, empty event lists or white space in an otherwise empty object: for those
/// keep the original text. `{}` says that nothing else was there.
pub fn remove(text: &str) -> Result<Edited, SettingsError> {
    hooks_file::remove(text, &FORM)
}

/// Parses the settings and checks the parts that are edited.
fn checked(body: &str) -> Result<Value, SettingsError> {
    hooks_file::checked(body, &FORM)
}

fn ours(settings: &Value) -> Vec<Found<'_>> {
    hooks_file::ours(settings, &FORM)
}

/// An entry that starts `writ hook`, wherever the program lies.
fn is_ours(entry: &Value) -> bool {
    let command = entry.get("command").and_then(Value::as_str).unwrap_or_default();
    let first = entry.get("args").and_then(Value::as_array).map(|args| args.first().and_then(Value::as_str));
    let program = match first {
        Some(Some("hook")) => command,
        Some(_) => return false,
        None => command.strip_suffix(" hook").unwrap_or_default(),
    };
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    name.strip_suffix(".exe").unwrap_or(name) == "writ"
}

/// A group of our own: the client throws away a whole group, and every other of that event, when one entry is wrong.
#[derive(Serialize)]
struct Group<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    matcher: Option<&'static str>,
    hooks: [Entry<'a>; 1],
}

/// An entry of our own.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    r#type: &'static str,
    command: &'a str,
    args: [&'static str; 1],
    timeout: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_failure: Option<&'static str>,
}

fn group(event: &'static str, spec: &HookSpec) -> Value {
    to_value(&Group { matcher: matches_tools(event).then_some("*"), hooks: [entry(spec)] })
}

fn entry(spec: &HookSpec) -> Entry<'_> {
    Entry {
        r#type: "command",
        command: &spec.command,
        args: ["hook"],
        timeout: TIMEOUT_SECONDS,
        on_failure: spec.on_failure_block.then_some("block"),
    }
}

#[cfg(test)]
mod tests;
