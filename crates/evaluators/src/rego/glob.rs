//! `glob.match` as OPA has it: `*` and `?` stop at a delimiter, `**` does not; `[a-z]`, `[!a-z]`, `{a,b}`, `\`.
//!
//! OPA takes `.` for the delimiter where the list is empty, and none where it is `null`. The library's own lets `**` stop, which makes
//! rules pass that forbid.

/// Most steps of one comparison.
const MAX_STEPS: usize = 1 << 20;

/// Part of a pattern.
#[derive(Debug, PartialEq)]
enum Part {
    Char(char),
    /// `?`
    One,
    /// `*`
    Many,
    /// `**`
    All,
    /// `[…]`: whether it is negated, and its ranges.
    Set(bool, Vec<(char, char)>),
    /// `{…}`
    Either(Vec<Vec<Self>>),
}

/// Whether a text matches.
pub fn matches(pattern: &str, delimiters: Option<&[char]>, text: &str) -> Result<bool, String> {
    let delimiters = match delimiters {
        Some([]) => &['.'],
        Some(some) => some,
        None => &[],
    };
    let chars: Vec<char> = pattern.chars().collect();
    let mut at = 0;
    let parts = sequence(&chars, &mut at, 0)?;
    if at < chars.len() {
        return Err(format!("`{pattern}` is no glob: `}}` or `,` closes nothing"));
    }
    let text: Vec<char> = text.chars().collect();
    let mut steps = 0;
    let ends = step(&parts, delimiters, &text, vec![0], &mut steps)?;
    Ok(ends.contains(&text.len()))
}

fn sequence(chars: &[char], at: &mut usize, depth: usize) -> Result<Vec<Part>, String> {
    if depth > 16 {
        return Err("a glob nests too deep".to_owned());
    }
    let mut parts = Vec::new();
    while let Some(&c) = chars.get(*at) {
        *at += 1;
        parts.push(match c {
            '*' if chars.get(*at) == Some(&'*') => {
                while chars.get(*at) == Some(&'*') {
                    *at += 1;
                }
                Part::All
            }
            '*' => Part::Many,
            '?' => Part::One,
            '\\' => {
                *at += 1;
                Part::Char(*chars.get(*at - 1).ok_or("a glob ends in `\\`")?)
            }
            '[' => set(chars, at)?,
            '{' => either(chars, at, depth)?,
            ',' | '}' if depth > 0 => {
                *at -= 1;
                return Ok(parts);
            }
            other => Part::Char(other),
        });
    }
    Ok(parts)
}

fn either(chars: &[char], at: &mut usize, depth: usize) -> Result<Part, String> {
    let mut all = Vec::new();
    loop {
        all.push(sequence(chars, at, depth + 1)?);
        *at += 1;
        match chars.get(*at - 1) {
            Some(',') => {}
            Some('}') => return Ok(Part::Either(all)),
            _ => return Err("a glob's `{` is not closed".to_owned()),
        }
    }
}

fn set(chars: &[char], at: &mut usize) -> Result<Part, String> {
    let negated = matches!(chars.get(*at), Some('!' | '^'));
    *at += usize::from(negated);
    let mut ranges = Vec::new();
    loop {
        let unclosed = "a glob's `[` is not closed";
        let mut next = || -> Result<(char, bool), String> {
            let c = *chars.get(*at).ok_or(unclosed)?;
            *at += 1;
            if c != '\\' {
                return Ok((c, false));
            }
            *at += 1;
            Ok((*chars.get(*at - 1).ok_or(unclosed)?, true))
        };
        let (from, escaped) = next()?;
        if from == ']' && !escaped && !ranges.is_empty() {
            return Ok(Part::Set(negated, ranges));
        }
        let to = if chars.get(*at) == Some(&'-') && chars.get(*at + 1).is_some_and(|c| *c != ']') {
            *at += 1;
            let to = *chars.get(*at).ok_or(unclosed)?;
            *at += 1;
            to
        } else {
            from
        };
        ranges.push((from, to));
    }
}

