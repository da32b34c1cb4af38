//! Places in a text: lines and UTF-16 units, as editors count, and bytes.

use std::path::PathBuf;

use lsp_types::{Position, Range};
use writ_core::Span;

/// The byte at a position; the end of the line, or of the text, where there is none.
pub fn offset(text: &str, position: Position) -> usize {
    let mut start = 0;
    for _ in 0..position.line {
        match text.get(start..).and_then(|rest| rest.find('\n')) {
            Some(at) => start += at + 1,
            None => return text.len(),
        }
    }
    let line = text.get(start..).unwrap_or_default().split('\n').next().unwrap_or_default();
    let mut units = position.character as usize;
    for (at, c) in line.char_indices() {
        if units < c.len_utf16() {
            return start + at;
        }
        units -= c.len_utf16();
    }
    start + line.len()
}

/// The position of a byte.
pub fn position(text: &str, offset: usize) -> Position {
    let mut at = offset.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = text.get(..at).unwrap_or_default();
    let line = before.bytes().filter(|byte| *byte == b'\n').count();
    let units = before.rsplit('\n').next().unwrap_or_default().encode_utf16().count();
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Position { line: number(line), character: number(units) }
}

/// A part of a text.
pub fn range(text: &str, span: Span) -> Range {
    Range { start: position(text, span.start), end: position(text, span.end) }
}

/// The file of a `file:` URI.
pub fn path(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let rest = rest.get(rest.find('/')?..)?;
    let mut bytes = Vec::with_capacity(rest.len());
    let mut left = rest.bytes();
    while let Some(byte) = left.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (high, low) = (left.next()?, left.next()?);
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        bytes.push(digit(high)? * 16 + digit(low)?);
    }
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_as_editors_do() {
        let text = "a\nüx🦀y\n";
        for (line, character, byte) in [(0, 0, 0), (0, 9, 1), (1, 1, 4), (1, 2, 5), (1, 4, 9), (1, 5, 10), (7, 0, 11)] {
            assert_eq!(offset(text, Position { line, character }), byte, "{line}:{character}");
        }
        // Within a letter is at its beginning.
        assert_eq!(offset(text, Position { line: 1, character: 3 }), 5);
        assert_eq!(position(text, 9), Position { line: 1, character: 4 });
        assert_eq!(position(text, 7), Position { line: 1, character: 2 });
        assert_eq!(position(text, 99), Position { line: 2, character: 0 });
    }

    #[test]
    fn a_files_address_is_its_path() {
        assert_eq!(path("file:///w/a%20b/.aflock"), Some(PathBuf::from("/w/a b/.aflock")));
        assert_eq!(path("file://host/w/x"), Some(PathBuf::from("/w/x")));
        for other in ["untitled:Untitled-1", "file://", "file:///%f", "file:///%zz"] {
            assert_eq!(path(other), None, "{other}");
        }
    }
}
