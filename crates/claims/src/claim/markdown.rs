//! Lines and what they stand in: plain text, a fence or a quote (CommonMark, read so that doubt means "not plain").
//!
//! It knows nothing of keys and lists. A fence opens at any indentation, since lists indent theirs, and an unclosed one
//! reaches to the end.

use std::borrow::Cow;

use super::words;

/// What a line stands in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Plain,
    /// Inside a fence.
    Fenced,
    /// The line that opens or closes a fence.
    Fence,
    Quoted,
}

/// One line without its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    pub text: &'a str,
    pub kind: Kind,
}

/// An open fence: its character, how many of them, and how far it is indented.
struct Open {
    mark: char,
    length: usize,
    indent: usize,
}

/// The text without characters that nobody sees and no file name means.
pub(super) fn without_invisible(text: &str) -> Cow<'_, str> {
    let invisible = ['\u{200b}', '\u{2060}', '\u{feff}'];
    if text.contains(invisible) { Cow::Owned(text.replace(invisible, "")) } else { Cow::Borrowed(text) }
}

/// The lines that begin in the last `limit` bytes. Fences are followed from the very start.
pub(super) fn lines(text: &str, limit: usize) -> Vec<Line<'_>> {
    let cut = text.len().saturating_sub(limit);
    let (mut lines, mut open, mut at) = (Vec::new(), None, 0);
    for row in text.split_inclusive(['\n', '\r']) {
        let begin = at;
        at += row.len();
        // The line feed of a CRLF is no line of its own.
        if row == "\n" && begin > 0 && text.as_bytes().get(begin - 1) == Some(&b'\r') {
            continue;
        }
        let line = row.trim_end_matches(['\n', '\r']);
        let kind = kind(line, &mut open);
        if begin >= cut {
            lines.push(Line { text: line, kind });
        }
    }
    lines
}

fn kind(line: &str, open: &mut Option<Open>) -> Kind {
    let body = line.trim_start();
    if let Some(fence) = open {
        let rest = body.trim_start_matches(fence.mark);
        let closes = body.len() - rest.len() >= fence.length && rest.trim().is_empty();
        if !closes || indent(line) > fence.indent + 3 {
            return Kind::Fenced;
        }
        *open = None;
        return Kind::Fence;
    }
    if body.starts_with('>') || words::bullet(body).is_some_and(|item| item.trim_start().starts_with('>')) {
        return Kind::Quoted;
    }
    let item = words::bullet(body).map_or(body, str::trim_start);
    for mark in ['`', '~'] {
        let info = item.trim_start_matches(mark);
        let length = item.len() - info.len();
        if length >= 3 && !(mark == '`' && info.contains('`')) {
            *open = Some(Open { mark, length, indent: indent(line) + body.len() - item.len() });
            return Kind::Fence;
        }
    }
    Kind::Plain
}

/// How far a line is indented; a tab is four columns.
pub(super) fn indent(line: &str) -> usize {
    line.chars().take_while(|c| c.is_whitespace()).map(|c| if c == '\t' { 4 } else { 1 }).sum()
}

/// The title, when the line is a heading of the second level.
pub(super) fn second_heading(line: &str) -> Option<&str> {
    let title = line.trim_start().strip_prefix("##")?;
    (indent(line) <= 3 && (title.is_empty() || title.starts_with(char::is_whitespace))).then(|| title.trim())
}
