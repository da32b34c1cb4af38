//! The shape of a policy document as one table: it drives parsing, "did you mean", "not enforced yet" and the JSON Schema.
//!
//! Everything the aflock specification names is here; a member that is not is an error. What a member *means* is elsewhere.
//! Page: `spec/policy.md`.

mod editor;
pub mod lookup;
mod table;

use writ_core::Timestamp;
use writ_core::json::{Object, Value};

use crate::error::{Found, did_you_mean};

pub use editor::json_schema;
pub use table::ROOT;

/// What a value may be.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Any text.
    Text,
    /// Text that says something: a name, a place, a pattern.
    Name,
    /// The only schema version there is.
    Version,
    /// RFC 3339.
    Date,
    /// `true` or `false`.
    Truth,
    /// A whole number from 0.
    Count,
    /// Any number from 0.
    Amount,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of the same kind.
    List(&'static Kind),
    /// These members and no others.
    Object(&'static [Field]),
    /// Any members, all of this kind.
    Map(&'static Kind),
    /// This kind, or an object with these members.
    OrObject(&'static Kind, &'static [Field]),
    /// Text, or an object that is itself a policy.
    PolicyOrPath,
}

/// One member of an object.
#[derive(Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// Whether it must be there.
    pub required: bool,
    /// Whether something acts on it today.
    pub enforced: bool,
    /// What it is for.
    pub doc: &'static str,
}

const fn field(name: &'static str, kind: Kind, doc: &'static str) -> Field {
    Field { name, kind, required: false, enforced: false, doc }
}

const fn enforced(field: Field) -> Field {
    Field { enforced: true, ..field }
}

const fn required(field: Field) -> Field {
    Field { required: true, ..field }
}

/// Checks a value against its kind; problems go to `out`.
pub fn check(value: &Value, kind: Kind, pointer: &str, out: &mut Vec<Found>) {
    let mut wrong = |expected: &str| {
        out.push(Found::value(
            pointer,
            format!("expected {expected}, found {}", value.kind()),
            format!("write {expected}"),
        ))
    };
    match kind {
        Kind::Text | Kind::Name if value.as_str().is_none() => wrong("a string"),
        Kind::Name if value.as_str().is_some_and(is_blank) => {
            out.push(Found::value(pointer, "an empty text", "write what it is, or leave it out").rule("empty-name"));
        }
        Kind::Truth if value.as_bool().is_none() => wrong("true or false"),
        Kind::Count if value.as_u64().is_none() => wrong("a whole number from 0"),
        Kind::Amount if value.as_f64().is_none_or(|number| number < 0.0) => wrong("a number from 0"),
        Kind::Text | Kind::Name | Kind::Truth | Kind::Count | Kind::Amount => {}
        Kind::Version if value.as_str() == Some("1.0") => {}
        Kind::Version => out.push(Found::value(pointer, "unknown version", "write \"1.0\"").rule("unknown-version")),
        Kind::Date => match value.as_str().map(Timestamp::parse) {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                let help = "a date and time as in `2027-01-31T00:00:00Z`";
                out.push(Found::value(pointer, error.to_string(), help).rule("bad-date"));
            }
            None => wrong("an RFC 3339 date and time"),
        },
        Kind::Word(words) => match value.as_str() {
            Some(word) if words.contains(&word) => {}
            Some(word) => {
                let help = did_you_mean(word, words.iter().copied())
                    .map_or_else(|| format!("one of {}", words.join(", ")), |near| format!("did you mean `{near}`?"));
                out.push(Found::value(pointer, format!("unknown word `{word}`"), help).rule("unknown-word"));
            }
            None => wrong("a string"),
        },
        Kind::List(item) => match value.as_array() {
            Some(items) => {
                items.iter().enumerate().for_each(|(at, each)| check(each, *item, &format!("{pointer}/{at}"), out))
            }
            None => wrong("an array"),
        },
        Kind::Map(item) => match value.as_object() {
            Some(members) => members.iter().for_each(|(name, each)| check(each, *item, &join(pointer, name), out)),
            None => wrong("an object"),
        },
        Kind::Object(fields) => match value.as_object() {
            Some(members) => check_members(members, fields, pointer, out),
            None => wrong("an object"),
        },
        Kind::OrObject(simple, fields) => match value.as_object() {
            Some(members) => check_members(members, fields, pointer, out),
            None => check(value, *simple, pointer, out),
        },
        Kind::PolicyOrPath => match value {
            Value::String(_) => check(value, Kind::Name, pointer, out),
            Value::Object(members) => check_members(members, ROOT, pointer, out),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => wrong("a path or a policy"),
        },
    }
}

/// Whether nothing of a text can be seen.
fn is_blank(text: &str) -> bool {
    let unseen = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}');
    text.chars().all(|c| c.is_whitespace() || c.is_control() || unseen(c))
}

fn check_members(members: &Object, fields: &'static [Field], pointer: &str, out: &mut Vec<Found>) {
    for (name, value) in members.iter() {
        let at = join(pointer, name);
        if let Some(field) = fields.iter().find(|field| field.name == name) {
            check(value, field.kind, &at, out);
            continue;
        }
        let near = did_you_mean(name, fields.iter().map(|field| field.name));
        let help = near.map_or_else(
            || format!("known here: {}", fields.iter().map(|field| field.name).collect::<Vec<_>>().join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        out.push(Found::name(&at, format!("unknown field `{name}`"), help).rule("unknown-field"));
    }
    for field in fields.iter().filter(|field| field.required && members.get(field.name).is_none()) {
        out.push(Found::value(pointer, format!("missing field `{}`", field.name), field.doc).rule("missing-field"));
    }
}

/// A limit's number.
pub fn limit(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.get("value").and_then(Value::as_f64))
}

/// `pointer/name`, escaped (RFC 6901).
pub fn join(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}
