//! Options told from operands, as getopt does: clusters, glued values, `--long=x`, shortened long names.
//!
//! A specification lists the options that take a value, each with a role: `-u`, `-D=d`, `--chdir=d`. The role `0` is a flag,
//! `?` an option whose value can only be glued to it, `2` one that takes two words; a dot behind a role ends the options. Page: `spec/shell.md`.

use crate::action::{Part, Word};

/// What stands before and between the operands.
#[derive(Debug, Default)]
pub struct Options {
    /// Name as written in the specification, its role, its value.
    pub values: Vec<(&'static str, &'static str, Word)>,
    /// Everything else that begins with a dash, as it stands.
    pub flags: Vec<String>,
    /// Where operands stand.
    pub operands: Vec<usize>,
    /// Places that are operands if the unlisted option before them takes no value, values if it does.
    pub doubtful: Vec<usize>,
    /// More words that the last option takes.
    skip: usize,
    /// No more options.
    ended: bool,
}

/// One entry of a specification.
fn entries(spec: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    spec.split_whitespace().map(|entry| match entry.strip_prefix("+=") {
        Some(role) => ("+", role),
        None => entry.split_once('=').unwrap_or((entry, "-")),
    })
}

impl Options {
    /// Reads `words`; up to the first operand only, unless options may stand behind operands (`mixed`).
    pub fn read(words: &[Word], spec: &'static str, mixed: bool) -> Self {
        let mut out = Self::default();
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let text = lead(word);
            if text == "--" {
                out.operands.extend(at + 1..words.len());
                break;
            }
            let plus = text.starts_with('+') && entries(spec).any(|(name, _)| name == "+");
            if out.ended {
                out.operands.extend(at..words.len());
                break;
            }
            if !plus && (text.len() < 2 || !text.starts_with('-')) {
                if !mixed {
                    out.operands.extend(at..words.len());
                    break;
                }
                out.operands.push(at);
                at += 1;
                continue;
            }
            at += 1;
            if out.option(word, &text, words.get(at), spec) {
                at += 1 + std::mem::take(&mut out.skip);
            } else if out.flags.last().is_some_and(|flag| *flag == text) && !text.contains('=') {
                out.doubtful.push(at);
            }
        }
        out
    }

    /// One option; true when it took the next word.
    fn option(&mut self, word: &Word, text: &str, next: Option<&Word>, spec: &'static str) -> bool {
        if text.starts_with('+') {
            if let Some((name, role)) = entries(spec).find(|(name, _)| *name == "+") {
                self.values.push((name, role, tail(word, 1)));
            }
            return false;
        }
        if let Some((name, role)) = entries(spec).find(|(name, _)| name.ends_with(':') && text.starts_with(name)) {
            self.values.push((name, role, tail(word, name.len())));
            return false;
        }
        let (stem, glued) = match text.find('=') {
            Some(cut) => (text.get(..cut).unwrap_or_default(), Some(tail(word, cut + 1))),
            None => (text, None),
        };
        if let Some((name, role)) = whole(stem, spec) {
            return self.value(name, role, glued, next, text);
        }
        if !text.starts_with("--") {
            for (place, letter) in text.char_indices().skip(1) {
                let mut buffer = [0; 4];
                let letter: &str = letter.encode_utf8(&mut buffer);
                let own = |(name, _): &(&str, &str)| name.len() == 1 + letter.len() && name.ends_with(letter);
                let Some((name, role)) = entries(spec).find(own) else { continue };
                let end = place + letter.len();
                let more = end < text.len() || lead(word).len() < shown_len(word);
                match role {
                    "0" => continue,
                    "?" => break,
                    _ => return self.value(name, role, more.then(|| tail(word, end)), next, text),
                }
            }
        }
        self.flags.push(text.to_owned());
        false
    }

    fn value(
        &mut self,
        name: &'static str,
        role: &'static str,
        glued: Option<Word>,
        next: Option<&Word>,
        text: &str,
    ) -> bool {
        if matches!(role, "0" | "?") {
            self.flags.push(format!("{text}="));
            return false;
        }
        if let (Ok(count), None) = (role.parse::<usize>(), &glued) {
            self.skip = count.saturating_sub(1);
            return true;
        }
        let taken = glued.is_none();
        self.ended |= role.ends_with('.');
        let role = role.strip_suffix('.').unwrap_or(role);
        if let Some(value) = glued.or_else(|| next.cloned()) {
            self.values.push((name, role, value));
        }
        taken
    }

    /// The values of options in a role.
    pub fn of<'s>(&'s self, role: &'s str) -> impl Iterator<Item = &'s Word> {
        self.values.iter().filter(move |(_, own, _)| *own == role).map(|(_, _, value)| value)
    }

    /// Whether a flag was given, alone or (one letter) in a cluster.
    pub fn has(&self, short: char, long: &str) -> bool {
        self.flags.iter().any(|flag| {
            let flag = flag.trim_end_matches('=');
            if flag.starts_with("--") { flag == long } else { flag.contains(short) }
        })
    }
}

/// The entry that `stem` names in full, or shortens.
fn whole(stem: &str, spec: &'static str) -> Option<(&'static str, &'static str)> {
    let long = stem.starts_with("--") && stem.len() > 2;
    entries(spec)
        .find(|(name, _)| *name == stem)
        .or_else(|| entries(spec).find(|(name, _)| long && name.starts_with(stem)))
}

/// The text in front of the first part that is not known.
pub fn lead(word: &Word) -> String {
    let known = word.parts.iter().map_while(|part| match part {
        Part::Text(text) | Part::Glob(text) => Some(text.as_str()),
        Part::Unknown(_) => None,
    });
    known.collect()
}

fn shown_len(word: &Word) -> usize {
    word.parts
        .iter()
        .map(|part| match part {
            Part::Text(text) | Part::Glob(text) => text.len(),
            Part::Unknown(_) => 1,
        })
        .sum()
}

/// A word without its first bytes.
pub fn tail(word: &Word, bytes: usize) -> Word {
    let mut left = bytes;
    let mut parts = Vec::new();
    for part in &word.parts {
        let (Part::Text(text) | Part::Glob(text)) = part else {
            parts.push(part.clone());
            continue;
        };
        let cut = left.min(text.len());
        left -= cut;
        let rest = text.get(cut..).unwrap_or_default().to_owned();
        if !rest.is_empty() {
            parts.push(if matches!(part, Part::Glob(_)) { Part::Glob(rest) } else { Part::Text(rest) });
        }
    }
    Word { parts, span: word.span }
}
