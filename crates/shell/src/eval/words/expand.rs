//! Expansion: from raw words to the words a program could get.
//!
//! A variable has a set of possible values; a word therefore has alternatives, and each alternative is a list of fields.
//! Everything that might happen is kept, up to a bound beyond which the line is on record as too large. Page: `spec/shell.md`.

use crate::eval::Eval;
use crate::eval::input::Input;
use crate::eval::words::braces;
use crate::eval::words::globs::{is_glob, scan};
use crate::parser::syntax::{Param, RawPart, RawWord};
use crate::text::{Fields, Text, literal, tidy};
use crate::word::{Part, Source, Word};

/// Most alternatives of one word, and of one command, where several things vary.
const MAX_ALTERNATIVES: usize = 64;
/// Most where only one thing varies: a variable's values, a loop's words.
pub const MAX_VALUES: usize = 256;

impl Eval<'_> {
    /// Every way a word may turn out.
    pub fn expand(&mut self, raw: &RawWord) -> Vec<Vec<Word>> {
        let span = self.span(raw.span.unwrap_or(self.here));
        let mut out: Vec<Fields> = vec![Vec::new()];
        match braces::unfold(&raw.parts) {
            None => out = self.fields(&raw.parts),
            Some(unfolded) => {
                if unfolded.cut || !self.spend(unfolded.cost / 8) {
                    self.limit("braces that unfold to too many words");
                }
                for parts in unfolded.words {
                    let here = self.fields(&parts);
                    out = self.product(out, &here);
                }
            }
        }
        let words = |parts: Text| self.globbed(tidy(parts)).into_iter().map(|parts| Word { parts, span });
        out.into_iter().map(|fields| fields.into_iter().flat_map(words).collect()).collect()
    }

    /// The one text a word certainly is, as in an assignment or a here-document: not split.
    pub fn expand_text(&mut self, parts: &[RawPart]) -> Vec<Text> {
        let quoted: Vec<RawPart> = parts.iter().cloned().map(quote).collect();
        let fields = self.fields(&quoted);
        fields.into_iter().map(|fields| tidy(fields.into_iter().flatten().collect())).collect()
    }

    /// A text in which unquoted `*` and `?` stay patterns.
    pub fn expand_pattern(&mut self, parts: &[RawPart]) -> Vec<Text> {
        self.fields(parts).into_iter().map(|fields| tidy(fields.into_iter().flatten().collect())).collect()
    }

    fn fields(&mut self, parts: &[RawPart]) -> Vec<Fields> {
        let mut building: Vec<Building> = vec![Building::default()];
        let only_param = parts.len() == 1;
        for (index, part) in parts.iter().enumerate() {
            let mut values = self.part(part, index == 0, only_param);
            let most = most(building.len(), values.len());
            if building.len() * values.len() > most && values.iter().any(|(_, guess)| *guess) {
                // What is not known takes in the empty text too.
                values.retain(|(_, guess)| *guess);
            }
            let each: usize = values.iter().map(|(piece, _)| piece.size()).sum();
            if let [(only, guess)] = values.as_slice() {
                if !self.spend(each * building.len()) {
                    return vec![vec![vec![Part::Unknown(Source::Any)]]];
                }
                for base in &mut building {
                    base.add(only);
                    base.guess |= guess;
                }
                continue;
            }
            let sizes: usize = building.iter().map(Building::size).sum();
            if !self.spend(each * building.len() + sizes * values.len()) {
                return vec![vec![vec![Part::Unknown(Source::Any)]]];
            }
            let mut next = Vec::new();
            for base in &building {
                for (piece, guess) in values.iter().take(most.saturating_sub(next.len())) {
                    let mut one = base.clone();
                    one.add(piece);
                    one.guess |= guess;
                    next.push(one);
                }
            }
            if building.len() * values.len() > most {
                self.limit("a word that may be too many things");
                next.extend(building.first().map(|base| {
                    let mut rest = base.clone();
                    rest.add(&Piece::Joined(vec![Part::Unknown(Source::Any)]));
                    rest
                }));
            }
            building = next;
        }
        if self.naming && building.iter().any(|one| !one.guess && one.size() > 0) {
            // `cu${x}rl`: a name nobody assigned is most likely empty where it stands in a program's name.
            building.retain(|one| !one.guess);
        }
        building.into_iter().map(Building::finish).collect()
    }

    /// What one piece may turn out as, and whether that is a guess at a name nobody assigned.
    fn part(&mut self, part: &RawPart, first: bool, alone: bool) -> Vec<(Piece, bool)> {
        let one = |piece| vec![(piece, false)];
        match part {
            RawPart::Plain(text) => one(Piece::Joined(self.plain(text, first))),
            RawPart::Quoted(text) => one(Piece::Quoted(vec![Part::Text(text.clone())])),
            RawPart::Process(node) => {
                let known = self.output_from(node, &Input::None).and_then(|text| literal(&text));
                self.isolated(node);
                let place = self.substituted(known);
                one(Piece::Joined(vec![Part::Text(place)]))
            }
            RawPart::Arithmetic(parts) => {
                self.arithmetic(parts);
                one(Piece::Quoted(vec![Part::Unknown(Source::Number)]))
            }
            RawPart::Command(node, quoted) => {
                let mut values = self.outputs(node);
                self.isolated(node);
                if values.is_empty() {
                    values.push(vec![Part::Unknown(Source::Any)]);
                }
                let piece =
                    |eval: &Self, value: Text| if *quoted { Piece::Quoted(value) } else { eval.split(&[value]) };
                values.into_iter().map(|value| (piece(self, value), false)).collect()
            }
            RawPart::Param(param) => self.param(param, alone),
        }
    }

    /// Unquoted values, split at `IFS`; globs in them count.
    pub(crate) fn split(&self, values: &[Text]) -> Piece {
        let Some(separators) = self.separators() else { return Piece::Joined(vec![Part::Unknown(Source::Any)]) };
        let mut fields = Fields::new();
        for (at, value) in values.iter().enumerate() {
            let mut more = split(value, &separators);
            if at > 0 && more.first().is_some_and(|first| !first.is_empty()) {
                fields.push(Vec::new());
            }
            match (fields.last_mut(), more.first_mut()) {
                (Some(last), Some(first)) => {
                    last.append(first);
                    fields.extend(more.into_iter().skip(1));
                }
                _ => fields = more,
            }
        }
        match fields.len() {
            0 | 1 => Piece::Joined(fields.pop().unwrap_or_default()),
            _ => Piece::Split(fields),
        }
    }

    /// Every way to continue each of `lists` with one of `more`.
    pub fn product<T: Clone>(&mut self, mut lists: Vec<Vec<T>>, more: &[Vec<T>]) -> Vec<Vec<T>> {
        // The everyday case, one way only, must not copy what is there already: a line may have many words.
        if let [only] = more {
            if self.spend(only.len() * lists.len()) {
                lists.iter_mut().for_each(|list| list.extend_from_slice(only));
            }
            return lists;
        }
        let most = most(lists.len(), more.len());
        let size = |lists: &[Vec<T>]| lists.iter().map(Vec::len).sum::<usize>();
        if !self.spend(size(&lists) * more.len() + size(more) * lists.len()) {
            return lists;
        }
        if lists.len() * more.len() > most {
            self.limit("a command that may be too many things");
        }
        let mut out = Vec::new();
        for list in lists {
            for tail in more.iter().take(most.saturating_sub(out.len())) {
                out.push([list.as_slice(), tail].concat());
            }
        }
        out
    }

    /// Unquoted text: `~`, globs.
    fn plain(&self, text: &str, first: bool) -> Text {
        let mut out = Vec::new();
        let mut rest = text;
        if first && let Some(tail) = text.strip_prefix('~') {
            let user = tail.split('/').next().unwrap_or_default();
            if user.is_empty() {
                out.push(self.home().map_or(Part::Unknown(Source::Outside), Part::Text));
                rest = tail;
            } else if user == "+" {
                out.push(Part::Text(".".to_owned()));
                rest = tail.get(1..).unwrap_or_default();
            } else if user == "-" || user.trim_start_matches(['+', '-']).bytes().all(|byte| byte.is_ascii_digit()) {
                // A folder that the line was in before, or one on its stack.
                out.push(Part::Unknown(Source::Any));
                rest = tail.get(user.len()..).unwrap_or_default();
            } else if is_login(user) {
                // The home of a user, who may be this one.
                out.push(Part::Unknown(Source::Any));
                rest = tail.get(user.len()..).unwrap_or_default();
            }
        }
        scan(rest, &mut out);
        out
    }
}

