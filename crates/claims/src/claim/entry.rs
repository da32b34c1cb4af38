//! One entry of a list of files: its path or paths, and where a remark on them begins.
//!
//! Renames give both names. An entry that takes its claim back (`a.py (unchanged)`) and one that reads as prose give none.

use super::MAX_FILES;
use super::path::{self, Path};
use super::{removal, words};

/// What an entry says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Entry {
    /// That there is nothing.
    Nothing,
    /// Paths, and what follows them.
    Paths { paths: Vec<Path>, tail: Tail },
    /// No path for certain.
    Doubt,
    /// A sentence: a path in it, or in what follows it, is no claim.
    Prose,
}

/// What an entry's end means for the entries behind it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Tail {
    /// They are entries.
    Entries,
    /// They may belong to a remark.
    Remark,
    /// They belong to a remark that speaks of paths.
    Mentions,
}

/// What stands behind a path.
enum Rest {
    End,
    /// In brackets of its own.
    Aside,
    /// Behind a dash, a colon or a word such as `added`.
    Remark,
    Prose,
}

/// Reads an entry without its bullet.
pub(super) fn read(text: &str) -> Entry {
    let decoration = |c: char| words::is_symbol(c) || c.is_whitespace();
    let text = words::bullet(text.trim()).unwrap_or(text).trim().trim_start_matches(decoration);
    if words::nothing(text) || is_place(text) {
        return Entry::Nothing;
    }
    let (text, verb) = without_verb(bare(text));
    let Some((word, quoted, rest)) = token(text) else { return Entry::Doubt };
    let Some(mut first) = path::path(&word, quoted) else {
        return if quoted || rest.trim().is_empty() { Entry::Doubt } else { prose(text) };
    };
    let rest = after_place(rest).trim();
    if let Some(second) = renamed(&first, rest) {
        first.gone = true;
        return Entry::Paths { paths: vec![first, second], tail: Tail::Entries };
    }
    let kind = rest_kind(rest);
    let change = words::is_change(rest.split_whitespace().next().unwrap_or_default());
    let tail = match kind {
        Rest::End | Rest::Aside => Tail::Entries,
        Rest::Remark | Rest::Prose if mentions(rest) => Tail::Mentions,
        Rest::Remark | Rest::Prose => Tail::Remark,
    };
    let sure = match kind {
        Rest::End => true,
        Rest::Aside => first.strong || change,
        Rest::Remark => first.strong,
        Rest::Prose if quoted && !rest.starts_with(['`', '"', '*', '[']) => first.strong && !denied(rest),
        Rest::Prose if word.ends_with('.') => first.strong,
        Rest::Prose => return several(text),
    };
    if !sure || words::retracts(rest) {
        return Entry::Doubt;
    }
    first.gone = verb.is_some_and(removal::is_removal) || removal::says_gone(rest);
    Entry::Paths { paths: vec![first], tail }
}

