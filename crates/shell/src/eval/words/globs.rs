//! Globs in words: where they begin and end, and what the shell's options make of them.

use crate::eval::Eval;
use crate::text::{Text, tidy};
use crate::word::{Part, Word};

/// Options of the shell that say how globs match. Once one may be on, it stays on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Globbing {
    /// `nocaseglob`
    pub nocase: bool,
    /// `dotglob`, and what `GLOBIGNORE` brings.
    pub dot: bool,
    /// `globstar`
    pub star: bool,
}

impl Globbing {
    /// What a line speaks of, wherever it does: `bash -O dotglob`, `BASHOPTS=…`.
    pub fn named_in(line: &str) -> Self {
        if !line.contains("glob") && !line.contains("GLOBIGNORE") {
            return Self::default();
        }
        Self {
            nocase: line.contains("nocaseglob"),
            dot: line.contains("dotglob") || line.contains("GLOBIGNORE"),
            star: line.contains("globstar"),
        }
    }
}

impl Eval<'_> {
    /// `shopt -s dotglob`
    pub(crate) fn shell_options(&mut self, arguments: &[Word]) {
        for word in arguments {
            match word.literal().as_deref() {
                Some("nocaseglob") => self.globbing.nocase = true,
                Some("dotglob") => self.globbing.dot = true,
                Some("globstar") => self.globbing.star = true,
                Some(_) => {}
                None => self.globbing = Globbing { nocase: true, dot: true, star: true },
            }
        }
    }

    /// The words that a finished word with globs in it stands for.
    pub(crate) fn globbed(&self, parts: Text) -> Vec<Text> {
        if !parts.iter().any(|part| matches!(part, Part::Glob(_))) {
            return vec![parts];
        }
        let mut parts = closed(parts);
        if !self.globbing.star {
            for part in &mut parts {
                if let Part::Glob(glob) = part
                    && glob.contains("**")
                {
                    while glob.contains("**") {
                        *glob = glob.replace("**", "*");
                    }
                }
            }
        }
        if self.globbing.nocase {
            parts = either_case(parts);
        }
        if self.globbing.dot || self.vars.contains_key("GLOBIGNORE") {
            let dotted = dotted(&parts);
            return vec![parts, dotted];
        }
        vec![parts]
    }
}

/// Unquoted text as text and globs. A bracket that is not closed here may be closed by what comes later in the word.
pub fn scan(text: &str, out: &mut Text) {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'*' | b'?' | b'[' | b'@' | b'+' | b'!')) {
        let (before, wild) = rest.split_at(at);
        let len = extended(wild).or_else(|| match wild.as_bytes().first() {
            Some(b'*' | b'?') => Some(1),
            Some(b'[') => bracket(wild).or(Some(wild.len())),
            _ => None,
        });
        let Some(len) = len else {
            out.push(Part::Text(rest.get(..=at).unwrap_or_default().to_owned()));
            rest = rest.get(at + 1..).unwrap_or_default();
            continue;
        };
        out.push(Part::Text(before.to_owned()));
        out.push(Part::Glob(wild.get(..len).unwrap_or_default().to_owned()));
        rest = wild.get(len..).unwrap_or_default();
    }
    out.push(Part::Text(rest.to_owned()));
}

/// Whether a text that comes out of an expansion is a glob.
pub fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '[']) || (text.contains('(') && ["@(", "+(", "!("].iter().any(|sign| text.contains(sign)))
}

