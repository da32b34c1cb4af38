//! What is wrong with an Agentfile, or looks like it, and where.
//!
//! Owns the shape of a finding and of its place. Refuses to print. Invariant: columns count characters from 1, so that an editor
//! and a terminal agree on them; the span counts bytes of the file as it was read. Page: `spec/agentfile.md`.

use serde::{Deserialize, Serialize};
use writ_core::Span;

/// A place in an Agentfile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// The bytes of the file.
    pub span: Span,
}

impl Place {
    /// The first place of a file.
    pub const START: Self = Self { line: 1, column: 1, span: Span { start: 0, end: 0 } };
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file can be used, and probably does not mean what it says.
    Warning,
    /// The file cannot be used.
    Error,
}

impl Severity {
    /// `warning` or `error`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Its name: `unknown-directive`. Never changes its meaning.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// Where.
    #[serde(flatten)]
    pub place: Place,
    /// What is wrong. Lower case, no full stop, input in backticks.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

impl Diagnostic {
    /// A finding that makes the file unusable.
    pub fn error(code: &'static str, place: Place, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { code, severity: Severity::Error, place, message: message.into(), help: help.into() }
    }

    /// A finding that does not.
    pub fn warning(code: &'static str, place: Place, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { code, severity: Severity::Warning, place, message: message.into(), help: help.into() }
    }

    /// Whether the file can be used all the same.
    pub const fn is_error(&self) -> bool {
        matches!(self.severity, Severity::Error)
    }
}