/// The first word, whether it was quoted or linked, and what stands behind it.
fn token(text: &str) -> Option<(String, bool, &str)> {
    if let Some(found) = link(text) {
        return Some(found);
    }
    for fence in ["**", "``"] {
        if let Some((inner, rest)) = text.strip_prefix(fence).and_then(|inner| inner.split_once(fence)) {
            let quoted = fence == "``" || inner.starts_with('`');
            return Some((inner.trim_matches(['`', '*', ' ']).to_owned(), quoted, rest));
        }
    }
    let open = text.chars().next()?;
    if let Some(close) = words::closing_quote(open) {
        let (inner, rest) = text.strip_prefix(open)?.split_once(close)?;
        let (inner, place) = inner.split_at_checked(word_end(inner, false))?;
        let place = after_place(place).trim();
        let inner = if place.is_empty() { inner.to_owned() } else { format!("{inner}{place}") };
        return Some((inner, true, rest));
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let whole = text.split_at_checked(end)?.0;
    let (word, _) = whole.split_at_checked(word_end(whole, true))?;
    Some((word.to_owned(), false, text.strip_prefix(word)?))
}

/// `[a.py](src/a.py)`: the target when it leads into the tree, else the text.
fn link(text: &str) -> Option<(String, bool, &str)> {
    let (label, rest) = text.strip_prefix('[')?.split_once("](")?;
    // A path may have brackets of its own: `app/(group)/page.tsx`.
    let mut depth = 1_usize;
    let end = rest.char_indices().find(|(_, c)| {
        depth = match c {
            '(' => depth + 1,
            ')' => depth - 1,
            _ => depth,
        };
        depth == 0
    });
    let (target, rest) = rest.split_at_checked(end?.0)?;
    let rest = rest.get(1..)?;
    let label = label.trim_matches(['`', '*', ' ']);
    let target = target.trim().trim_start_matches('<').split(['>', ' ']).next().unwrap_or_default();
    let target = target.split('#').next().unwrap_or_default();
    let (target, _) = target.split_at_checked(word_end(target, false))?;
    let inside =
        !target.is_empty() && !target.starts_with('/') && !target.contains("://") && !target.starts_with("mailto:");
    let decoded = if inside { path::percent_decoded(target) } else { None };
    let file = target.strip_prefix("file://").map(|_| target.to_owned());
    let label = path::path(label, true).filter(|label| label.strong).map(|label| label.name);
    let word = decoded.filter(|name| path::path(name, true).is_some()).or(label).or(file)?;
    Some((word, true, rest))
}

/// Where the path in a word ends and a place in the file or a remark begins: `a.py:12`, `a.py#L3`, `a.py(new)`, `a.py→b.py`.
fn word_end(word: &str, remarks: bool) -> usize {
    let scheme = if word.starts_with("file://") { 7 } else { 0 };
    let mark = |c: char| matches!(c, ':' | '#' | '(' | '—' | '→' | '-' | '=');
    // A path has few of these; more are looked at only at the price of time.
    let mut ends = word.char_indices().filter(|(at, c)| *at >= scheme.max(1) && mark(*c)).take(64);
    let is_end = |(at, c): &(usize, char)| {
        let Some((head, tail)) = word.split_at_checked(*at) else { return false };
        let numbered = |tail: &str| tail.trim_start_matches(['L', 'l']).starts_with(|c: char| c.is_ascii_digit());
        let sure = || head.contains('/') || path::strong(head);
        match c {
            ':' if tail.starts_with("://") || (head.len() == 1 && tail.starts_with(":\\")) => false,
            ':' if tail.strip_prefix(':').is_some_and(numbered) => true,
            '#' => tail.starts_with("#L") && numbered(tail.trim_start_matches('#')),
            ':' => remarks && !head.contains('@') && (sure() || tail == ":"),
            '(' => remarks && !head.ends_with('/') && path::has_extension(head),
            '—' | '→' => remarks && sure(),
            '-' | '=' => remarks && (tail.starts_with("->") || tail.starts_with("=>")) && sure(),
            _ => false,
        }
    };
    ends.find(is_end).map_or(word.len(), |(at, _)| at)
}

/// What stands behind a place such as `:12-40` or `#L10-L20`.
fn after_place(rest: &str) -> &str {
    let Some(place) = rest.strip_prefix([':', '#']) else { return rest };
    let tail = place.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, 'L' | 'l' | '-' | '–' | ':' | 'C'));
    let numbered = place.trim_start_matches(['L', 'l']).starts_with(|c: char| c.is_ascii_digit());
    let ends = !tail.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    if numbered && ends { tail } else { rest }
}

/// `lines 3-9`, `L12`: a place in the file named before it.
fn is_place(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let number = |text: &str| {
        let range = |c: char| c.is_ascii_digit() || matches!(c, '-' | '–' | 'L' | ':');
        text.starts_with(|c: char| c.is_ascii_digit()) && path::trimmed(text).chars().all(range)
    };
    let lines = first.eq_ignore_ascii_case("lines") || first.eq_ignore_ascii_case("line");
    (lines && number(second)) || (second.is_empty() && first.strip_prefix('L').is_some_and(number))
}

/// Without brackets or emphasis around the whole.
fn bare(text: &str) -> &str {
    let mut text = text;
    for _ in 0..4 {
        let inner = [('(', ')'), ('[', ']'), ('<', '>'), ('*', '*'), ('_', '_')].iter().find_map(|(open, close)| {
            let inner = text.strip_prefix(*open)?.strip_suffix(*close)?.trim();
            let plain = !inner.contains([*open, *close]);
            let sure =
                matches!(open, '(' | '[') || path::path(inner.trim_matches('`'), true).is_some_and(|path| path.strong);
            let markup = *open == '<' && inner.ends_with('/');
            (plain && sure && !markup && !(*open == '*' && inner.starts_with(['.', '/']))).then_some(inner)
        });
        match inner {
            Some(inner) => text = inner,
            None => break,
        }
    }
    text
}

