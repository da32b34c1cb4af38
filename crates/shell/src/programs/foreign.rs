//! Code in a language that is not the shell's: where it comes from, what it mentions, and text in it that stays unknown.

use std::str::Chars;

use writ_core::Span;

use crate::eval::Eval;
use crate::eval::input::Input;
use crate::shape::text_word;
use crate::word::{Part, Source, Word};

/// Stands in foreign code for what is not known.
pub const MARK: char = '\u{1}';

/// Stands for what a pattern of make's matched: a path that does not climb.
pub const STEM: char = '\u{2}';

/// What a script option names.
pub enum Script {
    /// This text.
    Text(String),
    /// A file, which is not looked into.
    File,
    /// Something not known.
    Unknown,
}

/// The script behind `-f` and its like: standard input, a substitution, or a file.
pub fn script_of(file: &Word, input: &Input) -> Script {
    match file.literal().as_deref() {
        Some("-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") => match input {
            Input::Text(text) => Script::Text(text.clone()),
            Input::None => Script::File,
            Input::Partly(_) | Input::Unknown => Script::Unknown,
        },
        Some(path) if path.starts_with("/dev/fd/") || path.starts_with("/proc/") => Script::Unknown,
        _ => Script::File,
    }
}

/// The same, looked into where this line or the agent wrote it.
pub fn script_text(eval: &Eval<'_>, file: &Word, input: &Input) -> Script {
    match script_of(file, input) {
        Script::File => eval.text_known(file).map_or(Script::File, Script::Text),
        other => other,
    }
}

/// A word's text, [`MARK`] for what is not known.
pub fn marked(word: &Word) -> String {
    let mut out = String::new();
    for part in &word.parts {
        match part {
            Part::Text(text) | Part::Glob(text) => out.push_str(text),
            Part::Unknown(_) => out.push(MARK),
        }
    }
    out
}

/// The word whose marked text this is.
pub fn unmarked(text: &str, span: Span) -> Word {
    let mut parts = Vec::new();
    for piece in text.split_inclusive([MARK, STEM]) {
        let known = piece.trim_end_matches([MARK, STEM]);
        if !known.is_empty() {
            parts.push(Part::Text(known.to_owned()));
        }
        match piece.chars().next_back() {
            Some(MARK) => parts.push(Part::Unknown(Source::Any)),
            Some(STEM) => parts.push(Part::Unknown(Source::Outside)),
            _ => {}
        }
    }
    Word { parts, span }
}

/// Quoted texts in foreign code that look like paths or URLs, and plain names that do.
pub fn mentions(code: &Word) -> Vec<Word> {
    let Some(text) = code.literal() else { return Vec::new() };
    let pieces = text.split(['\'', '"', '`', '(', ')', ',', ' ', '\n', '\t', ';', '<', '>', '[', ']', '{', '}', '=']);
    let likely = |piece: &&str| {
        piece.len() > 1 && piece.len() < 512 && (piece.contains('/') || piece.starts_with('.') || piece.contains("."))
    };
    pieces.filter(likely).take(64).map(|piece| text_word(piece, code.span)).collect()
}

/// Past the delimiter that ends a regular expression. One in brackets does not: where an implementation thinks otherwise, the
/// bracket never closes and the program is refused. `escapes`: a backslash keeps its power in brackets.
pub fn past_regex(chars: &mut Chars<'_>, delimiter: char, escapes: bool) -> Option<()> {
    let mut brackets = true;
    loop {
        match chars.next()? {
            c if c == delimiter => return Some(()),
            '\\' => drop(chars.next()?),
            '[' if brackets => {
                let mut set = chars.clone();
                match past_set(&mut set, escapes) {
                    Some(()) => *chars = set,
                    None if chars.as_str().len() - set.as_str().len() > MAX_SET => return None,
                    None => brackets = false,
                }
            }
            _ => {}
        }
    }
}

/// Longest set in brackets that is read, in bytes.
const MAX_SET: usize = 1024;

/// Past the `]` of a set; `None` when the line ends before, or the set is too long.
fn past_set(chars: &mut Chars<'_>, escapes: bool) -> Option<()> {
    let mut first = true;
    let start = chars.as_str().len();
    loop {
        if start - chars.as_str().len() > MAX_SET {
            return None;
        }
        match chars.next()? {
            '^' if first => continue,
            ']' if !first => return Some(()),
            '\n' => return None,
            '\\' if escapes => drop(chars.next()?),
            '[' if chars.as_str().starts_with([':', '.', '=']) => {
                let kind = chars.next()?;
                let mut inner = chars.clone();
                // `[:alpha:]`: no name is longer than this.
                let end = inner.by_ref().take(32).position(|c| c == kind);
                if end.is_none() || !inner.as_str().starts_with(']') {
                    continue;
                }
                inner.next()?;
                *chars = inner;
            }
            _ => {}
        }
        first = false;
    }
}
