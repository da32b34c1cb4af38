//! Edits of JSON text that leave every other byte alone.
//!
//! Owns three edits: append a member, append an element, remove a child. Refuses (`None`) a pointer that names no such
//! container in text that has already been parsed. The invariant: removing what was just appended restores the text,
//! except inside a container that was empty. Format pages: `spec/clients/`.

use writ_core::json::{Place, Value, compact, locate, pretty, write_string};

/// A member name as a step of a JSON pointer (RFC 6901).
pub(crate) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The value that `pointer` names.
fn resolve<'a>(document: &'a Value, pointer: &str) -> Option<&'a Value> {
    pointer.split('/').skip(1).try_fold(document, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        Value::Object(members) => members.get(&step.replace("~1", "/").replace("~0", "~")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

/// How many children the container at `pointer` has.
pub(crate) fn children(document: &Value, pointer: &str) -> Option<usize> {
    match resolve(document, pointer)? {
        Value::Array(items) => Some(items.len()),
        Value::Object(members) => Some(members.len()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// The place of the child at `pointer` among its siblings.
pub(crate) fn index_of(document: &Value, pointer: &str) -> Option<usize> {
    let (parent, step) = pointer.rsplit_once('/')?;
    match resolve(document, parent)? {
        Value::Object(members) => members.iter().position(|(name, _)| escaped(name) == step),
        Value::Array(_) => step.parse().ok(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// A container in its text.
struct Container {
    /// The bytes between its brackets.
    inner: (usize, usize),
    /// Each child from its first byte (of the name, in an object) to its last.
    children: Vec<(usize, usize)>,
}

fn container(text: &str, pointer: &str) -> Option<Container> {
    let document = writ_core::json::parse_with(text.as_bytes(), super::LIMITS).ok()?;
    let whole = locate(text, pointer, Place::Value)?;
    let child = |step: String| {
        let pointer = format!("{pointer}/{step}");
        let name = locate(text, &pointer, Place::Name)?;
        Some((name.start, locate(text, &pointer, Place::Value)?.end))
    };
    let children = match resolve(&document, pointer)? {
        Value::Array(items) => (0..items.len()).map(|index| child(index.to_string())).collect::<Option<_>>()?,
        Value::Object(members) => members.iter().map(|(name, _)| child(escaped(name))).collect::<Option<_>>()?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    };
    Some(Container { inner: (whole.start + 1, whole.end.checked_sub(1)?), children })
}

/// Appends `"name": value` to the object at `pointer`.
pub(crate) fn append_member(text: &str, pointer: &str, name: &str, value: &Value) -> Option<String> {
    append(text, pointer, Some(name), value)
}

/// Appends `value` to the array at `pointer`.
pub(crate) fn append_element(text: &str, pointer: &str, value: &Value) -> Option<String> {
    append(text, pointer, None, value)
}

fn append(text: &str, pointer: &str, name: Option<&str>, value: &Value) -> Option<String> {
    let Container { inner, children } = container(text, pointer)?;
    let layout = Layout::of(text);
    let lead = match children.first() {
        Some(first) => text.get(inner.0..first.0)?.to_owned(),
        None => layout.lead_in_empty(text, inner)?,
    };
    let at = children.last().map_or(inner.0, |last| last.1);
    let mut item = String::new();
    if !children.is_empty() {
        item.push(',');
    }
    match lead.rfind('\n') {
        Some(line) => {
            item.push_str(&lead);
            layout.write(name, value, lead.get(line + 1..)?, &mut item);
            if children.is_empty() && !text.get(inner.0..inner.1)?.contains('\n') {
                item.push_str(lead.strip_suffix(layout.unit.as_str()).unwrap_or(layout.line_break));
            }
        }
        None => {
            item.push_str(if children.is_empty() { "" } else { " " });
            write_name(name, &mut item);
            item.push_str(&compact(value));
        }
    }
    Some(format!("{}{item}{}", text.get(..at)?, text.get(at..)?))
}

/// Removes child `index` of the container at `pointer`, with the comma and the white space that came with it. The whole
/// document, emptied, becomes `{}`.
pub(crate) fn remove_child(text: &str, pointer: &str, index: usize) -> Option<String> {
    let Container { inner, children } = container(text, pointer)?;
    let this = children.get(index)?;
    let before = index.checked_sub(1).and_then(|before| children.get(before));
    let (start, end) = match (before, children.get(index + 1)) {
        (Some(before), _) => (before.1, this.1),
        (None, Some(after)) => (this.0, after.0),
        (None, None) => inner,
    };
    Some(format!("{}{}", text.get(..start)?, text.get(end..)?))
}

/// How the text is laid out.
struct Layout {
    /// One level of indentation.
    unit: String,
    line_break: &'static str,
}

impl Layout {
    fn of(text: &str) -> Self {
        let line_break = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let indent = |line: &str| line.chars().take_while(|&c| c == ' ' || c == '\t').collect::<String>();
        let first = text.lines().skip(1).map(indent).find(|indent| !indent.is_empty());
        Self { unit: first.unwrap_or_else(|| "  ".to_owned()), line_break }
    }

    /// White space before the first child of a container that is empty: a line of its own where the container already
    /// has lines or is the whole document.
    fn lead_in_empty(&self, text: &str, inner: (usize, usize)) -> Option<String> {
        let space = text.get(inner.0..inner.1)?;
        let whole = text.get(..inner.0)?.trim_ascii() == "{";
        let outer = match space.rfind('\n') {
            Some(line) => space.get(line + 1..)?,
            None if whole || text.contains('\n') => line_indent(text, inner.0)?,
            None => return Some(String::new()),
        };
        Some(format!("{}{outer}{}", self.line_break, self.unit))
    }

    /// Writes `value` over several lines, the later ones indented by `indent` and more.
    fn write(&self, name: Option<&str>, value: &Value, indent: &str, out: &mut String) {
        write_name(name, out);
        for (number, line) in pretty(value).lines().enumerate() {
            if number > 0 {
                out.push_str(self.line_break);
                out.push_str(indent);
            }
            let body = line.trim_start_matches(' ');
            out.extend(std::iter::repeat_n(self.unit.as_str(), (line.len() - body.len()) / 2));
            out.push_str(body);
        }
    }
}

fn write_name(name: Option<&str>, out: &mut String) {
    if let Some(name) = name {
        write_string(name, out);
        out.push_str(": ");
    }
}

/// The indentation of the line that holds byte `at`.
fn line_indent(text: &str, at: usize) -> Option<&str> {
    let line = text.get(..at)?.rsplit('\n').next()?;
    line.get(..line.len() - line.trim_start_matches([' ', '\t']).len())
}
