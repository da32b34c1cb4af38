//! One command: functions and builtins, then wrappers peeled off, then interpreters, then the files and hosts of its operands.

use writ_core::Span;

use crate::action::{Access, NetTarget, Part, UnresolvedKind, Word};
use crate::eval::{Eval, Input};
use crate::options::{lead, tail};
use crate::programs::linked::ON_LINKS;
use crate::programs::{interpreters, operands, patch, wrappers};

impl Eval<'_> {
    /// Follows one command: records it, then whatever it would run, touch and contact.
    pub(crate) fn command(&mut self, words: Vec<Word>, via: &[String], span: Span, input: &Input) {
        let Some(first) = words.first() else { return };
        if !self.record(&words, via, span) {
            return;
        }
        let Some(name) = first.literal().filter(|name| !name.is_empty()) else {
            let what = interpreters::shown(first);
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
        let base = name.rsplit('/').next().unwrap_or_default().to_owned();
        if name.contains('/') && !is_system(&name) {
            self.file(first.clone(), Access::Exec, false);
            self.run_file(first, "", Some(words.clone()));
        }
        let arguments = words.get(1..).unwrap_or_default();
        self.run_by_name(&base, arguments, span);
        self.keeps_texts(&base);
        if self.builtin(&base, arguments, span, input) || self.wrapper(&base, &words, via, span, input) {
            return;
        }
        self.note_links(&base, arguments);
        self.links.ignored = ON_LINKS.contains(&base.as_str());
        if interpreters::run(self, &base, arguments, span, input) {
            return;
        }
        let outer = std::mem::replace(&mut self.stdin, input.clone());
        operands::run(self, &base, arguments, span, input);
        self.stdin = outer;
        if matches!(base.as_str(), "tee" | "sponge" | "sed" | "gsed" | "dd") {
            let text = if let (Input::Text(text), "tee" | "sponge") = (input, base.as_str()) {
                Some(text.as_str())
            } else {
                None
            };
            for word in arguments.iter().filter(|_| !base.ends_with("sed") || arguments.iter().any(operands::in_place))
            {
                let path = word.literal().map(|text| text.trim_start_matches("of=").to_owned()).unwrap_or_default();
                self.settings_file(&text_word(&path, word.span), text);
            }
        }
        if base == "patch" {
            patch::run(self, arguments, input, span);
        }
        if base == "tee" {
            self.note_tee(arguments, input);
        }
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
            self.weakly(|eval| eval.inner(all, &[], "alias", span, input));
        }
        false
    }

    fn wrapper(&mut self, base: &str, words: &[Word], via: &[String], span: Span, input: &Input) -> bool {
        if !matches!(base, "env" | "sudo" | "doas") {
            return wrappers::peel(self, base, words, via, span, input);
        }
        // `env A=b sh -c …`: the command sees A.
        let mark = self.changes.len();
        for word in words.iter().skip(1) {
            let Some((name, value)) = word.literal().as_deref().and_then(split_assignment) else {
                continue;
            };
            self.exports += 1;
            self.weakly(|eval| eval.set_all(&name, vec![vec![vec![Part::Text(value)]]], None, span));
            self.exports -= 1;
        }
        let done = wrappers::peel(self, base, words, via, span, input);
        self.undo(mark);
        done
    }
}

/// `name=value`, where the name is one.
pub fn split_assignment(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    is_assignment(text).then(|| (name.to_owned(), value.to_owned()))
}

/// Where a system keeps its own programs.
pub fn is_system(path: &str) -> bool {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    matches!(folder, "/bin" | "/usr/bin" | "/usr/local/bin" | "/sbin" | "/usr/sbin" | "/usr/local/sbin")
}

/// `-x`, `--x`; not `-` itself.
pub fn is_flag(word: &Word) -> bool {
    matches!(word.parts.first(), Some(Part::Text(text)) if text.len() > 1 && text.starts_with('-'))
}

/// Words as one, separated by spaces.
pub fn joined(words: &[Word], span: Span) -> Word {
    let mut parts = Vec::new();
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            parts.push(Part::Text(" ".to_owned()));
        }
        parts.extend(word.parts.iter().cloned());
    }
    Word { parts, span }
}

/// A word of known text.
pub fn text_word(text: &str, span: Span) -> Word {
    Word { parts: vec![Part::Text(text.to_owned())], span }
}

/// A host word.
pub fn host(text: &str, span: Span) -> NetTarget {
    NetTarget::Host(text_word(text, span))
}

/// Whether a word begins as `NAME=`.
pub fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// What `NAME=VALUE` in front of a command does.
pub fn assign(eval: &mut Eval<'_>, word: &Word, span: Span) {
    let lead = lead(word);
    if let Some((name, _)) = lead.split_once('=') {
        eval.exports += 1;
        eval.judge_assignment(name, &[vec![tail(word, name.len() + 1).parts]], span);
        eval.exports -= 1;
    }
}
