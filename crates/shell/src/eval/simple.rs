//! A simple command: its words, the assignments in front of it, and what it leaves in the shell.

use writ_core::Span;

use crate::eval::Eval;
use crate::eval::input::Input;
use crate::eval::redirects::may_fail;
use crate::parser::syntax::{Assignment, Node, RedirectKind, Simple};
use crate::text::{Fields, Text};
use crate::word::Word;

impl Eval<'_> {
    pub(crate) fn simple(&mut self, simple: &Simple, input: &Input) {
        let span = self.span(simple.span);
        self.here = span;
        self.links.ignored = false;
        let piped = self.redirects(&simple.redirects);
        self.written_settings(&simple.redirects, |eval| {
            let texts = simple.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Text).cloned();
            let own = Node::Simple(Simple { redirects: texts.collect(), ..simple.clone() });
            eval.static_output_from(&own, input)
        });
        // A redirection that fails leaves the command out.
        let may_fail = simple.redirects.iter().any(may_fail);
        self.conditional += usize::from(may_fail);
        let input = piped.unwrap_or_else(|| input.clone());
        let mut alternatives: Vec<Vec<Word>> = vec![Vec::new()];
        for word in &simple.words {
            self.naming = alternatives.iter().any(Vec::is_empty);
            let here = self.expand(word);
            self.naming = false;
            alternatives = self.product(alternatives, &here);
        }
        let mark = self.changes.len();
        let declares = |words: &Vec<Word>| {
            let first = words.first().and_then(Word::literal);
            matches!(first.as_deref(), Some("export" | "declare" | "typeset" | "local" | "readonly"))
        };
        let keeps = simple.words.is_empty() || alternatives.iter().any(declares);
        // What only the command sees replaces what was there, in a branch too.
        let conditional = if keeps { self.conditional } else { 0 };
        let conditional = std::mem::replace(&mut self.conditional, conditional);
        let exporting = |words: &Vec<Word>| words.first().and_then(Word::literal).is_some_and(|name| name == "export");
        let exports = !keeps || alternatives.iter().any(exporting);
        self.exports += usize::from(exports);
        alternatives.iter().for_each(|words| self.keys_declared(words, &simple.assignments));
        self.lends = !keeps;
        for assignment in &simple.assignments {
            self.assign(assignment, span);
        }
        self.lends = false;
        self.exports -= usize::from(exports);
        self.conditional = conditional;
        let lent = if keeps { Vec::new() } else { self.changed(mark) };
        // `A=b cmd`: the command sees A, this shell does not keep it.
        let before: Vec<Option<Vec<Fields>>> = lent.iter().map(|name| self.before(mark, name)).collect();
        let several = alternatives.len() > 1;
        let last = self.last_words(&alternatives);
        self.conditional += usize::from(several);
        for words in alternatives.into_iter().filter(|words| !words.is_empty()) {
            self.here = span;
            self.declared(&words, &simple.assignments);
            // One in front (`A=b export`) is no part of what is declared.
            self.assigning = keeps && simple.assignments.iter().any(|one| one.declared);
            self.command(words, &[], span, &input);
        }
        if !simple.redirects.is_empty() {
            self.note_simple(simple, &input);
        }
        self.conditional -= usize::from(several) + usize::from(may_fail);
        self.last = last.or_else(|| self.last.take());
        for (name, before) in lent.into_iter().zip(before) {
            self.put(&name, before.unwrap_or_else(|| vec![Fields::new()]));
            if self.vars.get(&name).is_some_and(|values| values == &[Fields::new()]) {
                self.vars.remove(&name);
            }
        }
    }

    /// What `$_` is after a command; where it may not run, what it was before too.
    fn last_words(&self, alternatives: &[Vec<Word>]) -> Option<Vec<Fields>> {
        let mut out: Vec<Fields> =
            if self.conditional > 0 || self.other_shell > 0 { self.last.clone()? } else { Vec::new() };
        self.last.as_ref()?;
        out.extend(alternatives.iter().filter_map(|words| Some(vec![words.last()?.parts.clone()])));
        (out.len() <= 64 && !alternatives.iter().all(Vec::is_empty)).then_some(out)
    }

    fn assign(&mut self, assignment: &Assignment, span: Span) {
        let name = &assignment.name;
        if !assignment.array {
            let parts = assignment.values.first().map(|(_, word)| word.parts.as_slice()).unwrap_or_default();
            let values: Vec<Fields> = self.expand_text(parts).into_iter().map(|text| vec![text]).collect();
            match &assignment.key {
                Some(key) => {
                    let key = self.key_text(name, key);
                    self.set_element(name, &key, values, span);
                }
                None => self.set_all(name, values, assignment.adds.then_some(false), span),
            }
            return;
        }
        let mut list: Vec<Vec<Word>> = vec![Vec::new()];
        let mut keyed: Vec<(Text, Vec<Fields>)> = Vec::new();
        for (key, word) in &assignment.values {
            let here = self.expand(word);
            if let Some(key) = key {
                let key = self.key_text(name, key);
                let fields = |words: &Vec<Word>| words.iter().map(|word| word.parts.clone()).collect::<Fields>();
                keyed.push((key, here.iter().map(fields).collect()));
            } else {
                list = self.product(list, &here);
            }
        }
        let values = list.into_iter().map(|words| words.into_iter().map(|word| word.parts).collect()).collect();
        self.set_all(name, values, assignment.adds.then_some(true), span);
        keyed.into_iter().for_each(|(key, values)| self.set_element(name, &key, values, span));
    }
}
