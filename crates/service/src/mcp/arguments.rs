//! What a call gives a tool, read in its form; and why a call has no result.

use writ_core::json::{Object, Value};

/// Why a call has no result; the caller is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal(pub String);

/// A text argument that must be there.
pub fn text<'a>(arguments: &'a Object, name: &str) -> Result<&'a str, Refusal> {
    text_of(arguments, name)?.ok_or_else(|| Refusal(format!("`{name}` is missing")))
}

/// A text argument that may be there.
pub fn text_of<'a>(arguments: &'a Object, name: &str) -> Result<Option<&'a str>, Refusal> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(Refusal(format!("`{name}` is of type {}, not a string", other.kind()))),
    }
}
