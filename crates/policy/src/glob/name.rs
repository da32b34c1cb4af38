//! One name against one pattern as bash, `find` and `ls` read it: classes, extended patterns, either case.
//!
//! Owns the matching of a single segment, exactly. Time is bounded by pattern × name², nesting by a constant.

use std::collections::HashMap;

/// Stands for letters, digits, `-`, `_` and `:`, at least one.
pub const COUNT: char = '\u{1}';
/// Longest pattern and name.
const LONGEST: usize = 1024;
/// Deepest nesting of extended patterns.
const DEEPEST: usize = 8;

/// A pattern of one name.
#[derive(Clone, Debug)]
pub struct NamePattern {
    pieces: Vec<Piece>,
    folded: bool,
}

/// `[:alpha:]` and its like.
type Class = fn(char) -> bool;

#[derive(Clone, Debug)]
enum Piece {
    Char(char),
    One,
    Star,
    Set {
        negated: bool,
        ranges: Vec<(char, char)>,
        classes: Vec<Class>,
    },
    /// `@(a|b)`, `?(…)`, `*(…)`, `+(…)`, `!(…)`.
    Group(char, Vec<Vec<Piece>>),
}

impl NamePattern {
    /// Reads a pattern; what is no pattern stands for itself.
    pub fn parse(text: &str, folded: bool) -> Self {
        let text: Vec<char> = if folded { text.to_lowercase().chars().collect() } else { text.chars().collect() };
        Self { pieces: pieces(text.get(..LONGEST).unwrap_or(&text), 0), folded }
    }

    /// Whether all of a name matches; a leading dot is a letter like others.
    pub fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = if self.folded { name.to_lowercase().chars().collect() } else { name.chars().collect() };
        let mut start = vec![false; name.len() + 1];
        start.iter_mut().take(1).for_each(|slot| *slot = true);
        name.len() <= 4 * LONGEST && run(&self.pieces, &name, start).last().copied().unwrap_or(false)
    }

    /// Whether the pattern itself begins with a dot.
    pub fn begins_with_dot(&self) -> bool {
        fn dot(pieces: &[Piece]) -> bool {
            match pieces.first() {
                Some(Piece::Char('.')) => true,
                Some(Piece::Group(sign, inner)) => {
                    *sign != '!' && inner.iter().any(|one| dot(one))
                        || matches!(sign, '?' | '*') && dot(pieces.get(1..).unwrap_or_default())
                }
                _ => false,
            }
        }
        dot(&self.pieces)
    }
}

/// Whether a segment is more than plain text.
pub fn is_pattern(text: &str) -> bool {
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '*' | '?' | '[' | COUNT => return true,
            '@' | '+' | '!' if chars.peek() == Some(&'(') => return true,
            _ => {}
        }
    }
    false
}

/// Plain text without the backslashes that quote.
pub fn unquoted(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(if c == '\\' { chars.next().unwrap_or('\\') } else { c });
    }
    out
}

fn pieces(text: &[char], depth: usize) -> Vec<Piece> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(c) = text.get(at) {
        let group = matches!(c, '@' | '?' | '*' | '+' | '!') && text.get(at + 1) == Some(&'(') && depth < DEEPEST;
        if let Some((alternatives, end)) = group.then(|| alternatives(text, at + 2)).flatten() {
            out.push(Piece::Group(*c, alternatives.iter().map(|one| pieces(one, depth + 1)).collect()));
            at = end;
            continue;
        }
        match c {
            &COUNT => {
                let set = Piece::Set {
                    negated: false,
                    ranges: vec![('-', '-'), ('_', '_'), (':', ':')],
                    classes: vec![char::is_alphanumeric],
                };
                out.push(Piece::Group('+', vec![vec![set]]));
            }
            '*' => out.push(Piece::Star),
            '?' => out.push(Piece::One),
            '\\' if at + 1 < text.len() => {
                at += 1;
                out.extend(text.get(at).map(|c| Piece::Char(*c)));
            }
            '[' => match set(text, at) {
                Some((piece, end)) => {
                    out.push(piece);
                    at = end;
                    continue;
                }
                None => out.push(Piece::Char('[')),
            },
            other => out.push(Piece::Char(*other)),
        }
        at += 1;
    }
    out
}

