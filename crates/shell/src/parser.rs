//! Text to syntax tree: bash's grammar, by recursive descent.
//!
//! Refuses what it does not understand, with the place; a policy then denies. Time is linear in the text but for the depth of
//! nesting, which is bounded; so is the stack. Page: `spec/shell.md`.

use std::rc::Rc;

use writ_core::Span;

use crate::syntax::{Assignment, Next, Node, RawPart, RawWord, Redirect, RedirectKind, Simple};

/// Longest line, in bytes.
pub const MAX_LEN: usize = 256 << 10;
/// Deepest nesting.
pub const MAX_DEPTH: usize = 48;

/// How far a `]` or `}` that belongs to a name is looked for.
pub const NEAR: usize = 1024;

/// Why text is no shell program, and where.
pub type SyntaxError = (String, Span);

/// Reads a line. `fixed` is the span that everything gets when the text is not the line itself (`sh -c '…'`).
pub fn parse(text: &str, fixed: Option<Span>, depth: usize) -> Result<Node, SyntaxError> {
    let mut parser = Parser { text, at: 0, depth, fixed, documents_end: None };
    if text.len() > MAX_LEN {
        return parser.fail("longer than 256 KiB");
    }
    if text.contains('\0') {
        return parser.fail("a NUL byte");
    }
    let node = parser.list(&[])?;
    if parser.at < text.len() { parser.fail("unexpected text") } else { Ok(node) }
}

/// Text in which only `$`, backticks and `\\` mean something: a here-document that expands.
pub fn embedded(text: &str, span: Span, depth: usize) -> Result<Vec<RawPart>, SyntaxError> {
    let mut parser = Parser { text, at: 0, depth, fixed: Some(span), documents_end: None };
    parser.deeper(|parser| parser.double_quoted(None))
}

/// A cursor on the text.
pub struct Parser<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
    pub(crate) depth: usize,
    pub(crate) fixed: Option<Span>,
    /// Where the here-documents that were read ahead end: the next line break leads there.
    documents_end: Option<usize>,
}

const RESERVED: [&str; 14] =
    ["then", "else", "elif", "fi", "do", "done", "esac", "}", "in", "if", "while", "until", "for", "case"];

impl<'a> Parser<'a> {
    pub(crate) fn fail<T>(&self, message: &str) -> Result<T, SyntaxError> {
        let end = (self.at + 1).min(self.text.len());
        Err((message.to_owned(), self.fixed.unwrap_or(Span { start: self.at.min(end), end })))
    }

    pub(crate) fn span(&self, start: usize) -> Span {
        self.fixed.unwrap_or(Span { start, end: self.at })
    }

    pub(crate) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(crate) fn starts(&self, what: &str) -> bool {
        self.rest().starts_with(what)
    }

    pub(crate) fn eat(&mut self, what: &str) -> bool {
        let hit = self.starts(what);
        if hit {
            self.at += what.len();
        }
        hit
    }

