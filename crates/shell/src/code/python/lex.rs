//! Python's tokens. What could be read in two ways is refused.

use crate::code::token::{Cursor, Kind, MAX_NESTING, Piece, Token, is_number, is_word};

const SIGNS: [&str; 47] = [
    "**=", "//=", ">>=", "<<=", "...", ":=", "->", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", "%=", "&=", "|=",
    "^=", "@=", "**", "//", "<<", ">>", "+", "-", "*", "/", "%", "@", "&", "|", "^", "~", "<", ">", "(", ")", "[", "]",
    "{", "}", ",", ":", ".", ";", "=",
];

/// The tokens of a program; `None` where it is no Python that can be read with certainty.
pub fn tokens(text: &str) -> Option<Vec<Token>> {
    // An encoding named in the first two lines makes other text of it.
    let mut first =
        text.split(['\n', '\r']).take(2).map(|line| line.trim_start_matches(['\u{feff}', ' ', '\t', '\u{c}']));
    if first.any(|line| line.starts_with('#') && line.contains("coding")) {
        return None;
    }
    let mut cursor = Cursor::new(text)?;
    let out = Lexer { cursor: &mut cursor, depth: 0 }.run(false)?;
    cursor.peek().is_none().then_some(out)
}

struct Lexer<'c> {
    cursor: &'c mut Cursor,
    depth: usize,
}

