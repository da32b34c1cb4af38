//! The client's settings files: putting Writ's hooks in, taking them out, looking at what is there.
//!
//! Owns the text-to-text edit; whoever calls reads and writes the file. Refuses text that is not strict JSON, as the
//! client does: it ignores a settings file with a comment, a trailing comma or a wrong value, and then runs without any
//! hook. What is there is looked at member by member: the file is the user's, and may hold anything. The invariant: outside the inserted or removed text every byte stays. Format page:
//! `spec/clients/claude-code.md`.

mod inspect;
mod places;
mod shell;
mod splice;

use serde::Serialize;
use writ_core::json::{Integers, Limits, Object, Value, parse_with, pretty, to_value};

pub use inspect::{inspect, variable};
pub use places::{managed_folder, places};
pub use shell::{SHELL_VARIABLE, pin_shell, unpin_shell};

use super::{EVENTS, matches_tools};
use crate::settings::{Edited, HookSpec, SettingsError, TIMEOUT_SECONDS};
use splice::{append_element, append_member, remove_child};

/// The most hook entries of ours that are taken out of one file: each costs a parse.
const OURS_LIMIT: usize = 100;

/// 4 MiB, 64 levels.
const LIMITS: Limits = Limits { bytes: 4 << 20, depth: 64, integers: Integers::Any };

/// Puts Writ's hooks into a settings file; `None` is a file that does not exist. Entries of Writ's that say something else
/// are replaced, everything else stays. A second run changes nothing.
pub fn install(text: Option<&str>, spec: &HookSpec) -> Result<Edited, SettingsError> {
    let Some(text) = text else {
        return Ok(Edited { text: fresh(spec), changed: EVENTS.to_vec() });
    };
    let (mark, body) = split_mark(text);
    let mut body = body.to_owned();
    let mut changed = Vec::new();
    for event in EVENTS {
        let settings = checked(&body)?;
        if is_installed(&settings, event, spec) {
            continue;
        }
        body = without(body, |found| found.event == event, Emptied::Keep)?;
        body = with(&body, &checked(&body)?, event, spec)?;
        changed.push(event);
    }
    Ok(Edited { text: format!("{mark}{body}"), changed })
}

/// Takes Writ's hooks out. Lists that this empties go too, so that the result is the text before [`install`], to the byte,
/// unless that had an empty `hooks` object, empty event lists or white space in an otherwise empty object: for those
/// keep the original text. `{}` says that nothing else was there.
pub fn remove(text: &str) -> Result<Edited, SettingsError> {
    let (mark, body) = split_mark(text);
    let settings = checked(body)?;
    let changed = EVENTS.into_iter().filter(|event| ours(&settings).iter().any(|found| found.event == *event));
    let changed = changed.collect();
    let body = without(body.to_owned(), |_| true, Emptied::Remove)?;
    Ok(Edited { text: format!("{mark}{body}"), changed })
}

/// A byte order mark, which the client accepts, and the rest.
fn split_mark(text: &str) -> (&str, &str) {
    match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    }
}

/// Parses the settings and checks the parts that are edited.
fn checked(body: &str) -> Result<Value, SettingsError> {
    let settings = parse_with(body.as_bytes(), LIMITS)?;
    let shape = |pointer: String, expected| SettingsError::Shape { pointer, expected };
    settings.as_object().ok_or_else(|| shape("/".to_owned(), "an object"))?;
    let Some(hooks) = settings.get("hooks") else { return Ok(settings) };
    let hooks = hooks.as_object().ok_or_else(|| shape("/hooks".to_owned(), "an object"))?;
    for event in EVENTS {
        if hooks.get(event).is_some_and(|groups| groups.as_array().is_none()) {
            return Err(shape(format!("/hooks/{event}"), "an array"));
        }
    }
    Ok(settings)
}

