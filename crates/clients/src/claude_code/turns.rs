//! Where turns begin in a transcript, and each line's bytes.
//!
//! Owns what counts as a human's prompt: a line of the user's with words or pictures in it that is no tool's result, and that the client
//! did not write by itself. Refuses lines without an end: they are being written. A line is parsed only where it may be a prompt or
//! speak of usage, so that reading is about as fast as looking for words. Format page: `spec/clients/claude-code.md`.

use std::io::{self, BufRead, Read};
use std::path::Path;

use memchr::memmem::Finder;
use writ_core::Timestamp;
use writ_core::json::Value;

use super::transcript::{LINE_LIMIT, open};
use super::usage::{told, told_by};
use crate::transcript::{Line, Reach, TranscriptError, parse_line};
use crate::usage::Spoken;

/// Texts of user lines that no human wrote, by how they begin.
const CLIENT_TEXTS: &[&str] = &[
    "[Request interrupted by user",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<task-notification>",
];

/// Tells a transcript line by line from byte `from` on. Memory is that of the longest line.
pub fn read(path: &Path, from: u64, take: &mut dyn FnMut(Line<'_>)) -> Result<Reach, TranscriptError> {
    let failed = |source| TranscriptError::Io { path: path.to_owned(), source };
    let (read, torn) = walk(open(path, from)?, from, LINE_LIMIT, take).map_err(failed)?;
    Ok(Reach { end: from + read, torn })
}

/// The words that a line is looked at for. Inside a text a quotation mark has a backslash before it, so members alone are found.
struct Words {
    usage: [Finder<'static>; 2],
    user: Finder<'static>,
    result: Finder<'static>,
}

impl Words {
    fn new() -> Self {
        Self {
            usage: [Finder::new(br#""usage""#), Finder::new(br#""cost-state""#)],
            // Not with the member's name: a client may write blanks between them.
            user: Finder::new(br#""user""#),
            result: Finder::new(br#""tool_use_id""#),
        }
    }

    fn line<'a>(&self, bytes: &'a [u8], end: u64) -> Line<'a> {
        let mut line = Line { bytes, ends: true, end, prompt: None, spoken: None };
        if self.user.find(bytes).is_some() && self.result.find(bytes).is_none() {
            match parse_line(bytes) {
                Ok(entry) => (line.prompt, line.spoken) = (prompt(&entry), told(&entry)),
                Err(_) => line.spoken = Some(Spoken::Unreadable),
            }
        } else if self.usage.iter().any(|word| word.find(bytes).is_some()) {
            line.spoken = told_by(bytes);
        }
        line
    }
}

fn walk(mut reader: impl BufRead, from: u64, longest: u64, take: &mut dyn FnMut(Line<'_>)) -> io::Result<(u64, bool)> {
    let words = Words::new();
    let (mut whole, mut at, mut line) = (0, 0, Vec::new());
    loop {
        // A line that is whole in what was read needs no copy.
        let read = reader.fill_buf()?;
        if at == whole
            && let Some(length) = memchr::memchr(b'\n', read.get(..length_of(longest, read)).unwrap_or_default())
        {
            at += length as u64 + 1;
            whole = at;
            take(words.line(read.get(..length).unwrap_or_default(), from + at));
            reader.consume(length + 1);
            continue;
        }
        line.clear();
        let length = (&mut reader).take(longest).read_until(b'\n', &mut line)? as u64;
        let begun = at > whole;
        at += length;
        match line.split_last() {
            Some((b'\n', bytes)) => {
                whole = at;
                let unread =
                    || Line { bytes, ends: true, end: from + at, prompt: None, spoken: Some(Spoken::Unreadable) };
                take(if begun { unread() } else { words.line(bytes, from + at) });
            }
            Some(_) if length == longest => {
                take(Line { bytes: &line, ends: false, end: from + at, prompt: None, spoken: None });
            }
            _ => return Ok((whole, at > whole)),
        }
    }
}

/// How much of what was read can be a line.
fn length_of(longest: u64, read: &[u8]) -> usize {
    usize::try_from(longest).map_or(read.len(), |longest| longest.min(read.len()))
}

/// A prompt's moment, where the line is one.
fn prompt(entry: &Value) -> Option<Option<Timestamp>> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let flag = |name: &str| entry.get(name).and_then(Value::as_bool).unwrap_or(false);
    if text(entry, "type").as_deref() != Some("user")
        || ["isMeta", "isCompactSummary", "isVisibleInTranscriptOnly"].into_iter().any(flag)
    {
        return None;
    }
    let content = entry.get("message")?.get("content")?;
    let is_human = |words: &str| !CLIENT_TEXTS.iter().any(|own| words.trim_start().starts_with(own));
    let block = |block: &Value| match text(block, "type").as_deref() {
        Some("text") => text(block, "text").is_some_and(|words| is_human(&words)),
        Some("tool_result") | None => false,
        Some(_) => true,
    };
    let blocks = content.as_array();
    let is_result = |block: &Value| text(block, "type").as_deref() == Some("tool_result");
    let human = match (content.as_str(), blocks) {
        (Some(words), _) => is_human(words),
        (None, Some(blocks)) => !blocks.iter().any(is_result) && blocks.iter().any(block),
        (None, None) => false,
    };
    human.then(|| text(entry, "timestamp").and_then(|moment| Timestamp::parse(&moment).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each line is: `p` a prompt, `u` usage, `!` not readable, `.` something else, `-` a part of a line.
    fn kinds(text: &str, longest: u64) -> (String, (u64, bool)) {
        let mut kinds = String::new();
        let mut bytes = Vec::new();
        let reach = walk(text.as_bytes(), 0, longest, &mut |line| {
            bytes.extend_from_slice(line.bytes);
            if line.ends {
                bytes.push(b'\n');
                assert_eq!(line.end, bytes.len() as u64);
            }
            kinds.push(match (line.ends, line.prompt, line.spoken) {
                (false, ..) => '-',
                (_, Some(_), _) => 'p',
                (_, _, Some(Spoken::Unreadable)) => '!',
                (_, _, Some(_)) => 'u',
                _ => '.',
            });
        })
        .unwrap();
        let read = usize::try_from(reach.0).unwrap();
        assert_eq!(bytes.get(..read), text.as_bytes().get(..read));
        (kinds, reach)
    }

    fn user(message: &str, more: &str) -> String {
        format!(
            r#"{{"type":"user","message":{{"role":"user","content":{message}}}{more},"timestamp":"2026-01-18T10:30:00.000Z"}}"#
        )
    }

    #[test]
    fn a_turn_begins_where_a_human_speaks() {
        for (line, kind) in [
            (user(r#""do it""#, ""), "p"),
            (r#"{"type": "user", "message": {"role": "user", "content": "do it"}}"#.to_owned(), "p"),
            (user(r#"[{"type":"text","text":"do it"}]"#, ""), "p"),
            (user(r#"[{"type":"image","source":{}}]"#, ""), "p"),
            (user(r#""a \"tool_use_id\" in prose""#, ""), "p"),
            (user(r#""sub""#, r#","isSidechain":true"#), "p"),
            (user(r#"[{"type":"tool_result","tool_use_id":"a","content":"x"}]"#, ""), "."),
            (user(r#"[{"type":"tool_result","content":"x"},{"type":"text","text":"x"}]"#, ""), "."),
            (user(r#""meta""#, r#","isMeta":true"#), "."),
            (user(r#""summary""#, r#","isCompactSummary":true"#), "."),
            (user(r#""[Request interrupted by user for tool use]""#, ""), "."),
            (user(r#"[{"type":"text","text":"<local-command-stdout>x"}]"#, ""), "."),
            (user("[]", ""), "."),
            (user("7", ""), "."),
            (r#"{"type":"user"}"#.to_owned(), "."),
            (r#"{"type":"user","message":{"#.to_owned(), "!"),
            (r#"{"type":"assistant","message":{"id":"m","usage":{"output_tokens":5}}}"#.to_owned(), "u"),
            (r#"{"type":"assistant","message":{"id":"","usage":{"output_tokens":5}}}"#.to_owned(), "!"),
            ("{}".to_owned(), "."),
            ("not json".to_owned(), "."),
        ] {
            assert_eq!(kinds(&format!("{line}\n"), 1 << 20).0, kind, "{line}");
        }
        let mut found = None;
        let line = user(r#""do it""#, "") + "\n";
        walk(line.as_bytes(), 0, 1 << 20, &mut |line| found = line.prompt).unwrap();
        assert_eq!(found, Some(Timestamp::parse("2026-01-18T10:30:00.000Z").ok()));
    }

    #[test]
    fn long_lines_come_in_parts_and_one_without_an_end_waits() {
        assert_eq!(kinds("{}\n{}", 100), (".".to_owned(), (3, true)));
        assert_eq!(kinds("{}\n", 100), (".".to_owned(), (3, false)));
        assert_eq!(kinds("0123456789\n{}\n", 4), ("--!.".to_owned(), (14, false)));
        assert_eq!(kinds("01234567\n{}\n", 4), ("--!.".to_owned(), (12, false)));
        assert_eq!(kinds("{}\n0123456789", 4), (".--".to_owned(), (3, true)));
        assert_eq!(kinds("", 4), (String::new(), (0, false)));
    }
}
