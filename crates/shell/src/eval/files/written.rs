//! What the line itself writes into files, and what stands there later in it.
//!
//! A file that the line writes without its text being known holds something that is not known. What the agent wrote before this
//! line comes from [`Sources`].

use crate::Sources;
use crate::eval::Eval;
use crate::eval::input::Input;
use crate::parser::syntax::{Next, Node, Redirect, RedirectKind, Simple};
use crate::word::Word;

/// Most files and texts that are kept.
const MOST: usize = 256;
/// Longest text that is kept.
const MAX_TEXT: usize = 128 << 10;

/// What the line wrote.
#[derive(Debug, Default)]
pub struct Written {
    /// Where, and what: `None` is text that is not known.
    texts: Vec<(String, Option<String>)>,
    /// The program that is looked at changes no text that it does not name.
    pub(crate) keeping: bool,
    /// Files of the project that were followed: once for each line.
    pub(crate) followed: Vec<String>,
    /// How many process substitutions there were.
    substituted: usize,
    /// Texts in the order they were written, for who remembers them.
    pub(crate) kept: Vec<String>,
}

impl Written {
    /// Whether the line wrote anything so far.
    pub(crate) const fn holds_any(&self) -> bool {
        !self.texts.is_empty()
    }

    /// Where, as paths from the folder the line starts in.
    pub(crate) fn places(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|(place, _)| place.as_str())
    }
}

/// What stands in a file.
pub enum Stored {
    /// One of these texts, written by this line; `false` where it may be another.
    Line(Vec<String>, bool),
    /// Written by the agent before.
    Earlier(String),
}

