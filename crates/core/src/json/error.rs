//! Why a document is not of a format: what is wrong, and where.

use std::fmt;

use serde::de::{self, Unexpected};

use super::locate::position;
use super::parse::JsonError;

/// Longest name that an error repeats, in characters.
const LONGEST: usize = 80;

/// Why a document is not of a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// Not JSON, or more of it than the limits allow.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// JSON of another shape.
    #[error("{}{what}{}", at_pointer(pointer), at_place(*place))]
    Shape {
        /// JSON pointer of the value that does not fit, empty for the document itself.
        pointer: String,
        /// What is wrong with it.
        what: String,
        /// Its line and column, both from 1; `None` when it was read from a [`super::Value`].
        place: Option<(usize, usize)>,
    },
}

fn at_pointer(pointer: &str) -> String {
    if pointer.is_empty() { String::new() } else { format!("`{pointer}`: ") }
}

fn at_place(place: Option<(usize, usize)>) -> String {
    place.map_or_else(String::new, |(line, column)| format!(" (line {line}, column {column})"))
}

/// An error on its way up: each level adds its step to the pointer.
#[derive(Debug)]
pub(super) enum Broken {
    Json(JsonError),
    Shape(Box<Shape>),
}

#[derive(Debug)]
pub(super) struct Shape {
    /// Innermost step first.
    steps: Vec<String>,
    what: String,
    /// Byte offset of the value.
    at: Option<usize>,
}

impl Broken {
    pub(super) fn under(mut self, step: impl fmt::Display) -> Self {
        if let Self::Shape(shape) = &mut self {
            shape.steps.push(step.to_string().replace('~', "~0").replace('/', "~1"));
        }
        self
    }

    pub(super) fn at(mut self, offset: usize) -> Self {
        if let Self::Shape(shape) = &mut self {
            shape.at.get_or_insert(offset);
        }
        self
    }

    /// As the caller gets it; `text` is what was read.
    pub(super) fn told(self, text: &str) -> FormatError {
        match self {
            Self::Json(error) => FormatError::Json(error),
            Self::Shape(shape) => FormatError::Shape {
                pointer: shape.steps.iter().rev().fold(String::new(), |pointer, step| pointer + "/" + step),
                what: shape.what,
                place: shape.at.map(|offset| position(text, offset)),
            },
        }
    }
}

impl From<JsonError> for Broken {
    fn from(error: JsonError) -> Self {
        Self::Json(error)
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => error.fmt(f),
            Self::Shape(shape) => f.write_str(&shape.what),
        }
    }
}

impl std::error::Error for Broken {}

impl de::Error for Broken {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Shape(Box::new(Shape { steps: Vec::new(), what: message.to_string(), at: None }))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::custom(format_args!("expected {expected}, found {}", shown(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(_: &str, known: &'static [&'static str]) -> Self {
        Self::custom(format_args!("expected one of {}", known.join(", ")))
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        let name: String = name.chars().take(LONGEST).collect();
        Self::custom(format_args!("unknown member `{name}`, expected one of {}", known.join(", ")))
    }

    fn missing_field(name: &'static str) -> Self {
        Self::custom(format_args!("missing member `{name}`"))
    }
}

/// What was found, without its text: that may be a secret (R8).
fn shown(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Unit | Unexpected::Option => "null".to_owned(),
        Unexpected::Bool(truth) => truth.to_string(),
        Unexpected::Unsigned(number) => number.to_string(),
        Unexpected::Signed(number) => number.to_string(),
        Unexpected::Float(number) => number.to_string(),
        Unexpected::Str(_) | Unexpected::Char(_) | Unexpected::Bytes(_) => "a string".to_owned(),
        Unexpected::Seq => "an array".to_owned(),
        Unexpected::Map => "an object".to_owned(),
        other => other.to_string(),
    }
}
