//! What the table knows of a place in a document, for editors: its members, its words, what it is for.

use super::{Field, Kind, ROOT};

/// A member that there can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// What it may be, in words.
    pub kind: String,
    /// Whether it must be there.
    pub required: bool,
    /// A value to begin with, as JSON.
    pub empty: &'static str,
}

/// The member at a JSON pointer; an entry of a list, or of a map, is what holds it.
pub fn member(pointer: &str) -> Option<Member> {
    let mut last = None;
    let mut kind = Kind::Object(ROOT);
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        (kind, last) = match below(kind, &step)? {
            Below::Field(field) => (field.kind, Some(field)),
            Below::Item(item) => (item, last),
        };
    }
    last.map(describe)
}

/// The members that an object at a JSON pointer can have.
pub fn members(pointer: &str) -> Vec<Member> {
    fields(pointer).map(|fields| fields.iter().map(describe).collect()).unwrap_or_default()
}

/// The words that a value at a JSON pointer can be; none where it is no word.
pub fn words(pointer: &str) -> Vec<&'static str> {
    match at(pointer) {
        Some(Kind::Word(words)) => words.to_vec(),
        Some(Kind::OrObject(Kind::Word(words), _)) => words.to_vec(),
        Some(Kind::Truth) => vec!["true", "false"],
        Some(Kind::Version) => vec!["1.0"],
        _ => Vec::new(),
    }
}

fn at(pointer: &str) -> Option<Kind> {
    let mut kind = Kind::Object(ROOT);
    for step in pointer.split('/').skip(1) {
        kind = match below(kind, &step.replace("~1", "/").replace("~0", "~"))? {
            Below::Field(field) => field.kind,
            Below::Item(item) => item,
        };
    }
    Some(kind)
}

fn fields(pointer: &str) -> Option<&'static [Field]> {
    match at(pointer)? {
        Kind::Object(fields) | Kind::OrObject(_, fields) => Some(fields),
        Kind::PolicyOrPath => Some(ROOT),
        _ => None,
    }
}

enum Below {
    Field(&'static Field),
    Item(Kind),
}

fn below(kind: Kind, step: &str) -> Option<Below> {
    let named = |fields: &'static [Field]| fields.iter().find(|field| field.name == step).map(Below::Field);
    match kind {
        Kind::Object(fields) | Kind::OrObject(_, fields) => named(fields),
        Kind::PolicyOrPath => named(ROOT),
        Kind::List(item) | Kind::Map(item) => Some(Below::Item(*item)),
        _ => None,
    }
}

fn describe(field: &Field) -> Member {
    let (name, doc, required) = (field.name, field.doc, field.required);
    Member { name, doc, kind: words_for(field.kind), required, empty: empty(field.kind) }
}

fn words_for(kind: Kind) -> String {
    match kind {
        Kind::Text | Kind::Name => "text".to_owned(),
        Kind::Version => "\"1.0\"".to_owned(),
        Kind::Date => "date and time (RFC 3339)".to_owned(),
        Kind::Truth => "true or false".to_owned(),
        Kind::Count => "whole number".to_owned(),
        Kind::Amount => "number".to_owned(),
        Kind::Word(words) => words.join(" | "),
        Kind::List(item) => format!("list of {}", words_for(*item)),
        Kind::Object(_) => "object".to_owned(),
        Kind::Map(item) => format!("object, each member {}", words_for(*item)),
        Kind::OrObject(simple, _) => format!("{}, or an object", words_for(*simple)),
        Kind::PolicyOrPath => "path, or a policy".to_owned(),
    }
}

const fn empty(kind: Kind) -> &'static str {
    match kind {
        Kind::Version => "\"1.0\"",
        Kind::Text | Kind::Name | Kind::Date | Kind::PolicyOrPath | Kind::Word(_) => "\"\"",
        Kind::Truth => "true",
        Kind::Count | Kind::Amount => "0",
        Kind::List(_) => "[]",
        Kind::Object(_) | Kind::Map(_) => "{}",
        Kind::OrObject(simple, _) => match simple {
            Kind::Count | Kind::Amount => "0",
            _ => "\"\"",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_by_their_pointers() {
        let name = |pointer: &str| member(pointer).map(|member| member.name);
        assert_eq!(name("/tools/deny/0"), Some("deny"));
        assert_eq!(name("/limits/maxSpendUSD/value"), Some("value"));
        assert_eq!(name("/dataFlow/classify/pii/0"), Some("classify"));
        assert_eq!(name("/sublayouts/0/policy/tools/allow"), Some("allow"));
        assert_eq!((name(""), name("/nothing"), name("/name/x")), (None, None, None));
        assert!(members("").iter().any(|member| member.name == "tools" && member.empty == "{}"));
        assert!(members("/tools").iter().any(|member| member.name == "requireApproval"));
        assert_eq!(words("/enforce"), ["decide", "observe", "calls"]);
        assert_eq!(words("/enforce/calls"), ["true", "false"]);
        assert!(words("/tools/deny/0").is_empty() && members("/name").is_empty());
    }
}
