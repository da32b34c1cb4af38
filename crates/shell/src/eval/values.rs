//! What variables and arguments may hold.

use writ_core::Span;

use super::{Eval, MAX_ARGUMENTS, MAX_VALUE, literal};
use crate::action::{Dir, Part, UnresolvedKind, Word};
use crate::expand::{Fields, MAX_ALTERNATIVES, product};
use crate::syntax::{Assignment, Node};

impl Eval<'_> {
    pub(super) fn assign(&mut self, assignment: &Assignment, span: Span) {
        let mut values: Vec<Fields> = Vec::new();
        if assignment.array {
            let mut list: Vec<Vec<Word>> = vec![Vec::new()];
            for word in &assignment.values {
                let here = self.expand(word);
                list = product(list, &here, &unknown_word(span));
            }
            values.extend(list.into_iter().map(|words| words.into_iter().map(|word| word.parts).collect::<Fields>()));
        } else if let Some(word) = assignment.values.first() {
            values.extend(self.expand_text(&word.parts).into_iter().map(|text| vec![text]));
        }
        self.set(&assignment.name, values, assignment.adds, span);
    }

    /// Gives a variable values.
    pub(crate) fn set(&mut self, name: &str, mut values: Vec<Fields>, adds: bool, span: Span) {
        self.judge_assignment(name, &values, span);
        for value in &mut values {
            if size(value) > MAX_VALUE {
                *value = vec![vec![Part::Unknown]];
                self.unresolved(UnresolvedKind::Limit, "a value too long to follow", span);
            }
        }
        // Prompts, arithmetic and `${x@P}` run what a value holds.
        let held: Vec<String> = values.iter().flatten().filter_map(literal).filter(|text| runs_again(text)).collect();
        held.iter().for_each(|text| self.run_again(text, span));
        if adds {
            // `+=` appends; an element changes one of many. Both leave more than one value possible.
            let old = self.vars.get(name).cloned().unwrap_or_default();
            let appended = product(old.clone(), &values, &vec![Part::Unknown]);
            let joined = appended.into_iter().map(|fields| vec![fields.concat()]);
            values = old.into_iter().chain(joined).chain(values.clone()).collect();
        } else if self.weak > 0
            && let Some(old) = self.vars.get(name)
        {
            values.extend(old.iter().cloned());
        }
        cut(&mut values);
        self.vars.insert(name.to_owned(), values);
    }

    /// Text that bash expands once more: the commands in it run.
    pub(crate) fn run_again(&mut self, text: &str, span: Span) {
        let code = format!(": \"{}\"", text.replace('"', "\\\""));
        self.code(&Word { parts: vec![Part::Text(code)], span }, None, "text that is expanded again");
    }

    /// Does work; what is beyond the budget is not looked at, and said so.
    pub(crate) fn spend(&mut self, cost: usize, span: Span) -> bool {
        self.budget = self.budget.saturating_sub(cost + 1);
        if self.budget == 0 {
            self.unresolved(UnresolvedKind::Limit, "too much to follow", span);
        }
        self.budget > 0
    }

    /// What a variable may hold; `None` when nobody assigned it.
    pub(crate) fn values(&self, name: &str) -> Option<Vec<Fields>> {
        let text = |text: String| vec![vec![vec![Part::Text(text)]]];
        if let Some(named) = name.strip_prefix('!') {
            return self.indirect(named);
        }
        if let Some(array) = name.strip_suffix("[?]") {
            // Whichever element is meant.
            let elements = self.vars.get(array)?.iter().flatten().map(|field| vec![field.clone()]);
            return Some(elements.collect());
        }
        let base = name.strip_suffix("[@]").unwrap_or(name);
        if let Some(values) = self.vars.get(base) {
            return Some(values.clone());
        }
        match name {
            "HOME" => self.home().map(text),
            "PWD" if self.dirs == [Dir::Start(String::new())] => self.env.cwd.clone().map(text),
            "IFS" => Some(text(" ".to_owned())),
            "@" | "*" => {
                self.arguments.as_ref().map(|words| vec![words.iter().skip(1).map(|word| word.parts.clone()).collect()])
            }
            _ => {
                let index: usize = name.parse().ok()?;
                let words = self.arguments.as_ref()?;
                Some(vec![words.get(index).map(|word| vec![word.parts.clone()]).unwrap_or_default()])
            }
        }
    }

    /// Whether this line says how words are split.
    pub(crate) fn has_ifs(&self) -> bool {
        self.vars.contains_key("IFS")
    }

    /// `${!name}`: what the value of `name` names.
    fn indirect(&self, name: &str) -> Option<Vec<Fields>> {
        if name == "#" {
            return Some(vec![vec![self.arguments.as_ref()?.last()?.parts.clone()]]);
        }
        let names = self.values(name)?;
        let named = names.iter().flatten().map(|text| literal(text).filter(|text| !text.starts_with('!')));
        let values = named.map(|named| named.and_then(|named| self.values(&named)));
        let mut out = Vec::new();
        for value in values {
            out.extend(value.unwrap_or_else(|| vec![vec![vec![Part::Unknown]]]));
        }
        Some(out)
    }

    /// Whether a name nobody assigned here surely has a value from outside.
    pub(crate) fn is_environment(&self, name: &str) -> bool {
        matches!(
            name,
            "PATH"
                | "USER"
                | "SHELL"
                | "TMPDIR"
                | "PWD"
                | "OLDPWD"
                | "HOSTNAME"
                | "HOME"
                | "?"
                | "$"
                | "!"
                | "#"
                | "-"
                | "0"
                | "@"
                | "*"
                | "RANDOM"
                | "SECONDS"
                | "LINENO"
                | "UID"
        )
    }

    pub(crate) fn set_arguments(&mut self, words: Vec<Word>) {
        if words.len() > MAX_ARGUMENTS {
            let span = words.first().map_or(Span { start: 0, end: 0 }, |word| word.span);
            self.unresolved(UnresolvedKind::Limit, "too many arguments", span);
            self.arguments = None;
            return;
        }
        self.arguments = Some(words);
    }

    /// `shift`, however far: any of the arguments may then be the first.
    pub(crate) fn shift(&mut self, by: usize) {
        if let Some(words) = &mut self.arguments {
            let end = (by + 1).min(words.len());
            words.drain(1.min(end)..end);
        }
    }

    pub(crate) fn define(&mut self, name: &str, body: Node) {
        self.functions.insert(name.to_owned(), body);
    }
}

/// No more values than a word may have; that some were left out is a value of its own.
pub(crate) fn cut(values: &mut Vec<Fields>) {
    if values.len() > MAX_ALTERNATIVES {
        values.truncate(MAX_ALTERNATIVES - 1);
        values.push(vec![vec![Part::Unknown]]);
    }
}

pub(crate) fn unknown_word(span: Span) -> Word {
    Word { parts: vec![Part::Unknown], span }
}

/// Bytes and fields of a value.
fn size(fields: &Fields) -> usize {
    let part = |part: &Part| match part {
        Part::Text(text) | Part::Glob(text) => text.len(),
        Part::Unknown => 1,
    };
    fields.iter().map(|text| 1 + text.iter().map(part).sum::<usize>()).sum()
}

/// Whether text holds commands that run when it is expanded.
pub(crate) fn runs_again(text: &str) -> bool {
    text.contains("$(") || text.contains('`') || text.contains("${")
}
