//! JavaScript's tokens. Where a slash may divide or begin a regular expression, and nothing tells which, it is refused.

use crate::code::token::{Cursor, Kind, MAX_NESTING, Piece, Token, is_number};

const SIGNS: [&str; 58] = [
    ">>>=", "...", "===", "!==", "**=", "<<=", ">>=", ">>>", "&&=", "||=", "??=", "=>", "==", "!=", "<=", ">=", "&&",
    "||", "??", "?.", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<", ">>", "**", "+", "-", "*", "/",
    "%", "&", "|", "^", "~", "!", "<", ">", "(", ")", "[", "]", "{", "}", ",", ":", ".", ";", "=", "?", "@",
];

/// Keywords behind which an expression begins.
const OPERATORS: [&str; 13] =
    ["return", "typeof", "case", "in", "of", "do", "else", "void", "delete", "throw", "await", "yield", "instanceof"];

/// The tokens of a program; `None` where it is not one that can be read with certainty.
pub fn tokens(text: &str) -> Option<Vec<Token>> {
    if text.contains(['\u{2028}', '\u{2029}', '\0']) {
        return None;
    }
    let mut cursor = Cursor::new(text)?;
    let out = Lexer { cursor: &mut cursor, depth: 0 }.run(false)?;
    cursor.peek().is_none().then(|| without_soft_lines(out))
}

struct Lexer<'c> {
    cursor: &'c mut Cursor,
    depth: usize,
}

impl Lexer<'_> {
    fn run(&mut self, embedded: bool) -> Option<Vec<Token>> {
        let mut out: Vec<Token> = Vec::new();
        // For every open bracket its sign, and whether it holds the condition of an `if` or a loop.
        let mut brackets: Vec<(char, bool)> = Vec::new();
        // Whether the last bracket closed such a condition.
        let mut condition = false;
        while let Some(c) = self.cursor.peek() {
            if embedded && brackets.is_empty() && c == '}' {
                return Some(out);
            }
            match c {
                '\n' | '\r' => {
                    self.cursor.at += 1;
                    out.push(Token::new(Kind::Line, ""));
                }
                ' ' | '\t' | '\u{b}' | '\u{c}' | '\u{a0}' | '\u{feff}' => self.cursor.at += 1,
                '/' if self.cursor.starts_with("//") => self.cursor.skip_line(),
                '/' if self.cursor.starts_with("/*") => {
                    self.cursor.at += 2;
                    while !self.cursor.take("*/") {
                        self.cursor.next()?;
                    }
                }
                '<' if self.cursor.starts_with("<!--") => return None,
                '-' if self.cursor.starts_with("-->") => return None,
                '"' | '\'' => out.push(self.text()?),
                '`' => out.push(self.template()?),
                '/' => match divides(&out, condition)? {
                    true => {
                        let sign = self.cursor.sign(&["/", "/="])?;
                        out.push(Token::new(Kind::Sign, sign));
                    }
                    false => {
                        self.regex()?;
                        out.push(Token::new(Kind::Value, "//"));
                    }
                },
                c if c.is_ascii_digit() || (c == '.' && self.cursor.ahead(1).is_some_and(|c| c.is_ascii_digit())) => {
                    let number = self.number();
                    is_number(&number).then_some(())?;
                    out.push(Token::new(Kind::Value, number));
                }
                c if is_letter(c) => {
                    let word = self.cursor.while_(|c| is_letter(c) || c.is_ascii_digit());
                    out.push(Token::new(Kind::Name, word));
                }
                '?' if self.cursor.starts_with("?.") && self.cursor.ahead(2).is_some_and(|c| c.is_ascii_digit()) => {
                    self.cursor.at += 1;
                    out.push(Token::new(Kind::Sign, "?"));
                }
                _ => {
                    let sign = self.cursor.sign(&SIGNS)?;
                    condition = bracket(sign, &out, &mut brackets)?.unwrap_or(condition);
                    out.push(Token::new(Kind::Sign, sign));
                }
            }
        }
        (!embedded && brackets.is_empty()).then_some(out)
    }

    fn number(&mut self) -> String {
        let mut out = String::new();
        while let Some(c) = self.cursor.peek() {
            let sign = matches!(c, '+' | '-') && out.ends_with(['e', 'E']) && !out.starts_with("0x");
            if !(c.is_ascii_alphanumeric() || c == '_' || c == '.' || sign) {
                break;
            }
            out.push(c);
            self.cursor.at += 1;
        }
        out
    }

    fn text(&mut self) -> Option<Token> {
        let quote = self.cursor.next()?;
        let mut text = String::new();
        loop {
            match self.cursor.next()? {
                c if c == quote => return Some(Token::new(Kind::Text, text)),
                '\n' | '\r' => return None,
                '\\' => self.escape(&mut text)?,
                c => text.push(c),
            }
        }
    }

    fn template(&mut self) -> Option<Token> {
        self.cursor.at += 1;
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return None;
        }
        let (mut pieces, mut text) = (Vec::new(), String::new());
        loop {
            match self.cursor.next()? {
                '`' => break,
                '\\' => self.escape(&mut text)?,
                '$' if self.cursor.take("{") => {
                    pieces.push(Piece::Text(std::mem::take(&mut text)));
                    let code = self.run(true)?;
                    pieces.push(Piece::Code(without_soft_lines(code)));
                    if !self.cursor.take("}") {
                        return None;
                    }
                }
                c => text.push(c),
            }
        }
        self.depth -= 1;
        pieces.push(Piece::Text(text));
        Some(Token::new(Kind::Mixed(pieces), "`"))
    }

    fn escape(&mut self, text: &mut String) -> Option<()> {
        match self.cursor.next()? {
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            'b' | 'f' | 'v' => text.push('\u{b}'),
            'x' => text.push(char::from_u32(self.cursor.hex(2)?)?),
            'u' if self.cursor.take("{") => {
                let digits = self.cursor.while_(|c| c.is_ascii_hexdigit());
                text.push(char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?);
                return self.cursor.take("}").then_some(());
            }
            // Half a character of two, or a whole one.
            'u' => text.push(char::from_u32(self.cursor.hex(4)?).unwrap_or('\u{fffd}')),
            '\r' => drop(self.cursor.take("\n")),
            '\n' => {}
            first @ '0'..='7' => {
                let mut value = first.to_digit(8)?;
                for _ in 0..2 {
                    let Some(digit) = self.cursor.peek().and_then(|c| c.to_digit(8)).filter(|d| value * 8 + d < 256)
                    else {
                        break;
                    };
                    value = value * 8 + digit;
                    self.cursor.at += 1;
                }
                text.push(char::from_u32(value)?);
            }
            other => text.push(other),
        }
        Some(())
    }

    fn regex(&mut self) -> Option<()> {
        self.cursor.at += 1;
        let mut set = false;
        loop {
            match self.cursor.next()? {
                '\\' => drop(self.cursor.next().filter(|c| *c != '\n')?),
                '\n' | '\r' => return None,
                '[' => set = true,
                ']' => set = false,
                '/' if !set => break,
                _ => {}
            }
        }
        self.cursor.while_(|c| c.is_ascii_alphabetic());
        Some(())
    }
}