impl Lexer<'_> {
    /// Up to the end, or to what ends an expression in a text: `}`, `:` or `!`.
    fn run(&mut self, embedded: bool) -> Option<Vec<Token>> {
        let mut out: Vec<Token> = Vec::new();
        let mut brackets = 0usize;
        while let Some(c) = self.cursor.peek() {
            if embedded && brackets == 0 && self.ends_expression(c) {
                return Some(out);
            }
            match c {
                '\n' | '\r' => {
                    self.cursor.next();
                    if brackets == 0 && !embedded {
                        out.push(Token::new(Kind::Line, ""));
                    }
                }
                ' ' | '\t' | '\u{c}' => drop(self.cursor.next()),
                '#' => self.cursor.skip_line(),
                '\\' => {
                    self.cursor.next();
                    self.cursor.take("\r");
                    if !self.cursor.take("\n") {
                        return None;
                    }
                }
                '"' | '\'' => out.push(self.text("")?),
                c if c.is_ascii_digit() || (c == '.' && self.cursor.ahead(1).is_some_and(|c| c.is_ascii_digit())) => {
                    let number = self.number();
                    is_number(&number).then_some(())?;
                    out.push(Token::new(Kind::Value, number));
                }
                c if is_word(c) => {
                    let word = self.cursor.while_(is_word);
                    let prefix = word.to_ascii_lowercase();
                    if matches!(self.cursor.peek(), Some('"' | '\'')) {
                        if !matches!(prefix.as_str(), "r" | "b" | "u" | "f" | "rb" | "br" | "fr" | "rf") {
                            return None;
                        }
                        out.push(self.text(&prefix)?);
                    } else {
                        out.push(Token::new(Kind::Name, word));
                    }
                }
                '!' if self.cursor.starts_with("!=") => {
                    self.cursor.at += 2;
                    out.push(Token::new(Kind::Sign, "!="));
                }
                _ => {
                    let sign = self.cursor.sign(&SIGNS)?;
                    match sign {
                        "(" | "[" | "{" => brackets += 1,
                        ")" | "]" | "}" => brackets = brackets.checked_sub(1)?,
                        _ => {}
                    }
                    out.push(Token::new(Kind::Sign, sign));
                }
            }
        }
        (!embedded && brackets == 0).then_some(out)
    }

    fn ends_expression(&self, c: char) -> bool {
        match c {
            '}' => true,
            ':' => !self.cursor.starts_with(":="),
            '!' => !self.cursor.starts_with("!="),
            // `f"{x=}"`
            '=' => self.cursor.ahead(1).is_some_and(|c| matches!(c, '}' | ':' | '!')),
            _ => false,
        }
    }

    fn number(&mut self) -> String {
        let mut out = String::new();
        while let Some(c) = self.cursor.peek() {
            let sign = matches!(c, '+' | '-') && out.ends_with(['e', 'E']);
            if !(is_word(c) || c == '.' || sign) {
                break;
            }
            out.push(c);
            self.cursor.at += 1;
        }
        out
    }

    fn text(&mut self, prefix: &str) -> Option<Token> {
        let quote = self.cursor.next()?;
        let triple: String = [quote; 3].iter().collect();
        let long = self.cursor.peek() == Some(quote) && self.cursor.ahead(1) == Some(quote);
        if long {
            self.cursor.at += 2;
        }
        let (raw, formatted) = (prefix.contains('r'), prefix.contains('f'));
        let mut pieces: Vec<Piece> = Vec::new();
        let mut text = String::new();
        loop {
            if long && self.cursor.take(&triple) {
                break;
            }
            match self.cursor.next()? {
                c if c == quote && !long => break,
                '\n' | '\r' if !long => return None,
                '\\' if raw => {
                    text.push('\\');
                    text.push(self.cursor.next()?);
                }
                '\\' => self.escape(prefix.contains('b'), &mut text)?,
                '{' if formatted && !self.cursor.take("{") => {
                    pieces.push(Piece::Text(std::mem::take(&mut text)));
                    self.expression(&mut pieces)?;
                }
                '}' if formatted => {
                    if !self.cursor.take("}") {
                        return None;
                    }
                    text.push('}');
                }
                c => text.push(c),
            }
        }
        if pieces.is_empty() {
            return Some(Token::new(Kind::Text, text));
        }
        pieces.push(Piece::Text(text));
        Some(Token::new(Kind::Mixed(pieces), ""))
    }

    fn escape(&mut self, bytes: bool, text: &mut String) -> Option<()> {
        match self.cursor.next()? {
            '\n' => {}
            '\r' => drop(self.cursor.take("\n")),
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            'a' | 'b' | 'f' | 'v' => text.push('\u{b}'),
            'x' => text.push(char::from_u32(self.cursor.hex(2)?)?),
            'u' if !bytes => text.push(char::from_u32(self.cursor.hex(4)?)?),
            'U' if !bytes => text.push(char::from_u32(self.cursor.hex(8)?)?),
            'N' if !bytes => return None,
            first @ '0'..='7' => {
                let mut value = first.to_digit(8)?;
                for _ in 0..2 {
                    let Some(digit) = self.cursor.peek().and_then(|c| c.to_digit(8)) else { break };
                    value = value * 8 + digit;
                    self.cursor.at += 1;
                }
                text.push(char::from_u32(value)?);
            }
            other @ ('\\' | '\'' | '"') => text.push(other),
            other => text.extend(['\\', other]),
        }
        Some(())
    }

    /// `{expression!r:format}`; the format may hold expressions again.
    fn expression(&mut self, pieces: &mut Vec<Piece>) -> Option<()> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return None;
        }
        pieces.push(Piece::Code(self.run(true)?));
        let mut shaped = self.cursor.take("=");
        if self.cursor.take("!") {
            self.cursor.next().filter(|c| matches!(c, 'r' | 's' | 'a'))?;
            shaped = true;
        }
        if self.cursor.take(":") {
            loop {
                match self.cursor.peek()? {
                    '}' => break,
                    '{' => {
                        self.cursor.at += 1;
                        self.expression(pieces)?;
                    }
                    '\\' | '\'' | '"' | '\n' => return None,
                    _ => self.cursor.at += 1,
                }
            }
            shaped = true;
        }
        if shaped {
            // A value with a format is some text.
            pieces.push(Piece::Code(vec![Token::new(Kind::Value, "")]));
        }
        self.depth -= 1;
        self.cursor.take("}").then_some(())
    }
}