/// What stands between the bars of `(a|b)`, whose inside begins at `at`, and where it ends.
fn alternatives(text: &[char], at: usize) -> Option<(Vec<Vec<char>>, usize)> {
    let mut out: Vec<Vec<char>> = vec![Vec::new()];
    let mut depth = 0usize;
    let mut here = at;
    loop {
        let c = *text.get(here)?;
        match c {
            ')' if depth == 0 => return Some((out, here + 1)),
            '|' if depth == 0 => out.push(Vec::new()),
            _ => {
                depth = match c {
                    '(' => depth + 1,
                    ')' => depth - 1,
                    _ => depth,
                };
                out.last_mut()?.push(c);
                if c == '\\' {
                    here += 1;
                    out.last_mut()?.extend(text.get(here));
                }
            }
        }
        here += 1;
    }
}

/// A bracket expression that begins at `at`, and where it ends.
fn set(text: &[char], at: usize) -> Option<(Piece, usize)> {
    let mut here = at + 1;
    let negated = matches!(text.get(here)?, '!' | '^');
    here += usize::from(negated);
    let (mut ranges, mut classes): (Vec<(char, char)>, Vec<Class>) = (Vec::new(), Vec::new());
    let first = here;
    loop {
        let c = *text.get(here)?;
        match c {
            ']' if here > first => return Some((Piece::Set { negated, ranges, classes }, here + 1)),
            '[' if matches!(text.get(here + 1), Some(':' | '.' | '=')) => {
                let kind = *text.get(here + 1)?;
                let rest = text.get(here + 2..)?;
                let len = rest.windows(2).position(|pair| pair == [kind, ']'])?;
                let name: String = rest.get(..len)?.iter().collect();
                match (kind, class(&name)) {
                    (':', Some(test)) => classes.push(test),
                    (':', None) => {}
                    _ => ranges.extend(name.chars().map(|c| (c, c))),
                }
                here += len + 4;
            }
            _ => {
                let low = if c == '\\' {
                    here += 1;
                    *text.get(here)?
                } else {
                    c
                };
                let high = match (text.get(here + 1), text.get(here + 2)) {
                    (Some('-'), Some(high)) if *high != ']' => {
                        here += 2;
                        *high
                    }
                    _ => low,
                };
                ranges.push((low, high));
                here += 1;
            }
        }
    }
}

fn class(name: &str) -> Option<Class> {
    Some(match name {
        "alnum" => |c| c.is_alphanumeric(),
        "alpha" => |c| c.is_alphabetic(),
        "ascii" => |c| c.is_ascii(),
        "blank" => |c| c == ' ' || c == '\t',
        "cntrl" => |c| c.is_control(),
        "digit" => |c| c.is_ascii_digit(),
        "graph" => |c| !c.is_whitespace() && !c.is_control(),
        "lower" => |c| c.is_lowercase(),
        "print" => |c| !c.is_control(),
        "punct" => |c| c.is_ascii_punctuation(),
        "space" => char::is_whitespace,
        "upper" => |c| c.is_uppercase(),
        "word" => |c| c.is_alphanumeric() || c == '_',
        "xdigit" => |c| c.is_ascii_hexdigit(),
        _ => return None,
    })
}

/// Where matches of the pieces end, of those that begin where `from` says.
fn run(pieces: &[Piece], name: &[char], mut from: Vec<bool>) -> Vec<bool> {
    for piece in pieces {
        if !from.contains(&true) {
            return from;
        }
        from = match piece {
            Piece::Star => {
                let mut open = false;
                from.iter()
                    .map(|here| {
                        open |= here;
                        open
                    })
                    .collect()
            }
            Piece::Group(sign, alternatives) => group(*sign, alternatives, name, &from),
            single => {
                let fits = |c: &char| one(single, *c);
                std::iter::once(false).chain(from.iter().zip(name).map(|(here, c)| *here && fits(c))).collect()
            }
        };
    }
    from
}

fn one(piece: &Piece, c: char) -> bool {
    match piece {
        Piece::Char(own) => *own == c,
        Piece::One => true,
        Piece::Set { negated, ranges, classes } => {
            (ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) || classes.iter().any(|test| test(c)))
                != *negated
        }
        Piece::Star | Piece::Group(..) => false,
    }
}

