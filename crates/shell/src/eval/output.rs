//! What a substitution or a pipe's stage prints, as far as that is certain before it runs.
//!
//! Owns what the shell itself does to it: several commands, branches, redirections. Of a program's own output those who know
//! programs are asked. Page: `spec/shell.md`.

use crate::eval::Eval;
use crate::eval::command::Output;
use crate::eval::echo::MAX;
use crate::eval::input::Input;
use crate::parser::syntax::{Next, Node, RawPart, Redirect, RedirectKind, Simple};
use crate::text::{Text, tidy, trimmed};
use crate::word::{FRESH, Word};

/// Most outputs that a command may have.
const MOST: usize = 8;

/// Commands that print nothing, and may change where the next one runs.
const SILENT: [&str; 14] =
    ["cd", "set", "shopt", "export", "test", "[", "true", "false", ":", "declare", "local", "mkdir", "sleep", "umask"];

impl Eval<'_> {
    /// Every output that a substitution may have, trailing line breaks removed; none where it may be any text.
    pub(crate) fn outputs(&mut self, node: &Node) -> Vec<Text> {
        self.quiet += 1;
        let texts = self.output_of(node, &Input::None).unwrap_or_default();
        self.quiet -= 1;
        texts.into_iter().map(trimmed).collect()
    }

    /// The output of a command that reads `input`; `None` where it may be any text.
    pub(crate) fn output_from(&mut self, node: &Node, input: &Input) -> Option<Text> {
        self.quiet += 1;
        let text = self.only_output(node, input);
        self.quiet -= 1;
        text
    }

    /// The same where all of it is certain.
    pub(crate) fn static_output_from(&mut self, node: &Node, input: &Input) -> Option<String> {
        if let Input::Text(text) = Input::of(self.output_from(node, input)?) { Some(text) } else { None }
    }

    fn only_output(&mut self, node: &Node, input: &Input) -> Option<Text> {
        let mut texts = self.output_of(node, input)?;
        texts.pop().filter(|_| texts.is_empty())
    }

    fn output_of(&mut self, node: &Node, input: &Input) -> Option<Vec<Text>> {
        if !self.spend(1) {
            return None;
        }
        match node {
            Node::List(items) => match items.as_slice() {
                [(only, Next::Always)] => self.output_of(only, input),
                items => {
                    let mut out = None;
                    self.scoped(|eval| out = eval.outputs_of(items, input));
                    out
                }
            },
            Node::Subshell(inner) => self.output_of(inner, input),
            Node::Redirected(inner, redirects) => {
                let input = self.redirected(redirects, input);
                self.output_of(inner, &input)
            }
            Node::Pipe(stages) => {
                let mut input = input.clone();
                for stage in stages {
                    input = Input::of(self.only_output(stage, &input)?);
                }
                Some(vec![input.text()?])
            }
            Node::Simple(simple) => self.output_of_simple(simple, input),
            Node::Branches(_)
            | Node::Loop(_)
            | Node::For { .. }
            | Node::Function { .. }
            | Node::Words(_)
            | Node::Test(_) => None,
        }
    }

    /// What several commands print, one behind the other; behind `||` one of two.
    fn outputs_of(&mut self, items: &[(Node, Next)], input: &Input) -> Option<Vec<Text>> {
        let mut all: Vec<Text> = vec![Text::new()];
        let mut instead = false;
        for (node, next) in items {
            let here = if is_silent(node) {
                self.silent(node, input);
                vec![Text::new()]
            } else {
                self.output_of(node, input)?
            };
            if instead {
                all.extend(here);
            } else {
                all = all.iter().flat_map(|text| here.iter().map(|more| [text.as_slice(), more].concat())).collect();
            }
            if all.len() > MOST || *next == Next::Background {
                return None;
            }
            instead = *next == Next::OnFailure;
        }
        Some(all.into_iter().map(tidy).collect())
    }

    /// What a command that prints nothing changes for the next.
    fn silent(&mut self, node: &Node, input: &Input) {
        let Node::Simple(simple) = node else { return };
        if simple.words.is_empty() {
            return self.node(node, input);
        }
        let words = self.only_words(simple).unwrap_or_default();
        match (
            words.first().and_then(Word::literal).as_deref(),
            words.iter().rfind(|word| !crate::shape::is_flag(word)),
        ) {
            (Some("cd"), _) if words.iter().any(|word| word.literal().is_some_and(|text| text.starts_with("-P"))) => {
                self.change_dir(None);
            }
            (Some("cd"), Some(folder)) if words.len() > 1 && folder.literal().as_deref() != Some("-") => {
                self.change_dir(Some(folder));
            }
            (Some("cd") | None, _) => self.change_dir(None),
            _ => {}
        }
    }

    fn output_of_simple(&mut self, simple: &Simple, input: &Input) -> Option<Vec<Text>> {
        // Most programs print nothing that is known: their words need not be looked at.
        if plain_program(simple).is_some_and(|base| (self.programs.output)(base) == Output::Unknown) {
            return None;
        }
        let input = self.redirected(&simple.redirects, input);
        let words = self.only_words(simple)?;
        let short = |text: &Text| crate::text::size(text) <= MAX;
        Some(vec![(self.programs.printed)(self, &words, &input).filter(short)?])
    }

    /// Standard input after these redirections.
    fn redirected(&mut self, redirects: &[Redirect], input: &Input) -> Input {
        let mut input = input.clone();
        // What another descriptor gets is not what standard input gives.
        for redirect in redirects.iter().filter(|redirect| !redirect.other) {
            match (redirect.kind, redirect.word.parts.as_slice()) {
                (RedirectKind::Text, parts) => {
                    let mut texts = self.expand_text(parts);
                    let only = texts.pop().filter(|_| texts.is_empty());
                    input = only.map_or(Input::Unknown, Input::of);
                }
                (RedirectKind::Read, [RawPart::Process(node)]) => {
                    input = self.output_from(node, &Input::None).map_or(Input::Unknown, Input::of);
                }
                (RedirectKind::Read | RedirectKind::ReadWrite, _) => input = Input::Unknown,
                (RedirectKind::Write | RedirectKind::Duplicate, _) => {}
            }
        }
        input
    }

    /// A command's words, when they can be only one thing.
    fn only_words(&mut self, simple: &Simple) -> Option<Vec<Word>> {
        let mut words: Vec<Word> = Vec::new();
        for raw in &simple.words {
            let mut alternatives = self.expand(raw);
            if alternatives.len() > 1 {
                // What nobody assigned takes in the empty text too.
                let open = |fields: &Vec<Word>| fields.iter().any(|word| word.literal().is_none());
                alternatives.retain(open);
            }
            if alternatives.len() != 1 {
                return None;
            }
            words.append(&mut alternatives.pop()?);
        }
        Some(words)
    }

    /// Whether a command's output may be a text that is known to the last letter.
    pub(crate) fn may_be_static(&self, simple: &Simple, input: &Input) -> bool {
        let own = |redirect: &Redirect| matches!(redirect.kind, RedirectKind::Text | RedirectKind::Read);
        let reads = matches!(input, Input::Text(_)) || simple.redirects.iter().any(own);
        plain_program(simple).is_none_or(|base| match (self.programs.output)(base) {
            Output::OfArguments => true,
            Output::OfInput => reads,
            Output::Unknown => false,
        })
    }

    pub(crate) fn only_folder(&self) -> Option<String> {
        match self.dirs.as_slice() {
            // A name that `mktemp` made is not known.
            [crate::word::Dir::Start(dir)] if !dir.contains(FRESH) => {
                Some(crate::eval::files::dirs::below(&self.start_dir()?, dir))
            }
            _ => None,
        }
    }
}

fn is_silent(node: &Node) -> bool {
    let Node::Simple(simple) = node else { return false };
    match simple.words.first().map(|word| word.parts.as_slice()) {
        None => true,
        Some([RawPart::Plain(name)]) => SILENT.contains(&name.as_str()),
        Some(_) => false,
    }
}

/// The name of a command's program, where it is written out.
fn plain_program(simple: &Simple) -> Option<&str> {
    match simple.words.first()?.parts.as_slice() {
        [RawPart::Plain(program)] => program.rsplit('/').next(),
        _ => None,
    }
}
