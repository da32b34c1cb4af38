//! Pattern text to segments.

use super::{GlobError, MAX_LEN, Segment, Token, fold, parts};

/// Most alternatives that braces may unfold to.
pub(super) const MAX_ALTERNATIVES: usize = 256;

/// Braces unfolded into alternatives; classes and escapes are left alone.
pub fn unfold(text: &str) -> Result<Vec<String>, GlobError> {
    if text.len() > MAX_LEN {
        return Err(GlobError::TooLarge);
    }
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

pub(super) fn segments(text: &str) -> Result<Vec<Segment>, GlobError> {
    let mut out = Vec::new();
    let trailing = text.len() > 1 && text.ends_with('/');
    for part in parts(text) {
        if part == "**" {
            if out.last() != Some(&Segment::Any) {
                out.push(Segment::Any);
            }
        } else {
            out.push(Segment::of(tokens(part)?));
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
            '\u{1}' if out.last() == Some(&Token::Count) => continue,
            '\u{1}' => Token::Count,
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