    pub(crate) fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    pub(crate) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, SyntaxError>,
    ) -> Result<T, SyntaxError> {
        if self.depth >= MAX_DEPTH {
            return self.fail("nested too deep");
        }
        self.depth += 1;
        let out = read(self);
        self.depth -= 1;
        out
    }

    fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('\\') if self.starts("\\\n") => self.at += 2,
                Some('#') => {
                    let end = self.rest().find('\n').unwrap_or(self.rest().len());
                    self.at += end;
                }
                _ => return,
            }
        }
    }

    /// Blanks, comments and line breaks.
    fn gaps(&mut self) {
        loop {
            self.blanks();
            if !self.starts("\n") && !self.starts("\r\n") {
                return;
            }
            if !self.eat("\r\n") {
                self.eat("\n");
            }
            self.at = self.documents_end.take().unwrap_or(self.at);
        }
    }

    /// The reserved word that stands here, if any of these does.
    fn at_word(&self, words: &[&'static str]) -> Option<&'static str> {
        words.iter().copied().find(|word| self.starts(word) && ends_word(self.rest().get(word.len()..)))
    }

    fn eat_word(&mut self, word: &'static str) -> bool {
        let hit = self.at_word(&[word]).is_some();
        if hit {
            self.at += word.len();
        }
        hit
    }

    /// Commands up to the end, a `)`, a `;;` or one of these words.
    fn list(&mut self, stop: &[&'static str]) -> Result<Node, SyntaxError> {
        let mut items = Vec::new();
        loop {
            self.gaps();
            if self.peek().is_none()
                || self.starts(")")
                || self.starts(";;")
                || self.starts(";&")
                || self.at_word(stop).is_some()
            {
                return Ok(Node::List(items));
            }
            let node = self.pipeline()?;
            self.blanks();
            let next = if self.eat("&&") {
                Next::OnSuccess
            } else if self.eat("||") {
                Next::OnFailure
            } else if self.starts(";;") || self.starts(";&") || self.eat(";") {
                Next::Always
            } else if self.eat("&") {
                Next::Background
            } else if self.peek().is_none() || self.starts(")") || self.starts("\n") || self.starts("\r\n") {
                Next::Always
            } else if items.is_empty() && stop.is_empty() {
                return self.fail("unexpected text");
            } else if self.at_word(stop).is_some() {
                Next::Always
            } else {
                return self.fail("unexpected text");
            };
            if matches!(next, Next::OnSuccess | Next::OnFailure) {
                self.gaps();
                if self.peek().is_none() || self.starts(")") {
                    return self.fail("a command is missing");
                }
            }
            items.push((node, next));
        }
    }

    /// The commands of a substitution.
    pub(crate) fn inner_list(&mut self) -> Result<Node, SyntaxError> {
        let outer = self.documents_end.take();
        let node = self.list(&[])?;
        self.documents_end = self.documents_end.take().or(outer);
        Ok(node)
    }

    fn pipeline(&mut self) -> Result<Node, SyntaxError> {
        loop {
            if self.eat_word("time") {
                self.blanks();
                self.eat_word("-p");
                self.blanks();
                self.eat_word("--");
            } else if !self.eat_word("!") {
                break;
            }
            self.blanks();
        }
        let mut stages = vec![self.command()?];
        loop {
            self.blanks();
            if self.starts("||") || !(self.eat("|&") || self.eat("|")) {
                break;
            }
            self.gaps();
            stages.push(self.command()?);
        }
        match stages.pop() {
            Some(only) if stages.is_empty() => Ok(only),
            Some(last) => {
                stages.push(last);
                Ok(Node::Pipe(stages))
            }
            None => self.fail("a command is missing"),
        }
    }

    fn command(&mut self) -> Result<Node, SyntaxError> {
        self.deeper(|parser| {
            let compound = parser.compound()?;
            let Some(node) = compound else { return parser.simple() };
            let mut redirects = Vec::new();
            loop {
                parser.blanks();
                match parser.redirect()? {
                    Some(redirect) => redirects.push(redirect),
                    None if redirects.is_empty() => return Ok(node),
                    None => return Ok(Node::Redirected(Box::new(node), redirects)),
                }
            }
        })
    }

    fn compound(&mut self) -> Result<Option<Node>, SyntaxError> {
        if self.starts("((") && self.is_arithmetic(2) {
            self.at += 2;
            return self.arithmetic().map(|parts| Some(Node::Words(vec![arithmetic(parts)])));
        }
        if self.eat("(") {
            let inner = self.list(&[])?;
            self.close(")")?;
            return Ok(Some(Node::Subshell(Box::new(inner))));
        }
        if self.eat_word("{") {
            let inner = self.list(&["}"])?;
            self.close("}")?;
            return Ok(Some(inner));
        }
        if self.eat_word("if") {
            return self.conditional().map(Some);
        }
        if self.eat_word("while") || self.eat_word("until") {
            let condition = self.list(&["do"])?;
            return Ok(Some(Node::Loop(vec![condition, self.body()?])));
        }
        if self.eat_word("for") || self.eat_word("select") {
            return self.for_loop().map(Some);
        }
        if self.eat_word("case") {
            return self.case().map(Some);
        }
        if self.eat_word("[[") {
            return self.test().map(Some);
        }
        if self.eat_word("coproc") {
            self.blanks();
            let save = self.at;
            let named = self.name().is_some() && self.peek() == Some(' ') && {
                self.blanks();
                self.starts("{") || self.starts("(")
            };
            if !named {
                self.at = save;
            }
            return self.command().map(|node| Some(Node::Subshell(Box::new(node))));
        }
        if self.eat_word("function") {
            self.blanks();
            let Some(name) = self.plain_word() else { return self.fail("a function's name is missing") };
            self.blanks();
            if self.eat("(") {
                self.blanks();
                self.close(")")?;
            }
            return self.function(name).map(Some);
        }
        self.short_function()
    }

    /// `name () body`
    fn short_function(&mut self) -> Result<Option<Node>, SyntaxError> {
        let save = self.at;
        if let Some(name) = self.plain_word() {
            self.blanks();
            if self.eat("(") {
                self.blanks();
                if self.eat(")") {
                    return self.function(name).map(Some);
                }
                return self.fail("unexpected `(`");
            }
        }
        self.at = save;
        Ok(None)
    }

    fn function(&mut self, name: String) -> Result<Node, SyntaxError> {
        self.gaps();
        let body = self.command()?;
        Ok(Node::Function { name, body: Rc::new(body) })
    }

    fn close(&mut self, what: &'static str) -> Result<(), SyntaxError> {
        if self.eat(what) { Ok(()) } else { self.fail(&format!("`{what}` is missing")) }
    }

    fn expect_word(&mut self, word: &'static str) -> Result<(), SyntaxError> {
        self.gaps();
        if self.eat_word(word) { Ok(()) } else { self.fail(&format!("`{word}` is missing")) }
    }

    fn body(&mut self) -> Result<Node, SyntaxError> {
        self.gaps();
        if self.eat_word("{") {
            let body = self.list(&["}"])?;
            self.close("}")?;
            return Ok(body);
        }
        self.expect_word("do")?;
        let body = self.list(&["done"])?;
        self.expect_word("done")?;
        Ok(body)
    }

    fn conditional(&mut self) -> Result<Node, SyntaxError> {
        let mut branches = vec![self.list(&["then"])?];
        self.expect_word("then")?;
        loop {
            branches.push(self.list(&["elif", "else", "fi"])?);
            if self.eat_word("elif") {
                branches.push(self.list(&["then"])?);
                self.expect_word("then")?;
            } else if !self.eat_word("else") {
                self.expect_word("fi")?;
                return Ok(Node::Branches(branches));
            }
        }
    }

    fn for_loop(&mut self) -> Result<Node, SyntaxError> {
        self.blanks();
        if self.eat("((") {
            let parts = self.arithmetic()?;
            self.blanks();
            self.eat(";");
            let body = self.body()?;
            return Ok(Node::Loop(vec![Node::Words(vec![arithmetic(parts)]), body]));
        }
        let Some(name) = self.name() else { return self.fail("a loop's variable is missing") };
        self.gaps();
        let mut words = None;
        if self.eat_word("in") {
            let mut list = Vec::new();
            loop {
                self.blanks();
                match self.word()? {
                    Some(word) => list.push(word),
                    None => break,
                }
            }
            words = Some(list);
        }
        self.blanks();
        self.eat(";");
        let body = Box::new(self.body()?);
        Ok(Node::For { name, words, body })
    }

    fn case(&mut self) -> Result<Node, SyntaxError> {
        self.blanks();
        let Some(subject) = self.word()? else { return self.fail("what is compared is missing") };
        self.expect_word("in")?;
        let mut branches = vec![Node::Words(vec![subject])];
        loop {
            self.gaps();
            if self.eat_word("esac") {
                return Ok(Node::Branches(branches));
            }
            self.eat("(");
            let mut patterns = Vec::new();
            loop {
                self.blanks();
                match self.word()? {
                    Some(word) => patterns.push(word),
                    None => return self.fail("a pattern is missing"),
                }
                self.blanks();
                if !self.eat("|") {
                    break;
                }
            }
            self.close(")")?;
            branches.push(Node::Words(patterns));
            branches.push(self.list(&["esac"])?);
            self.gaps();
            if !(self.eat(";;&") || self.eat(";;") || self.eat(";&")) && self.at_word(&["esac"]).is_none() {
                return self.fail("`;;` is missing");
            }
        }
    }

    /// `[[ … ]]`: only what is expanded in it matters.
    fn test(&mut self) -> Result<Node, SyntaxError> {
        let mut words = Vec::new();
        loop {
            self.gaps();
            if self.eat_word("]]") {
                return Ok(Node::Test(words));
            }
            if self.eat("&&")
                || self.eat("||")
                || self.eat("(")
                || self.eat(")")
                || self.eat("<")
                || self.eat(">")
                || self.eat("|")
            {
                continue;
            }
            match self.word()? {
                Some(word) => words.push(word),
                None => return self.fail("`]]` is missing"),
            }
        }
    }

    fn simple(&mut self) -> Result<Node, SyntaxError> {
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
                simple.assignments.push(assignment);
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
            return Ok(Some(Assignment { name, key, adds, values: vec![(None, value)], array: false }));
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
        Ok(Some(Assignment { name, key, adds, values, array: true }))
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
    fn plain_word(&mut self) -> Option<String> {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '+');
        let len = self.rest().find(|c: char| !plain(c)).unwrap_or(self.rest().len());
        let word = self.rest().get(..len).filter(|word| !word.is_empty())?;
        self.at += len;
        Some(word.to_owned())
    }

    fn redirect(&mut self) -> Result<Option<Redirect>, SyntaxError> {
        let save = self.at;
        let digits = self.rest().find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
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
        self.at += form.len();
        if form == "<<" {
            return self.here_document().map(Some);
        }
        self.blanks();
        match self.word()? {
            Some(word) => Ok(Some(Redirect { kind, word })),
            None => self.fail("a redirection's target is missing"),
        }
    }

    /// The text of a here-document is read ahead, from behind the current line; the next line break skips it.
    fn here_document(&mut self) -> Result<Redirect, SyntaxError> {
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
        Ok(Redirect { kind: RedirectKind::Text, word: RawWord { parts, span: Some(span) } })
    }

    /// Whether `((` here closes with `))`, so that it is arithmetic and not two subshells.
    pub(crate) fn is_arithmetic(&self, skip: usize) -> bool {
        let Some(inside) = self.rest().get(skip..) else { return false };
        let mut depth = 0usize;
        let mut chars = inside.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => drop(chars.next()),
                '(' => depth += 1,
                ')' if depth == 0 => return inside.get(at + 1..).is_some_and(|rest| rest.starts_with(')')),
                ')' => depth -= 1,
                '\n' | ';' if depth == 0 && skip == 3 => return false,
                _ => {}
            }
        }
        false
    }
}

fn arithmetic(parts: Vec<RawPart>) -> RawWord {
    RawWord { parts: vec![RawPart::Arithmetic(parts)], span: None }
}

fn ends_word(rest: Option<&str>) -> bool {
    rest.and_then(|rest| rest.chars().next())
        .is_none_or(|c| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')' | '<' | '>'))
}
