//! What a word looks like, and words made of others: an option, an assignment, a URL, a path.
//!
//! Owns questions that a word's own text answers; what a program makes of it is not asked here.

use writ_core::Span;

use crate::action::NetTarget;
use crate::text::size;
use crate::word::{Part, Source, Word};

/// `-x`, `--x`; not `-` itself.
pub fn is_flag(word: &Word) -> bool {
    matches!(word.parts.first(), Some(Part::Text(text)) if text.len() > 1 && text.starts_with('-'))
}

/// The text in front of the first part that is not known.
pub fn literal_prefix(word: &Word) -> String {
    let known = word.parts.iter().map_while(|part| match part {
        Part::Text(text) | Part::Glob(text) => Some(text.as_str()),
        Part::Unknown(_) => None,
    });
    known.collect()
}

/// A word without its first bytes.
pub fn tail(word: &Word, bytes: usize) -> Word {
    let mut left = bytes;
    let mut parts = Vec::new();
    for part in &word.parts {
        let (Part::Text(text) | Part::Glob(text)) = part else {
            parts.push(part.clone());
            continue;
        };
        let cut = left.min(text.len());
        left -= cut;
        let rest = text.get(cut..).unwrap_or_default().to_owned();
        if !rest.is_empty() {
            parts.push(if matches!(part, Part::Glob(_)) { Part::Glob(rest) } else { Part::Text(rest) });
        }
    }
    Word { parts, span: word.span }
}

/// A word of known text.
pub fn text_word(text: &str, span: Span) -> Word {
    Word { parts: vec![Part::Text(text.to_owned())], span }
}

/// A host word.
pub fn host(text: &str, span: Span) -> NetTarget {
    NetTarget::Host(text_word(text, span))
}

/// Words as one, separated by spaces.
pub fn joined(words: &[Word], span: Span) -> Word {
    let mut parts = Vec::new();
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            parts.push(Part::Text(" ".to_owned()));
        }
        parts.extend(word.parts.iter().cloned());
    }
    Word { parts, span }
}

/// Whether a word begins as `NAME=`.
pub fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// `name=value`, where the name is one.
pub fn split_assignment(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    is_assignment(text).then(|| (name.to_owned(), value.to_owned()))
}

/// Where a system keeps its own programs.
pub fn is_system(path: &str) -> bool {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    matches!(folder, "/bin" | "/usr/bin" | "/usr/local/bin" | "/sbin" | "/usr/sbin" | "/usr/local/sbin")
}

/// A program's name without its folder.
pub fn base_of(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}

/// `scheme://…`
pub fn is_url(word: &Word) -> bool {
    let pieces = word.parts.iter().map(|part| match part {
        Part::Text(text) | Part::Glob(text) => text.as_str(),
        Part::Unknown(_) => "",
    });
    let text = word.text().unwrap_or_else(|| pieces.collect());
    text.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    })
}

/// Whether a bare operand is likely a path: it has a slash, begins with `.` or `~`, or ends in an extension.
pub fn looks_like_path(word: &Word) -> bool {
    let Some(text) = word.text() else {
        return word.parts.len() > 1
            && word.parts.iter().any(|part| matches!(part, Part::Text(text) if text.contains('/')));
    };
    let odd = text.is_empty()
        || text.contains(char::is_whitespace)
        || text.len() > 4096
        || is_url(word)
        || text.starts_with('@');
    let extension = text.rsplit_once('.').is_some_and(|(head, tail)| {
        !head.is_empty()
            && (1..=5).contains(&tail.len())
            && tail.chars().all(|c| c.is_ascii_alphanumeric())
            && tail.chars().any(|c| c.is_ascii_alphabetic())
    });
    !odd && (text.contains('/') || text.starts_with(['.', '~']) || extension)
}

/// A word for people, unknown parts as `…`.
pub fn shown(word: &Word) -> String {
    word.parts
        .iter()
        .map(|part| match part {
            Part::Text(text) | Part::Glob(text) => text.as_str(),
            Part::Unknown(_) => "…",
        })
        .collect()
}

/// `word` with `item` in place of `mark`.
pub fn substitute(word: &Word, mark: &str, item: &Word) -> Word {
    // Longest text that is put together.
    const MAX: usize = 64 << 10;
    let marks: usize =
        word.parts.iter().map(|part| if let Part::Text(text) = part { text.matches(mark).count() } else { 0 }).sum();
    if marks.saturating_mul(size(&item.parts).max(16)) > MAX {
        return Word { parts: vec![Part::Unknown(Source::Any)], span: word.span };
    }
    let mut parts = Vec::new();
    for part in &word.parts {
        match part {
            Part::Text(text) if text.contains(mark) => {
                for (index, piece) in text.split(mark).enumerate() {
                    if index > 0 {
                        parts.extend(item.parts.iter().cloned());
                    }
                    parts.push(Part::Text(piece.to_owned()));
                }
            }
            other => parts.push(other.clone()),
        }
    }
    parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
    Word { parts, span: word.span }
}
