//! One command: aliases and functions; all else is for those who know programs.

use writ_core::Span;

use crate::action::{Command, UnresolvedKind};
use crate::eval::Eval;
use crate::eval::input::Input;
use crate::shape::{literal_prefix, shown, tail, text_word};
use crate::text::{Fields, Text};
use crate::word::Word;

/// Where a command was found.
pub struct Place<'p> {
    /// The program's own name.
    pub base: &'p str,
    pub via: &'p [String],
    pub span: Span,
    pub input: &'p Input,
}

/// What the walk asks of those who know programs; it follows the shell's language and knows no program itself.
pub struct Programs {
    /// Follows a command that is no function: its own name, then its arguments.
    pub run: fn(&mut Eval<'_>, &[Word], &Place<'_>),
    /// What a variable that may have these values makes other programs do.
    pub variable_set: fn(&mut Eval<'_>, &str, &[Fields], Span),
    /// What is known of a program's output, by its name.
    pub output: fn(&str) -> Output,
    /// What a command prints; `None` where it may be any text.
    pub printed: fn(&mut Eval<'_>, &[Word], &Input) -> Option<Text>,
    /// Whether a command changes nothing, and ends by itself.
    pub is_read_only: fn(&Command) -> bool,
    /// What is left to say of all commands at the end.
    pub finish: fn(&mut Eval<'_>),
}

/// What is known of a program's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Nothing.
    Unknown,
    /// It is made of the arguments.
    OfArguments,
    /// It is made of what the program reads.
    OfInput,
}

impl Eval<'_> {
    /// Follows one command: records it, then whatever it would run, touch and contact.
    pub(crate) fn command(&mut self, words: Vec<Word>, via: &[String], span: Span, input: &Input) {
        let Some(first) = words.first() else { return };
        if !self.record(&words, via, span) {
            return;
        }
        let Some(name) = first.literal().filter(|name| !name.is_empty()) else {
            let what = shown(first);
            return self.unresolved(UnresolvedKind::Program, &what, first.span);
        };
        if first.is_glob() {
            return self.unresolved(UnresolvedKind::Program, &name, first.span);
        }
        if via.is_empty() && (self.aliased(&name, &words, span, input) || self.call(&name, &words, input)) {
            return;
        }
        if via.last().is_none_or(|via| via != "link")
            && let Some(program) = self.linked_program(first)
        {
            let words = std::iter::once(program).chain(words.iter().skip(1).cloned()).collect();
            self.inner(words, via, "link", span, input);
        }
        let base = name.rsplit('/').next().unwrap_or_default();
        (self.programs.run)(self, &words, &Place { base, via, span, input });
    }

    /// The same for a command found inside another.
    pub(crate) fn inner(&mut self, words: Vec<Word>, via: &[String], wrapper: &str, span: Span, input: &Input) {
        let via = [via, &[wrapper.to_owned()]].concat();
        let span = match (words.first(), words.last()) {
            (Some(first), Some(last)) if first.span.start <= last.span.end => {
                Span { start: first.span.start, end: last.span.end }
            }
            _ => span,
        };
        if !self.deeper(|eval| eval.command(words, &via, span, input)) {
            self.unresolved(UnresolvedKind::Limit, "commands nested too deep", span);
        }
    }

    /// `alias a='b c'; a d` where aliases are on.
    fn aliased(&mut self, name: &str, words: &[Word], span: Span, input: &Input) -> bool {
        let Some(value) = self.aliases.get(name).cloned() else { return false };
        let own = value.split_whitespace().map(|text| text_word(text, span));
        let all: Vec<Word> = own.chain(words.iter().skip(1).cloned()).collect();
        if all.first().and_then(Word::literal).as_deref() != Some(name) {
            self.conditionally(|eval| eval.inner(all, &[], "alias", span, input));
        }
        false
    }

    /// What a variable that may have these values makes other programs do.
    pub(crate) fn variable_set(&mut self, name: &str, values: &[Fields], span: Span) {
        (self.programs.variable_set)(self, name, values, span);
    }

    /// What `NAME=VALUE` in front of a command does.
    pub(crate) fn assigned(&mut self, word: &Word, span: Span) {
        let lead = literal_prefix(word);
        if let Some((name, _)) = lead.split_once('=') {
            self.exports += 1;
            self.variable_set(name, &[vec![tail(word, name.len() + 1).parts]], span);
            self.exports -= 1;
        }
    }
}