fn group(sign: char, alternatives: &[Vec<Piece>], name: &[char], from: &[bool]) -> Vec<bool> {
    let either = |from: &[bool]| {
        let mut out = vec![false; from.len()];
        for one in alternatives {
            join(&mut out, &run(one, name, from.to_vec()));
        }
        out
    };
    match sign {
        '!' => {
            let mut out = vec![false; from.len()];
            for start in from.iter().enumerate().filter(|(_, here)| **here).map(|(at, _)| at) {
                let mut only = vec![false; from.len()];
                only.iter_mut().skip(start).take(1).for_each(|slot| *slot = true);
                let taken = either(&only);
                let rest = out.iter_mut().zip(taken).skip(start);
                rest.for_each(|(slot, taken)| *slot |= !taken);
            }
            out
        }
        '@' => either(from),
        '?' => {
            let mut out = either(from);
            join(&mut out, from);
            out
        }
        _ => {
            let mut out = if sign == '*' { from.to_vec() } else { vec![false; from.len()] };
            let mut next = from.to_vec();
            // Each round ends further on, or adds nothing.
            for _ in 0..=name.len() {
                next = either(&next);
                let before = out.clone();
                join(&mut out, &next);
                if out == before {
                    break;
                }
            }
            out
        }
    }
}

fn join(out: &mut [bool], more: &[bool]) {
    out.iter_mut().zip(more).for_each(|(slot, more)| *slot |= more);
}

/// Patterns that were read before: a search holds many names against few of them.
#[derive(Default)]
pub struct Patterns(HashMap<(String, bool), NamePattern>);

impl Patterns {
    /// Whether all of a text matches a pattern.
    pub fn matches(&mut self, pattern: &str, folded: bool, text: &str) -> bool {
        let key = (pattern.to_owned(), folded);
        self.0.entry(key).or_insert_with(|| NamePattern::parse(pattern, folded)).matches(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(pattern: &str, name: &str) -> bool {
        NamePattern::parse(pattern, false).matches(name)
    }

    #[test]
    fn matches_as_bash_does() {
        for (pattern, name) in [
            ("*", ".env"),
            (".e[[:alnum:]]v", ".env"),
            (".e[![:digit:]]v", ".env"),
            ("[]x]a", "]a"),
            ("[!]x]a", "ba"),
            ("[a-c]\\*", "b*"),
            ("@(a|b)c", "bc"),
            ("?(.)env", "env"),
            ("+(ab)", "abab"),
            ("*(ab)x", "x"),
            ("!(a|b)", "c"),
            ("!(*.rs)", "a.txt"),
            (".@(e|f)@(n|m)v", ".env"),
            ("@(x|@(y|z))", "z"),
            ("[[.a.]]", "a"),
            ("a[", "a["),
        ] {
            assert!(hit(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            (".e[[:digit:]]v", ".env"),
            ("@(a|b)c", "abc"),
            ("+(ab)", ""),
            ("!(a|b)", "a"),
            ("!(*.rs)", "a.rs"),
            ("[a", "a"),
            ("A", "a"),
        ] {
            assert!(!hit(pattern, name), "{pattern} {name}");
        }
        assert!(NamePattern::parse(".ENV", true).matches(".env"));
    }

    #[test]
    fn hostile_patterns_stay_fast() {
        let started = std::time::Instant::now();
        assert!(!hit(&"*a".repeat(400), &"a".repeat(300)));
        assert!(!hit(&format!("{}b", "+(".repeat(8) + "a" + &")".repeat(8)), &"a".repeat(250)));
        assert!(hit(&"!(a)".repeat(40), &"ab".repeat(60)));
        assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_globs(pattern in r"([ab?*]|\[[ab]\]|\[!a\]){0,6}", name in "[ab]{0,5}") {
            let ours = NamePattern::parse(&pattern, false).matches(&name);
            if let (Ok(glob), false) = (crate::glob::Glob::parse(&pattern), pattern.contains("**") || name.is_empty()) {
                proptest::prop_assert_eq!(ours, glob.matches(&name));
            }
        }

        #[test]
        fn never_panics(pattern in ".{0,30}", name in ".{0,20}") {
            NamePattern::parse(&pattern, true).matches(&name);
        }
    }
}
