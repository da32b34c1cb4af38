//! Words that are not fully known, as patterns of what they may be.

use writ_shell::{Part, Source};

/// Text of any length that crosses slashes, but does not climb.
const DEEP: &str = "{*,*/**/*}";
/// Letters and digits, at least one.
const COUNT: &str = "\u{1}";

pub(super) const fn is_listed(source: Source) -> bool {
    matches!(source, Source::Listed(_))
}

pub(super) fn plain_text(parts: &[Part]) -> String {
    let text = |part: &Part| match part {
        Part::Text(text) | Part::Glob(text) => text.clone(),
        Part::Unknown(_) => String::new(),
    };
    parts.iter().map(text).collect()
}

/// Text that a pattern takes as it stands.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '(' | ')' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A shell's glob as a pattern: its own braces and what is quoted are letters.
pub(super) fn pattern_text(parts: &[Part]) -> String {
    let text = |part: &Part| match part {
        Part::Text(text) => escaped(text),
        Part::Glob(glob) => glob.replace('{', "\\{").replace('}', "\\}"),
        Part::Unknown(_) => "*".to_owned(),
    };
    parts.iter().map(text).collect()
}

/// What a path can be whose unknown pieces do not climb.
pub(super) fn pattern_of(parts: &[Part]) -> String {
    // Two alternatives each: of many, all between the first and the last.
    let crossing = |part: &Part| matches!(part, Part::Unknown(Source::Outside));
    let several = parts.iter().filter(|part| crossing(part)).count() > 4;
    let (first, last) = (parts.iter().position(crossing), parts.iter().rposition(crossing));
    let mut out = String::new();
    for (at, part) in parts.iter().enumerate() {
        let between = several && first.is_some_and(|first| at > first) && last.is_some_and(|last| at <= last);
        match part {
            _ if between => {}
            Part::Text(text) => out.push_str(&escaped(text)),
            Part::Glob(glob) => out.push_str(&rough_glob(&glob.replace('{', "\\{").replace('}', "\\}"))),
            Part::Unknown(Source::Number | Source::Fresh) => out.push_str(COUNT),
            Part::Unknown(Source::Name) => out.push('*'),
            Part::Unknown(_) if out.is_empty() => {
                let rest = parts.get(at + 1..).unwrap_or_default();
                let alone = matches!(rest.first(), Some(Part::Text(text)) if text.starts_with('/'));
                out.push_str(if rest.is_empty() || alone { "/**" } else { "/**/*" });
            }
            Part::Unknown(_) => out.push_str(DEEP),
        }
    }
    out
}

/// What a path can be that the line makes itself: in front of what it makes, anything; behind that, what is written.
pub(super) fn any_pattern(parts: &[Part]) -> String {
    let made = |part: &Part| matches!(part, Part::Unknown(source) if source.is_made() || is_listed(*source));
    let words = parts.iter().any(|part| matches!(part, Part::Unknown(Source::Words)));
    let last = parts.iter().rposition(made).unwrap_or(0);
    let behind = parts.get(last + 1..).unwrap_or_default();
    if words || behind.is_empty() {
        return "/**".to_owned();
    }
    let tail = pattern_of(&[&[Part::Text("x".to_owned())], behind].concat());
    let tail = tail.get(1..).unwrap_or_default();
    if tail.starts_with('/') { format!("/**{tail}") } else { format!("/**/*{tail}") }
}

/// A glob that other patterns are held against: extended patterns and named classes as anything.
pub(super) fn rough_glob(glob: &str) -> String {
    if !glob.contains('(') && !glob.contains("[:") && !glob.contains("[.") && !glob.contains("[=") {
        return glob.to_owned();
    }
    let mut out = String::new();
    let mut chars = glob.chars().peekable();
    let mut depth = 0usize;
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let next = chars.next();
                if depth == 0 {
                    out.push(c);
                    out.extend(next);
                }
            }
            '@' | '+' | '!' | '?' | '*' if depth == 0 && chars.peek() == Some(&'(') => {
                chars.next();
                depth = 1;
                out.push('*');
            }
            '(' if depth > 0 => depth += 1,
            ')' if depth > 0 => depth -= 1,
            _ if depth > 0 => {}
            '[' => {
                let rest: String = std::iter::once('[').chain(chars.clone()).collect();
                match writ_shell::bracket(&rest).filter(|len| {
                    rest.get(..*len).is_some_and(|set| set.get(1..).is_some_and(|inner| inner.contains('[')))
                }) {
                    Some(len) => {
                        let taken = rest.get(1..len).map_or(0, |inner| inner.chars().count());
                        chars.by_ref().take(taken).for_each(|_| ());
                        out.push('?');
                    }
                    None => out.push('['),
                }
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::glob::Glob;

    fn text(text: &str) -> Part {
        Part::Text(text.to_owned())
    }

    #[test]
    fn patterns_of_what_is_not_known() {
        let unknown = Part::Unknown;
        for (parts, path, matches) in [
            (vec![text("/w/out-"), unknown(Source::Number)], "/w/out-12", true),
            (vec![text("/w/"), unknown(Source::Number)], "/w/.env", false),
            (vec![text("/w/"), unknown(Source::Name)], "/w/.env", true),
            (vec![text("/w/"), unknown(Source::Name)], "/w/a/.env", false),
            (vec![text("/w/"), unknown(Source::Outside)], "/w/a/.env", true),
            (vec![unknown(Source::Outside), text("/x.txt")], "/a/b/x.txt", true),
            (vec![unknown(Source::Outside), text("/x.txt")], "/a/b/y.txt", false),
            (vec![unknown(Source::Outside)], "/a/b/y.txt", true),
            (vec![text("/w/a"), unknown(Source::Outside), text(".rs")], "/w/ab/c.rs", true),
            (vec![text("/w/a"), unknown(Source::Outside), text(".rs")], "/w/b/c.rs", false),
        ] {
            let glob = Glob::parse(&pattern_of(&parts)).unwrap();
            assert_eq!(glob.overlaps(&Glob::plain(path), false), matches, "{parts:?} {path}");
        }
        for (parts, path, matches) in [
            (vec![text("/w/src/"), unknown(Source::Any)], "/w/.env", true),
            (vec![text("/w/src/"), unknown(Source::Any), text(".rs")], "/x/a.rs", true),
            (vec![text("/w/src/"), unknown(Source::Any), text(".rs")], "/x/a.rb", false),
            (vec![text("/w/src/"), unknown(Source::Words), text(".rs")], "/x/a.rb", true),
        ] {
            let glob = Glob::parse(&any_pattern(&parts)).unwrap();
            assert_eq!(glob.overlaps(&Glob::plain(path), false), matches, "{parts:?} {path}");
        }
    }

    #[test]
    fn extended_patterns_are_rough_here() {
        assert_eq!(rough_glob("a@(b|c(d))e"), "a*e");
        assert_eq!(rough_glob(".e[[:alnum:]]v"), ".e?v");
        assert_eq!(rough_glob("[a-z]*"), "[a-z]*");
    }
}
