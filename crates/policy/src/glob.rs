//! Path patterns (R12): `*` and `?` stop at `/`, `**` crosses it and matches nothing too, `{a,b}`, `[a-z]`, `\` escapes.
//!
//! Owns matching and two questions about patterns: what they can match below a folder, and whether they can meet a shell
//! glob. Compiles nothing but token lists, because the hook starts anew for every call. Invariant: a [`Glob`] exists only for
//! valid text; time is bounded by pattern × path. Page: `spec/policy.md`.

/// Most alternatives that braces may unfold to.
const MAX_ALTERNATIVES: usize = 256;
/// Longest pattern, in bytes.
const MAX_LEN: usize = 4096;

/// A valid path pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    alternatives: Vec<Vec<Segment>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    /// `**`: any number of whole segments.
    Any,
    /// One segment.
    One(Vec<Token>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Char(char),
    /// `?`
    One,
    /// `*`
    Star,
    /// `[a-z]`, `[!a-z]`
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

/// Why text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    /// `[` without `]`.
    #[error("`[` without `]`")]
    OpenClass,
    /// `[z-a]`, or nothing between the brackets.
    #[error("an empty or reversed character class")]
    BadClass,
    /// `{` without `}`, or `}` without `{`.
    #[error("unbalanced braces")]
    Braces,
    /// A lone `\` at the end.
    #[error("a `\\` at the end escapes nothing")]
    Escape,
    /// Too long, or too many alternatives.
    #[error("too long, or more than {MAX_ALTERNATIVES} alternatives")]
    TooLarge,
    /// Nothing at all.
    #[error("an empty pattern")]
    Empty,
}

impl Glob {
    /// Reads a pattern. Leading and doubled slashes do not matter: matching is by segments.
    pub fn parse(text: &str) -> Result<Self, GlobError> {
        if text.is_empty() {
            return Err(GlobError::Empty);
        }
        if text.len() > MAX_LEN {
            return Err(GlobError::TooLarge);
        }
        let alternatives = unfold(text)?.iter().map(|one| segments(one)).collect::<Result<_, _>>()?;
        Ok(Self { alternatives })
    }

    /// The pattern that hangs off `root`, a plain path.
    pub fn below(root: &str, text: &str) -> Result<Self, GlobError> {
        let mut glob = Self::parse(text)?;
        let prefix: Vec<Segment> = parts(root).map(literal).collect();
        for alternative in &mut glob.alternatives {
            let tail = std::mem::take(alternative);
            *alternative = fold(prefix.iter().cloned().chain(tail));
        }
        Ok(glob)
    }

    /// The pattern that matches one path.
    pub fn plain(path: &str) -> Self {
        Self { alternatives: vec![parts(path).map(literal).collect()] }
    }

    /// Whether it matches a whole path.
    pub fn matches(&self, path: &str) -> bool {
        let path: Vec<&str> = parts(path).collect();
        self.alternatives.iter().any(|pattern| matches(pattern, &path))
    }

    /// Whether it names something below folder `dir` for certain: its literal beginning lies there.
    pub fn is_anchored_below(&self, dir: &str) -> bool {
        let dir: Vec<&str> = parts(dir).collect();
        self.alternatives.iter().any(|pattern| {
            let fixed: Vec<String> = pattern.iter().map_while(Segment::text).collect();
            fixed.len() > dir.len() && fixed.iter().zip(&dir).all(|(a, b)| a == b)
        })
    }

    /// Whether folder `dir` lies on the way to something it can match.
    pub fn leads_through(&self, dir: &str) -> bool {
        let dir: Vec<&str> = parts(dir).collect();
        self.alternatives.iter().any(|pattern| {
            let mut rest = pattern.iter();
            dir.iter().all(|name| match rest.clone().next() {
                Some(Segment::Any) => true,
                Some(Segment::One(tokens)) => {
                    rest.next();
                    one(tokens, name)
                }
                None => false,
            })
        })
    }

    /// Whether some path is matched by both this pattern and a shell's glob word. With `firmly`, only where each segment of
    /// this pattern is plain text or `**` and the word is more than bare `*` there.
    pub fn meets(&self, word: &Self, firmly: bool) -> bool {
        let firm = |pattern: &[Segment]| {
            pattern.iter().all(|segment| matches!(segment, Segment::Any) || segment.text().is_some())
        };
        self.alternatives
            .iter()
            .filter(|pattern| !firmly || firm(pattern))
            // A word's own `**` (`find -name`) could swallow anything; only what is on disk counts there.
            .any(|pattern| {
                word.alternatives
                    .iter()
                    .any(|word| !(firmly && word.contains(&Segment::Any)) && meet(pattern, word, firmly))
            })
    }
}

impl Segment {
    fn text(&self) -> Option<String> {
        let Self::One(tokens) = self else { return None };
        tokens.iter().map(|token| if let Token::Char(c) = token { Some(*c) } else { None }).collect()
    }
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".")
}

fn literal(text: &str) -> Segment {
    Segment::One(text.chars().map(Token::Char).collect())
}

