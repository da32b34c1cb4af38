//! Lists of files: in one line, in brackets, or as bullets below their key.
//!
//! Separators inside quotes and brackets separate nothing. A bare word in a list that also holds prose is no path.

use std::collections::{BTreeSet, HashSet};

use super::MAX_FILES;
use super::entry::{self, Entry, Tail};
use super::markdown::indent;
use super::path::{self, Path};
use super::{removal, words};

/// Longest entry that is kept as `unparsed`, in characters.
const MAX_DOUBT: usize = 200;

/// One line of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Row<'a> {
    /// Entries separated by commas.
    Inline(&'a str),
    /// A line with a bullet, as it stands.
    Bullet(&'a str),
    /// A line of its own that holds paths and nothing else.
    Bare(&'a str),
}

/// What a claim's lists hold.
#[derive(Default, Debug)]
pub(super) struct Listed {
    pub files: Vec<String>,
    pub unparsed: Vec<String>,
    /// Those of the files that are said to be gone.
    pub gone: BTreeSet<String>,
    seen: HashSet<String>,
}

impl Listed {
    /// Adds what a key's rows say; `gone` when the key itself says that these were removed.
    pub(super) fn add(&mut self, rows: &[Row<'_>], gone: bool) {
        let mut draft = Draft { gone, ..Draft::default() };
        let base = rows.iter().find_map(|row| if let Row::Bullet(line) = row { Some(indent(line)) } else { None });
        let deeper = |row: Option<&Row<'_>>| matches!(row, Some(Row::Bullet(line)) if Some(indent(line)) > base.map(|base| base + 1));
        let mut grouped = false;
        for (at, row) in rows.iter().enumerate() {
            match row {
                Row::Inline(text) => draft.line(text, false),
                Row::Bare(text) => draft.line(text, true),
                Row::Bullet(_) if deeper(Some(row)) && !grouped => {}
                Row::Bullet(line) => {
                    let group = !deeper(Some(row)) && draft.group(line, deeper(rows.get(at + 1)));
                    grouped = group || (grouped && deeper(Some(row)));
                    if group || !grouped {
                        draft.gone = gone || (group && labels_removed(line));
                    }
                    if !group {
                        draft.bullet(line);
                    }
                }
            }
        }
        for path in draft.found {
            if !path.strong && draft.prose {
                draft.doubts.push(path.name);
            } else if self.files.len() < MAX_FILES && self.seen.insert(path.name.clone()) {
                if path.gone {
                    self.gone.insert(path.name.clone());
                }
                self.files.push(path.name);
            } else if !path.gone {
                // Named again, as what is there: gone it is not.
                self.gone.remove(&path.name);
            }
        }
        for doubt in draft.doubts {
            if self.unparsed.len() < MAX_FILES && !doubt.trim().is_empty() {
                let cut: String = doubt.trim().chars().take(MAX_DOUBT).collect();
                self.unparsed.push(cut);
            }
        }
    }
}

/// Whether a line holds paths and nothing else.
pub(super) fn is_bare(line: &str) -> bool {
    let mut draft = Draft::default();
    draft.line(line, true);
    draft.doubts.is_empty() && !draft.found.is_empty() && draft.found.iter().all(|path| path.strong)
}

/// A list while it is read.
#[derive(Default)]
struct Draft {
    found: Vec<Path>,
    doubts: Vec<String>,
    prose: bool,
    /// Whether what is read now stands below a word such as `Deleted:`.
    gone: bool,
}

impl Draft {
    /// Whether a bullet only names a group: `- Backend:` above bullets of its own.
    fn group(&self, line: &str, above_deeper: bool) -> bool {
        let text = words::bullet(line.trim_start()).unwrap_or(line).trim().trim_matches(['*', '_']);
        let strong = |entry| matches!(entry, Entry::Paths { paths, .. } if paths.iter().any(|path| path.strong));
        above_deeper && !strong(entry::read(text.trim_end_matches(':')))
    }

    fn bullet(&mut self, line: &str) {
        let text = words::bullet(line.trim_start()).unwrap_or(line).trim();
        match text.strip_prefix("[ ]") {
            Some(open) => self.doubt(open),
            None => {
                let done = ["[x]", "[X]", "[✓]", "[✔]"].iter().find_map(|mark| text.strip_prefix(mark));
                self.line(done.filter(|rest| rest.starts_with(char::is_whitespace)).unwrap_or(text), true);
            }
        }
    }

    /// Reads entries. In a line of its own (`own`) a remark reaches to the end, else to the next path.
    fn line(&mut self, text: &str, own: bool) {
        let (mut tail, mut first) = (Tail::Entries, true);
        let gone = self.gone || (own && labels_removed(text));
        for piece in split(unquoted(unbracketed(text))) {
            if self.found.len() + self.doubts.len() > 4 * MAX_FILES {
                return;
            }
            match entry::read(piece) {
                Entry::Nothing => continue,
                Entry::Paths { paths, tail: opens } => {
                    let counted = paths.into_iter().filter(|path| match tail {
                        Tail::Entries => true,
                        Tail::Remark => !own && path.strong,
                        Tail::Mentions => false,
                    });
                    self.found.extend(counted.map(|path| Path { gone: path.gone || gone, ..path }));
                    tail = tail.max(opens);
                }
                Entry::Doubt | Entry::Prose if tail > Tail::Entries => {}
                Entry::Doubt => {
                    let words = piece.trim().contains(char::is_whitespace);
                    self.prose |= words;
                    self.doubt(piece);
                    if own && words {
                        return;
                    }
                }
                Entry::Prose => {
                    self.doubt(piece);
                    self.prose = true;
                    if own || first {
                        return;
                    }
                }
            }
            first = false;
        }
    }

    fn doubt(&mut self, text: &str) {
        self.doubts.push(text.trim().to_owned());
    }
}

/// Whether a line opens with `Deleted:` or its like: that holds for all of it, and for the bullets below it.
fn labels_removed(line: &str) -> bool {
    let text = words::bullet(line.trim_start()).unwrap_or(line).trim();
    text.split_once(':').is_some_and(|(label, _)| {
        let label = label.split_once('(').map_or(label, |(label, _)| label);
        let mut words = label.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
        words.any(removal::is_removal) && label.split_whitespace().nth(2).is_none()
    })
}

/// Without the brackets around a whole list.
fn unbracketed(text: &str) -> &str {
    let text = text.trim();
    let Some(rest) = text.strip_prefix(['[', '(', '{']) else { return text };
    if closing(text) == Some(text.len()) { rest.strip_suffix([']', ')', '}']).unwrap_or(text) } else { text }
}

/// Without the quotes around a whole list: `"a.py, b.py"` is two names, `"c, d.py"` is one.
fn unquoted(text: &str) -> &str {
    let inner = text.chars().next().and_then(|open| {
        let close = words::closing_quote(open)?;
        text.strip_prefix(open)?.strip_suffix(close).filter(|inner| !inner.contains(close))
    });
    inner
        .filter(|inner| inner.contains(", ") && inner.split(", ").all(|part| path::is_file_name(path::trimmed(part))))
        .unwrap_or(text)
}

/// Behind the bracket that closes the one `text` starts with.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return Some(at + c.len_utf8());
        }
    }
    None
}

