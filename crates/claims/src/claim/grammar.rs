//! The two tiers: the keys of a `## Handoff` block, else `Status:` and files keys at the start of a line.
//!
//! Keys are read through bullets, headings and emphasis, never out of the middle of a line.

use super::list::{self, Listed, Row};
use super::markdown::{Kind, Line, indent, second_heading};
use super::testing::{self, Said};
use super::{Claim, Source, Status};
use super::{removal, words};

/// Longest key that can be one of ours.
const MAX_KEY: usize = 64;

/// What a `key: value` line is about.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Key {
    Status,
    /// `files_changed` as the seed spells it and turns it around.
    Files,
    /// Other names people give that list in a block; read where [`Key::Files`] is absent.
    Synonym(String),
    Blockers,
    Tests,
    /// Any other.
    Other,
}

/// A `key: value` line.
struct Pair<'a> {
    key: Key,
    value: &'a str,
    /// How far the line is indented, when it has a bullet.
    bullet: Option<usize>,
}

/// Tier 1: the last `## Handoff` outside fences and quotes; `None` when it has no `key: value` line.
pub(super) fn handoff(lines: &[Line<'_>]) -> Option<Claim> {
    let plain = |line: &Line<'_>| line.kind == Kind::Plain;
    let start = lines.iter().rposition(|line| plain(line) && is_handoff(line.text))? + 1;
    let rest = lines.get(start..)?;
    let end = rest.iter().position(|line| plain(line) && second_heading(line.text).is_some()).unwrap_or(rest.len());
    let block = rest.get(..end)?;
    let rows = [rows(block), fenced(block)].into_iter().find(|rows| rows.iter().any(|row| pair(row).is_some()))?;
    let mut claim = read_block(&rows);
    if !rows.iter().any(|row| pair(row).is_some_and(|pair| pair.key == Key::Status)) {
        claim.status = above(lines.get(..start - 1)?);
    }
    Some(claim)
}

/// The first `Status:` line above a block that has none of its own; an earlier block's is not meant.
fn above(lines: &[Line<'_>]) -> Option<Status> {
    let mut inside = false;
    lines.iter().filter(|line| line.kind == Kind::Plain).find_map(|line| {
        if second_heading(line.text).is_some() {
            inside = is_handoff(line.text);
        }
        let pair = pair(line.text).filter(|pair| pair.key == Key::Status && !inside)?;
        status(pair.value, false)
    })
}

/// Tier 2: the first status and all files of lines of their own.
pub(super) fn lines(lines: &[Line<'_>]) -> Claim {
    let rows = rows(lines);
    let (mut status_found, mut listed, mut at) = (None, Listed::default(), 0);
    let mut tests = Tests::default();
    while let Some(row) = rows.get(at) {
        tests.row(row);
        at += 1;
        let Some(pair) = pair(row) else { continue };
        match pair.key {
            Key::Status => status_found = status_found.or_else(|| status(pair.value, false)),
            Key::Files => {
                let (entries, next) = gather(&rows, at, &pair);
                listed.add(&entries, false);
                rows.get(at..next).unwrap_or_default().iter().for_each(|row| tests.row(row));
                at = next;
            }
            Key::Synonym(_) | Key::Blockers | Key::Tests | Key::Other => {}
        }
    }
    let found = status_found.is_some() || !listed.files.is_empty() || !listed.unparsed.is_empty();
    Claim {
        status: status_found,
        files: listed.files,
        blockers: None,
        ran_tests: tests.ran(),
        source: if found { Source::Lines } else { Source::None },
        unparsed: listed.unparsed,
        gone: listed.gone,
    }
}

/// The keys of a block; of each the last counts.
fn read_block(rows: &[&str]) -> Claim {
    let (mut last_status, mut blockers, mut tests) = (None, None, Tests::default());
    let mut lists: Vec<(Key, Vec<Row<'_>>)> = Vec::new();
    let mut at = 0;
    while let Some(row) = rows.get(at) {
        tests.row(row);
        at += 1;
        let Some(pair) = pair(row) else { continue };
        match &pair.key {
            Key::Status => last_status = status(pair.value, true),
            Key::Files | Key::Synonym(_) => {
                let (entries, next) = gather(rows, at, &pair);
                rows.get(at..next).unwrap_or_default().iter().for_each(|row| tests.row(row));
                at = next;
                match lists.iter_mut().find(|(key, _)| *key == pair.key) {
                    Some((_, rows)) => *rows = entries,
                    None => lists.push((pair.key, entries)),
                }
            }
            Key::Blockers => blockers = blockers_of(rows, at, pair.value),
            Key::Tests | Key::Other => {}
        }
    }
    let seeds = lists.iter().any(|(key, _)| *key == Key::Files);
    let mut listed = Listed::default();
    let gone = |key: &Key| matches!(key, Key::Synonym(name) if name.split(' ').any(removal::is_removal));
    lists.iter().filter(|(key, _)| !seeds || *key == Key::Files).for_each(|(key, rows)| listed.add(rows, gone(key)));
    Claim {
        status: last_status,
        files: listed.files,
        blockers,
        ran_tests: tests.ran(),
        source: Source::Handoff,
        unparsed: listed.unparsed,
        gone: listed.gone,
    }
}

/// What rows say of tests: the last key that answers, else all of them together.
#[derive(Default)]
struct Tests {
    said: Said,
    answer: Option<bool>,
}

impl Tests {
    fn row(&mut self, row: &str) {
        match pair(row).filter(|pair| pair.key == Key::Tests).and_then(|pair| testing::answer(pair.value)) {
            Some(answer) => self.answer = Some(answer),
            None => self.said.read(row),
        }
    }

    fn ran(&self) -> bool {
        self.answer.unwrap_or_else(|| self.said.ran())
    }
}

fn is_handoff(line: &str) -> bool {
    second_heading(line).is_some_and(|title| {
        let title = title.trim_matches(|c: char| c.is_whitespace() || "#*_:".contains(c) || words::is_symbol(c));
        title.eq_ignore_ascii_case("handoff")
    })
}

/// The plain lines; others are as good as empty.
fn rows<'a>(lines: &[Line<'a>]) -> Vec<&'a str> {
    lines.iter().map(|line| if line.kind == Kind::Plain { line.text } else { "" }).collect()
}

/// The inside of the closed fence that is the first thing in a block.
fn fenced<'a>(block: &[Line<'a>]) -> Vec<&'a str> {
    let mut lines = block.iter().skip_while(|line| line.kind == Kind::Plain && line.text.trim().is_empty());
    if lines.next().is_none_or(|line| line.kind != Kind::Fence) {
        return Vec::new();
    }
    let mut rows = Vec::new();
    for line in lines {
        match line.kind {
            Kind::Fenced => rows.push(line.text),
            Kind::Fence => return rows,
            Kind::Plain | Kind::Quoted => return Vec::new(),
        }
    }
    Vec::new()
}

