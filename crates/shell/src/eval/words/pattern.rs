//! Shell patterns against known text, for `${x#pattern}` and its like.

use crate::text::Text;
use crate::word::Part;

/// Longest text and pattern that are compared; the work is their product, squared.
const LONGEST: usize = 256;

/// A pattern of `*`, `?` and plain characters.
pub struct Pattern(Vec<Piece>);

enum Piece {
    Char(char),
    One,
    Any,
}

impl Pattern {
    /// `None` where it is not known, or uses more than `*` and `?`.
    pub fn of(text: &Text) -> Option<Self> {
        let mut out = Vec::new();
        for part in text {
            match part {
                Part::Text(text) => out.extend(text.chars().map(Piece::Char)),
                Part::Glob(glob) if glob == "*" => out.push(Piece::Any),
                Part::Glob(glob) if glob == "?" => out.push(Piece::One),
                Part::Glob(_) | Part::Unknown(_) => return None,
            }
        }
        (out.len() <= LONGEST).then_some(Self(out))
    }

    /// Whether it is `*` and then this character.
    pub fn is_any_then(&self, end: char) -> bool {
        matches!(self.0.as_slice(), [Piece::Any, Piece::Char(c)] if *c == end)
    }

    /// What comparing with `text` costs, in steps.
    pub fn cost(&self, text: &str) -> usize {
        text.len() * text.len() * (1 + self.0.len()) / 256
    }

    fn is_whole(&self, text: &[char]) -> bool {
        // `ends[i]`: the pieces so far match the first `i` characters.
        let mut ends = vec![false; text.len() + 1];
        ends.iter_mut().take(1).for_each(|end| *end = true);
        for piece in &self.0 {
            let mut next = vec![false; text.len() + 1];
            let mut open = false;
            for (at, slot) in next.iter_mut().enumerate() {
                let here = ends.get(at).copied().unwrap_or(false);
                let before = at.checked_sub(1);
                let had = before.and_then(|at| ends.get(at)).copied().unwrap_or(false);
                open |= here;
                *slot = match piece {
                    Piece::Any => open,
                    Piece::One => had,
                    Piece::Char(c) => had && before.and_then(|at| text.get(at)) == Some(c),
                };
            }
            ends = next;
        }
        ends.last().copied().unwrap_or(false)
    }

    /// `text` without what matches at one end; `None` when it is too long to tell.
    pub fn strip(&self, text: &str, suffix: bool, longest: bool) -> Option<String> {
        let chars: Vec<char> = text.chars().collect();
        if chars.len() > LONGEST {
            return None;
        }
        let mut cuts: Vec<usize> = (0..=chars.len()).collect();
        // The shortest match first: near the end for a suffix, near the start for a prefix.
        if suffix != longest {
            cuts.reverse();
        }
        let hit = cuts.into_iter().find(|&cut| {
            let (before, after) = chars.split_at(cut);
            self.is_whole(if suffix { after } else { before })
        });
        let (before, after) = chars.split_at(hit.unwrap_or(if suffix { chars.len() } else { 0 }));
        Some(if suffix { before } else { after }.iter().collect())
    }

    /// `text` with `with` in place of what matches, the longest first. `how`: `/` everywhere, `#` and `%` at an end.
    pub fn replace(&self, text: &str, with: &str, how: char) -> Option<String> {
        let chars: Vec<char> = text.chars().collect();
        let fixed = !self.0.iter().any(|piece| matches!(piece, Piece::Any));
        if chars.len() > if fixed { LONGEST } else { LONGEST / 8 } {
            return None;
        }
        let mut out = String::new();
        let mut at = 0;
        let mut done = self.0.is_empty();
        while at < chars.len() {
            let rest = chars.get(at..).unwrap_or_default();
            let fits = |len: &usize| self.is_whole(rest.get(..*len).unwrap_or_default());
            let least = if fixed { self.0.len() } else { 1 };
            let most = if fixed { self.0.len().min(rest.len()) } else { rest.len() };
            let len = (least..=most).rev().filter(|len| how != '%' || at + len == chars.len()).find(fits);
            match len.filter(|_| !done && (how != '#' || at == 0)) {
                Some(len) => {
                    out.push_str(with);
                    at += len;
                    done = how != '/';
                }
                None => {
                    out.extend(rest.first());
                    at += 1;
                }
            }
        }
        Some(out)
    }
}