/// The length of an extended pattern, `@(a|b)`, that a text begins with.
fn extended(text: &str) -> Option<usize> {
    let mut chars = text.char_indices();
    let (Some((_, '*' | '?' | '@' | '+' | '!')), Some((_, '('))) = (chars.next(), chars.next()) else { return None };
    let mut depth = 1usize;
    for (at, c) in chars {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(at + 1),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The length of a bracket expression that a text begins with.
pub fn bracket(text: &str) -> Option<usize> {
    let mut at = 1;
    if matches!(text.as_bytes().get(at), Some(b'!' | b'^')) {
        at += 1;
    }
    if text.as_bytes().get(at) == Some(&b']') {
        at += 1;
    }
    loop {
        match text.as_bytes().get(at)? {
            b']' => return Some(at + 1),
            b'\\' => at += 2,
            b'[' if matches!(text.as_bytes().get(at + 1), Some(b':' | b'.' | b'=')) => {
                let kind = text.get(at + 1..at + 2)?;
                let end = text.get(at + 2..)?.find(&format!("{kind}]"));
                at = end.map_or(at + 1, |end| at + 4 + end);
            }
            b'/' => return None,
            _ => at += 1,
        }
    }
}

/// Brackets that only a later piece closes: `.["e"]nv`. One that nothing closes is text.
fn closed(parts: Text) -> Text {
    let open = |part: &Part| matches!(part, Part::Glob(glob) if glob.starts_with('[') && bracket(glob).is_none());
    if !parts.iter().any(open) {
        return parts;
    }
    let mut out = Text::new();
    let mut rest = parts.into_iter().peekable();
    while let Some(part) = rest.next() {
        let Part::Glob(start) = &part else {
            out.push(part);
            continue;
        };
        if !open(&part) {
            out.push(part);
            continue;
        }
        let mut whole = start.clone();
        let mut unknown = false;
        let mut behind: Vec<Part> = Vec::new();
        while bracket(&whole).is_none() {
            let Some(next) = rest.next() else { break };
            match &next {
                Part::Glob(text) => whole.push_str(text),
                Part::Text(text) => whole.push_str(&text.replace('\\', "\\\\")),
                Part::Unknown(_) => unknown = true,
            }
            behind.push(next);
        }
        match bracket(&whole) {
            Some(len) => {
                out.push(Part::Glob(if unknown {
                    "?".to_owned()
                } else {
                    whole.get(..len).unwrap_or_default().to_owned()
                }));
                let mut more = Text::new();
                scan(whole.get(len..).unwrap_or_default(), &mut more);
                out.extend(more);
            }
            None => {
                out.push(Part::Text("[".to_owned()));
                let mut more = Text::new();
                scan(start.get(1..).unwrap_or_default(), &mut more);
                out.extend(more.into_iter().map(|part| if open(&part) { as_text(part) } else { part }));
                out.extend(behind.into_iter().map(|part| if open(&part) { as_text(part) } else { part }));
            }
        }
    }
    tidy(out)
}

fn as_text(part: Part) -> Part {
    if let Part::Glob(text) = part { Part::Text(text) } else { part }
}

/// Each letter as a bracket of both cases; in brackets, both stand side by side.
fn either_case(parts: Text) -> Text {
    let one = |part: Part| match part {
        Part::Text(text) if text.chars().any(|c| c.is_ascii_alphabetic()) => {
            let both = text.chars().map(|c| match c {
                c if c.is_ascii_alphabetic() => format!("[{}{}]", c.to_ascii_lowercase(), c.to_ascii_uppercase()),
                '*' | '?' | '[' | ']' | '\\' => format!("\\{c}"),
                c => c.to_string(),
            });
            Part::Glob(both.collect())
        }
        Part::Glob(glob) if glob.starts_with('[') && bracket(&glob) == Some(glob.len()) => {
            let inner = glob.trim_end_matches(']');
            let folded: String = inner.replace("[:lower:]", "[:alpha:]").replace("[:upper:]", "[:alpha:]");
            let swapped: String = folded
                .chars()
                .skip(1)
                .skip_while(|c| matches!(c, '!' | '^'))
                .map(|c| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
                .collect();
            let swapped = if folded.contains("[:") { String::new() } else { swapped };
            Part::Glob(format!("{folded}{swapped}]"))
        }
        other => other,
    };
    tidy(parts.into_iter().map(one).collect())
}

/// The same word for names that begin with a dot, which its first wildcard takes.
fn dotted(parts: &Text) -> Text {
    let mut out = Text::new();
    let mut begins = true;
    for part in parts {
        match part {
            Part::Glob(glob) if begins => {
                let star = glob.starts_with('*') || extended(glob).is_some();
                let rest = if star {
                    "*".to_owned() + glob.trim_start_matches('*')
                } else {
                    let taken = bracket(glob).filter(|_| glob.starts_with('[')).unwrap_or(1);
                    glob.get(taken..).unwrap_or_default().to_owned()
                };
                out.push(Part::Text(".".to_owned()));
                if !rest.is_empty() {
                    out.push(Part::Glob(rest));
                }
            }
            other => out.push(other.clone()),
        }
        begins = matches!(part, Part::Text(text) if text.ends_with('/'));
    }
    tidy(out)
}
