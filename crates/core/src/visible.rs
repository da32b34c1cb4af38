//! Text that somebody else wrote, on its way to a terminal.
//!
//! Owns which characters are spelled out. Invariant: what comes out moves no cursor, changes no colour and turns no direction.

use std::borrow::Cow;

/// Controls, and letters that are not seen but change how others are: direction, joins, line ends, tags.
pub fn is_unseen(c: char) -> bool {
    let formats = matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}');
    c.is_control()
        || formats
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Foreign text on one line: a name must not paint a line of its own.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_unseen)
}

/// Foreign text of several lines: line breaks and tabs stay.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_unseen(c) && c != '\n' && c != '\t')
}

/// A JSON text, in which such characters stand inside strings alone: it stays the same value.
pub fn json(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| is_unseen(c) && c != '\n') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unseen(c) && c != '\n' {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// The same number of bytes without such characters, so that places in the text stay where they are.
pub fn in_place(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c.len_utf8() {
            _ if !is_unseen(c) || c == '\n' || c == '\t' => out.push(c),
            1 => out.push('?'),
            2 => out.push('\u{b7}'),
            3 => out.push(char::REPLACEMENT_CHARACTER),
            _ => out.push_str("\u{b7}\u{b7}"),
        }
    }
    out
}

fn escaped(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if hidden(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_spelled_out() {
        assert_eq!(line("a\u{1b}[2Kb\nc\u{9b}2J"), "a\\u{1b}[2Kb\\u{a}c\\u{9b}2J");
        assert_eq!(line("x\u{202e}y\u{2066}z\u{200b}\u{e0041}"), "x\\u{202e}y\\u{2066}z\\u{200b}\\u{e0041}");
        assert_eq!(lines("a\tb\nc\r"), "a\tb\nc\\u{d}");
        assert_eq!(line("Grüße, 日本 🦀"), "Grüße, 日本 🦀");
    }

    #[test]
    fn json_stays_the_same_value_and_places_stay() {
        let value = crate::json::Value::from("a\u{9b}b\u{7f}\u{e0041}\u{202e}🦀");
        let text = crate::json::compact(&value);
        let shown = json(&text);
        assert!(!shown.chars().any(is_unseen) && shown != text, "{shown}");
        assert_eq!(crate::json::parse(shown.as_bytes()).unwrap(), value);
        for text in ["a\u{1b}b", "\u{9b}", "\u{202e}x", "\u{e0041}", "a\nb"] {
            assert_eq!(in_place(text).len(), text.len());
            assert!(!in_place(text).chars().any(|c| is_unseen(c) && c != '\n'));
        }
    }
}
