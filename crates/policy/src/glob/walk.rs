//! Matching, and whether two patterns can meet: linear space, bounded by pattern × text.

use std::borrow::Cow;

use super::{Segment, Token};

fn fits(token: &Token, c: char) -> bool {
    match token {
        Token::Char(own) => *own == c,
        Token::One | Token::Star => true,
        Token::Count => is_counting(c),
        Token::Class { negated, ranges } => ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated,
    }
}

/// Whole paths: `**` is to segments what `*` is to characters, so the same two-pointer walk serves both.
pub(super) fn path(pattern: &[Segment], path: &[&str]) -> bool {
    // Rules of one policy begin alike; where their plain beginnings end, most paths differ.
    let plain = pattern.iter().take_while(|segment| matches!(segment, Segment::Text(_))).count();
    if let Some(Segment::Text(last)) = plain.checked_sub(1).and_then(|at| pattern.get(at))
        && path.get(plain - 1).is_none_or(|name| **last != **name)
    {
        return false;
    }
    walk(pattern, path, |segment| *segment == Segment::Any, |one, name| segment(one, name))
}

/// Whether a segment other than `**` matches a name.
pub(super) fn segment(segment: &Segment, name: &str) -> bool {
    match segment {
        Segment::Any => false,
        Segment::Text(text) => **text == *name,
        Segment::Wild(tokens) => one(tokens, name),
    }
}

/// Whether a token takes any number of letters.
const fn is_star(token: &Token) -> bool {
    matches!(token, Token::Star | Token::Count)
}

fn one(tokens: &[Token], name: &str) -> bool {
    let star = is_star;
    // Most names fail at one of their ends.
    let differs = |token: Option<&Token>, found: Option<char>| matches!((token, found), (Some(Token::Char(own)), Some(found)) if *own != found);
    if differs(tokens.first(), name.chars().next()) || differs(tokens.last(), name.chars().next_back()) {
        return false;
    }
    if tokens.contains(&Token::Count) {
        let name: Vec<Token> = name.chars().map(Token::Char).collect();
        return intersect(tokens, &name, is_star, overlap);
    }
    if name.is_ascii() {
        return walk(tokens, name.as_bytes(), star, |token, byte| fits(token, char::from(*byte)));
    }
    let chars: Vec<char> = name.chars().collect();
    walk(tokens, &chars, star, |token, c| fits(token, *c))
}

/// Wildcard matching with one step back to the last star: linear space, at most pattern × text steps.
fn walk<P, T>(pattern: &[P], text: &[T], is_star: impl Fn(&P) -> bool, fits: impl Fn(&P, &T) -> bool) -> bool {
    let (mut at, mut to) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while let Some(item) = text.get(to) {
        match pattern.get(at) {
            Some(step) if is_star(step) => {
                back = Some((at + 1, to));
                at += 1;
            }
            Some(step) if fits(step, item) => {
                at += 1;
                to += 1;
            }
            _ => {
                let Some((star, taken)) = back else { return false };
                (at, to) = (star, taken + 1);
                back = Some((star, taken + 1));
            }
        }
    }
    pattern.get(at..).is_some_and(|rest| rest.iter().all(is_star))
}

/// Whether two patterns of segments have a path in common.
pub(super) fn meet(pattern: &[Segment], word: &[Segment], firmly: bool) -> bool {
    intersect(
        pattern,
        word,
        |segment| *segment == Segment::Any,
        |a, b| {
            let (Some(a), Some(b)) = (tokens(a), tokens(b)) else { return true };
            let (a, b) = (&*a, &*b);
            let bare = firmly && b.iter().all(|token| *token == Token::Star);
            !bare && !hides_dot(a, b) && intersect(a, b, is_star, overlap)
        },
    )
}

/// Whether two patterns of segments have a path in common, whatever a shell thinks of leading dots.
pub(super) fn overlap_paths(pattern: &[Segment], word: &[Segment]) -> bool {
    intersect(
        pattern,
        word,
        |segment| *segment == Segment::Any,
        |a, b| {
            let (Some(a), Some(b)) = (tokens(a), tokens(b)) else { return true };
            intersect(&a, &b, is_star, overlap)
        },
    )
}

fn tokens(segment: &Segment) -> Option<Cow<'_, [Token]>> {
    match segment {
        Segment::Any => None,
        Segment::Text(text) => Some(text.chars().map(Token::Char).collect()),
        Segment::Wild(tokens) => Some(Cow::Borrowed(tokens)),
    }
}

/// A shell's `*`, `?` or class does not match a leading dot.
fn hides_dot(pattern: &[Token], word: &[Token]) -> bool {
    matches!(pattern.first(), Some(Token::Char('.'))) && !matches!(word.first(), Some(Token::Char('.')))
}

/// The letters of [`Token::Count`].
fn is_counting(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | ':')
}

/// Whether two sequences with stars have a member in common: dynamic programming from the ends, |a| × |b| steps. A star takes
/// in what `overlap` lets it.
fn intersect<T>(a: &[T], b: &[T], is_star: impl Fn(&T) -> bool, overlap: impl Fn(&T, &T) -> bool) -> bool {
    // `below[j]` answers for a[i+1..] and b[j..], `row[j]` for a[i..] and b[j..].
    let mut below: Vec<bool> = Vec::new();
    for i in (0..=a.len()).rev() {
        let left = a.get(i);
        let mut row = vec![false; b.len() + 1];
        for j in (0..=b.len()).rev() {
            let right = b.get(j);
            let at = |row: &[bool], j: usize| row.get(j).copied().unwrap_or(false);
            let common = match (left, right) {
                (None, None) => true,
                (Some(x), Some(y)) if is_star(x) || is_star(y) => {
                    let both = overlap(x, y);
                    (at(&below, j) && (is_star(x) || both)) || (at(&row, j + 1) && (is_star(y) || both))
                }
                (Some(x), None) => is_star(x) && at(&below, j),
                (None, Some(y)) => is_star(y) && at(&row, j + 1),
                (Some(x), Some(y)) => overlap(x, y) && at(&below, j + 1),
            };
            if let Some(cell) = row.get_mut(j) {
                *cell = common;
            }
        }
        below = row;
    }
    below.first().copied().unwrap_or(false)
}

fn overlap(x: &Token, y: &Token) -> bool {
    match (x, y) {
        (Token::Char(c), other) | (other, Token::Char(c)) => fits(other, *c),
        _ => true,
    }
}