/// Whether a word may be the name of a user.
fn is_login(word: &str) -> bool {
    let starts = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

/// How many alternatives are kept of so many times so many.
fn most(one: usize, other: usize) -> usize {
    if one <= 1 || other <= 1 { MAX_VALUES } else { MAX_ALTERNATIVES }
}

/// What one piece of a word contributes.
pub enum Piece {
    /// Goes on with the current field; nothing if empty.
    Joined(Text),
    /// Goes on with the current field, which then exists even when empty.
    Quoted(Text),
    /// Each is a field, even an empty one; the first goes on with the current one.
    Fields(Fields),
    /// The same of a value that was split: empty ones are none.
    Split(Fields),
}

impl Piece {
    /// In steps.
    fn size(&self) -> usize {
        match self {
            Self::Joined(text) | Self::Quoted(text) => 1 + crate::text::size(text) / 16,
            Self::Fields(fields) | Self::Split(fields) => {
                fields.iter().map(|text| 1 + crate::text::size(text) / 16).sum()
            }
        }
    }
}

#[derive(Clone, Default)]
struct Building {
    done: Fields,
    current: Text,
    /// The current field exists, even if nothing is in it.
    exists: bool,
    /// A name nobody assigned is in it as something not known.
    guess: bool,
}

impl Building {
    fn size(&self) -> usize {
        self.done.len() + self.current.len()
    }

    fn add(&mut self, piece: &Piece) {
        match piece {
            Piece::Joined(text) => {
                self.exists |= text.iter().any(|part| !matches!(part, Part::Text(text) if text.is_empty()));
                self.current.extend_from_slice(text);
            }
            Piece::Quoted(text) => {
                self.exists = true;
                self.current.extend_from_slice(text);
            }
            Piece::Fields(fields) | Piece::Split(fields) => {
                let quoted = matches!(piece, Piece::Fields(_));
                for (index, field) in fields.iter().enumerate() {
                    if index > 0 {
                        self.close();
                    }
                    self.exists |= quoted || !field.is_empty();
                    self.current.extend_from_slice(field);
                }
            }
        }
    }

    fn close(&mut self) {
        if self.exists {
            self.done.push(std::mem::take(&mut self.current));
        }
        self.exists = false;
        self.current.clear();
    }

    fn finish(mut self) -> Fields {
        self.close();
        self.done
    }
}

/// An unquoted value, split at these characters: the last field is what comes behind the last of them.
fn split(text: &[Part], separators: &[char]) -> Fields {
    let mut fields: Fields = vec![Vec::new()];
    for part in text {
        let pieces: Vec<Part> = match part {
            Part::Unknown(Source::Any) => vec![Part::Unknown(Source::Words)],
            Part::Unknown(source) => vec![Part::Unknown(*source)],
            Part::Text(text) | Part::Glob(text) => {
                let part = |piece: &str| {
                    if is_glob(piece) { Part::Glob(piece.to_owned()) } else { Part::Text(piece.to_owned()) }
                };
                text.split(separators).map(part).collect()
            }
        };
        for (index, piece) in pieces.into_iter().enumerate() {
            if index > 0 {
                // Unlike blanks, each other separator ends a field, even an empty one.
                let ends = !separators.iter().any(|c| c.is_whitespace());
                if let Some(last) = fields.last_mut().filter(|last| ends && last.is_empty()) {
                    last.push(Part::Text(String::new()));
                }
                fields.push(Vec::new());
            }
            if let Some(last) = fields.last_mut().filter(|_| !matches!(&piece, Part::Text(text) if text.is_empty())) {
                last.push(piece);
            }
        }
    }
    fields
}

fn quote(part: RawPart) -> RawPart {
    match part {
        RawPart::Plain(text) if !text.starts_with('~') => RawPart::Quoted(text),
        RawPart::Param(param) => RawPart::Param(Param { quoted: true, ..param }),
        RawPart::Command(node, _) => RawPart::Command(node, true),
        other => other,
    }
}
