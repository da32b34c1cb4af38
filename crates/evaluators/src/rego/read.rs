//! What a module reads of its input, as far as its text tells without running it.

use writ_core::json::Value;

/// A member of the input that a module reads by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Read {
    /// The line, from 1.
    pub line: usize,
    /// `input.policy.limits`, or a pattern of `attestationsFrom`.
    pub what: What,
}

/// What is read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// The statements of a pattern.
    Pattern(String),
    /// A member.
    Member(Vec<String>),
}

/// All that a module reads by name, in the order of its text.
pub fn reads(module: &str) -> Vec<Read> {
    let mut out = Vec::new();
    for (index, line) in module.lines().enumerate() {
        let code = code(line);
        for (at, _) in code.match_indices("input.") {
            let before = code.get(..at).and_then(|before| before.chars().next_back());
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.') {
                continue;
            }
            let rest = code.get(at + "input.".len()..).unwrap_or_default();
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).unwrap_or(rest.len());
            let path: Vec<String> = rest.get(..end).unwrap_or_default().split('.').map(str::to_owned).collect();
            let what = match pattern(&path, rest.get(end..).unwrap_or_default()) {
                Some(pattern) => What::Pattern(pattern),
                None => What::Member(path),
            };
            out.push(Read { line: index + 1, what });
        }
    }
    out
}

/// The line, from 1, in which a module calls a function.
pub fn calls(module: &str, function: &str) -> Option<usize> {
    module.lines().position(|line| code(line).contains(function)).map(|index| index + 1)
}

/// `attestationsFrom["turn-*"]`
fn pattern(path: &[String], rest: &str) -> Option<String> {
    if path.last().is_none_or(|last| last != "attestationsFrom") {
        return None;
    }
    let inside = rest.strip_prefix("[\"").or_else(|| rest.strip_prefix("[`"))?;
    Some(inside.split(['"', '`']).next()?.to_owned())
}

impl Read {
    /// The first part of a member's path that the input does not have.
    pub fn missing(&self, input: &Value) -> Option<String> {
        let What::Member(path) = &self.what else { return None };
        let mut value = input;
        for (depth, name) in path.iter().enumerate() {
            match value.get(name) {
                Some(inside) => value = inside,
                // What a list or a text has inside is no member.
                None if value.as_object().is_none() => return None,
                None => return Some(format!("input.{}", path.get(..=depth)?.join("."))),
            }
        }
        None
    }
}

/// A line without its remark.
fn code(line: &str) -> &str {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some('"'), '\\') => escaped = true,
            (Some(open), _) if open == c => quote = None,
            (None, '"' | '`') => quote = Some(c),
            (None, '#') => return line.get(..at).unwrap_or(line),
            _ => {}
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use writ_core::json;

    #[test]
    fn what_a_module_reads_is_told_with_its_line() {
        let module = "package a\nx := [t | some t in input.attestationsFrom[\"turn-*\"]]\n# input.no\ny := input.policy.expected\nz := myinput.q";
        let read = reads(module);
        let member = What::Member(vec!["policy".to_owned(), "expected".to_owned()]);
        assert_eq!(read, [Read { line: 2, what: What::Pattern("turn-*".to_owned()) }, Read { line: 4, what: member }]);
        let input = json::parse(br#"{"policy":{"name":"x"}}"#).unwrap();
        assert_eq!(read[1].missing(&input).as_deref(), Some("input.policy.expected"));
    }
}