/// Splits at commas, semicolons and the words `and` and `&`; a `|` ends the list.
///
/// Linear: a bracket or a quote that is never closed is looked for once, and from then on is a character like others.
fn split(list: &str) -> Vec<&str> {
    let (mut items, mut start, mut skip) = (Vec::new(), 0, 0);
    let (mut fresh, mut brackets) = (true, true);
    let mut unclosed = Vec::new();
    for (at, c) in list.char_indices() {
        if at < skip {
            continue;
        }
        let rest = list.get(at..).unwrap_or_default();
        if let Some(close) = words::closing_quote(c).filter(|_| fresh && !unclosed.contains(&c)) {
            match rest.strip_prefix(c).and_then(|inner| inner.find(close)) {
                Some(length) => skip = at + c.len_utf8() + length + close.len_utf8(),
                None => unclosed.push(c),
            }
        } else if brackets && matches!(c, '(' | '[' | '{') {
            match closing(rest) {
                Some(length) => skip = at + length,
                None => brackets = false,
            }
        }
        let (gap, ends) = match c {
            ',' | ';' | '，' | '、' => (c.len_utf8(), false),
            '|' => (1, true),
            _ if c.is_whitespace() => (joining(rest), false),
            _ => (0, false),
        };
        if gap > 0 && skip <= at {
            items.push(list.get(start..at).unwrap_or_default());
            (start, skip) = (at + gap, at + gap);
            if ends {
                return items;
            }
        }
        fresh = gap > 0 || c.is_whitespace() || matches!(c, '(' | '[' | '{' | '*');
    }
    items.push(list.get(start..).unwrap_or_default());
    items
}

/// How long the joining word is that `rest` starts with, with the space before it: ` and`, ` &`, ` +`.
fn joining(rest: &str) -> usize {
    let space = rest.chars().next().map_or(0, char::len_utf8);
    let word = rest.get(space..).unwrap_or_default();
    let joins = ["and", "&", "+"].iter().find(|join| {
        let head = word.get(..join.len()).is_some_and(|head| head.eq_ignore_ascii_case(join));
        head && word.get(join.len()..).is_some_and(|tail| tail.starts_with(|c: char| c.is_whitespace() || c == ','))
    });
    joins.map_or(0, |join| space + join.len())
}
