//! Path patterns (R12): `*` and `?` stop at `/`, `**` crosses it and matches nothing too, `{a,b}`, `[a-z]`, `\` escapes.
//!
//! Owns matching and two questions about patterns: what they can match below a folder, and whether they can meet a shell
//! glob. Compiles nothing but token lists, because the hook starts anew for every call. Invariant: a [`Glob`] exists only for
//! valid text; time is bounded by pattern × path. Page: `spec/policy.md`.

pub mod name;
mod parse;
mod walk;

pub use parse::unfold;

use parse::{MAX_ALTERNATIVES, segments};

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
    /// One segment of plain text.
    Text(Box<str>),
    /// One segment with something in it that is not plain.
    Wild(Vec<Token>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Char(char),
    /// `?`
    One,
    /// `*`
    Star,
    /// Letters, digits, `-`, `_` and `:`, at least one: U+0001 in a pattern.
    Count,
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
    /// A byte that no path holds.
    #[error("a NUL byte, which no path holds")]
    Nul,
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
        if text.contains('\0') {
            return Err(GlobError::Nul);
        }
        let alternatives = unfold(text)?.iter().map(|one| segments(one)).collect::<Result<_, _>>()?;
        Ok(Self { alternatives })
    }

    /// The pattern that hangs off `root`, a plain path.
    pub fn below(root: &str, text: &str) -> Result<Self, GlobError> {
        Ok(Self::parse(text)?.under(root))
    }

    /// The pattern that matches one path.
    pub fn plain(path: &str) -> Self {
        Self { alternatives: vec![parts(path).map(literal).collect()] }
    }

    /// Whether it matches a whole path.
    pub fn matches(&self, path: &str) -> bool {
        self.matches_split(&split(path))
    }

    /// Whether it matches a whole path that [`split`] has split.
    pub fn matches_split(&self, path: &[&str]) -> bool {
        self.alternatives.iter().any(|pattern| walk::path(pattern, path))
    }

    /// The same pattern, hung off `root`, a plain path.
    pub fn under(&self, root: &str) -> Self {
        let prefix: Vec<Segment> = parts(root).map(literal).collect();
        let hang = |tail: &Vec<Segment>| fold(prefix.iter().chain(tail).cloned());
        Self { alternatives: self.alternatives.iter().map(hang).collect() }
    }

    /// Whether it names something below folder `dir` for certain: its literal beginning lies there.
    pub fn is_anchored_below(&self, dir: &str) -> bool {
        let dir: Vec<&str> = parts(dir).collect();
        self.alternatives.iter().any(|pattern| {
            let fixed: Vec<&str> = pattern.iter().map_while(Segment::text).collect();
            fixed.len() > dir.len() && fixed.iter().zip(&dir).all(|(a, b)| a == b)
        })
    }

    /// The same, and everything below.
    pub fn and_below(&self) -> Self {
        let with = |pattern: &Vec<Segment>| pattern.iter().cloned().chain([Segment::Any]).collect();
        Self { alternatives: self.alternatives.iter().map(with).collect() }
    }

    /// The plain folder in front of its first wildcard, where every alternative has the same.
    pub fn anchor(&self) -> Option<String> {
        let fixed = |pattern: &Vec<Segment>| {
            pattern.iter().map_while(Segment::text).map(str::to_owned).collect::<Vec<String>>()
        };
        let mut all = self.alternatives.iter().map(fixed);
        let first = all.next().filter(|parts| !parts.is_empty())?;
        all.all(|other| other == first).then(|| format!("/{}", first.join("/")))
    }

    /// Whether it matches everything below folder `dir`: it is `…/**`, and what stands before that matches `dir` or a folder above.
    pub fn covers_below(&self, dir: &str) -> bool {
        let dir = split(dir);
        self.alternatives.iter().any(|pattern| {
            let Some((Segment::Any, front)) = pattern.split_last() else { return false };
            (0..=dir.len()).any(|end| dir.get(..end).is_some_and(|above| walk::path(front, above)))
        })
    }

    /// Whether folder `dir` lies on the way to something it can match.
    pub fn leads_through(&self, dir: &str) -> bool {
        let dir: Vec<&str> = parts(dir).collect();
        self.alternatives.iter().any(|pattern| {
            let mut rest = pattern.iter();
            dir.iter().all(|name| match rest.clone().next() {
                Some(Segment::Any) => true,
                Some(one) => {
                    rest.next();
                    walk::segment(one, name)
                }
                None => false,
            })
        })
    }

    /// Whether some path is matched by both, a leading dot being a letter like others. Of this pattern `narrow` takes what it
    /// names itself, without what lies below that.
    pub fn overlaps(&self, other: &Self, narrow: bool) -> bool {
        self.alternatives.iter().any(|own| {
            let own = match own.split_last() {
                Some((Segment::Any, front)) if narrow && !front.is_empty() => front,
                _ => own,
            };
            other.alternatives.iter().any(|other| walk::overlap_paths(own, other))
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
                    .any(|word| !(firmly && word.contains(&Segment::Any)) && walk::meet(pattern, word, firmly))
            })
    }
}

impl Segment {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Any | Self::Wild(_) => None,
        }
    }

    /// One segment's tokens as a segment: plain text where they are nothing else.
    fn of(tokens: Vec<Token>) -> Self {
        let plain = |token: &Token| if let Token::Char(c) = token { Some(*c) } else { None };
        match tokens.iter().map(plain).collect::<Option<String>>() {
            Some(text) => Self::Text(text.into()),
            None => Self::Wild(tokens),
        }
    }
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    // As in `crate::world::fold`: letter by letter, because names are short.
    path.split(['/']).filter(|part| !part.is_empty() && *part != ".")
}

/// The segments of a path, as [`Glob::matches_split`] takes them.
pub fn split(path: &str) -> Vec<&str> {
    let mut out = Vec::with_capacity(8);
    out.extend(parts(path));
    out
}

fn literal(text: &str) -> Segment {
    Segment::Text(text.into())
}

/// Folds `..` where the segment before it is plain.
fn fold(segments: impl Iterator<Item = Segment>) -> Vec<Segment> {
    let mut out: Vec<Segment> = Vec::new();
    for segment in segments {
        if segment.text() == Some("..") && out.last().is_some_and(|last| last.text().is_some()) {
            out.pop();
        } else {
            out.push(segment);
        }
    }
    out
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
            pattern in r"([ab?*]|\[[ab]\]|\[a-c\]|\{[ab*]{1,2},[ab?]{1,2}\}|\{a,\{b,[ab]c\}\}|/){1,4}",
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