/// Folds `..` where the segment before it is plain.
fn fold(segments: impl Iterator<Item = Segment>) -> Vec<Segment> {
    let mut out: Vec<Segment> = Vec::new();
    for segment in segments {
        if segment.text().as_deref() == Some("..") && out.last().is_some_and(|last| last.text().is_some()) {
            out.pop();
        } else {
            out.push(segment);
        }
    }
    out
}

/// Braces unfolded into alternatives; classes and escapes are left alone.
pub fn unfold(text: &str) -> Result<Vec<String>, GlobError> {
    let Some((before, choices, after)) = first_braces(text)? else { return Ok(vec![text.to_owned()]) };
    let mut out = Vec::new();
    for choice in choices {
        for tail in unfold(&format!("{choice}{after}"))? {
            out.push(format!("{before}{tail}"));
            if out.len() > MAX_ALTERNATIVES {
                return Err(GlobError::TooLarge);
            }
        }
    }
    Ok(out)
}

type Braces<'a> = (&'a str, Vec<&'a str>, &'a str);

fn first_braces(text: &str) -> Result<Option<Braces<'_>>, GlobError> {
    let (mut depth, mut open, mut start) = (0usize, 0, 0);
    let mut choices = Vec::new();
    let mut in_class = false;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if escaped {
            escaped = false;
            continue;
        }
        match c {
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            _ if in_class => {}
            '{' => {
                if depth == 0 {
                    (open, start) = (at, at + 1);
                }
                depth += 1;
            }
            ',' if depth == 1 => {
                choices.push(text.get(start..at).unwrap_or_default());
                start = at + 1;
            }
            '}' => {
                depth = depth.checked_sub(1).ok_or(GlobError::Braces)?;
                if depth == 0 {
                    choices.push(text.get(start..at).unwrap_or_default());
                    return Ok(text
                        .get(..open)
                        .zip(text.get(at + 1..))
                        .map(|(before, after)| (before, choices, after)));
                }
            }
            _ => {}
        }
    }
    if depth > 0 { Err(GlobError::Braces) } else { Ok(None) }
}

fn segments(text: &str) -> Result<Vec<Segment>, GlobError> {
    let mut out = Vec::new();
    let trailing = text.len() > 1 && text.ends_with('/');
    for part in parts(text) {
        if part == "**" {
            if out.last() != Some(&Segment::Any) {
                out.push(Segment::Any);
            }
        } else {
            out.push(Segment::One(tokens(part)?));
        }
    }
    // `secrets/` means the folder and everything in it.
    if trailing && out.last() != Some(&Segment::Any) {
        out.push(Segment::Any);
    }
    Ok(fold(out.into_iter()))
}

fn tokens(part: &str) -> Result<Vec<Token>, GlobError> {
    let mut out = Vec::new();
    let mut chars = part.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '*' if out.last() == Some(&Token::Star) => continue,
            '*' => Token::Star,
            '?' => Token::One,
            '\\' => Token::Char(chars.next().ok_or(GlobError::Escape)?),
            '[' => class(&mut chars)?,
            other => Token::Char(other),
        });
    }
    Ok(out)
}

fn class(chars: &mut std::str::Chars<'_>) -> Result<Token, GlobError> {
    let mut ranges = Vec::new();
    let mut rest = chars.clone();
    let negated = rest.clone().next().is_some_and(|c| c == '!' || c == '^');
    if negated {
        rest.next();
    }
    loop {
        let low = match rest.next().ok_or(GlobError::OpenClass)? {
            ']' if !ranges.is_empty() => break,
            '\\' => rest.next().ok_or(GlobError::Escape)?,
            c => c,
        };
        let mut ahead = rest.clone();
        let high = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(high)) if high != ']' => {
                rest = ahead;
                high
            }
            _ => low,
        };
        if low > high {
            return Err(GlobError::BadClass);
        }
        ranges.push((low, high));
    }
    *chars = rest;
    Ok(Token::Class { negated, ranges })
}

fn fits(token: &Token, c: char) -> bool {
    match token {
        Token::Char(own) => *own == c,
        Token::One | Token::Star => true,
        Token::Class { negated, ranges } => ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated,
    }
}

/// Whole paths: `**` is to segments what `*` is to characters, so the same two-pointer walk serves both.
fn matches(pattern: &[Segment], path: &[&str]) -> bool {
    let fits = |segment: &Segment, name: &&str| matches!(segment, Segment::One(tokens) if one(tokens, name));
    walk(pattern, path, |segment| *segment == Segment::Any, fits)
}

