//! Hooks in a client's JSON file: putting Writ's in, taking them out, looking at what is there.
//!
//! Owns the text-to-text edit, for every client whose hooks stand in such a file; whoever calls reads and writes it. Refuses text that
//! is not strict JSON: what a client makes of such a file differs from client to client, and an edit must not change it. What is there is
//! looked at member by member: the file is the user's, and may hold anything. The invariant: outside the inserted or removed text every
//! byte stays. Format pages: `spec/clients/`.

mod inspect;
pub(crate) mod splice;

use writ_core::json::{Integers, Limits, Object, Value, parse_with, pretty};

pub(crate) use inspect::{Timeout, inspect};

use crate::settings::{Edited, HookSpec, SettingsError};
use splice::{append_element, append_member, remove_child};

/// The most hook entries of ours that are taken out of one file: each costs a parse.
pub(crate) const OURS_LIMIT: usize = 100;

/// 4 MiB, 64 levels.
pub(crate) const LIMITS: Limits = Limits { bytes: 4 << 20, depth: 64, integers: Integers::Any };

/// How one client writes hooks down.
pub(crate) struct Form {
    /// The events that Writ listens to, in the order in which they are written.
    pub events: &'static [&'static str],
    /// Whether entries stand in groups, which may have a matcher.
    pub grouped: bool,
    /// What is put into an event's list: a group with one entry, or the entry.
    pub item: fn(&'static str, &HookSpec) -> Value,
    /// Whether an entry starts Writ.
    pub is_ours: fn(&Value) -> bool,
    /// Members that a file of ours begins with.
    pub head: &'static [(&'static str, u64)],
}

/// Puts Writ's hooks into a file; `None` is one that does not exist. Entries of Writ's that say something else are replaced, everything
/// else stays. A second run changes nothing.
pub(crate) fn install(text: Option<&str>, spec: &HookSpec, form: &Form) -> Result<Edited, SettingsError> {
    let Some(text) = text else {
        return Ok(Edited { text: fresh(spec, form), changed: form.events.to_vec() });
    };
    let (mark, body) = split_mark(text);
    let mut body = body.to_owned();
    let mut changed = Vec::new();
    for event in form.events {
        let settings = checked(&body, form)?;
        if is_installed(&settings, event, spec, form) {
            continue;
        }
        body = without(body, |found| found.event == *event, Emptied::Keep, form)?;
        body = with(&body, &checked(&body, form)?, event, spec, form)?;
        changed.push(*event);
    }
    Ok(Edited { text: format!("{mark}{body}"), changed })
}

/// Takes Writ's hooks out. Lists that this empties go too, so that the result is the text before [`install`], to the byte,
/// unless that had an empty `hooks` object, empty event lists or white space in an otherwise empty object: for those
/// keep the original text. `{}` says that nothing else was there.
pub(crate) fn remove(text: &str, form: &Form) -> Result<Edited, SettingsError> {
    let (mark, body) = split_mark(text);
    let settings = checked(body, form)?;
    let found = ours(&settings, form);
    let changed = form.events.iter().copied().filter(|event| found.iter().any(|found| found.event == *event));
    let changed = changed.collect();
    let body = without(body.to_owned(), |_| true, Emptied::Remove, form)?;
    Ok(Edited { text: format!("{mark}{body}"), changed })
}

/// A byte order mark, which some clients accept, and the rest.
pub(crate) fn split_mark(text: &str) -> (&str, &str) {
    match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    }
}

/// Parses the settings and checks the parts that are edited.
pub(crate) fn checked(body: &str, form: &Form) -> Result<Value, SettingsError> {
    let settings = parse_with(body.as_bytes(), LIMITS)?;
    let shape = |pointer: String, expected| SettingsError::Shape { pointer, expected };
    settings.as_object().ok_or_else(|| shape("/".to_owned(), "an object"))?;
    let Some(hooks) = settings.get("hooks") else { return Ok(settings) };
    let hooks = hooks.as_object().ok_or_else(|| shape("/hooks".to_owned(), "an object"))?;
    for event in form.events {
        if hooks.get(event).is_some_and(|items| items.as_array().is_none()) {
            return Err(shape(format!("/hooks/{event}"), "an array"));
        }
    }
    Ok(settings)
}

/// Where an entry of ours stands: `/hooks/<event>/<group>/hooks/<entry>`, or `/hooks/<event>/<entry>`.
pub(crate) struct Found<'a> {
    pub event: &'a str,
    /// Its place in the event's list, or its group's.
    pub item: usize,
    /// Its place in its group.
    pub entry: usize,
    /// Itself, where entries stand in no groups.
    pub group_value: &'a Value,
    pub entry_value: &'a Value,
}

