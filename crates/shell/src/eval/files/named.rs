//! Files that a word names which stands for several: a pattern, or each name of a listing.
//!
//! Owns the match of such words with what the line and the agent wrote; what else is on the disk is looked at by who has a disk. Refuses
//! words of which anything may come: those are asked about as they are. Invariant: a match costs no more than both are long, multiplied.

use crate::eval::Eval;
use crate::word::{Dir, Part, Source, Word};

/// Most files that one word is taken for.
const MOST_NAMED: usize = 64;

/// A piece of a pattern of names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Letter(char),
    /// Any letter but a slash.
    One,
    /// Any letters but slashes.
    Name,
    /// Any letters.
    Any,
}

/// What a word that stands for several names can be; `None` where nobody knows what it names.
fn signs(parts: &[Part]) -> Option<Vec<Sign>> {
    let mut out = Vec::new();
    for part in parts {
        match part {
            Part::Text(text) => out.extend(text.chars().map(Sign::Letter)),
            Part::Glob(text) => {
                let mut letters = text.chars();
                while let Some(letter) = letters.next() {
                    out.push(match letter {
                        '*' => Sign::Name,
                        '?' => Sign::One,
                        '[' => {
                            // Which letters it takes is looked at by nobody.
                            letters.by_ref().find(|letter| *letter == ']');
                            Sign::One
                        }
                        '\\' => Sign::Letter(letters.next()?),
                        other => Sign::Letter(other),
                    });
                }
            }
            Part::Unknown(Source::Number | Source::Name | Source::Fresh) => out.push(Sign::Name),
            Part::Unknown(Source::Listed(_)) => out.push(Sign::Any),
            Part::Unknown(Source::Outside | Source::Any | Source::Words | Source::Setup) => return None,
        }
    }
    Some(out)
}

/// Whether a pattern takes all of a path. |pattern| × |path| steps.
fn meets(pattern: &[Sign], path: &[char]) -> bool {
    let mut reached = vec![false; path.len() + 1];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    for sign in pattern {
        let many = matches!(sign, Sign::Name | Sign::Any);
        let mut next = if many { reached.clone() } else { vec![false; path.len() + 1] };
        for (at, letter) in path.iter().enumerate() {
            let takes = match sign {
                Sign::Letter(own) => own == letter,
                Sign::One | Sign::Name => *letter != '/',
                Sign::Any => true,
            };
            let from = if many { next.get(at) } else { reached.get(at) };
            if takes
                && from == Some(&true)
                && let Some(to) = next.get_mut(at + 1)
            {
                *to = true;
            }
        }
        reached = next;
    }
    reached.last() == Some(&true)
}

impl Eval<'_> {
    /// Files that this line or the agent wrote which a word may name that stands for several: a pattern, or each name of a listing.
    pub(crate) fn named_places(&self, file: &Word) -> Vec<String> {
        let Some(pattern) = signs(&file.parts) else { return Vec::new() };
        let cwd = self.start_dir().unwrap_or_default();
        let below = |folder: &str, path: &str| match path {
            path if path.starts_with('/') => path.to_owned(),
            path => format!("{}/{}", folder.trim_end_matches('/'), path.trim_start_matches("./")),
        };
        let rooted = pattern.first() == Some(&Sign::Letter('/'));
        let dirs = self.dirs.iter().filter_map(|dir| match dir {
            Dir::Start(dir) if !rooted => Some(below(&cwd, dir)),
            Dir::Start(_) => Some(String::new()),
            Dir::Open(_) | Dir::Unknown => None,
        });
        let skipped = if pattern.starts_with(&[Sign::Letter('.'), Sign::Letter('/')]) { 2 } else { 0 };
        let patterns: Vec<Vec<Sign>> = dirs
            .map(|dir| {
                let folder = if dir.is_empty() { dir } else { format!("{}/", dir.trim_end_matches('/')) };
                folder.chars().map(Sign::Letter).chain(pattern.iter().skip(skipped).copied()).collect()
            })
            .collect();
        let written = self.written.places().chain(self.sources.files().iter().map(String::as_str));
        let named = written.filter(|place| {
            let path: Vec<char> = below(&cwd, place).chars().collect();
            patterns.iter().any(|pattern| meets(pattern, &path))
        });
        named.take(MOST_NAMED).map(str::to_owned).collect()
    }
}
