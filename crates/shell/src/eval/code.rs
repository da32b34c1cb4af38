//! Shell code inside a word: `sh -c`, `eval`, `trap`.

use crate::action::UnresolvedKind;
use crate::eval::Eval;
use crate::eval::budget::MAX_DEPTH;
use crate::eval::input::Input;
use crate::eval::vars::Arguments;
use crate::parser::parse;
use crate::text::placeholder;
use crate::word::{Part, Source, Word};

impl Eval<'_> {
    /// Code inside a word: `sh -c`, `eval`, `trap`. Everything found in it gets the word's span.
    pub(crate) fn code(&mut self, code: &Word, arguments: Option<Vec<Word>>, what: &str) {
        let mut text = String::new();
        for part in &code.parts {
            match part {
                Part::Text(known) | Part::Glob(known) => text.push_str(known),
                Part::Unknown(source) => text.push_str(&format!(" ${} ", placeholder(*source))),
            }
        }
        if code.literal().is_none() && !counts(code) {
            self.unresolved(UnresolvedKind::Script, what, code.span);
        }
        if self.depth >= MAX_DEPTH {
            return self.unresolved(UnresolvedKind::Limit, what, code.span);
        }
        match parse(&text, Some(code.span), self.depth) {
            Err(_) => self.unresolved(UnresolvedKind::Script, what, code.span),
            Ok(node) => {
                let (fixed, here) = (self.fixed.replace(code.span), self.here);
                self.depth += 1;
                // `eval` and its like run in this shell; all else in another, with words of its own.
                if matches!(what, "eval" | "." | "source") {
                    self.node(&node, &Input::Unknown);
                } else if matches!(what, "trap" | "alias" | "mapfile") {
                    self.conditionally(|eval| eval.node(&node, &Input::Unknown));
                } else {
                    self.other_shell += 1;
                    self.scoped(|eval| {
                        eval.arguments = arguments.map(Arguments::of);
                        eval.node(&node, &Input::Unknown);
                    });
                    self.other_shell -= 1;
                }
                self.depth -= 1;
                (self.fixed, self.here) = (fixed, here);
            }
        }
    }

    pub(crate) fn deeper(&mut self, run: impl FnOnce(&mut Self)) -> bool {
        if self.depth >= MAX_DEPTH {
            return false;
        }
        self.depth += 1;
        run(self);
        self.depth -= 1;
        true
    }
}

/// Whether all of a code that is not known are numbers, each a word of its own: `kill $PID`.
fn counts(code: &Word) -> bool {
    let blank = |c: char| c.is_whitespace() || c == ';';
    code.parts.iter().enumerate().all(|(at, part)| match part {
        Part::Text(text) => !text.contains(['\'', '"', '`', '\\', '#']),
        Part::Unknown(Source::Number) => {
            let before = at.checked_sub(1).and_then(|at| code.parts.get(at));
            let starts = matches!(before, Some(Part::Text(text)) if text.ends_with(char::is_whitespace));
            let ends = match code.parts.get(at + 1) {
                None => true,
                Some(Part::Text(text)) => text.starts_with(blank),
                Some(_) => false,
            };
            starts && ends
        }
        Part::Unknown(_) | Part::Glob(_) => false,
    })
}
