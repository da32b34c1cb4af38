//! Code in languages that are not the shell's: whether it stays within the harmless part of its language, and which files,
//! hosts and commands it names beyond that.
//!
//! Owns one tokenizer and one allow-list a language (`data/languages/*.toml`); follows no value but texts that are certain. Invariant:
//! what is not on a list is not harmless, and what reads in two ways is refused. Page: `spec/shell.md`.

mod allowlist;
mod javascript;
mod perl;
mod php;
mod python;
mod ruby;
mod sql;
pub(crate) mod started;
pub(crate) mod table;
mod token;

use crate::action::Access;
use crate::word::{Part, Word};

/// A text as far as it is known.
pub(crate) type Value = Vec<Part>;

/// A language whose code is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Python,
    JavaScript,
    Perl,
    Ruby,
    Php,
    Lua,
    R,
}

impl Language {
    /// As `data/languages/*.toml` calls it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::JavaScript => "javascript",
            Self::Perl => "perl",
            Self::Ruby => "ruby",
            Self::Php => "php",
            Self::Lua => "lua",
            Self::R => "r",
        }
    }

    /// What a program with this name interprets.
    pub(crate) fn of(base: &str) -> Option<Self> {
        let name = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        Some(match name {
            "python" | "pypy" => Self::Python,
            "node" | "nodejs" | "bun" | "deno" | "tsx" | "ts-node" => Self::JavaScript,
            "perl" => Self::Perl,
            "ruby" => Self::Ruby,
            "php" => Self::Php,
            "lua" | "luajit" | "texlua" => Self::Lua,
            "Rscript" | "littler" | "R" => Self::R,
            _ => return None,
        })
    }
}

/// What is around a piece of code.
#[derive(Clone, Debug, Default)]
pub(crate) struct Around<'a> {
    /// Its arguments (`sys.argv[1:]`, `process.argv`), as the line gives them.
    pub arguments: &'a [Word],
    /// `~`.
    pub home: Option<String>,
    /// Perl's and Ruby's `-n`, `-p`, `-i`, `-a`, …
    pub switches: String,
}

/// What a piece of code does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    /// It stays within the harmless part, but for what is named below.
    pub harmless: bool,
    pub files: Vec<(Value, Access, bool)>,
    pub urls: Vec<Value>,
    /// Shell code that it runs.
    pub shells: Vec<Value>,
    /// Commands that it runs.
    pub commands: Vec<Vec<Value>>,
    /// What it runs is made while it runs.
    pub computes: bool,
    /// Modules that it loads, by their first name; a file of that name is run where there is one.
    pub modules: Vec<String>,
    /// One of them is none that is listed.
    pub loads: bool,
}

/// Reads code.
pub(crate) fn read(language: Language, text: &str, around: &Around<'_>) -> Reading {
    match language {
        Language::Python => python::read(text, around),
        Language::JavaScript => javascript::read(text, around),
        Language::Perl => perl::read(text, around),
        Language::Ruby => ruby::read(text, around),
        Language::Php => php::read(text, around),
        Language::Lua | Language::R => allowlist::read(language, text),
    }
}

/// Most values that one expression is followed to.
const MAX_VALUES: usize = 24;

/// Every way to put one of the first before one of the second.
pub(crate) fn joined(first: &[Value], second: &[Value]) -> Option<Vec<Value>> {
    if first.len() * second.len() > MAX_VALUES {
        return None;
    }
    Some(first.iter().flat_map(|a| second.iter().map(move |b| concat(a, b))).collect())
}

/// One behind the other, neighbours of a kind as one.
pub(crate) fn concat(first: &[Part], second: &[Part]) -> Value {
    let mut out = first.to_vec();
    for part in second {
        match (out.last_mut(), part) {
            (Some(Part::Text(text)), Part::Text(more)) => text.push_str(more),
            _ => out.push(part.clone()),
        }
    }
    out
}

/// A value of known text.
pub(crate) fn known(text: &str) -> Value {
    vec![Part::Text(text.to_owned())]
}

/// The text of a value, where all of it is.
pub(crate) fn text_of(value: &[Part]) -> Option<String> {
    value.iter().map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None }).collect()
}