/// Reads `key: value` through a heading's signs, a bullet, symbols and emphasis.
fn pair(row: &str) -> Option<Pair<'_>> {
    let body = row.trim();
    let title = body.trim_start_matches('#');
    let body = if title.starts_with(char::is_whitespace) { title.trim_start() } else { body };
    let item = words::bullet(body).filter(|_| !body.starts_with(|c: char| c.is_ascii_digit()));
    let body = item.unwrap_or(body).trim_start_matches(|c: char| c.is_whitespace() || words::is_symbol(c));
    let (head, value) = body.split_once(':')?;
    let inner = head.trim_start_matches(['*', '_']).trim_start_matches(words::is_symbol);
    let emphasis = head.strip_suffix(inner).unwrap_or_default().trim_end_matches(words::is_symbol);
    let name = inner.trim().trim_end_matches(['*', '_']);
    let closed = emphasis.is_empty() || name.len() < inner.trim().len();
    let value = match value.strip_prefix(emphasis).filter(|_| !closed) {
        Some(rest) => rest,
        None if closed => value,
        None => value.trim_end().strip_suffix(emphasis).unwrap_or(value),
    };
    let key = key(name);
    let spaced = value.is_empty() || value.starts_with(char::is_whitespace);
    (name.contains(char::is_alphanumeric) && (spaced || key != Key::Other)).then_some(Pair {
        key,
        value: value.trim(),
        bullet: item.map(|_| indent(row)),
    })
}