/// Where in the text a sequence may end that begins at one of `starts`.
fn step(
    parts: &[Part],
    delimiters: &[char],
    text: &[char],
    starts: Vec<usize>,
    steps: &mut usize,
) -> Result<Vec<usize>, String> {
    let mut ends = starts;
    for part in parts {
        let mut next = Vec::new();
        for &from in &ends {
            let rest = text.get(from..).unwrap_or_default();
            let plain = |c: &char| !delimiters.contains(c);
            match part {
                Part::Char(c) => next.extend((rest.first() == Some(c)).then_some(from + 1)),
                Part::One => next.extend(rest.first().filter(|c| plain(c)).map(|_| from + 1)),
                Part::Set(negated, ranges) => {
                    let inside = |c: &&char| ranges.iter().any(|(low, high)| low <= *c && *c <= high) != *negated;
                    next.extend(rest.first().filter(inside).map(|_| from + 1));
                }
                Part::Many => next.extend(from..=from + rest.iter().take_while(|c| plain(c)).count()),
                Part::All => next.extend(from..=text.len()),
                Part::Either(all) => {
                    for one in all {
                        next.extend(step(one, delimiters, text, vec![from], steps)?);
                    }
                }
            }
            *steps += 1 + next.len();
            if *steps > MAX_STEPS {
                return Err("a glob takes too long".to_owned());
            }
        }
        next.sort_unstable();
        next.dedup();
        ends = next;
    }
    Ok(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases of OPA's own documentation and tests of `glob.match`, and the rule of the aflock specification.
    #[test]
    fn it_matches_as_opa_does() {
        for (pattern, delimiters, text, expected) in [
            ("*.github.com", Some(vec![]), "api.github.com", true),
            ("*.github.com", Some(vec!['.']), "api.github.com", true),
            ("*.github.com", Some(vec![]), "api.cdn.github.com", false),
            ("*hub.com", None, "api.cdn.github.com", true),
            ("*:github:com", Some(vec![':']), "api:github:com", true),
            ("api.**.com", Some(vec![]), "api.github.com", true),
            ("api.**.com", Some(vec![]), "api.cdn.github.com", true),
            ("?at", Some(vec![]), "cat", true),
            ("?at", Some(vec![]), "at", false),
            ("[abc]at", Some(vec![]), "cat", true),
            ("[abc]at", Some(vec![]), "lat", false),
            ("[!abc]at", Some(vec![]), "cat", false),
            ("[!abc]at", Some(vec![]), "lat", true),
            ("[a-c]at", Some(vec![]), "cat", true),
            ("[a-c]at", Some(vec![]), "lat", false),
            ("[!a-c]at", Some(vec![]), "cat", false),
            ("[!a-c]at", Some(vec![]), "lat", true),
            ("{cat,bat,[fr]at}", Some(vec![]), "cat", true),
            ("{cat,bat,[fr]at}", Some(vec![]), "bat", true),
            ("{cat,bat,[fr]at}", Some(vec![]), "rat", true),
            ("{cat,bat,[fr]at}", Some(vec![]), "at", false),
            ("secrets/**", Some(vec![]), "secrets/prod/key.pem", true),
            ("secrets/*", Some(vec!['/']), "secrets/prod/key.pem", false),
            ("secrets/*", Some(vec![]), "secrets/prod/key", true),
            ("**/.env", Some(vec![]), "a/b/.env", true),
            ("**/.env", Some(vec![]), ".env", false),
            (r"\*", None, "*", true),
            (r"\*", None, "a", false),
            ("", None, "", true),
        ] {
            let found = matches(pattern, delimiters.as_deref(), text);
            assert_eq!(found, Ok(expected), "{pattern} {delimiters:?} {text}");
        }
        for bad in ["[a", "{a,b", r"\", "[]"] {
            assert!(matches(bad, None, "x").is_err(), "{bad}");
        }
        let endless = "{*,**}".repeat(12);
        assert!(matches(&endless, None, &"a".repeat(4000)).is_err());
    }
}
