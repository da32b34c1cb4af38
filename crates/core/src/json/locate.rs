//! From a JSON pointer to a place in the text: paid for only when there is an error to report.

use super::parse::{Limits, Parser};
use crate::span::Span;

/// Which part of a member to point at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The member's name (for an unknown field); an element's value.
    Name,
    /// The member's value.
    Value,
}

/// The bytes of `text` that `pointer` (RFC 6901) names, if the text is JSON and has them. The whole document's value
/// for the empty pointer.
pub fn locate(text: &str, pointer: &str, place: Place) -> Option<Span> {
    let steps: Vec<String> =
        pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
    let mut parser = Parser { text, at: 0, limits: Limits::FOREIGN };
    parser.find(&steps, place)
}

/// Line and column of a byte offset, both from 1; columns count characters.
pub fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

impl Parser<'_> {
    fn find(&mut self, steps: &[String], place: Place) -> Option<Span> {
        self.space();
        let Some((step, rest)) = steps.split_first() else {
            let start = self.at;
            self.value(0).ok()?;
            return Some(Span { start, end: self.at });
        };
        match self.peek()? {
            b'{' => self.find_member(step, rest, place),
            b'[' => self.find_element(step.parse().ok()?, rest, place),
            _ => None,
        }
    }

    fn find_member(&mut self, step: &str, rest: &[String], place: Place) -> Option<Span> {
        self.at += 1;
        loop {
            self.space();
            let start = self.at;
            let name = self.string().ok()?;
            let end = self.at;
            self.space();
            self.expect(b':', "`:`").ok()?;
            if name == step {
                return match place {
                    Place::Name if rest.is_empty() => Some(Span { start, end }),
                    Place::Name | Place::Value => self.find(rest, place),
                };
            }
            self.value(0).ok()?;
            self.space();
            self.expect(b',', "`,`").ok()?;
        }
    }

    fn find_element(&mut self, index: usize, rest: &[String], place: Place) -> Option<Span> {
        self.at += 1;
        for _ in 0..index {
            self.value(0).ok()?;
            self.space();
            self.expect(b',', "`,`").ok()?;
        }
        self.find(rest, place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_names_and_values() {
        let text = "{\n  \"a\": [1, {\"b/c\": \"x\"}]\n}";
        let at = |pointer, place| locate(text, pointer, place).and_then(|span| text.get(span.start..span.end));
        assert_eq!(at("/a", Place::Name), Some("\"a\""));
        assert_eq!(at("/a/0", Place::Value), Some("1"));
        assert_eq!(at("/a/1/b~1c", Place::Value), Some("\"x\""));
        assert_eq!(at("/a/1/b~1c", Place::Name), Some("\"b/c\""));
        assert_eq!(at("/a/7", Place::Value), None);
        assert_eq!(position(text, 4), (2, 3));
    }
}
