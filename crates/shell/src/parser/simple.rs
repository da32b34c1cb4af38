//! Simple commands: assignments, words, redirections and here-documents.

use writ_core::Span;

use super::syntax::{Assignment, Node, RawPart, RawWord, Redirect, RedirectKind, Simple};
use super::{NEAR, Parser, RESERVED, SyntaxError, embedded};

impl Parser<'_> {
    pub(super) fn simple(&mut self) -> Result<Node, SyntaxError> {
        let start = self.at;
        let mut simple =
            Simple { assignments: Vec::new(), words: Vec::new(), redirects: Vec::new(), span: self.span(start) };
        if self.at_word(&RESERVED).is_some() {
            return self.fail("a reserved word stands where a command should");
        }
        let mut end = self.at;
        loop {
            self.blanks();
            if let Some(redirect) = self.redirect()? {
                simple.redirects.push(redirect);
            } else if simple.words.is_empty()
                && let Some(assignment) = self.assignment()?
            {
                simple.assignments.push(assignment);
            } else if self.declares(&simple)
                && let Some(assignment) = self.assignment()?
            {
                // `export A=(x)`, `declare A=b`: an assignment that is also an argument.
                simple.assignments.push(Assignment { declared: true, ..assignment });
            } else {
                match self.word()? {
                    Some(word) => simple.words.push(word),
                    None => break,
                }
            }
            end = self.at;
        }
        if simple.words.is_empty() && simple.assignments.is_empty() && simple.redirects.is_empty() {
            return self.fail("a command is missing");
        }
        simple.span = self.fixed.unwrap_or(Span { start, end });
        Ok(Node::Simple(simple))
    }

    fn declares(&self, simple: &Simple) -> bool {
        let first = simple.words.first().map(|word| word.parts.as_slice());
        let Some([RawPart::Plain(name)]) = first else { return false };
        matches!(name.as_str(), "export" | "declare" | "typeset" | "local" | "readonly")
    }

    fn assignment(&mut self) -> Result<Option<Assignment>, SyntaxError> {
        let save = self.at;
        let Some(name) = self.name() else { return Ok(None) };
        let key = self.key()?;
        let adds = self.eat("+");
        if !self.eat("=") {
            self.at = save;
            return Ok(None);
        }
        if !self.eat("(") {
            let value = self.word()?.unwrap_or_default();
            return Ok(Some(Assignment {
                name,
                key,
                adds,
                values: vec![(None, value)],
                array: false,
                declared: false,
            }));
        }
        let mut values = Vec::new();
        loop {
            self.gaps();
            let key = self.key()?;
            if key.is_some() && !self.eat("=") {
                self.eat("+=");
            }
            match self.word()? {
                Some(word) => values.push((key, word)),
                None if key.is_some() => values.push((key, RawWord::default())),
                None => break,
            }
        }
        self.close(")")?;
        Ok(Some(Assignment { name, key, adds, values, array: true, declared: false }))
    }

    /// `[key]` where `=` or `+=` follows.
    fn key(&mut self) -> Result<Option<Vec<RawPart>>, SyntaxError> {
        let Some(end) = self.subscript_end() else { return Ok(None) };
        let after = self.rest().get(end + 1..).unwrap_or_default();
        if !(after.starts_with('=') || after.starts_with("+=")) {
            return Ok(None);
        }
        self.subscript(end).map(Some)
    }

    /// A variable's name.
    pub(crate) fn name(&mut self) -> Option<String> {
        let len = self.rest().find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(self.rest().len());
        let name = self
            .rest()
            .get(..len)
            .filter(|name| !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()))?;
        self.at += len;
        Some(name.to_owned())
    }

    /// A word of letters that a function may be called.
    pub(super) fn plain_word(&mut self) -> Option<String> {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '+');
        let len = self.rest().find(|c: char| !plain(c)).unwrap_or(self.rest().len());
        let word = self.rest().get(..len).filter(|word| !word.is_empty())?;
        self.at += len;
        Some(word.to_owned())
    }

    pub(super) fn redirect(&mut self) -> Result<Option<Redirect>, SyntaxError> {
        let save = self.at;
        let digits = self.rest().find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
        let written: Option<Option<u32>> =
            self.rest().get(..digits).filter(|it| !it.is_empty()).map(|it| it.parse().ok());
        let mut chosen = false;
        if self.starts("{") {
            // No variable's name is longer; looking further would make many `{` slow.
            let close = self.rest().bytes().take(NEAR).position(|c| c == b'}').unwrap_or(0);
            let inner = self.rest().get(1..close).unwrap_or_default();
            let after = self.rest().get(close + 1..).unwrap_or_default();
            if !inner.is_empty()
                && inner.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                && after.starts_with(['<', '>'])
            {
                self.at += close + 1;
                chosen = true;
            }
        } else if self.rest().get(digits..).is_some_and(|rest| rest.starts_with(['<', '>'])) {
            self.at += digits;
        }
        if self.starts("<(") || self.starts(">(") {
            self.at = save;
            return Ok(None);
        }
        const FORMS: [(&str, RedirectKind); 11] = [
            ("<<<", RedirectKind::Text),
            ("<<", RedirectKind::Text),
            ("<>", RedirectKind::ReadWrite),
            ("<&", RedirectKind::Duplicate),
            ("<", RedirectKind::Read),
            ("&>>", RedirectKind::Write),
            ("&>", RedirectKind::Write),
            (">>", RedirectKind::Write),
            (">&", RedirectKind::Duplicate),
            (">|", RedirectKind::Write),
            (">", RedirectKind::Write),
        ];
        let Some((form, kind)) = FORMS.into_iter().find(|(form, _)| self.starts(form)) else {
            self.at = save;
            return Ok(None);
        };
        let own = self.text.get(save..self.at).unwrap_or_default();
        let input = form.starts_with('<');
        let other = !own.is_empty() && own != if input { "0" } else { "1" };
        self.at += form.len();
        let usual = u32::from(!form.starts_with('<'));
        let descriptor = if chosen { None } else { written.unwrap_or(Some(usual)) };
        if form == "<<" {
            return self.here_document(descriptor).map(|document| Some(Redirect { other, input, ..document }));
        }
        self.blanks();
        match self.word()? {
            Some(word) => Ok(Some(Redirect { kind, descriptor, word, appends: form.ends_with(">>"), other, input })),
            None => self.fail("a redirection's target is missing"),
        }
    }

    /// The text of a here-document is read ahead, from behind the current line; the next line break skips it.
    fn here_document(&mut self, descriptor: Option<u32>) -> Result<Redirect, SyntaxError> {
        let start = self.at;
        let strips = self.eat("-");
        self.blanks();
        let Some(word) = self.word()? else { return self.fail("a here-document's delimiter is missing") };
        let expands = word.parts.iter().all(|part| matches!(part, RawPart::Plain(_)));
        let mut delimiter = String::new();
        for part in &word.parts {
            match part {
                RawPart::Plain(text) | RawPart::Quoted(text) => delimiter.push_str(text),
                _ => return self.fail("a here-document's delimiter that is not plain"),
            }
        }
        let from =
            self.documents_end.or_else(|| self.rest().find('\n').map(|at| self.at + at + 1)).unwrap_or(self.text.len());
        let (mut body, mut end) = (String::new(), from);
        for line in self.text.get(from..).unwrap_or_default().split_inclusive('\n') {
            end += line.len();
            let line = if strips { line.trim_start_matches('\t') } else { line };
            if line.trim_end_matches(['\n', '\r']) == delimiter {
                break;
            }
            body.push_str(line);
        }
        self.documents_end = Some(end);
        let span = self.span(start);
        let parts = if expands { embedded(&body, span, self.depth)? } else { vec![RawPart::Quoted(body)] };
        let word = RawWord { parts, span: Some(span) };
        Ok(Redirect { kind: RedirectKind::Text, descriptor, word, appends: false, other: false, input: true })
    }
}
