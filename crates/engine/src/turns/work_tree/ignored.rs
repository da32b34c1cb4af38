//! Which files git leaves out: `.gitignore` on the way down, the repository's own list, and the user's.
//!
//! Owns how such lists are read and asked. Refuses to pass over one that it cannot read where git could. Invariant: a path is left out
//! exactly where git leaves it out. Page: `spec/turns.md`.

use std::io::ErrorKind;
use std::path::Path;

use writ_core::regular_file;

use super::wildmatch::{Scratch, Wild};
use super::{Clock, TreeError};

/// Most bytes of all lists that bind in one folder.
const MAX_LISTS: u64 = 4 << 20;

/// One line.
struct Pattern {
    negated: bool,
    folders_only: bool,
    /// It has no slash, and is matched against names.
    name_only: bool,
    /// What it begins with before its first wildcard.
    literal: Vec<u8>,
    rest: Rest,
}

enum Rest {
    /// Nothing follows.
    Nothing,
    /// Any name that ends so.
    Ends(Vec<u8>),
    Wild(Wild),
}

struct List {
    patterns: Vec<Pattern>,
    /// How long the path of its folder is, with the slash behind it.
    base: usize,
    size: u64,
}

/// The lists that bind in a folder, the nearest last.
#[derive(Default)]
pub struct Lists {
    lists: Vec<List>,
    /// Whether case does not count: `core.ignoreCase`.
    fold: bool,
    scratch: Scratch,
}

impl Lists {
    /// None yet.
    pub fn new(fold: bool) -> Self {
        Self { fold, ..Self::default() }
    }

    /// Adds a list from outside the work tree, which may be a link.
    pub fn add_outer(&mut self, path: &Path) -> Result<(), TreeError> {
        self.add(path, 0).map(drop)
    }

    /// Adds a folder's own list, if it has one. Returns whether it does.
    pub fn add_inner(&mut self, path: &Path, folder: &[u8]) -> Result<bool, TreeError> {
        // git follows no link here, and reads nothing from a folder.
        let plain = path.symlink_metadata().is_ok_and(|found| !found.is_symlink() && !found.is_dir());
        if plain { self.add(path, if folder.is_empty() { 0 } else { folder.len() + 1 }) } else { Ok(false) }
    }

    fn add(&mut self, path: &Path, base: usize) -> Result<bool, TreeError> {
        let used: u64 = self.lists.iter().map(|list| list.size).sum();
        let bytes = match regular_file::read(path, MAX_LISTS.saturating_sub(used)) {
            Ok(bytes) => bytes,
            // git passes over what is not there, what it may not read, and a folder.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied
                ) =>
            {
                return Ok(false);
            }
            Err(_) if path.is_dir() => return Ok(false),
            Err(source) => return Err(TreeError::Io { path: path.to_owned(), source }),
        };
        let patterns = patterns(&bytes, self.fold);
        self.lists.push(List { patterns, base, size: bytes.len() as u64 });
        Ok(true)
    }

    /// Forgets the nearest.
    pub fn leave(&mut self) {
        self.lists.pop();
    }

    /// Whether a path from the root is left out, given that the folders above it are not.
    pub fn leaves_out(&mut self, path: &[u8], is_folder: bool, clock: &mut Clock) -> Result<bool, TreeError> {
        let Self { lists, fold, scratch } = self;
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        for list in lists.iter().rev() {
            let below = path.get(list.base..).unwrap_or_default();
            for pattern in list.patterns.iter().rev().filter(|pattern| is_folder || !pattern.folders_only) {
                let (matches, cost) = pattern.matches(if pattern.name_only { name } else { below }, *fold, scratch);
                clock.spend(cost)?;
                if matches {
                    return Ok(!pattern.negated);
                }
            }
        }
        Ok(false)
    }
}

impl Pattern {
    fn matches(&self, text: &[u8], fold: bool, scratch: &mut Scratch) -> (bool, usize) {
        let same = |one: &[u8], other: &[u8]| if fold { one.eq_ignore_ascii_case(other) } else { one == other };
        let Some((begin, rest)) = text.split_at_checked(self.literal.len()) else { return (false, 1) };
        if !same(&self.literal, begin) {
            return (false, 1);
        }
        match &self.rest {
            Rest::Nothing => (rest.is_empty(), 1),
            Rest::Ends(end) => {
                (rest.len().checked_sub(end.len()).and_then(|at| rest.get(at..)).is_some_and(|last| same(end, last)), 1)
            }
            Rest::Wild(wild) => wild.matches(rest, scratch),
        }
    }
}

/// A list's lines.
fn patterns(bytes: &[u8], fold: bool) -> Vec<Pattern> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    bytes.split(|byte| *byte == b'\n').filter_map(|line| pattern(line, fold)).collect()
}

fn pattern(line: &[u8], fold: bool) -> Option<Pattern> {
    if line.first().is_none_or(|first| *first == b'#') {
        return None;
    }
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.split(|byte| *byte == 0).next().unwrap_or_default();
    let line = trimmed(line);
    let (negated, line) = line.strip_prefix(b"!").map_or((false, line), |rest| (true, rest));
    let (folders_only, line) = line.strip_suffix(b"/").map_or((false, line), |rest| (true, rest));
    let name_only = !line.contains(&b'/');
    let line = line.strip_prefix(b"/").unwrap_or(line);
    // An empty one matches nothing.
    if line.is_empty() {
        return None;
    }
    let wildcard = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
    let (literal, rest) = line.split_at_checked(line.iter().position(wildcard).unwrap_or(line.len()))?;
    let rest = match rest.split_first() {
        None => Rest::Nothing,
        Some((b'*', end)) if name_only && !end.iter().any(wildcard) => Rest::Ends(end.to_vec()),
        // git matches what is left of it as if it began there: `a**/b` is `a` and `**/b`.
        Some(_) if !name_only => Rest::Wild(Wild::new(rest, true, fold)),
        Some(_) => Rest::Wild(Wild::new(rest, false, fold)),
    };
    Some(Pattern { negated, folders_only, name_only, literal: literal.to_vec(), rest })
}

/// Without the spaces at its end that nothing escapes.
fn trimmed(line: &[u8]) -> &[u8] {
    let (mut end, mut at) = (0, 0);
    while let Some(byte) = line.get(at) {
        match byte {
            b' ' => at += 1,
            b'\\' if at + 1 == line.len() => return line,
            b'\\' => {
                at += 2;
                end = at;
            }
            _ => {
                at += 1;
                end = at;
            }
        }
    }
    line.get(..end).unwrap_or(line)
}
