//! A block of Cedar → its single policies with their places, and the traps that people fall into.
//!
//! Owns finding where each policy begins, so that each has the line of the Agentfile as its name, and telling what to write instead of
//! what other languages have. Parses no Cedar: Cedar does. Invariant: the texts of the policies are those of the block, byte for byte.

use writ_core::Span;

use crate::agent::Agent;
use crate::diagnostic::{Diagnostic, Place};
use crate::directive::Block;

/// Largest policy, in bytes.
const MAX_POLICY: usize = 64 << 10;
/// Deepest nesting of brackets.
const MAX_DEPTH: usize = 64;

/// One policy of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    pub text: String,
    /// Where its first letter is.
    pub place: Place,
}

/// A place in the file, by the offset of its byte.
pub(super) fn place_at(agent: &Agent, start: usize, end: usize) -> Place {
    let before = agent.text.get(..start).unwrap_or_default();
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let last = before.rsplit('\n').next().unwrap_or_default().trim_start_matches('\u{feff}');
    Place { line, column: last.chars().count() + 1, span: Span { start, end: end.max(start) } }
}

/// The policies of a block.
pub(super) fn split(agent: &Agent, block: &Block, found: &mut Vec<Diagnostic>) -> Vec<Statement> {
    // The text of the file, not of the block, whose line ends are all alike.
    let end = body_end(agent, block);
    let body = agent.text.get(block.start..end).unwrap_or_default();
    let mut out = Vec::new();
    let mut scan = Scan { body, at: 0 };
    let (mut begun, mut depth) = (None, 0usize);
    let before = found.len();
    while let Some((from, sign)) = scan.next() {
        let place = |from: usize, to: usize| place_at(agent, block.start + from, block.start + to);
        match sign {
            Sign::Hash => {
                let help = "comments in Cedar begin with `//`";
                found.push(Diagnostic::error(
                    "cedar-comment",
                    place(from, from + 1),
                    "`#` begins no comment inside `POLICY`",
                    help,
                ));
                return out;
            }
            Sign::OpenString => {
                found.push(Diagnostic::error(
                    "cedar-syntax",
                    place(from, from + 1),
                    "a text is not closed",
                    "close it with `\"`",
                ));
                return out;
            }
            Sign::Open => depth += 1,
            Sign::Close => depth = depth.saturating_sub(1),
            Sign::Other | Sign::Text | Sign::End => {}
        }
        if depth > MAX_DEPTH {
            found.push(Diagnostic::error(
                "cedar-syntax",
                place(from, from + 1),
                format!("brackets nest deeper than {MAX_DEPTH}"),
                "a simpler condition, or several policies",
            ));
            return out;
        }
        let start = *begun.get_or_insert(from);
        if sign == Sign::End {
            let text = body.get(start..scan.at).unwrap_or_default().to_owned();
            if text.len() > MAX_POLICY {
                found.push(Diagnostic::error(
                    "too-large",
                    place(start, scan.at),
                    format!("a policy has more than {MAX_POLICY} bytes"),
                    "several policies",
                ));
                return out;
            }
            traps(agent, &text, block.start + start, found);
            out.push(Statement { text, place: place(start, scan.at) });
            (begun, depth) = (None, 0);
        }
    }
    if let Some(start) = begun {
        let text = body.get(start..).unwrap_or_default().trim_end();
        traps(agent, text, block.start + start, found);
        if found.len() == before {
            let message = "the policy is not closed";
            let place = place_at(agent, block.start + start, block.start + start + text.len());
            found.push(Diagnostic::error("cedar-syntax", place, message, "a policy ends with `;`"));
        }
    }
    out
}

fn body_end(agent: &Agent, block: &Block) -> usize {
    let lines = block.text.matches('\n').count();
    let rest = agent.text.get(block.start..).unwrap_or_default();
    let end = rest.match_indices('\n').nth(lines.wrapping_sub(1)).map_or(rest.len(), |(at, _)| at + 1);
    block.start + if lines == 0 { 0 } else { end }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Hash,
    OpenString,
    Open,
    Close,
    Text,
    End,
    Other,
}

/// Signs that are neither white space nor comments.
struct Scan<'a> {
    body: &'a str,
    at: usize,
}

impl Scan<'_> {
    fn rest(&self) -> &str {
        self.body.get(self.at..).unwrap_or_default()
    }
}

impl Iterator for Scan<'_> {
    type Item = (usize, Sign);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let blank = self.rest().len() - self.rest().trim_start().len();
            self.at += blank;
            if !self.rest().starts_with("//") {
                break;
            }
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
        let from = self.at;
        let first = self.rest().chars().next()?;
        self.at += first.len_utf8();
        let sign = match first {
            '#' => Sign::Hash,
            '(' | '{' | '[' => Sign::Open,
            ')' | '}' | ']' => Sign::Close,
            ';' => Sign::End,
            '"' => {
                let mut escaped = false;
                let close = self.rest().char_indices().find(|(_, c)| {
                    let ends = *c == '"' && !escaped;
                    escaped = *c == '\\' && !escaped;
                    ends
                });
                match close {
                    Some((at, _)) => {
                        self.at += at + 1;
                        Sign::Text
                    }
                    None => Sign::OpenString,
                }
            }
            c if c.is_alphanumeric() || c == '_' => {
                let word = self.rest().find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest().len());
                self.at += word;
                Sign::Other
            }
            _ => Sign::Other,
        };
        Some((from, sign))
    }
}