/// Opens or closes a bracket; when one closes, whether it held a condition.
fn bracket(sign: &str, out: &[Token], brackets: &mut Vec<(char, bool)>) -> Option<Option<bool>> {
    match sign {
        "(" | "[" | "{" => {
            let heads = ["if", "while", "for", "with"];
            let head = out.last().is_some_and(|last| heads.iter().any(|name| last.named(name)));
            let member =
                out.len() > 1 && out.get(out.len() - 2).is_some_and(|before| before.is(".") || before.is("?."));
            brackets.push((sign.chars().next()?, head && !member && sign == "("));
            Some(None)
        }
        ")" | "]" | "}" => {
            let (open, head) = brackets.pop()?;
            matches!((open, sign), ('(', ")") | ('[', "]") | ('{', "}")).then_some(Some(head))
        }
        _ => Some(None),
    }
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, '_' | '$')
}

/// Whether a slash divides what stands before it; `None` where that is not certain.
fn divides(before: &[Token], condition: bool) -> Option<bool> {
    let mut last = before.iter().rev().filter(|token| token.kind != Kind::Line);
    let Some(token) = last.next() else { return Some(false) };
    match token.kind {
        Kind::Text | Kind::Mixed(_) | Kind::Value => Some(true),
        Kind::Name => {
            let member = last.next().is_some_and(|before| before.is(".") || before.is("?."));
            Some(member || !OPERATORS.contains(&token.text.as_str()))
        }
        Kind::Sign => match token.text.as_str() {
            ")" => Some(!condition),
            "]" => Some(true),
            "}" | "++" | "--" => None,
            _ => Some(false),
        },
        Kind::Line => Some(false),
    }
}

/// Leaves out the line ends that end no statement.
fn without_soft_lines(tokens: Vec<Token>) -> Vec<Token> {
    let mut out: Vec<Token> = Vec::with_capacity(tokens.len());
    let mut brackets: Vec<bool> = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        if token.kind == Kind::Sign {
            match token.text.as_str() {
                "(" | "[" => brackets.push(true),
                "{" => brackets.push(false),
                ")" | "]" | "}" => drop(brackets.pop()),
                _ => {}
            }
        }
        if token.kind == Kind::Line {
            let begins = |next: &Token| match next.kind {
                Kind::Name => !matches!(next.text.as_str(), "in" | "instanceof"),
                Kind::Text | Kind::Value | Kind::Line => true,
                Kind::Sign => matches!(next.text.as_str(), "}" | "{" | ";"),
                Kind::Mixed(_) => false,
            };
            let ends = |last: &Token| match last.kind {
                Kind::Sign => matches!(last.text.as_str(), ")" | "]" | "}" | "++" | "--" | ";"),
                Kind::Name => !OPERATORS.contains(&last.text.as_str()),
                Kind::Text | Kind::Value | Kind::Mixed(_) => true,
                Kind::Line => false,
            };
            let soft =
                brackets.last() == Some(&true) || !out.last().is_some_and(ends) || !tokens.peek().is_none_or(begins);
            if soft {
                continue;
            }
        }
        out.push(token);
    }
    out
}
