//! `${ … }` and what is done inside it, and subscripts.

use crate::parser::syntax::{Param, ParamOp, RawPart};
use crate::parser::words::{push_plain, push_quoted};
use crate::parser::{NEAR, Parser, SyntaxError};

/// What ends a piece inside `${ … }`.
type Ends = &'static [char];

impl Parser<'_> {
    /// `${ … }`; the opening is behind us.
    pub(crate) fn braced(&mut self, quoted: bool) -> Result<RawPart, SyntaxError> {
        let indirect = !self.starts("!}") && self.eat("!");
        let length = !indirect && self.starts("#") && !self.starts("#}");
        if length {
            self.at += 1;
        }
        let Some(mut name) = self.parameter_name() else { return self.fail("a parameter's name is missing") };
        let mut key = None;
        if let Some(all) = ["[@]", "[*]"].into_iter().find(|all| self.eat(all)) {
            name.push_str(all);
        } else if self.starts("[") {
            let Some(end) = self.subscript_end() else { return self.fail("a `[` that does not close") };
            key = Some(self.subscript(end)?);
        }
        let op = if length { ParamOp::Other(self.until(&['}'])?) } else { self.operation()? };
        self.at += 1;
        Ok(RawPart::Param(Param { name, key, indirect, op, quoted }))
    }

    /// A variable, a number, or one of the signs.
    pub(crate) fn parameter_name(&mut self) -> Option<String> {
        if let Some(name) = self.name() {
            return Some(name);
        }
        let c = self.peek().filter(|c| matches!(c, '0'..='9' | '@' | '*' | '#' | '?' | '$' | '!' | '-'))?;
        self.at += 1;
        let mut name = c.to_string();
        while let Some(digit) = self.peek().filter(|digit| c.is_ascii_digit() && digit.is_ascii_digit()) {
            self.at += 1;
            name.push(digit);
        }
        Some(name)
    }

    /// What stands behind the name, up to the brace.
    fn operation(&mut self) -> Result<ParamOp, SyntaxError> {
        const SIGNS: [&str; 16] =
            [":-", ":=", ":+", ":?", "-", "=", "+", "?", "##", "#", "%%", "%", "//", "/", ":", "@P}"];
        if self.starts("}") {
            return Ok(ParamOp::None);
        }
        if let Some(case) = ["^^}", ",,}", "^}", ",}"].into_iter().find(|case| self.starts(case)) {
            self.at += case.len() - 1;
            return Ok(ParamOp::Case { upper: case.starts_with('^'), all: case.len() == 3 });
        }
        let sign = SIGNS.into_iter().find(|sign| self.eat(sign));
        Ok(match sign {
            Some(":-" | "-") => ParamOp::Default(self.until(&['}'])?, false),
            Some(":=" | "=") => ParamOp::Default(self.until(&['}'])?, true),
            Some(":+" | "+") => ParamOp::Alternative(self.until(&['}'])?),
            Some(":?" | "?") => ParamOp::Needed(self.until(&['}'])?),
            Some(sign @ ("##" | "#" | "%%" | "%")) => {
                ParamOp::Strip { pattern: self.until(&['}'])?, suffix: sign.starts_with('%'), longest: sign.len() == 2 }
            }
            Some("//") => self.replacement('/')?,
            Some("/") => {
                let how = self.peek().filter(|c| matches!(c, '#' | '%'));
                self.at += usize::from(how.is_some());
                self.replacement(how.unwrap_or(' '))?
            }
            Some(":") => {
                let offset = self.until(&[':', '}'])?;
                let length = self.eat(":").then(|| self.until(&['}'])).transpose()?;
                ParamOp::Slice(offset, length)
            }
            Some(_) => {
                self.at -= 1;
                ParamOp::Prompt
            }
            None => ParamOp::Other(self.until(&['}'])?),
        })
    }

    fn replacement(&mut self, how: char) -> Result<ParamOp, SyntaxError> {
        let pattern = self.until(&['/', '}'])?;
        let with = if self.eat("/") { self.until(&['}'])? } else { Vec::new() };
        Ok(ParamOp::Replace { how, pattern, with })
    }

    /// Text inside `${ … }` up to one of these, which stays; quotes understood.
    fn until(&mut self, ends: Ends) -> Result<Vec<RawPart>, SyntaxError> {
        let mut parts = Vec::new();
        loop {
            match self.peek() {
                None => return self.fail("`}` is missing"),
                Some(c) if ends.contains(&c) => return Ok(parts),
                Some(_) => self.piece(&mut parts)?,
            }
        }
    }

    /// One character, or what a quote or `$` begins.
    fn piece(&mut self, parts: &mut Vec<RawPart>) -> Result<(), SyntaxError> {
        match self.peek() {
            Some('\'') => {
                self.at += 1;
                let Some(end) = self.rest().find('\'') else { return self.fail("a `'` that does not close") };
                push_quoted(parts, self.rest().get(..end).unwrap_or_default());
                self.at += end + 1;
            }
            Some('"') => {
                self.at += 1;
                let inner = self.deeper(|parser| parser.double_quoted(Some('"')))?;
                parts.extend(inner);
            }
            Some('\\') => {
                self.at += 1;
                if let Some(c) = self.bump() {
                    push_quoted(parts, c.encode_utf8(&mut [0; 4]));
                }
            }
            Some('`') => parts.push(self.backticks(true)?),
            Some('$') => match self.dollar(true)? {
                Some(part) => parts.push(part),
                None => push_plain(parts, "$"),
            },
            Some(other) => {
                self.at += other.len_utf8();
                push_plain(parts, other.encode_utf8(&mut [0; 4]));
            }
            None => {}
        }
        Ok(())
    }

    /// How far from the `[` here its `]` is. Only near ones are found: a subscript is short.
    pub(crate) fn subscript_end(&self) -> Option<usize> {
        let mut open = 0usize;
        let mut rounds = 0usize;
        let mut quote = None;
        let mut bytes = self.rest().bytes().take(NEAR).enumerate();
        if !self.starts("[") {
            return None;
        }
        while let Some((at, byte)) = bytes.next() {
            match byte {
                b'\\' if quote != Some(b'\'') => drop(bytes.next()),
                _ if quote == Some(byte) => quote = None,
                _ if quote.is_some() => {}
                b'\'' | b'"' => quote = Some(byte),
                b'(' => rounds += 1,
                b')' => rounds = rounds.checked_sub(1)?,
                b'[' => open += 1,
                b']' if open == 1 && rounds == 0 => return Some(at),
                b']' => open = open.saturating_sub(1),
                b'\n' if rounds == 0 => return None,
                _ => {}
            }
        }
        None
    }

    /// The inside of `[ … ]`, whose end is `end` bytes away.
    pub(crate) fn subscript(&mut self, end: usize) -> Result<Vec<RawPart>, SyntaxError> {
        let close = self.at + end;
        self.at += 1;
        let mut parts = Vec::new();
        while self.at < close {
            self.piece(&mut parts)?;
        }
        if self.at != close {
            return self.fail("a subscript that cannot be read");
        }
        self.at += 1;
        Ok(parts)
    }
}