fn key(name: &str) -> Key {
    if name.len() > MAX_KEY {
        return Key::Other;
    }
    let name = match name.split_once('(') {
        Some((name, aside)) if aside.trim_end().ends_with(')') => name,
        _ => name,
    };
    let parts = name.split(|c: char| c.is_whitespace() || c == '_' || c == '-').filter(|part| !part.is_empty());
    let name = parts.collect::<Vec<_>>().join(" ").to_lowercase();
    match name.as_str() {
        "status" => Key::Status,
        "files changed" | "changed files" | "modified files" | "files modified" => Key::Files,
        "files" | "files created" | "created files" | "files added" | "added files" | "new files" | "files updated"
        | "updated files" | "files edited" | "edited files" | "files touched" | "files written" | "files deleted"
        | "deleted files" | "files removed" | "removed files" | "files renamed" | "renamed files" => Key::Synonym(name),
        "blockers" | "blocker" => Key::Blockers,
        "ran tests" | "tests" | "tests run" | "tests ran" | "test results" | "test result" | "testing"
        | "test status" => Key::Tests,
        _ => Key::Other,
    }
}

/// The status a value opens with. In a block (`whole`) no word may follow it; what offers a choice says nothing.
fn status(value: &str, whole: bool) -> Option<Status> {
    let decoration = |c: char| c.is_whitespace() || "*_`\"'[(".contains(c) || words::is_symbol(c);
    let (status, rest) = leading_status(value.trim_start_matches(decoration))?;
    let separator = |c: char| c.is_whitespace() || "|/,*_`\"'".contains(c);
    let next = rest.trim_start_matches(separator);
    let next = next.strip_prefix("or ").or_else(|| next.strip_prefix("OR ")).unwrap_or(next);
    let choice = leading_status(next.trim_start_matches(separator)).is_some();
    let question = rest.starts_with('?');
    let word = whole && rest.trim_start().starts_with(char::is_alphanumeric);
    (!choice && !question && !word).then_some(status)
}

fn leading_status(text: &str) -> Option<(Status, &str)> {
    [
        (Status::DoneWithConcerns, ["done", "with", "concerns"].as_slice()),
        (Status::NeedsContext, ["needs", "context"].as_slice()),
        (Status::Blocked, ["blocked"].as_slice()),
        (Status::Done, ["done"].as_slice()),
    ]
    .into_iter()
    .find_map(|(status, words)| Some((status, after_words(text, words)?)))
}

/// What stands behind the words, which `_`, `-` or a space joins and nothing else of a word follows.
fn after_words<'a>(text: &'a str, words: &[&str]) -> Option<&'a str> {
    let mut rest = text;
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            rest = rest.strip_prefix(['_', '-', ' '])?;
        }
        let (head, tail) = rest.split_at_checked(word.len())?;
        rest = head.eq_ignore_ascii_case(word).then_some(tail)?;
    }
    let plain = rest.strip_prefix('-').unwrap_or(rest);
    (!plain.starts_with(|c: char| c.is_alphanumeric()) && !rest.trim_end_matches('_').starts_with('_')).then_some(rest)
}

/// The rows of the list whose key stands before row `at`, and the row behind them.
fn gather<'a>(rows: &[&'a str], at: usize, key: &Pair<'a>) -> (Vec<Row<'a>>, usize) {
    let value = uncounted(key.value);
    if value.starts_with('[') && !value.contains(']') {
        return bracketed(rows, at, value);
    }
    // `|` opens a block of lines in YAML.
    let opens = value.is_empty() || value.ends_with(':') || matches!(value, "|" | "|-" | ">" | ">-");
    if opens { below(rows, at, key) } else { continued(rows, at, value) }
}

