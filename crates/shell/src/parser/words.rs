//! Words: quotes, escapes, expansions and substitutions.

use writ_core::Span;

use crate::parser::syntax::{Param, ParamOp, RawPart, RawWord};
use crate::parser::{Parser, SyntaxError, parse};

impl Parser<'_> {
    /// The word that stands here; `None` at an operator, a blank or the end.
    pub(crate) fn word(&mut self) -> Result<Option<RawWord>, SyntaxError> {
        let start = self.at;
        let mut parts: Vec<RawPart> = Vec::new();
        while let Some(c) = self.peek() {
            match c {
                '<' | '>' if parts.is_empty() && self.rest().get(1..2) == Some("(") => {
                    self.at += 2;
                    let inner = self.substitution()?;
                    parts.push(RawPart::Process(Box::new(inner)));
                }
                '(' if ends_in_extglob(&parts) => {
                    let text = self.balanced()?;
                    push_plain(&mut parts, &text);
                }
                ' ' | '\t' | '\n' | '\r' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                '\'' => {
                    self.at += 1;
                    let Some(end) = self.rest().find('\'') else { return self.fail("a `'` that does not close") };
                    push_quoted(&mut parts, self.rest().get(..end).unwrap_or_default());
                    self.at += end + 1;
                }
                '"' => {
                    self.at += 1;
                    push_quoted(&mut parts, "");
                    for part in self.deeper(|parser| parser.double_quoted(Some('"')))? {
                        match part {
                            RawPart::Quoted(text) => push_quoted(&mut parts, &text),
                            other => parts.push(other),
                        }
                    }
                }
                '\\' => {
                    self.at += 1;
                    match self.bump() {
                        Some('\n') | None => {}
                        Some(escaped) => push_quoted(&mut parts, escaped.encode_utf8(&mut [0; 4])),
                    }
                }
                '`' => parts.push(self.backticks(false)?),
                '$' => match self.dollar(false)? {
                    Some(part) => parts.push(part),
                    None => push_plain(&mut parts, "$"),
                },
                other => {
                    self.at += other.len_utf8();
                    push_plain(&mut parts, other.encode_utf8(&mut [0; 4]));
                }
            }
        }
        let span = Some(self.span(start));
        Ok((self.at > start).then_some(RawWord { parts, span }))
    }

    /// What stands between double quotes, up to `close`; to the end of the text when there is none.
    pub(crate) fn double_quoted(&mut self, close: Option<char>) -> Result<Vec<RawPart>, SyntaxError> {
        let mut parts: Vec<RawPart> = Vec::new();
        loop {
            let Some(c) = self.peek() else {
                return if close.is_none() { Ok(parts) } else { self.fail("a `\"` that does not close") };
            };
            if Some(c) == close {
                self.at += 1;
                return Ok(parts);
            }
            match c {
                '\\' => {
                    self.at += 1;
                    match self.bump() {
                        Some('\n') => {}
                        Some(escaped @ ('$' | '`' | '\\')) => {
                            push_quoted(&mut parts, escaped.encode_utf8(&mut [0; 4]));
                        }
                        Some('"') if close.is_some() => push_quoted(&mut parts, "\""),
                        Some(other) => {
                            push_quoted(&mut parts, "\\");
                            push_quoted(&mut parts, other.encode_utf8(&mut [0; 4]));
                        }
                        None => push_quoted(&mut parts, "\\"),
                    }
                }
                '`' => parts.push(self.backticks(true)?),
                '$' => match self.dollar(true)? {
                    Some(part) => parts.push(part),
                    None => push_quoted(&mut parts, "$"),
                },
                other => {
                    self.at += other.len_utf8();
                    push_quoted(&mut parts, other.encode_utf8(&mut [0; 4]));
                }
            }
        }
    }

    /// Behind a `$`; `None` when it is just a dollar sign.
    pub(crate) fn dollar(&mut self, quoted: bool) -> Result<Option<RawPart>, SyntaxError> {
        if self.starts("$((") && self.is_arithmetic(3) {
            self.at += 3;
            return self.arithmetic().map(|parts| Some(RawPart::Arithmetic(parts)));
        }
        if self.eat("$(") {
            let inner = self.substitution()?;
            return Ok(Some(RawPart::Command(Box::new(inner), quoted)));
        }
        if self.starts("$[") {
            self.at += 2;
            return self.deeper(Self::old_arithmetic).map(|parts| Some(RawPart::Arithmetic(parts)));
        }
        if self.eat("${") {
            return self.deeper(|parser| parser.braced(quoted)).map(Some);
        }
        if !quoted && self.eat("$'") {
            return self.ansi().map(Some);
        }
        if !quoted && self.starts("$\"") {
            self.at += 1;
            return Ok(Some(RawPart::Quoted(String::new())));
        }
        self.at += 1;
        let name = match self.peek() {
            Some(digit @ '0'..='9') => {
                self.at += 1;
                Some(digit.to_string())
            }
            _ => self.parameter_name(),
        };
        Ok(name.map(|name| RawPart::Param(Param { name, key: None, indirect: false, op: ParamOp::None, quoted })))
    }

    /// The inside of `$( … )`, `<( … )`; the opening is behind us.
    fn substitution(&mut self) -> Result<crate::parser::syntax::Node, SyntaxError> {
        let node = self.deeper(Self::inner_list)?;
        if self.eat(")") { Ok(node) } else { self.fail("`)` is missing") }
    }

    /// `(( … ))` and `$(( … ))`; the opening is behind us.
    pub(crate) fn arithmetic(&mut self) -> Result<Vec<RawPart>, SyntaxError> {
        let parts = self.number(('(', ')'), "`))` is missing")?;
        if self.eat(")") { Ok(parts) } else { self.fail("`))` is missing") }
    }

    /// `$[ … ]`; the opening is behind us.
    fn old_arithmetic(&mut self) -> Result<Vec<RawPart>, SyntaxError> {
        self.number(('[', ']'), "a `$[` that does not close")
    }

    /// Arithmetic up to the bracket that closes it.
    fn number(&mut self, (open, close): (char, char), missing: &str) -> Result<Vec<RawPart>, SyntaxError> {
        let mut parts = Vec::new();
        let mut depth = 0usize;
        loop {
            match self.peek() {
                None => return self.fail(missing),
                Some(c) if c == close && depth == 0 => {
                    self.at += 1;
                    return Ok(parts);
                }
                Some('`') => parts.push(self.backticks(true)?),
                Some('$') => {
                    if let Some(part) = self.deeper(|parser| parser.dollar(true))? {
                        parts.push(part);
                    }
                }
                Some('\\') => {
                    self.at += 1;
                    self.bump();
                }
                Some(c) => {
                    depth = if c == open { depth + 1 } else { depth - usize::from(c == close) };
                    self.at += c.len_utf8();
                    push_quoted(&mut parts, c.encode_utf8(&mut [0; 4]));
                }
            }
        }
    }

    pub(crate) fn backticks(&mut self, quoted: bool) -> Result<RawPart, SyntaxError> {
        let start = self.at;
        self.at += 1;
        let mut inside = String::new();
        loop {
            match self.bump() {
                None => return self.fail("a backtick that does not close"),
                Some('`') => break,
                Some('\\') => match self.bump() {
                    Some(c @ ('`' | '\\' | '$')) => inside.push(c),
                    Some(c) => {
                        inside.push('\\');
                        inside.push(c);
                    }
                    None => return self.fail("a backtick that does not close"),
                },
                Some(c) => inside.push(c),
            }
        }
        let span: Span = self.span(start);
        let node = parse(&inside, Some(span), self.depth + 1)?;
        Ok(RawPart::Command(Box::new(node), quoted))
    }

    /// `$'…'`; the opening is behind us.
    fn ansi(&mut self) -> Result<RawPart, SyntaxError> {
        let mut out: Vec<u8> = Vec::new();
        loop {
            match self.bump() {
                None => return self.fail("a `$'` that does not close"),
                Some('\'') => return Ok(RawPart::Quoted(String::from_utf8_lossy(&out).into_owned())),
                Some('\\') => self.ansi_escape(&mut out)?,
                Some(c) => out.extend(c.encode_utf8(&mut [0; 4]).bytes()),
            }
        }
    }

    fn ansi_escape(&mut self, out: &mut Vec<u8>) -> Result<(), SyntaxError> {
        let Some(c) = self.bump() else { return self.fail("a `$'` that does not close") };
        let plain = match c {
            'n' => b'\n',
            't' => b'\t',
            'r' => b'\r',
            'a' => 7,
            'b' => 8,
            'e' | 'E' => 27,
            'f' => 12,
            'v' => 11,
            '\\' | '\'' | '"' | '?' => u8::try_from(c).unwrap_or(b'?'),
            'x' => self.digits(16, 2).and_then(|n| u8::try_from(n).ok()).unwrap_or(b'?'),
            '0'..='7' => {
                self.at -= 1;
                self.digits(8, 3).and_then(|n| u8::try_from(n & 255).ok()).unwrap_or(b'?')
            }
            'u' | 'U' => {
                let code = self.digits(16, if c == 'u' { 4 } else { 8 }).and_then(char::from_u32).unwrap_or('?');
                out.extend(code.encode_utf8(&mut [0; 4]).bytes());
                return Ok(());
            }
            'c' => self.bump().map_or(b'?', |c| u8::try_from(c).unwrap_or(b'?') & 31),
            other => {
                out.push(b'\\');
                out.extend(other.encode_utf8(&mut [0; 4]).bytes());
                return Ok(());
            }
        };
        // A NUL ends the word in bash; what follows is dropped there, so nothing may hide behind it here.
        if plain == 0 {
            return self.fail("a NUL in `$'…'`");
        }
        out.push(plain);
        Ok(())
    }

    fn digits(&mut self, radix: u32, most: usize) -> Option<u32> {
        let len = self.rest().chars().take(most).take_while(|c| c.is_digit(radix)).count();
        let digits = self.rest().get(..len)?;
        self.at += len;
        u32::from_str_radix(digits, radix).ok()
    }

    /// `( … )` of an extended glob, as text.
    fn balanced(&mut self) -> Result<String, SyntaxError> {
        let start = self.at;
        let mut depth = 0usize;
        while let Some(c) = self.bump() {
            match c {
                '(' => depth += 1,
                ')' if depth == 1 => return Ok(self.text.get(start..self.at).unwrap_or_default().to_owned()),
                ')' => depth -= 1,
                '\n' | '$' | '`' | '\'' | '"' => break,
                _ => {}
            }
        }
        self.fail("a pattern that does not close")
    }
}

pub fn push_plain(parts: &mut Vec<RawPart>, text: &str) {
    if let Some(RawPart::Plain(last)) = parts.last_mut() {
        last.push_str(text);
    } else {
        parts.push(RawPart::Plain(text.to_owned()));
    }
}

/// Quoted text, joined to quoted text before it: a word of many quotes stays short.
pub fn push_quoted(parts: &mut Vec<RawPart>, text: &str) {
    if let Some(RawPart::Quoted(last)) = parts.last_mut() {
        last.push_str(text);
    } else {
        parts.push(RawPart::Quoted(text.to_owned()));
    }
}

/// `?(`, `*(`, `+(`, `@(`, `!(` directly before.
fn ends_in_extglob(parts: &[RawPart]) -> bool {
    matches!(parts.last(), Some(RawPart::Plain(text)) if text.ends_with(['?', '*', '+', '@', '!']))
}