/// What a policy's words are, without comments and with texts as one word each.
pub(super) fn words(text: &str) -> Vec<(usize, &str)> {
    let mut scan = Scan { body: text, at: 0 };
    let mut out = Vec::new();
    while let Some((from, _)) = scan.next() {
        out.push((from, text.get(from..scan.at).unwrap_or_default()));
    }
    out
}

/// A policy's text without the names of who and what it is about, and without what it compares with. An action's name stays, and so does
/// one with signs that Cedar may have a word about.
pub(super) fn without_names(text: &str) -> String {
    let words = words(text);
    let mut out = String::with_capacity(text.len());
    for (at, (_, word)) in words.iter().enumerate() {
        let back = |steps: usize| at.checked_sub(steps).and_then(|at| words.get(at)).map_or("", |(_, word)| *word);
        let name = match back(1) {
            ":" => back(3) != "Action",
            "=" | "like" => true,
            _ => false,
        };
        let plain = word.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'\\');
        out.push_str(if name && plain && word.starts_with('"') { "\"\"" } else { word });
        out.push(' ');
    }
    out
}

/// Methods that other languages have, and what Cedar has.
const METHODS: [(&str, &str); 6] = [
    ("startsWith", "`context.path like \"/workspace/*\"`"),
    ("endsWith", "`context.path like \"*.md\"`"),
    ("matches", "`like` with `*`: Cedar has no regular expressions"),
    ("includes", "`like \"*part*\"` for text, `.contains(…)` for sets"),
    ("toLowerCase", "both spellings: Cedar does not change texts"),
    ("length", "a condition without it: Cedar does not count letters"),
];

fn traps(agent: &Agent, text: &str, start: usize, found: &mut Vec<Diagnostic>) {
    let words = words(text);
    let place = |at: usize, word: &str| place_at(agent, start + at, start + at + word.len());
    let mut depth = 0usize;
    let scope_ends = words.iter().position(|(_, word)| {
        match *word {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        *word == ")" && depth == 0
    });
    for (at, window) in words.windows(3).enumerate() {
        let [(from, one), (middle, two), (_, three)] = window else { continue };
        let in_scope = scope_ends.is_none_or(|end| at < end);
        if in_scope && matches!(*one, "resource" | "principal") && *two == "in" && *three == "[" {
            let message = format!("`{one} in [ … ]` may not stand in a policy's head");
            let help = format!("one policy for each, or a condition: `when {{ [A, B].contains({one}) }}`");
            found.push(Diagnostic::error("cedar-set-in-scope", place(*from, one), message, help));
        }
        if *one == "."
            && *three == "("
            && let Some((_, instead)) = METHODS.iter().find(|(method, _)| method == two)
        {
            let message = format!("Cedar has no `.{two}()`");
            found.push(Diagnostic::error("cedar-method", place(*middle, two), message, format!("write {instead}")));
        }
        if matches!(*one, "=" | "&" | "|") && *two == *one && *three == "=" {
            found.push(Diagnostic::error(
                "cedar-syntax",
                place(*from, one),
                format!("`{one}{two}{three}` is no operator"),
                "`==`, `!=`, `&&`, `||`",
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_that_differ_in_names_alone_are_alike() {
        let head = |action: &str, host: &str| {
            format!(
                "forbid(principal, action == AgentRC::Action::\"{action}\", resource == AgentRC::Host::\"{host}\");"
            )
        };
        let alike = |one: &str, other: &str| without_names(one) == without_names(other);
        assert!(alike(&head("network.egress", "a"), &head("network.egress", "b.example // ;")));
        assert!(!alike(&head("network.egress", "a"), &head("tool.invoke", "a")));
        for odd in ["\u{202e}", "b\\u{202e}", "b\\\"", "\u{4bb}"] {
            assert!(!alike(&head("network.egress", "a"), &head("network.egress", odd)), "{odd}");
        }
        let when = |value: &str| format!("permit(principal, action, resource) when {{ {value} }};");
        assert!(alike(&when("context.path like \"a*\""), &when("context.path like \"b*\"")));
        for (one, other) in [
            ("ip(\"127.0.0.1\").isIpv4()", "ip(\"x\").isIpv4()"),
            ("context[\"path\"] == \"a\"", "context[\"none\"] == \"a\""),
            ("resource in AgentRC::Host::\"a\"", "resource == AgentRC::Host::\"a\""),
        ] {
            assert!(!alike(&when(one), &when(other)), "{one}");
        }
        assert!(!alike(
            "@id(\"a\") permit(principal, action, resource);",
            "@id(\"b\") permit(principal, action, resource);"
        ));
    }
}