/// Where an entry of ours stands: `/hooks/<event>/<group>/hooks/<entry>`.
struct Found<'a> {
    event: &'a str,
    group: usize,
    entry: usize,
    group_value: &'a Value,
    entry_value: &'a Value,
}

fn ours(settings: &Value) -> Vec<Found<'_>> {
    let mut found = Vec::new();
    for (event, groups) in settings.get("hooks").and_then(Value::as_object).into_iter().flat_map(Object::iter) {
        for (group, group_value) in groups.as_array().unwrap_or_default().iter().enumerate() {
            let entries = group_value.get("hooks").and_then(Value::as_array).unwrap_or_default();
            for (entry, entry_value) in entries.iter().enumerate().filter(|(_, entry)| is_ours(entry)) {
                found.push(Found { event, group, entry, group_value, entry_value });
            }
        }
    }
    found
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

fn is_installed(settings: &Value, event: &str, spec: &HookSpec) -> bool {
    let found = ours(settings);
    let mut here = found.iter().filter(|found| found.event == event);
    let good = |found: &Found<'_>| *found.entry_value == to_value(&entry(spec)) && matches_all(found.group_value);
    here.next().is_some_and(good) && here.next().is_none()
}

/// Whether the group's matcher lets every tool through.
fn matches_all(group: &Value) -> bool {
    group.get("matcher").is_none_or(|matcher| matches!(matcher.as_str(), Some("" | "*")))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Emptied {
    Keep,
    Remove,
}

/// `body` without those entries of ours that `which` names, and without the groups that held nothing else.
fn without(mut body: String, which: impl Fn(&Found<'_>) -> bool, emptied: Emptied) -> Result<String, SettingsError> {
    loop {
        let settings = parse_with(body.as_bytes(), LIMITS)?;
        let found = ours(&settings);
        if found.len() > OURS_LIMIT {
            return Err(SettingsError::TooMany { most: OURS_LIMIT });
        }
        let Some(Found { event, group, entry, .. }) = found.into_iter().rfind(&which) else { return Ok(body) };
        let mut path = format!("/hooks/{}/{group}/hooks", splice::escaped(event));
        body = splice_out(&body, &path, entry)?;
        for parent in [format!("/hooks/{}", splice::escaped(event)), "/hooks".to_owned(), String::new()] {
            let is_group = parent.starts_with("/hooks/");
            let settings = parse_with(body.as_bytes(), LIMITS)?;
            if splice::children(&settings, &path) != Some(0) || (emptied == Emptied::Keep && !is_group) {
                break;
            }
            let index = if is_group { Some(group) } else { splice::index_of(&settings, &path) };
            body = splice_out(&body, &parent, index.unwrap_or_default())?;
            path = parent;
        }
    }
}

fn splice_out(body: &str, parent: &str, index: usize) -> Result<String, SettingsError> {
    let lost = || SettingsError::Shape { pointer: parent.to_owned(), expected: "what it was when it was read" };
    remove_child(body, parent, index).ok_or_else(lost)
}

/// `body` with one more group at the end of `event`'s list.
fn with(body: &str, settings: &Value, event: &str, spec: &HookSpec) -> Result<String, SettingsError> {
    let group = group(event, spec);
    let list = || Value::Array(vec![group.clone()]);
    let edited = match settings.get("hooks") {
        None => append_member(body, "", "hooks", &object([(event, list())])),
        Some(hooks) if hooks.get(event).is_none() => append_member(body, "/hooks", event, &list()),
        Some(_) => append_element(body, &format!("/hooks/{event}"), &group),
    };
    edited.ok_or_else(|| SettingsError::Shape { pointer: "/hooks".to_owned(), expected: "an object of arrays" })
}

fn fresh(spec: &HookSpec) -> String {
    let hooks = EVENTS.map(|event| (event, Value::Array(vec![group(event, spec)])));
    pretty(&object([("hooks", object(hooks))])) + "\n"
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

fn group(event: &str, spec: &HookSpec) -> Value {
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

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

#[cfg(test)]
mod tests;