/// Without `M`, `new file:`, `Added` and the like before a path that stands alone; with that word.
fn without_verb(text: &str) -> (&str, Option<&str>) {
    let Some((verb, rest)) = text.split_once(|c: char| c.is_whitespace() || c == ':') else { return (text, None) };
    let rest = rest.trim_start();
    let rest = match rest.split_once(':') {
        Some((file, path)) if file.eq_ignore_ascii_case("file") => path.trim_start(),
        _ => rest,
    };
    let letters = matches!(verb, "M" | "A" | "D" | "R" | "U" | "MM" | "AM" | "??");
    let lone = token(rest).is_some_and(|(word, quoted, behind)| {
        let alone = matches!(rest_kind(after_place(behind).trim()), Rest::End | Rest::Aside | Rest::Remark);
        alone && path::path(&word, quoted).is_some_and(|path| path.strong)
    });
    if (letters || words::is_change(verb)) && lone { (rest, Some(verb)) } else { (text, None) }
}

/// The new name, when what stands behind a path is an arrow and a path.
fn renamed(first: &Path, rest: &str) -> Option<Path> {
    let target = ["-->", "->", "→", "=>", "⇒", "➜", "➡", "renamed to ", "moved to "]
        .iter()
        .find_map(|arrow| rest.strip_prefix(arrow))?
        .trim();
    let (word, quoted, behind) = token(target)?;
    let second = path::path(&word, quoted)?;
    let alone = matches!(rest_kind(after_place(behind).trim()), Rest::End | Rest::Aside);
    (alone && first.strong == second.strong).then_some(second)
}

fn rest_kind(rest: &str) -> Rest {
    let Some(first) = rest.chars().next() else { return Rest::End };
    let asides = [('(', ')'), ('[', ']')];
    let bracketed = rest.trim_start_matches(['*', '_']);
    if asides.iter().any(|(open, _)| bracketed.starts_with(*open)) {
        let ends = bracketed.trim_end_matches(['*', '_', '.', ',', ';', '!']).ends_with([')', ']']);
        return if ends { Rest::Aside } else { Rest::Remark };
    }
    if path::trimmed(rest).is_empty() {
        return Rest::End;
    }
    let mark =
        matches!(first, '-' | '–' | '—' | '―' | ':' | '|' | '=' | '#' | '•' | '·' | '+' | '<' | '*' | '_' | ',' | '.');
    let word = rest.split_whitespace().next().unwrap_or_default();
    if mark || words::is_symbol(first) || rest.starts_with("//") || words::is_change(word) {
        return Rest::Remark;
    }
    Rest::Prose
}

/// Whether the first words of a remark say no.
fn denied(rest: &str) -> bool {
    let no = |word: &str| matches!(word, "not" | "no" | "never" | "would" | "will" | "should") || word.ends_with("n't");
    rest.split_whitespace().take(5).any(|word| no(&word.to_ascii_lowercase().replace('’', "'")))
}

/// Paths with nothing but spaces between them, or one path with spaces in it.
fn several(text: &str) -> Entry {
    if let Some(paths) = each(text) {
        return Entry::Paths { paths, tail: Tail::Entries };
    }
    let parts: Vec<&str> = text.split_whitespace().collect();
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return Entry::Doubt };
    let odd = |part: &&str| words::names_nothing(part) || part.contains([':', ',', '(', '`', '"']);
    let base = path::is_file_name;
    let one = parts.len() <= 4 && first.contains('/') && base(path::trimmed(last));
    let inner = parts.iter().rev().skip(1).all(|part| !base(part));
    if one && inner && !parts.iter().any(odd) {
        let name = path::path(path::trimmed(text), true).filter(|path| path.strong);
        return name.map_or(Entry::Doubt, |name| Entry::Paths { paths: vec![name], tail: Tail::Entries });
    }
    prose(text)
}

/// The paths of a text that holds nothing else.
fn each(text: &str) -> Option<Vec<Path>> {
    let (mut paths, mut rest) = (Vec::new(), text.trim());
    while !rest.is_empty() {
        let (word, quoted, behind) = token(rest)?;
        let path = path::path(&word, quoted)?;
        let sure = path.strong && (quoted || path.name.ends_with('/') || path::is_file_name(&path.name));
        let behind = after_place(behind);
        if !sure || paths.len() > MAX_FILES || !(behind.is_empty() || behind.starts_with(char::is_whitespace)) {
            return None;
        }
        paths.push(path);
        rest = behind.trim_start();
    }
    Some(paths)
}

/// A sentence, when it is long or mentions a path; else a few words that are no path.
fn prose(text: &str) -> Entry {
    if text.split_whitespace().nth(3).is_some() || mentions(text) { Entry::Prose } else { Entry::Doubt }
}

fn mentions(text: &str) -> bool {
    text.split_whitespace()
        .any(|word| path::strong(path::trimmed(word.trim_start_matches(['`', '"', '('])).trim_end_matches(')')))
}
