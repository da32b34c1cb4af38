//! Text to syntax tree: bash's grammar, by recursive descent.
//!
//! Refuses what it does not understand, with the place; a policy then denies. Time is linear in the text but for the depth of
//! nesting, which is bounded; so is the stack. Page: `spec/shell.md`.

mod compound;
pub(crate) mod parameter;
mod simple;
pub(crate) mod syntax;
pub(crate) mod tree;
pub(crate) mod words;

use writ_core::Span;

use crate::parser::syntax::{Next, Node, RawPart, RawWord};

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
