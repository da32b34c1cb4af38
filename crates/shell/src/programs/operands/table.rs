//! A command's words told apart by the entry of its program: options, their values, operands.

use std::borrow::Cow;
use std::slice;

use crate::options::Takes;
use crate::programs::entries::words::Role;
use crate::programs::entries::{Uses, entry};
use crate::shape::{is_flag, looks_like_path, text_word};
use crate::word::Word;

/// What the operands and options of a program are; `git-add` is `git add`.
pub fn lookup(base: &str) -> Option<&'static Uses> {
    let own = entry(base).or_else(|| entry(&base.strip_prefix("git-").map(|sub| format!("git {sub}"))?));
    own?.uses.as_ref()
}

/// Whether what a program reads on standard input may hold commands and names of files.
pub fn reads_code(base: &str) -> bool {
    lookup(base).is_some_and(|program| program.reads_input)
}

impl Uses {
    /// Whether its entry has an option.
    pub fn names(&self, option: &str) -> bool {
        self.options.option(option).is_some() || (option.starts_with("--") && !self.long(option).is_empty())
    }

    /// What a long option takes. One that is cut short takes it as each that it may be short for.
    fn long(&self, option: &str) -> Vec<Takes> {
        let mut out: Vec<Takes> = self.options.option(option).into_iter().collect();
        if out.is_empty() && option.len() > 3 {
            for (_, takes) in self.options.options().filter(|(name, _)| name.starts_with(option)) {
                // Where the program runs moves every other name: in doubt, it stays where it is.
                let moves = takes == Takes::Value(Role::RunsIn) && !out.is_empty();
                if !moves && !out.contains(&takes) {
                    out.push(takes);
                }
            }
        }
        out
    }

    /// Whether an option, alone or in a cluster, means everything below.
    fn is_recursive(&self, flag: &str) -> bool {
        self.recursive.split_ascii_whitespace().any(|known| {
            let letter = known.strip_prefix('-').filter(|letter| letter.len() == 1);
            let long = flag.starts_with("--");
            flag == known
                || (long && known.starts_with(flag) && flag.len() > 3)
                || letter.is_some_and(|letter| flag.starts_with('-') && !long && flag.contains(letter))
        })
    }
}

/// Options and operands, told apart.
#[derive(Default)]
pub struct Split<'w> {
    /// What is neither an option nor its value; `-` among them.
    pub operands: Vec<&'w Word>,
    /// What the values of options are, and the values.
    pub values: Vec<(Role, Word)>,
    /// The options as written.
    pub flags: Vec<String>,
    /// Everything below is meant too.
    pub tree: bool,
}

impl Split<'_> {
    /// Whether one of these options is given: a letter in a cluster, or a long option that may be cut short.
    pub fn has(&self, letters: &[char], long: &str) -> bool {
        self.flags.iter().any(|flag| match flag.strip_prefix("--") {
            Some(_) => flag.len() > 3 && long.starts_with(flag.split('=').next().unwrap_or(flag)),
            None => flag.contains(letters),
        })
    }

    /// The first value that is this.
    pub fn value(&self, role: Role) -> Option<&Word> {
        self.values.iter().find(|(known, _)| *known == role).map(|(_, value)| value)
    }
}

/// Tells a command's words apart.
pub fn split<'w>(program: &Uses, arguments: &'w [Word]) -> Split<'w> {
    let mut out = Split::default();
    let mut words = arguments.iter();
    let mut plain = false;
    while let Some(word) = words.next() {
        if plain || !is_flag(word) {
            out.operands.push(word);
            continue;
        }
        let text = word.text().unwrap_or_else(|| Cow::Owned(known_start(word)));
        if text == "--" {
            plain = true;
        } else {
            let own = option(program, word, &text, &mut words, &mut out);
            let flag = text.get(..own).unwrap_or(&text).to_owned();
            out.tree |= program.is_recursive(&flag);
            out.flags.push(flag);
        }
    }
    out
}

/// The text in front of the first unknown part.
fn known_start(word: &Word) -> String {
    let known = Word { parts: word.parts.iter().take(1).cloned().collect(), span: word.span };
    known.literal().unwrap_or_default()
}

/// Takes an option's value; how many bytes of the text are the option itself.
fn option<'w>(
    program: &Uses,
    word: &'w Word,
    text: &str,
    words: &mut slice::Iter<'w, Word>,
    out: &mut Split<'w>,
) -> usize {
    let glued = |value: &str| match word.literal() {
        Some(_) => text_word(value, word.span),
        None => behind(word, text.len() - value.len()),
    };
    if let Some((name, value)) = text.split_once('=').filter(|(name, _)| name.len() > 2) {
        let fitting = program.long(name);
        if !fitting.is_empty() {
            let roles = fitting.iter().filter_map(|takes| takes.role());
            out.values.extend(roles.map(|role| (role.words().1, glued(value))));
            return name.len();
        }
        if text.starts_with("--") || name.len() > 3 {
            let value = glued(value);
            out.values.push((if looks_like_path(&value) { Role::Lists } else { Role::Unknown }, value));
            return name.len();
        }
    }
    let long = text.starts_with("--");
    let whole = if long { program.long(text) } else { program.options.option(text).into_iter().collect() };
    if long || !whole.is_empty() {
        next(&whole, words, out);
        return text.len();
    }
    // A cluster: the first letter that takes a value takes the rest, or the next word.
    let reach = if program.dash_words { 1 } else { usize::MAX };
    for (at, letter) in text.char_indices().skip(1).take(reach) {
        let Some(takes) = program.options.option(&format!("-{letter}")) else { continue };
        let Some(role) = takes.role() else { continue };
        let rest = text.get(at + letter.len_utf8()..).unwrap_or_default();
        if !rest.is_empty() || word.literal().is_none() {
            out.values.push((role.words().1, glued(rest.trim_start_matches('='))));
        } else {
            next(&[takes], words, out);
        }
        return at + letter.len_utf8();
    }
    text.len()
}

/// Takes the words behind an option as each thing that they may be; a word that is left by one reading is looked at again.
fn next<'w>(fitting: &[Takes], words: &mut slice::Iter<'w, Word>, out: &mut Split<'w>) {
    for role in fitting.iter().filter(|takes| takes.words() > 0).filter_map(|takes| takes.role()) {
        let (before, last) = role.words();
        let roles = std::iter::repeat_n(Role::Text, before).chain([last]);
        out.values.extend(roles.zip(words.clone()).map(|(role, word)| (role, word.clone())));
    }
    let taken = fitting.iter().map(|takes| takes.words()).min().unwrap_or_default();
    words.by_ref().take(taken).for_each(drop);
}

/// What of a word follows its first `skip` bytes.
fn behind(word: &Word, skip: usize) -> Word {
    let mut parts = word.parts.clone();
    if let Some(crate::word::Part::Text(text)) = parts.first_mut() {
        *text = text.get(skip..).unwrap_or_default().to_owned();
    }
    parts.retain(|part| !matches!(part, crate::word::Part::Text(text) if text.is_empty()));
    Word { parts, span: word.span }
}
