//! Text that bash evaluates once more: subscripts, arithmetic, prompts.

use crate::action::UnresolvedKind;
use crate::eval::Eval;
use crate::eval::budget::MAX_DEPTH;
use crate::parser::embedded;
use crate::parser::syntax::RawPart;
use crate::text::Text;
use crate::word::{Part, Source};

impl Eval<'_> {
    /// Expands a text as between double quotes: its substitutions run.
    pub(crate) fn reevaluate(&mut self, text: &Text, what: &str) {
        let known = known(text);
        if text.iter().any(Part::is_unknown) {
            self.unresolved(UnresolvedKind::Script, what, self.here);
        }
        if !(known.contains('$') || known.contains('`')) {
            return;
        }
        if self.depth >= MAX_DEPTH {
            return self.limit("text evaluated too deep");
        }
        match embedded(&known, self.here, self.depth) {
            Err(_) => self.unresolved(UnresolvedKind::Script, what, self.here),
            Ok(parts) => {
                self.depth += 1;
                let fixed = self.fixed.replace(self.here);
                self.expand_text(&parts);
                self.fixed = fixed;
                self.depth -= 1;
            }
        }
    }

    /// A text used as a variable's name or a number: the substitutions in its subscripts run.
    pub(crate) fn subscripts(&mut self, text: &Text) {
        let text: Text = text.iter().filter(|part| !part.is_unknown()).cloned().collect();
        let known = known(&text);
        if known.contains('[') && (known.contains("$(") || known.contains('`')) {
            self.reevaluate(&text, "a subscript");
        }
    }

    /// An arithmetic expression: what is expanded in it runs, and so does what its variables hold in subscripts.
    pub(crate) fn arithmetic(&mut self, parts: &[RawPart]) {
        let texts = self.expand_text(parts);
        texts.iter().for_each(|text| self.computed(text));
        if let [only] = texts.as_slice() {
            self.number_set(only);
        }
    }

    pub(crate) fn number(&mut self, text: &Text, depth: usize) {
        self.subscripts(text);
        if depth > 3 || self.vars.is_empty() {
            return;
        }
        let known = known(text);
        let names = known.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        for name in names.filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')) {
            if !self.spend(1) {
                return;
            }
            for value in self.lookup(name, None).into_iter().flatten().flatten() {
                self.number(&value, depth + 1);
            }
        }
    }

    /// A subscript as text; of several, something not known. Where an array's keys are texts, it is not computed.
    pub(crate) fn key_text(&mut self, array: &str, key: &[RawPart]) -> Text {
        let mut texts = self.expand_text(key);
        if self.keyed.iter().any(|keyed| keyed == array) {
            texts.iter().for_each(|text| self.number(text, 0));
        } else {
            texts.iter().for_each(|text| self.computed(text));
        }
        match (texts.pop(), texts.is_empty()) {
            (Some(only), true) => only,
            _ => vec![Part::Unknown(Source::Any)],
        }
    }
}

fn known(text: &Text) -> String {
    text.iter()
        .filter_map(|part| if let Part::Text(text) | Part::Glob(text) = part { Some(text.as_str()) } else { None })
        .collect()
}
