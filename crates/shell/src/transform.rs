//! `${name%pattern}` and its like on a value that is certain.

/// Applies what stands behind the name; `None` for what is not computed here.
pub fn apply(op: &str, value: &str) -> Option<String> {
    let tail = |text: &str| text.to_owned();
    if let Some(pattern) = op.strip_prefix("##") {
        return Some(cut_front(value, pattern, true)?.map_or_else(|| value.to_owned(), tail));
    }
    if let Some(pattern) = op.strip_prefix('#') {
        return Some(cut_front(value, pattern, false)?.map_or_else(|| value.to_owned(), tail));
    }
    if let Some(pattern) = op.strip_prefix("%%") {
        return Some(cut_back(value, pattern, true)?.map_or_else(|| value.to_owned(), tail));
    }
    if let Some(pattern) = op.strip_prefix('%') {
        return Some(cut_back(value, pattern, false)?.map_or_else(|| value.to_owned(), tail));
    }
    match op {
        "^^" => return Some(value.to_uppercase()),
        ",," => return Some(value.to_lowercase()),
        "^" | "," => return None,
        _ => {}
    }
    if let Some(range) = op.strip_prefix(':') {
        return slice(value, range);
    }
    let (all, rest) = match op.strip_prefix("//") {
        Some(rest) => (true, rest),
        None => (false, op.strip_prefix('/')?),
    };
    let (from, to) = rest.split_once('/').unwrap_or((rest, ""));
    if from.is_empty() || from.contains(['*', '?', '[', '#', '%', '\\']) {
        return None;
    }
    Some(if all { value.replace(from, to) } else { value.replacen(from, to, 1) })
}

/// The value without a front that fits; `Some(None)` when none does.
fn cut_front<'v>(value: &'v str, pattern: &str, longest: bool) -> Option<Option<&'v str>> {
    let mut ends: Vec<usize> = value.char_indices().map(|(at, _)| at).chain([value.len()]).collect();
    if longest {
        ends.reverse();
    }
    let found = find(ends, |end| fits(pattern, value.get(..end)?))?;
    Some(found.and_then(|end| value.get(end..)))
}

/// The value without a back that fits.
fn cut_back<'v>(value: &'v str, pattern: &str, longest: bool) -> Option<Option<&'v str>> {
    let mut starts: Vec<usize> = value.char_indices().map(|(at, _)| at).chain([value.len()]).collect();
    if !longest {
        starts.reverse();
    }
    let found = find(starts, |start| fits(pattern, value.get(start..)?))?;
    Some(found.and_then(|start| value.get(..start)))
}

fn find(places: Vec<usize>, fits: impl Fn(usize) -> Option<bool>) -> Option<Option<usize>> {
    for place in places {
        if fits(place)? {
            return Some(Some(place));
        }
    }
    Some(None)
}

/// Whether a pattern of plain text, `*` and `?` matches all of `text`; `None` for other patterns and long texts.
fn fits(pattern: &str, text: &str) -> Option<bool> {
    if pattern.contains(['[', '\\', '(']) || text.len() > 4096 {
        return None;
    }
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut to, mut back) = (0, 0, None);
    while let Some(c) = text.get(to) {
        match pattern.get(at) {
            Some('*') => {
                back = Some((at + 1, to));
                at += 1;
            }
            Some(own) if own == c || *own == '?' => {
                at += 1;
                to += 1;
            }
            _ => {
                let Some((star, taken)) = back else { return Some(false) };
                (at, to) = (star, taken + 1);
                back = Some((star, taken + 1));
            }
        }
    }
    Some(pattern.get(at..).unwrap_or_default().iter().all(|c| *c == '*'))
}

/// `${x:from}`, `${x:from:length}`, none of them negative.
fn slice(value: &str, range: &str) -> Option<String> {
    let (from, length) = range.split_once(':').map_or((range, None), |(from, length)| (from, Some(length)));
    let from: usize = from.trim().parse().ok()?;
    let length = match length {
        Some(length) => length.trim().parse().ok()?,
        None => usize::MAX,
    };
    Some(value.chars().skip(from).take(length).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_bash_does() {
        for (op, value, expected) in [
            ("%.bak", ".env.bak", ".env"),
            ("%%.*", "a.b.c", "a"),
            ("%.*", "a.b.c", "a.b"),
            ("##*/", "/a/b/.env", ".env"),
            ("#*/", "a/b/c", "b/c"),
            ("#x", "abc", "abc"),
            ("/x/e", ".xnv", ".env"),
            ("//a/b", "aaa", "bbb"),
            (":2", "xx.env", ".env"),
            (":1:2", "abcd", "bc"),
            (",,", ".ENV", ".env"),
            ("^^", "a", "A"),
        ] {
            assert_eq!(apply(op, value).as_deref(), Some(expected), "{op} {value}");
        }
        for op in ["@P", "/[a]/b", "#[a]", ":-1", "^"] {
            assert_eq!(apply(op, "abc"), None, "{op}");
        }
    }
}
