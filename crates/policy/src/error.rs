//! What is wrong with a policy: every problem, with its place.

use std::fmt;

use writ_core::Span;
use writ_core::json::{JsonError, Place, locate, position};

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What kind of mistake it is: a word that stays the same. All are listed in `spec/policy.md`.
    pub rule: &'static str,
    /// JSON pointer of the value or member; empty for the whole document.
    pub pointer: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The bytes it is about.
    pub span: Span,
    /// What is wrong: lower case, no full stop.
    pub message: String,
    /// What to do; may be empty.
    pub help: String,
}

/// A document that is no valid policy. Holds every problem found, in document order; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    problems: Vec<Problem>,
}

impl PolicyError {
    /// Of a policy in another form, whose reader found the problems; they are in document order, and there is one at least.
    pub fn of(problems: Vec<Problem>) -> Self {
        Self { problems }
    }

    /// The problems, in document order.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    pub(crate) fn json(text: &str, error: &JsonError) -> Self {
        let at = error.offset().min(text.len());
        let (line, column) = position(text, at);
        let span = Span { start: at, end: (at + 1).min(text.len()) };
        let help = "a policy is strict JSON: no comments, no trailing commas, no duplicate members".to_owned();
        Self {
            problems: vec![Problem {
                rule: "json",
                pointer: String::new(),
                line,
                column,
                span,
                message: error.to_string(),
                help,
            }],
        }
    }

    pub(crate) fn from_found(text: &str, found: Vec<Found>) -> Self {
        let mut problems: Vec<Problem> = found
            .into_iter()
            .map(|found| {
                let span =
                    locate(text, &found.pointer, found.place).unwrap_or(Span { start: 0, end: text.len().min(1) });
                let (line, column) = position(text, span.start);
                Problem {
                    rule: found.rule,
                    pointer: found.pointer,
                    line,
                    column,
                    span,
                    message: found.message,
                    help: found.help,
                }
            })
            .collect();
        problems.sort_by_key(|problem| problem.span.start);
        Self { problems }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let gap = if index > 0 { "; " } else { "" };
            write!(f, "{gap}{}:{}: {}", problem.line, problem.column, problem.message)?;
            if !problem.pointer.is_empty() {
                write!(f, " ({})", problem.pointer)?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for PolicyError {}

/// A problem before its place in the text is known.
#[derive(Debug)]
pub struct Found {
    pub rule: &'static str,
    pub pointer: String,
    pub place: Place,
    pub message: String,
    pub help: String,
}

impl Found {
    pub fn value(pointer: &str, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            rule: "wrong-type",
            pointer: pointer.to_owned(),
            place: Place::Value,
            message: message.into(),
            help: help.into(),
        }
    }

    pub fn rule(self, rule: &'static str) -> Self {
        Self { rule, ..self }
    }

    pub fn name(pointer: &str, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { place: Place::Name, ..Self::value(pointer, message, help) }
    }
}

/// ``did you mean `x`?``, for a name at most a third of its letters away from a known one.
pub fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = |candidate: &&str| {
        let distance = strsim::damerau_levenshtein(&name.to_lowercase(), &candidate.to_lowercase());
        distance <= (candidate.len() / 3).max(1)
    };
    known.filter(near).min_by_key(|candidate| strsim::damerau_levenshtein(name, candidate))
}
