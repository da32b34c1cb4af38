//! Arithmetic: which variables an expression reads, and which it sets.
//!
//! A name in an expression is a variable, and what that holds is an expression again. A name that the expression itself sets first is
//! none that it reads.

use crate::eval::Eval;
use crate::parser::syntax::{Node, RawPart, RawWord};
use crate::text::Text;
use crate::word::Part;

/// Between these `[[ … ]]` computes.
const COMPARES: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
/// How often a name leads to another.
const MOST: usize = 3;

impl Eval<'_> {
    /// A text that bash computes: its variables are read.
    pub(crate) fn computed(&mut self, text: &Text) {
        self.number(text, 0);
        self.names_read(text, 0);
    }

    fn names_read(&mut self, text: &Text, depth: usize) {
        for name in reads(&open(text)) {
            if !self.spend(1) {
                return;
            }
            let held = self.lookup(&name, None);
            self.outside_read(&name, held.is_some());
            for value in held.into_iter().flatten().flatten().filter(|_| depth < MOST) {
                self.names_read(&value, depth + 1);
            }
        }
    }

    /// `[[ … ]]`: a word may be arithmetic, or a variable's name.
    pub(crate) fn test(&mut self, words: &[RawWord]) {
        let sign = |at: Option<usize>| match words.get(at?)?.parts.as_slice() {
            [RawPart::Plain(text)] => Some(text.as_str()),
            _ => None,
        };
        for (at, raw) in words.iter().enumerate() {
            let (before, behind) = (sign(at.checked_sub(1)), sign(at.checked_add(1)));
            let compared = [before, behind].into_iter().flatten().any(|sign| COMPARES.contains(&sign));
            for word in self.expand(raw).into_iter().flatten() {
                let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                match word.literal() {
                    _ if compared => self.computed(&word.parts),
                    Some(text) if before == Some("-v") && text.contains('[') => self.computed(&word.parts),
                    Some(text) if text.chars().all(name) => self.number(&word.parts, 0),
                    _ => self.subscripts(&word.parts),
                }
            }
        }
    }

    /// `((x=5))` alone sets it for certain.
    pub(crate) fn number_set(&mut self, text: &Text) {
        let text = open(text);
        let Some((name, value)) = text.split_once('=') else { return };
        let (name, value) = (name.trim(), value.trim());
        let plain = value == "0" || !value.starts_with('0') && value.len() < 18;
        if is_name(name) && !value.is_empty() && plain && value.bytes().all(|byte| byte.is_ascii_digit()) {
            self.set(name, vec![vec![vec![Part::Text(value.to_owned())]]], false, self.here);
        }
    }
}

/// The names that the beginning of `for ((i=0; …))` sets: its body only runs where it did.
pub(crate) fn counters(nodes: &[Node]) -> Vec<String> {
    let Some(Node::Words(words)) = nodes.first() else { return Vec::new() };
    let parts = words.iter().flat_map(|word| &word.parts);
    let texts = parts.flat_map(|part| if let RawPart::Arithmetic(parts) = part { parts.as_slice() } else { &[] });
    let mut first = String::new();
    for part in texts {
        match part {
            RawPart::Plain(text) | RawPart::Quoted(text) => first.push_str(text),
            RawPart::Param(_) | RawPart::Command(..) | RawPart::Process(_) | RawPart::Arithmetic(_) => first.push('1'),
        }
    }
    let first = first.split(';').next().unwrap_or_default();
    let until = branch(first);
    names(first)
        .filter(|(at, name)| *at < until && is_set(first, at + name.len()))
        .map(|(_, name)| name.to_owned())
        .collect()
}

/// The names that an expression reads and did not surely set before.
fn reads(text: &str) -> Vec<String> {
    let until = branch(text);
    let mut set: Vec<(&str, usize)> = Vec::new();
    let mut out: Vec<String> = Vec::new();
    for (at, name) in names(text) {
        let end = at + name.len();
        if is_set(text, end) {
            // It is set once its own value is known.
            let done = text.get(end..).and_then(|rest| rest.find([',', ';'])).map(|more| end + more);
            set.extend(done.filter(|done| *done < until).map(|done| (name, done)));
        } else if !set.iter().any(|(own, done)| *own == name && *done < at) && !out.iter().any(|own| own == name) {
            out.push(name.to_owned());
        }
    }
    out
}

/// Where something begins that may not be computed.
fn branch(text: &str) -> usize {
    ["&&", "||", "?"].iter().filter_map(|sign| text.find(sign)).min().unwrap_or(text.len())
}

/// Whether a single `=` follows a name that ends here.
fn is_set(text: &str, end: usize) -> bool {
    let rest = text.get(end..).unwrap_or_default().trim_start();
    rest.starts_with('=') && !rest.starts_with("==")
}

/// The names in an expression, each with its place; digits of a base (`16#ff`, `0xff`) are none.
fn names(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut at = 0;
    text.split(move |c: char| !letter(c)).filter_map(move |piece| {
        let start = at;
        at += piece.len();
        at += text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        let based = text.get(..start).is_some_and(|before| before.ends_with('#'));
        (is_name(piece) && !based).then_some((start, piece))
    })
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A text with a sign that is in no name for what is not known of it.
fn open(text: &Text) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) | Part::Glob(text) => text.clone(),
        Part::Unknown(_) => "\u{1}".to_owned(),
    };
    text.iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_read() {
        for (text, expected) in [
            ("X", vec!["X"]),
            ("a[X]+1", vec!["a", "X"]),
            ("i=X", vec!["X"]),
            ("X=X+1", vec!["X"]),
            ("X==1", vec!["X"]),
            ("X+=1, X++", vec!["X"]),
            ("X=1, X", vec![]),
            ("i=0; i<3; i++", vec![]),
            ("0&&(X=1), X", vec!["X"]),
            ("16#FF + 0xAB + 5", vec![]),
        ] {
            assert_eq!(reads(text), expected, "{text}");
        }
    }
}