impl Eval<'_> {
    /// Whether this line wrote a text that is known.
    pub(crate) fn wrote_a_text(&self) -> bool {
        self.written.texts.iter().any(|(_, text)| text.is_some())
    }

    /// Whether anything is known of what any file holds.
    pub(crate) fn knows_texts(&self) -> bool {
        self.remembers || !self.written.texts.is_empty()
    }

    /// A file is written with something.
    pub(crate) fn note_write(&mut self, path: &Word) {
        if self.written.keeping || self.quiet > 0 {
            return;
        }
        if let Some(path) = path.place() {
            let places = self.places(&path);
            places.into_iter().for_each(|place| self.store(place, None));
        }
    }

    fn store(&mut self, place: String, text: Option<String>) {
        if self.conditional == 0 {
            self.written.texts.retain(|(own, _)| *own != place);
        }
        if self.written.texts.len() < MOST {
            self.written.texts.push((place, text.filter(|text| text.len() <= MAX_TEXT)));
        } else {
            self.limit("too many files written");
        }
    }

    /// A file is written with a text, or that is put behind what it holds.
    pub(crate) fn note_text(&mut self, path: &Word, text: Option<&str>, append: bool) {
        let (Some(path), true) = (path.place(), self.quiet == 0) else { return };
        let text = text.filter(|text| text.len() <= MAX_TEXT);
        for place in self.places(&path) {
            let before = self.stored(&place).filter(|_| append);
            let whole = match (text, before) {
                (None, _) | (_, Some(Stored::Line(_, false))) => None,
                (Some(text), Some(Stored::Line(texts, true))) => {
                    Some(format!("{}{text}", texts.last().map_or("", String::as_str)))
                }
                (Some(text), Some(Stored::Earlier(before))) => Some(format!("{before}{text}")),
                (Some(text), None) => Some(text.to_owned()),
            };
            if let Some(whole) = &whole
                && self.written.kept.len() < MOST
            {
                self.written.kept.push(whole.clone());
            }
            self.store(place, whole);
        }
    }

    /// A copy or another name of a file.
    pub(crate) fn note_copy(&mut self, from: &str, to: &str) {
        // What a descriptor gives is no file's text.
        if from.starts_with("/dev/") || from.starts_with("/proc/") {
            return self.store(to.to_owned(), None);
        }
        let found: Vec<Option<String>> =
            self.written.texts.iter().filter(|(own, _)| own == from).map(|(_, text)| text.clone()).collect();
        if found.is_empty() && !self.written.texts.is_empty() {
            self.written.texts.retain(|(own, _)| own != to);
        }
        found.into_iter().for_each(|text| self.store(to.to_owned(), text));
    }

    pub(crate) fn stored(&self, place: &str) -> Option<Stored> {
        let mut texts = self.written.texts.iter().filter(|(own, _)| own == place).peekable();
        if texts.peek().is_none() {
            self.remembers.then_some(())?;
            // It, or what the line made a copy of.
            let start = self.start_dir()?;
            let absolute =
                |place: &str| if place.starts_with('/') { place.to_owned() } else { format!("{start}/{place}") };
            let names = std::iter::once(place).chain(self.origins(place));
            return names.map(absolute).find_map(|path| self.sources.authored(&path)).map(Stored::Earlier);
        }
        let all: Vec<Option<String>> = texts.map(|(_, text)| text.clone()).collect();
        let known = all.iter().all(Option::is_some);
        Some(Stored::Line(all.into_iter().flatten().collect(), known))
    }

    /// What redirections write, once the command that they belong to was walked.
    pub(crate) fn note_redirects(&mut self, redirects: &[Redirect], node: &Node, input: &Input) {
        let writes = |redirect: &&Redirect| matches!(redirect.kind, RedirectKind::Write) && !redirect.discards();
        if self.quiet > 0 || !redirects.iter().any(|redirect| writes(&redirect)) {
            return;
        }
        let known = !matches!(node, Node::Simple(simple) if !self.may_be_static(simple, input));
        let text = if known { self.whole_output(node, input) } else { None };
        for redirect in redirects.iter().filter(writes) {
            self.quiet += 1;
            let words: Vec<Word> = self.expand(&redirect.word).into_iter().flatten().collect();
            self.quiet -= 1;
            // Errors alone are no text that anybody chose.
            let text = if redirect.other { None } else { text.as_deref() };
            words.iter().for_each(|word| self.note_text(word, text, redirect.appends));
        }
    }

    /// The same for a command's own redirections.
    pub(crate) fn note_simple(&mut self, simple: &Simple, input: &Input) {
        if simple.redirects.iter().any(|redirect| redirect.kind == RedirectKind::Write && !redirect.discards()) {
            self.note_redirects(&simple.redirects, &Node::Simple(simple.clone()), input);
        }
    }

    /// The text of a file that this line or the agent wrote, where it is certain.
    pub(crate) fn text_known(&self, path: &Word) -> Option<String> {
        (self.remembers || self.wrote_a_text()).then_some(())?;
        let [place] = self.places(&path.place()?).try_into().ok()?;
        let place: String = place;
        match self.stored(&place)? {
            Stored::Line(mut texts, true) if texts.len() == 1 => texts.pop(),
            Stored::Line(..) => None,
            Stored::Earlier(text) => Some(text),
        }
    }

    /// The text of a file that this line wrote, where it is certain.
    pub(crate) fn text_in(&self, path: &Word) -> Option<String> {
        let [place] = self.places(&path.place()?).try_into().ok()?;
        let place: String = place;
        let mut texts = self.written.texts.iter().filter(|(own, _)| *own == place).map(|(_, text)| text);
        texts.next()?.clone().filter(|_| texts.next().is_none())
    }

    /// Where this line wrote something, absolute.
    pub(crate) fn written_here(&self) -> Vec<String> {
        let start = self.start_dir().unwrap_or_default();
        let places = self.written.texts.iter().map(|(place, _)| place);
        places.map(|place| if place.starts_with('/') { place.clone() } else { format!("{start}/{place}") }).collect()
    }

    /// What a process substitution gives, as the file that a program sees.
    pub(crate) fn substituted(&mut self, text: Option<String>) -> String {
        let place = format!("/dev/fd/{}", 63 - self.written.substituted % 32);
        if self.quiet == 0 {
            self.written.substituted += 1;
            self.written.texts.retain(|(own, _)| *own != place);
            if text.is_some() {
                self.store(place.clone(), text);
            }
        }
        place
    }

    /// The output of one command or of several, redirections of output left out.
    fn whole_output(&mut self, node: &Node, input: &Input) -> Option<String> {
        match node {
            Node::List(items) => {
                let mut out = String::new();
                for (node, next) in items {
                    matches!(next, Next::Always | Next::OnSuccess).then_some(())?;
                    out.push_str(&self.whole_output(node, input)?);
                }
                Some(out)
            }
            Node::Subshell(inner) => self.whole_output(inner, input),
            Node::Simple(simple) => {
                let own = |redirect: &&Redirect| matches!(redirect.kind, RedirectKind::Text | RedirectKind::Read);
                let redirects: Vec<Redirect> = simple.redirects.iter().filter(own).cloned().collect();
                let plain = Simple { redirects, ..simple.clone() };
                self.static_output_from(&Node::Simple(plain), input)
            }
            other @ (Node::Pipe(_)
            | Node::Branches(_)
            | Node::Loop(_)
            | Node::For { .. }
            | Node::Function { .. }
            | Node::Words(_)
            | Node::Test(_)
            | Node::Redirected(..)) => self.static_output_from(other, input),
        }
    }
}

/// Nothing was written before.
pub struct Nothing;

impl Sources for Nothing {
    fn authored(&self, _path: &str) -> Option<String> {
        None
    }

    fn any(&self) -> bool {
        false
    }
}
