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

/// What a word that stands for several names can be, or more; `None` where nobody knows what it names.
fn signs(parts: &[Part]) -> Option<Vec<Sign>> {
    let mut out = Vec::new();
    // In brackets: what they take, and where they end, is looked at by nobody. The rest of the name is any.
    let mut closed = false;
    for part in parts {
        let (text, is_glob) = match part {
            Part::Text(text) => (text, false),
            Part::Glob(text) => (text, true),
            Part::Unknown(Source::Number | Source::Name | Source::Fresh) => {
                out.push(Sign::Name);
                continue;
            }
            Part::Unknown(Source::Listed(_)) => {
                out.push(Sign::Any);
                continue;
            }
            Part::Unknown(Source::Outside | Source::Any | Source::Words | Source::Setup) => return None,
        };
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            closed &= letter != '/';
            match letter {
                _ if closed => {}
                // `**/` may be nothing.
                '/' if out.last() == Some(&Sign::Any) => {}
                '*' if is_glob && out.last() == Some(&Sign::Name) => drop(out.splice(out.len() - 1.., [Sign::Any])),
                '*' if is_glob => out.push(Sign::Name),
                '?' if is_glob => out.push(Sign::One),
                '[' | '(' if is_glob => {
                    let opens = matches!(out.last(), Some(Sign::One | Sign::Letter('@' | '+' | '!')));
                    out.truncate(out.len() - usize::from(letter == '(' && opens));
                    out.push(Sign::Name);
                    closed = true;
                }
                '\\' if is_glob => out.push(Sign::Letter(letters.next()?)),
                other => out.push(Sign::Letter(other)),
            }
        }
    }
    Some(out)
}

/// A pattern without `.`, and without `..` and what that goes back over.
fn folded(pattern: &[Sign]) -> Vec<Sign> {
    let mut kept: Vec<&[Sign]> = Vec::new();
    for name in pattern.split(|sign| *sign == Sign::Letter('/')) {
        match name {
            [] | [Sign::Letter('.')] => {}
            [Sign::Letter('.'), Sign::Letter('.')] if !kept.last().is_some_and(|last| last.contains(&Sign::Any)) => {
                kept.pop();
            }
            [Sign::Letter('.'), Sign::Letter('.')] => {}
            name => kept.push(name),
        }
    }
    kept.iter().flat_map(|name| [Sign::Letter('/')].into_iter().chain(name.iter().copied())).collect()
}

/// Whether two letters are one, also where case counts for nothing.
fn is_letter(own: char, letter: char) -> bool {
    own == letter || own.to_lowercase().eq(letter.to_lowercase())
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
                Sign::Letter(own) => is_letter(*own, *letter),
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
        if !next.contains(&true) {
            return false;
        }
        reached = next;
    }
    reached.last() == Some(&true)
}

impl Eval<'_> {
    /// Files that this line or the agent wrote which a word may name that stands for several: a pattern, or each name of a listing.
    pub(crate) fn named_places(&mut self, file: &Word) -> Vec<String> {
        let Some(pattern) = signs(&file.parts) else { return Vec::new() };
        let cwd = self.start_dir().unwrap_or_default();
        let below = |folder: &str, path: &str| match path {
            path if path.starts_with('/') => path.to_owned(),
            path => format!("{}/{}", folder.trim_end_matches('/'), path.trim_start_matches("./")),
        };
        let rooted = pattern.first() == Some(&Sign::Letter('/'));
        let dirs = self.dirs.iter().filter_map(|dir| match dir {
            Dir::Start(_) if rooted => Some(String::new()),
            Dir::Start(dir) => Some(below(&cwd, dir) + "/"),
            Dir::Open(_) | Dir::Unknown => rooted.then(String::new),
        });
        let mut patterns: Vec<Vec<Sign>> = dirs
            .map(|dir| folded(&dir.chars().map(Sign::Letter).chain(pattern.iter().copied()).collect::<Vec<_>>()))
            .collect();
        patterns.dedup();
        let written = self.written.places().chain(self.sources.files().iter().map(String::as_str));
        let places: Vec<String> = written.map(str::to_owned).collect();
        let mut named = Vec::new();
        for place in places {
            let path: Vec<char> = below(&cwd, &place).chars().collect();
            let steps: usize = patterns.iter().map(|pattern| 1 + pattern.len() * path.len() / 256).sum();
            if !self.spend(steps) {
                break;
            }
            if patterns.iter().any(|pattern| meets(pattern, &path)) {
                if named.len() == MOST_NAMED {
                    self.limit("more scripts by one word than are followed");
                    break;
                }
                named.push(place);
            }
        }
        named
    }
}
