//! The pattern of a `grep` that lines of names run through, as a test of names.
//!
//! Takes only what is certain: letters, `.`, `.*`, alternatives in one bracket, both ends. Whatever else stands in a pattern
//! makes none, so that a name is left out only where the search surely leaves it out.

use crate::listing::Test;

/// Most alternatives of a pattern.
const MOST: usize = 16;

/// Which names `grep FLAGS PATTERN` lets through; `None` where its pattern is not read.
pub fn names(arguments: &[String]) -> Option<Test> {
    let (flags, patterns): (Vec<&String>, Vec<&String>) = arguments.iter().partition(|text| text.starts_with('-'));
    let [pattern] = patterns.as_slice() else { return None };
    let mut letters = flags.iter().flat_map(|flag| flag.chars().skip(1));
    let plain = flags.iter().all(|flag| !flag.starts_with("--")) && letters.clone().all(|c| "EPiqsx".contains(c));
    if !plain {
        return None;
    }
    let extended = letters.clone().any(|c| matches!(c, 'E' | 'P'));
    let folded = letters.any(|c| c == 'i');
    let pattern = if extended { (*pattern).clone() } else { basic(pattern)? };
    let tests: Option<Vec<Test>> = alternatives(&pattern)?
        .into_iter()
        .map(|one| glob(&one).map(|pattern| Test::Name { pattern, path: true, folded }))
        .collect();
    tests.map(Test::Either)
}

/// A basic expression as an extended one.
fn basic(pattern: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                own @ ('(' | ')' | '|') => out.push(own),
                own => out.extend(['\\', own]),
            },
            '(' | ')' | '|' => return None,
            own => out.push(own),
        }
    }
    Some(out)
}

/// `a(b|c)d` as `abd` and `acd`; one bracket, or none and bars outside.
fn alternatives(pattern: &str) -> Option<Vec<String>> {
    let (front, inner, back) = match pattern.split_once('(') {
        Some((front, rest)) => {
            let (inner, back) = rest.split_once(')')?;
            (front, inner, back)
        }
        None => ("", pattern, ""),
    };
    let odd = |text: &str| text.contains(['(', ')', '|']);
    if odd(front) || odd(back) || inner.contains(['(', ')', '?', '\0']) || inner.matches('|').count() >= MOST {
        return None;
    }
    Some(inner.split('|').map(|one| format!("{front}{one}{back}")).collect())
}

/// An expression without alternatives as a glob of the whole line.
fn glob(pattern: &str) -> Option<String> {
    let (start, pattern) = pattern.strip_prefix('^').map_or(("*", pattern), |rest| ("", rest));
    let ends = pattern.ends_with('$') && !pattern.ends_with("\\$");
    let pattern = if ends { pattern.strip_suffix('$')? } else { pattern };
    let mut out = start.to_owned();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                own @ ('.' | '/' | '-') => out.push(own),
                _ => return None,
            },
            // Any letter, any number of times.
            '.' => {
                chars.next_if_eq(&'*');
                out.push('*');
            }
            own if own.is_alphanumeric() || matches!(own, '_' | '-' | '/' | '@' | ' ' | ',' | '=') => out.push(own),
            _ => return None,
        }
    }
    // What stands behind a letter may take it back: `a*`, `a?`, `a{0}` are refused above.
    out.push_str(if ends { "" } else { "*" });
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_as_globs() {
        let names = |text: &str| names(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let one = |pattern: &str| Test::Name { pattern: pattern.to_owned(), path: true, folded: false };
        assert_eq!(names("-E \\.(ts|tsx)$"), Some(Test::Either(vec![one("*.ts"), one("*.tsx")])));
        assert_eq!(names("\\.py$"), Some(Test::Either(vec![one("*.py")])));
        assert_eq!(names("^src/"), Some(Test::Either(vec![one("src/*")])));
        assert_eq!(names("a.*b"), Some(Test::Either(vec![one("*a*b*")])));
        for refused in
            ["-v x", "x*", "-E x?", "-E (a|b)?", "-E a(b|c)*", "[ab]", "a\\|b\\w", "-f x", "--regexp=x y", "-E (a|(b))"]
        {
            assert_eq!(names(refused), None, "{refused}");
        }
    }
}