impl Found<'_> {
    /// Its JSON pointer.
    pub fn pointer(&self, form: &Form) -> String {
        let Self { event, item, entry, .. } = self;
        if form.grouped { format!("/hooks/{event}/{item}/hooks/{entry}") } else { format!("/hooks/{event}/{item}") }
    }
}

pub(crate) fn ours<'a>(settings: &'a Value, form: &Form) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    for (event, items) in settings.get("hooks").and_then(Value::as_object).into_iter().flat_map(Object::iter) {
        for (item, group_value) in items.as_array().unwrap_or_default().iter().enumerate() {
            if !form.grouped {
                if (form.is_ours)(group_value) {
                    found.push(Found { event, item, entry: 0, group_value, entry_value: group_value });
                }
                continue;
            }
            let entries = group_value.get("hooks").and_then(Value::as_array).unwrap_or_default();
            for (entry, entry_value) in entries.iter().enumerate().filter(|(_, entry)| (form.is_ours)(entry)) {
                found.push(Found { event, item, entry, group_value, entry_value });
            }
        }
    }
    found
}

fn is_installed(settings: &Value, event: &'static str, spec: &HookSpec, form: &Form) -> bool {
    let found = ours(settings, form);
    let mut here = found.iter().filter(|found| found.event == event);
    let item = (form.item)(event, spec);
    let wanted = if form.grouped { first_entry(&item) } else { Some(&item) };
    let good = |found: &Found<'_>| Some(found.entry_value) == wanted && matches_all(found.group_value);
    here.next().is_some_and(good) && here.next().is_none()
}

/// The entry of a group of ours.
fn first_entry(group: &Value) -> Option<&Value> {
    group.get("hooks").and_then(Value::as_array)?.first()
}

/// Whether the matcher lets every tool through.
pub(crate) fn matches_all(group: &Value) -> bool {
    group.get("matcher").is_none_or(|matcher| matches!(matcher.as_str(), Some("" | "*")))
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Emptied {
    Keep,
    Remove,
}

/// `body` without those entries of ours that `which` names, and without the groups that held nothing else.
pub(crate) fn without(
    mut body: String,
    which: impl Fn(&Found<'_>) -> bool,
    emptied: Emptied,
    form: &Form,
) -> Result<String, SettingsError> {
    loop {
        let settings = parse_with(body.as_bytes(), LIMITS)?;
        let found = ours(&settings, form);
        if found.len() > OURS_LIMIT {
            return Err(SettingsError::TooMany { most: OURS_LIMIT });
        }
        let Some(Found { event, item, entry, .. }) = found.into_iter().rfind(&which) else { return Ok(body) };
        let list = format!("/hooks/{}", splice::escaped(event));
        let (mut path, index) =
            if form.grouped { (format!("{list}/{item}/hooks"), entry) } else { (list.clone(), item) };
        body = splice_out(&body, &path, index)?;
        let groups = form.grouped.then(|| list.clone());
        for parent in groups.into_iter().chain(["/hooks".to_owned(), String::new()]) {
            let is_group = form.grouped && parent == list;
            let settings = parse_with(body.as_bytes(), LIMITS)?;
            if splice::children(&settings, &path) != Some(0) || (emptied == Emptied::Keep && !is_group) {
                break;
            }
            let index = if is_group { Some(item) } else { splice::index_of(&settings, &path) };
            body = splice_out(&body, &parent, index.unwrap_or_default())?;
            path = parent;
        }
    }
}

fn splice_out(body: &str, parent: &str, index: usize) -> Result<String, SettingsError> {
    let lost = || SettingsError::Shape { pointer: parent.to_owned(), expected: "what it was when it was read" };
    remove_child(body, parent, index).ok_or_else(lost)
}

/// `body` with one more item at the end of `event`'s list.
fn with(
    body: &str,
    settings: &Value,
    event: &'static str,
    spec: &HookSpec,
    form: &Form,
) -> Result<String, SettingsError> {
    let item = (form.item)(event, spec);
    let list = || Value::Array(vec![item.clone()]);
    let edited = match settings.get("hooks") {
        None => append_member(body, "", "hooks", &object([(event, list())])),
        Some(hooks) if hooks.get(event).is_none() => append_member(body, "/hooks", event, &list()),
        Some(_) => append_element(body, &format!("/hooks/{event}"), &item),
    };
    edited.ok_or_else(|| SettingsError::Shape { pointer: "/hooks".to_owned(), expected: "an object of arrays" })
}

fn fresh(spec: &HookSpec, form: &Form) -> String {
    let hooks = form.events.iter().map(|event| (*event, Value::Array(vec![(form.item)(event, spec)])));
    let head = form.head.iter().map(|(name, value)| (*name, Value::from(*value)));
    pretty(&object(head.chain([("hooks", object(hooks))]))) + "\n"
}

pub(crate) fn object<'a>(members: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}
