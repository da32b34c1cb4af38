//! Options told from operands, as getopt does: clusters, glued values, `--long=x`, shortened long names.
//!
//! Which options take a value is for the entries of the programs to say ([`Spec`]). Page: `spec/programs.md`.

use crate::programs::entries::words::Role;
use crate::shape::{literal_prefix, tail};
use crate::word::{Part, Word};

/// The options that a program's entry lists: names with blanks between them, by what their values are.
#[derive(Debug)]
pub struct Spec {
    /// They take the next word, or what is glued to them.
    pub values: &'static [(Role, &'static str)],
    /// They take what is glued to them, and nothing else.
    pub glued: &'static [(Role, &'static str)],
    /// As `values`; what stands behind is no option.
    pub last: &'static [(Role, &'static str)],
    /// They take nothing.
    pub flags: &'static str,
}

/// How an option takes its value, and what that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    Value(Role),
    Glued(Role),
    Last(Role),
    Nothing,
}

impl Takes {
    /// What the value is.
    pub fn role(self) -> Option<Role> {
        match self {
            Self::Value(role) | Self::Glued(role) | Self::Last(role) => Some(role),
            Self::Nothing => None,
        }
    }

    /// How many words behind the option are its own, where nothing is glued to it.
    pub fn words(self) -> usize {
        match self {
            Self::Value(role) | Self::Last(role) => role.words().0 + 1,
            Self::Glued(_) | Self::Nothing => 0,
        }
    }
}

impl Spec {
    /// No options.
    pub const NONE: Self = Self { values: &[], glued: &[], last: &[], flags: "" };

    /// Every option: those that take the next word, then the others.
    pub fn options(&self) -> impl Iterator<Item = (&'static str, Takes)> + use<> {
        let of = |table: &'static [(Role, &'static str)], takes: fn(Role) -> Takes| {
            table.iter().flat_map(move |(role, names)| names.split(' ').map(move |name| (name, takes(*role))))
        };
        let flags = self.flags.split_whitespace().map(|name| (name, Takes::Nothing));
        of(self.values, Takes::Value).chain(of(self.glued, Takes::Glued)).chain(of(self.last, Takes::Last)).chain(flags)
    }

    /// How an option takes its value, by its name in full.
    pub fn option(&self, name: &str) -> Option<Takes> {
        self.options().find(|(own, _)| *own == name).map(|(_, takes)| takes)
    }

    /// The option that `stem` names in full, or else the first that it is short for, as [`Spec::options`] lists them.
    pub fn shortened(&self, stem: &str) -> Option<(&'static str, Takes)> {
        let long = stem.starts_with("--") && stem.len() > 2;
        let exact = self.options().find(|(name, _)| *name == stem);
        exact.or_else(|| self.options().find(|(name, _)| long && name.starts_with(stem)))
    }
}

/// What stands before and between the operands.
#[derive(Debug, Default)]
pub struct Options {
    /// Name as listed, what its value is, its value.
    pub values: Vec<(&'static str, Role, Word)>,
    /// For each value, where the words end that it was taken from.
    pub ends: Vec<usize>,
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

impl Options {
    /// Reads `words`; up to the first operand only, unless options may stand behind operands (`mixed`).
    pub fn read(words: &[Word], spec: &Spec, mixed: bool) -> Self {
        let mut out = Self::default();
        let takes_plus = spec.option("+").is_some();
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let text = literal_prefix(word);
            if text == "--" {
                out.operands.extend(at + 1..words.len());
                break;
            }
            let plus = text.starts_with('+') && takes_plus;
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
            out.ends.resize(out.values.len(), at);
        }
        out
    }

    /// One option; true when it took the next word.
    fn option(&mut self, word: &Word, text: &str, next: Option<&Word>, spec: &Spec) -> bool {
        if text.starts_with('+') {
            if let Some(Takes::Value(role)) = spec.option("+") {
                self.values.push(("+", role, tail(word, 1)));
            }
            return false;
        }
        let colon = spec.options().find(|(name, _)| name.ends_with(':') && text.starts_with(name));
        if let Some((name, Takes::Value(role))) = colon {
            self.values.push((name, role, tail(word, name.len())));
            return false;
        }
        let (stem, glued) = match text.find('=') {
            Some(cut) => (text.get(..cut).unwrap_or_default(), Some(tail(word, cut + 1))),
            None => (text, None),
        };
        if let Some((name, takes)) = spec.shortened(stem) {
            return self.value(name, takes, glued, next, text);
        }
        if !text.starts_with("--") {
            for (place, letter) in text.char_indices().skip(1) {
                let mut buffer = [0; 4];
                let letter: &str = letter.encode_utf8(&mut buffer);
                let own = |(name, _): &(&str, Takes)| name.len() == 1 + letter.len() && name.ends_with(letter);
                let Some((name, takes)) = spec.options().find(own) else { continue };
                let end = place + letter.len();
                let more = end < text.len() || literal_prefix(word).len() < shown_len(word);
                match takes {
                    Takes::Nothing => {}
                    Takes::Glued(role) => {
                        self.values.extend(more.then(|| (name, role, tail(word, end))));
                        break;
                    }
                    Takes::Value(_) | Takes::Last(_) => {
                        return self.value(name, takes, more.then(|| tail(word, end)), next, text);
                    }
                }
            }
        }
        self.flags.push(text.to_owned());
        false
    }

    fn value(
        &mut self,
        name: &'static str,
        takes: Takes,
        glued: Option<Word>,
        next: Option<&Word>,
        text: &str,
    ) -> bool {
        let role = match takes {
            Takes::Nothing | Takes::Glued(_) => {
                self.flags.push(format!("{text}="));
                self.values.extend(takes.role().zip(glued).map(|(role, value)| (name, role, value)));
                return false;
            }
            Takes::Value(role) | Takes::Last(role) => role,
        };
        let (before, _) = role.words();
        if before > 0 && glued.is_none() {
            self.skip = before;
            return true;
        }
        let taken = glued.is_none();
        self.ended |= matches!(takes, Takes::Last(_));
        if let Some(value) = glued.or_else(|| next.cloned()) {
            self.values.push((name, role, value));
        }
        taken
    }

    /// The values that are this.
    pub fn of(&self, role: Role) -> impl Iterator<Item = &Word> {
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

fn shown_len(word: &Word) -> usize {
    word.parts
        .iter()
        .map(|part| match part {
            Part::Text(text) | Part::Glob(text) => text.len(),
            Part::Unknown(_) => 1,
        })
        .sum()
}
