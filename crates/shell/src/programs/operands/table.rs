//! `data/programs.txt`, and a command's words told apart by it: options, their values, operands.

use super::looks_like_path;
use crate::action::Word;
use crate::eval::command::{is_flag, text_word};
use std::borrow::Cow;

/// Each name with the columns of its line; sorted by the build script.
static LINES: &[(&str, &[&str])] = include!(concat!(env!("OUT_DIR"), "/programs"));

/// A program's line.
#[derive(Clone, Copy)]
pub struct Program<'t> {
    shapes: &'t str,
    options: &'t str,
    trees: &'t str,
}

/// What an option's value is, and whether it must be glued to the option.
#[derive(Clone, Copy)]
struct Role<'t> {
    kinds: &'t str,
    glued: bool,
}

/// Finds a program's line.
pub fn lookup(base: &str) -> Option<Program<'static>> {
    let columns = row(LINES, base)?;
    let column = |at: usize| columns.get(at).copied().unwrap_or_default();
    Some(Program { shapes: column(0), options: column(1), trees: column(2) })
}

/// Whether what a program reads on standard input may hold commands and names of files.
pub fn reads_code(base: &str) -> bool {
    lookup(base).is_some_and(|program| program.shapes().any(|shape| shape == "i"))
}

/// The columns behind a name in a sorted table.
pub fn row(table: &[(&str, &'static [&'static str])], name: &str) -> Option<&'static [&'static str]> {
    let at = table.binary_search_by(|(own, _)| (*own).cmp(name)).ok()?;
    table.get(at).map(|(_, columns)| *columns)
}

impl<'t> Program<'t> {
    /// What its operands are.
    pub fn shapes(self) -> impl Iterator<Item = &'t str> {
        self.shapes.split_ascii_whitespace()
    }

    /// Whether its line has an option.
    pub fn names(self, option: &str) -> bool {
        self.role(option).is_some() || (option.starts_with("--") && self.long(option).is_some())
    }

    fn role(self, option: &str) -> Option<Role<'t>> {
        self.options.split_ascii_whitespace().find_map(|entry| {
            let rest = entry.strip_prefix(option)?;
            let glued = rest.starts_with('~');
            Some(Role { kinds: rest.strip_prefix(['=', '~'])?, glued })
        })
    }

    /// The role of a long option, which may be cut short as long as its beginning is known.
    fn long(self, option: &str) -> Option<Role<'t>> {
        let begins = || {
            let name = self.options.split_ascii_whitespace().find(|entry| entry.starts_with(option))?;
            self.role(name.split(['=', '~']).next()?)
        };
        self.role(option).or_else(|| if option.len() > 3 { begins() } else { None })
    }

    /// Whether an option, alone or in a cluster, means everything below.
    fn is_tree(self, flag: &str) -> bool {
        self.trees.split_ascii_whitespace().any(|tree| {
            let letter = tree.strip_prefix('-').filter(|letter| letter.len() == 1);
            let long = flag.starts_with("--");
            flag == tree
                || (long && tree.starts_with(flag) && flag.len() > 3)
                || letter.is_some_and(|letter| flag.starts_with('-') && !long && flag.contains(letter))
        })
    }
}

/// Options and operands, told apart.
#[derive(Default)]
pub struct Split<'w> {
    /// What is neither an option nor its value; `-` among them.
    pub operands: Vec<&'w Word>,
    /// Role and value of options that have one.
    pub values: Vec<(&'static str, Word)>,
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

    /// The first value of a role.
    pub fn value(&self, role: &str) -> Option<&Word> {
        self.values.iter().find(|(known, _)| *known == role).map(|(_, value)| value)
    }
}

/// Tells a command's words apart.
pub fn split<'w>(program: Program<'static>, arguments: &'w [Word]) -> Split<'w> {
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
            out.tree |= program.is_tree(&flag);
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
    program: Program<'static>,
    word: &'w Word,
    text: &str,
    words: &mut impl Iterator<Item = &'w Word>,
    out: &mut Split<'w>,
) -> usize {
    let glued = |value: &str| match word.literal() {
        Some(_) => text_word(value, word.span),
        None => behind(word, text.len() - value.len()),
    };
    if let Some((name, value)) = text.split_once('=').filter(|(name, _)| name.len() > 2) {
        if let Some(role) = program.long(name) {
            out.values.push((role.kinds.rsplit('+').next().unwrap_or_default(), glued(value)));
            return name.len();
        }
        if text.starts_with("--") || name.len() > 3 {
            out.values.push((if looks_like_path(&glued(value)) { "l" } else { "?" }, glued(value)));
            return name.len();
        }
    }
    let whole = if text.starts_with("--") { program.long(text) } else { program.role(text) };
    if let Some(role) = whole {
        if !role.glued {
            out.values.extend(role.kinds.split('+').filter_map(|kind| Some((kind, words.next()?.clone()))));
        }
        return text.len();
    }
    if text.starts_with("--") {
        return text.len();
    }
    // A cluster: the first letter that takes a value takes the rest, or the next word.
    let reach = if program.shapes().any(|shape| shape == "word") { 1 } else { usize::MAX };
    for (at, letter) in text.char_indices().skip(1).take(reach) {
        let Some(role) = program.role(&format!("-{letter}")) else { continue };
        let rest = text.get(at + letter.len_utf8()..).unwrap_or_default();
        let mut kinds = role.kinds.split('+');
        if !rest.is_empty() || word.literal().is_none() {
            out.values.extend(kinds.next_back().map(|kind| (kind, glued(rest.trim_start_matches('=')))));
        } else if !role.glued {
            out.values.extend(kinds.filter_map(|kind| Some((kind, words.next()?.clone()))));
        }
        return at + letter.len_utf8();
    }
    text.len()
}

/// What of a word follows its first `skip` bytes.
fn behind(word: &Word, skip: usize) -> Word {
    let mut parts = word.parts.clone();
    if let Some(crate::action::Part::Text(text)) = parts.first_mut() {
        *text = text.get(skip..).unwrap_or_default().to_owned();
    }
    parts.retain(|part| !matches!(part, crate::action::Part::Text(text) if text.is_empty()));
    Word { parts, span: word.span }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_stands_in_the_table_once() {
        let twice = LINES.windows(2).find(|pair| pair[0].0 >= pair[1].0);
        assert_eq!(twice, None);
    }
}