fn one(tokens: &[Token], name: &str) -> bool {
    let chars: Vec<char> = name.chars().collect();
    walk(tokens, &chars, |token| *token == Token::Star, |token, c| fits(token, *c))
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
fn meet(pattern: &[Segment], word: &[Segment], firmly: bool) -> bool {
    intersect(
        pattern,
        word,
        |segment| *segment == Segment::Any,
        |a, b| {
            let (Segment::One(a), Segment::One(b)) = (a, b) else { return false };
            let bare = firmly && b.iter().all(|token| *token == Token::Star);
            !bare && !hides_dot(a, b) && intersect(a, b, |token| *token == Token::Star, overlap)
        },
    )
}

/// A shell's `*`, `?` or class does not match a leading dot.
fn hides_dot(pattern: &[Token], word: &[Token]) -> bool {
    matches!(pattern.first(), Some(Token::Char('.'))) && !matches!(word.first(), Some(Token::Char('.')))
}

/// Whether two sequences with stars have a member in common: dynamic programming from the ends, |a| × |b| steps.
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
                (Some(x), Some(y)) if is_star(x) || is_star(y) => at(&below, j) || at(&row, j + 1),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(pattern: &str, path: &str) -> bool {
        Glob::parse(pattern).unwrap().matches(path)
    }

    #[test]
    fn stars_and_slashes() {
        for (pattern, path) in [
            ("src/**/t/*.rs", "src/t/a.rs"),
            ("src/**/t/*.rs", "src/x/y/t/a.rs"),
            ("secrets/**", "secrets/prod/key.pem"),
            ("secrets/**", "secrets"),
            ("secrets/", "secrets/a"),
            ("**/.env", ".env"),
            ("**/.env", "a/b/.env"),
            ("*.{rs,toml}", "a.toml"),
            ("{a,b{c,d}}/x", "bd/x"),
            ("[a-c]?z", "bqz"),
            ("[!a]x", "bx"),
            ("a\\*b", "a*b"),
            ("[]]x", "]x"),
        ] {
            assert!(hit(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("*", "a/b"),
            ("src/*", "src/a/b"),
            ("a?c", "a/c"),
            ("**/.env", "a.env"),
            ("*.rs", "a.rs.bak"),
            ("SRC/**", "src/a"),
            ("[!a]x", "ax"),
            ("a\\*b", "axb"),
        ] {
            assert!(!hit(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn invalid_patterns_are_errors() {
        for bad in ["", "[a", "{a", "a}", "[z-a]", "a\\", &"{a,b}".repeat(12)] {
            assert!(Glob::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn many_stars_stay_fast() {
        let pattern = "*a".repeat(500);
        assert!(!hit(&pattern, &"a".repeat(400)));
        assert!(!hit(&"**/a/".repeat(300), &"a/".repeat(200)));
    }

    #[test]
    fn questions_about_folders() {
        let secrets = Glob::below("/w", "secrets/**").unwrap();
        assert!(
            secrets.is_anchored_below("/w") && secrets.is_anchored_below("/") && !secrets.is_anchored_below("/w/src")
        );
        assert!(!Glob::below("/", "**/.env").unwrap().is_anchored_below("/w"));
        assert!(secrets.leads_through("/w") && !secrets.leads_through("/x"));
        let word = Glob::below("/w", "secr?ts/a").unwrap();
        assert!(secrets.meets(&word, true));
        assert!(Glob::parse("**/.env").unwrap().meets(&Glob::below("/w", ".e*").unwrap(), true));
        assert!(!Glob::parse("**/.env").unwrap().meets(&Glob::below("/w", "*").unwrap(), false));
        assert!(!Glob::parse("**/*.pem").unwrap().meets(&Glob::below("/w", "*.txt").unwrap(), false));
    }

    proptest::proptest! {
        /// `globset` with literal separators agrees, but for `x/**`, which covers `x` here.
        #[test]
        fn agrees_with_globset(pattern in "[ab*?/]{1,8}", path in "[ab]{1,3}(/[ab]{1,3}){0,3}") {
            proptest::prop_assume!(!pattern.starts_with('/') && !pattern.ends_with('/') && !pattern.contains("//"));
            proptest::prop_assume!(pattern.split('/').all(|part| part == "**" || !part.contains("**")));
            proptest::prop_assume!(!pattern.ends_with("/**"));
            let oracle = globset::GlobBuilder::new(&pattern).literal_separator(true).build().unwrap().compile_matcher();
            proptest::prop_assert_eq!(hit(&pattern, &path), oracle.is_match(&path));
        }

        #[test]
        /// A negated class is left out: that of globset takes a `/`, ours does not.
        fn agrees_with_globset_on_classes_and_braces(
            pattern in r"([ab?*]|\[[ab]\]|\[a-c\]|\{[ab*]{1,2},[ab?]{1,2}\}|\{a,\{b,[ab]c\}\}|/){1,6}",
            path in "[abc]{1,3}(/[abc]{1,3}){0,2}",
        ) {
            proptest::prop_assume!(!pattern.starts_with('/') && !pattern.ends_with('/') && !pattern.contains("//"));
            proptest::prop_assume!(!pattern.contains("**") && !pattern.contains("{*") && !pattern.contains("*{"));
            let oracle = globset::GlobBuilder::new(&pattern)
                .literal_separator(true)
                .build()
                .unwrap()
                .compile_matcher();
            proptest::prop_assert_eq!(hit(&pattern, &path), oracle.is_match(&path));
        }

        #[test]
        fn never_panics(pattern in ".{0,30}", path in ".{0,30}") {
            if let Ok(glob) = Glob::parse(&pattern) {
                glob.matches(&path);
            }
        }
    }
}