/// A list without the count before it: `2 files:`, `2 (a.py, b.py)`.
fn uncounted(value: &str) -> &str {
    let digits = value.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = digits.trim_start();
    let rest = rest.strip_prefix("files").or_else(|| rest.strip_prefix("file")).unwrap_or(rest).trim_start();
    let counted = digits.len() < value.len() && (rest.is_empty() || rest.starts_with([':', '(']));
    if counted { rest.trim_start_matches(':').trim_start() } else { value }
}

/// A list in brackets over several lines.
fn bracketed<'a>(rows: &[&'a str], at: usize, value: &'a str) -> (Vec<Row<'a>>, usize) {
    let mut entries = vec![Row::Inline(value.strip_prefix('[').unwrap_or(value))];
    let mut next = at;
    while let Some(row) = rows.get(next).filter(|row| !row.trim().is_empty() && !is_key(row)) {
        next += 1;
        let (inner, close) = row.trim().strip_suffix(']').map_or((row.trim(), false), |inner| (inner, true));
        entries.push(Row::Inline(inner));
        if close {
            break;
        }
    }
    (entries, next)
}

/// A list in the line of its key, with the lines that a comma at the end leads on to.
fn continued<'a>(rows: &[&'a str], at: usize, value: &'a str) -> (Vec<Row<'a>>, usize) {
    let (mut entries, mut next, mut last) = (vec![Row::Inline(value)], at, value);
    while last.trim_end().ends_with(',') {
        let Some(row) = rows.get(next).filter(|row| !row.trim().is_empty() && !is_key(row)) else { break };
        entries.push(Row::Inline(words::bullet(row.trim_start()).unwrap_or(row)));
        (last, next) = (row, next + 1);
    }
    (entries, next)
}

/// The bullets below a key, or lines there that hold nothing but paths.
fn below<'a>(rows: &[&'a str], at: usize, key: &Pair<'a>) -> (Vec<Row<'a>>, usize) {
    let (mut entries, mut next) = (Vec::new(), at);
    for (place, row) in rows.iter().enumerate().skip(at) {
        let body = row.trim();
        if body.is_empty() {
            continue;
        }
        let bullet = words::bullet(body).is_some_and(|item| !item.trim().is_empty());
        let last = entries.last().copied();
        let pair = pair(row);
        let inside = bullet && key.bullet.is_none_or(|level| indent(row) > level);
        let other = pair.is_some_and(|pair| match pair.key {
            Key::Other => !inside && key.bullet.is_some() && !list::is_bare(body),
            Key::Files | Key::Synonym(_) => !inside || !pair.value.is_empty(),
            Key::Status | Key::Blockers | Key::Tests => true,
        });
        if other {
            break;
        }
        match last {
            _ if bullet => entries.push(Row::Bullet(row)),
            Some(Row::Bullet(item)) if indent(row) > indent(item) => {}
            None if !body.starts_with('#') && list::is_bare(row) => entries.push(Row::Bare(row)),
            Some(Row::Bare(_)) if place == next && !body.starts_with('#') && list::is_bare(row) => {
                entries.push(Row::Bare(row));
            }
            _ => break,
        }
        next = place + 1;
    }
    (entries, next)
}

fn is_key(row: &str) -> bool {
    pair(row).is_some_and(|pair| pair.key != Key::Other)
}

/// What is in the way: the value, or the bullets below an empty one; `none` in its spellings is nothing.
fn blockers_of(rows: &[&str], at: usize, value: &str) -> Option<String> {
    let text = if value.is_empty() {
        let items = rows.get(at..)?.iter().map_while(|row| {
            let item = words::bullet(row.trim())?.trim();
            (!is_key(row)).then_some(item)
        });
        items.filter(|item| !item.is_empty()).collect::<Vec<_>>().join("; ")
    } else {
        value.to_owned()
    };
    (!words::nothing(&text)).then_some(text)
}
