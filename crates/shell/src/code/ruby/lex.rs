//! Ruby's tokens. Where a sign may begin a value or stand between two, and nothing tells which, it is refused.

use std::collections::HashSet;

use crate::code::ruby::before;
use crate::code::token::{Cursor, Kind, MAX_NESTING, Piece, Token, is_number, is_word};

const SIGNS: [&str; 53] = [
    "<=>", "===", "**=", "||=", "&&=", "...", "<<=", ">>=", "=>", "->", "==", "!=", "=~", "!~", "<=", ">=", "&&", "||",
    "&.", "&:", "::", "**", "+=", "-=", "*=", "/=", "%=", "|=", "&=", "<<", ">>", "..", "+", "-", "*", "/", "%", "=",
    "<", ">", "!", "?", ":", ".", ",", ";", "(", ")", "[", "]", "{", "}", "|",
];
/// Global variables that open and run nothing.
const GLOBALS: [&str; 14] =
    ["$stdin", "$stdout", "$stderr", "$_", "$0", "$1", "$2", "$3", "$4", "$5", "$6", "$~", "$,", "$/"];

/// What stands before the next token.
#[derive(Clone, Copy, PartialEq)]
pub enum Before {
    /// Nothing, an operator, an opening bracket, a keyword.
    Start,
    /// A value.
    Operand,
    /// A name that may be a method with values behind it.
    Name,
}

/// The tokens of a program; `None` where it is not one that can be read with certainty.
pub fn tokens(text: &str) -> Option<Vec<Token>> {
    if text.contains("__END__") || text.starts_with('=') || text.contains("\n=") || text.contains('\0') {
        return None;
    }
    let mut cursor = Cursor::new(text)?;
    let mut lexer = Lexer { cursor: &mut cursor, depth: 0, own: HashSet::new() };
    let out = lexer.run(false)?;
    cursor.peek().is_none().then_some(out)
}

struct Lexer<'c> {
    cursor: &'c mut Cursor,
    depth: usize,
    /// Names that hold values.
    own: HashSet<String>,
}

impl Lexer<'_> {
    fn run(&mut self, embedded: bool) -> Option<Vec<Token>> {
        let mut out: Vec<Token> = Vec::new();
        let mut brackets = 0usize;
        let mut blank = true;
        while let Some(c) = self.cursor.peek() {
            if embedded && brackets == 0 && c == '}' {
                return Some(out);
            }
            let own = out.last().and_then(Token::name).is_some_and(|name| self.own.contains(name));
            let member = out.len() > 1 && out.get(out.len() - 2).is_some_and(|it| it.is(".") || it.is("&."));
            let state = before(out.last(), own && !member);
            let spaced = self.cursor.ahead(1).is_none_or(char::is_whitespace);
            // `name /x/` may divide, or match; `name /x` and `name / x` are told apart by their blanks.
            let unclear = state == Before::Name && !(blank && spaced);
            let term =
                state == Before::Start || (state == Before::Name && blank && !spaced && takes_values(out.last()));
            let was_blank = std::mem::replace(&mut blank, false);
            match c {
                '\n' => {
                    self.cursor.at += 1;
                    blank = true;
                    let goes_on = self.cursor.peek().is_some_and(|_| self.leads_on());
                    if !goes_on && (brackets == 0 || out.last().is_some_and(|last| !last.is(","))) {
                        out.push(Token::new(Kind::Line, ""));
                    }
                }
                ' ' | '\t' | '\r' => {
                    self.cursor.at += 1;
                    blank = true;
                }
                '#' => self.cursor.skip_line(),
                '\'' => out.push(self.plain('\'', '\'')?),
                '"' => out.push(self.double('"', '"')?),
                '`' => return None,
                '$' => out.push(self.global()?),
                '@' => {
                    self.cursor.while_(|c| c == '@');
                    let name = self.cursor.while_(is_word);
                    (!name.is_empty()).then_some(())?;
                    out.push(Token::new(Kind::Value, "@"));
                }
                '/' if term => out.push(self.regex()?),
                '/' | '%' | '<' | '?' if unclear && was_blank && !term => return None,
                '%' if term => out.push(self.percent()?),
                '?' if term => return None,
                '<' if term && self.cursor.starts_with("<<") => return None,
                ':' if self.begins_symbol(state, was_blank) => out.push(self.symbol(state, was_blank)?),
                c if c.is_ascii_digit() => out.push(self.number()?),
                c if is_word(c) => {
                    let name = self.name();
                    self.note(&name, &out);
                    out.push(Token::new(Kind::Name, name));
                }
                _ => {
                    let sign = self.cursor.sign(&SIGNS)?;
                    match sign {
                        "(" | "[" | "{" => brackets += 1,
                        ")" | "]" | "}" => brackets = brackets.checked_sub(1)?,
                        "&" => return None,
                        _ => {}
                    }
                    // A block given by its name may be a method.
                    if sign == "&:" && state == Before::Operand {
                        return None;
                    }
                    out.push(Token::new(Kind::Sign, sign));
                }
            }
        }
        (!embedded && brackets == 0).then_some(out)
    }

    /// Whether a colon begins a name, or stands behind a key in quotes.
    fn begins_symbol(&self, state: Before, blank: bool) -> bool {
        let letter = self.cursor.ahead(1).is_some_and(|c| is_word(c) && !c.is_ascii_digit());
        let quoted = self.cursor.starts_with(":\"") || self.cursor.starts_with(":'");
        let start = state == Before::Start;
        quoted || if letter { start || blank } else { start && !self.cursor.starts_with("::") }
    }

    /// `:name`, `:+`; `"a": 1` is a key, `:"a b"` is a name of any text.
    fn symbol(&mut self, state: Before, blank: bool) -> Option<Token> {
        self.cursor.at += 1;
        if matches!(self.cursor.peek(), Some('"' | '\'')) {
            return (state == Before::Operand && !blank).then(|| Token::new(Kind::Sign, ":"));
        }
        if self.cursor.peek().is_some_and(is_word) {
            return Some(Token::new(Kind::Value, format!(":{}", self.name())));
        }
        let sign = self.cursor.sign(&["+", "-", "*", "|", "&", "<<", "/", "%", "=="])?;
        Some(Token::new(Kind::Value, format!(":{sign}")))
    }

    fn name(&mut self) -> String {
        let mut name = self.cursor.while_(is_word);
        let assigned = self.cursor.ahead(1) == Some('=') && self.cursor.ahead(2) != Some('=');
        if matches!(self.cursor.peek(), Some('?' | '!')) && !assigned {
            name.extend(self.cursor.next());
        }
        name
    }

    /// Whether the next line goes on with a member.
    fn leads_on(&self) -> bool {
        let mut by = 0;
        while self.cursor.ahead(by).is_some_and(|c| c == ' ' || c == '\t') {
            by += 1;
        }
        self.cursor.ahead(by) == Some('.') && self.cursor.ahead(by + 1) != Some('.')
    }

    /// Whether the name is one that holds a value, from here on.
    fn note(&mut self, name: &str, out: &[Token]) {
        let mut by = 0;
        while self.cursor.ahead(by) == Some(' ') {
            by += 1;
        }
        let next = |more: usize| self.cursor.ahead(by + more);
        let assigned = next(0) == Some('=') && !matches!(next(1), Some('=' | '~' | '>'))
            || matches!(next(0), Some('+' | '-' | '*' | '|')) && (next(1) == Some('=') || next(2) == Some('='));
        let listed = out.last().is_some_and(|last| last.is("|") || last.is(","));
        let bars = listed && matches!(next(0), Some('|' | ','));
        let member = out.last().is_some_and(|last| last.is(".") || last.is("&."));
        if (assigned || bars) && !member {
            self.own.insert(name.to_owned());
        }
    }

    fn number(&mut self) -> Option<Token> {
        let mut text = self.cursor.while_(is_word);
        if self.cursor.peek() == Some('.') && self.cursor.ahead(1).is_some_and(|c| c.is_ascii_digit()) {
            self.cursor.at += 1;
            text = format!("{text}.{}", self.cursor.while_(is_word));
        }
        is_number(&text).then(|| Token::new(Kind::Value, text))
    }

    fn global(&mut self) -> Option<Token> {
        self.cursor.at += 1;
        let mut name = self.cursor.while_(is_word);
        if name.is_empty() {
            name.extend(self.cursor.next());
        }
        let name = format!("${name}");
        GLOBALS.contains(&name.as_str()).then(|| Token::new(Kind::Value, name))
    }

    fn plain(&mut self, open: char, close: char) -> Option<Token> {
        self.cursor.at += 1;
        let (mut text, mut depth) = (String::new(), 1usize);
        loop {
            match self.cursor.next()? {
                '\\' => match self.cursor.next()? {
                    c if c == close || c == open || c == '\\' => text.push(c),
                    c => text.extend(['\\', c]),
                },
                c if c == close => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(Token::new(Kind::Text, text));
                    }
                    text.push(c);
                }
                c => {
                    depth += usize::from(c == open && open != close);
                    text.push(c);
                }
            }
        }
    }

    fn double(&mut self, open: char, close: char) -> Option<Token> {
        self.cursor.at += 1;
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return None;
        }
        let (mut pieces, mut text, mut depth) = (Vec::new(), String::new(), 1usize);
        loop {
            match self.cursor.next()? {
                '\\' => self.escape(&mut text)?,
                '#' if self.cursor.take("{") => {
                    pieces.push(Piece::Text(std::mem::take(&mut text)));
                    pieces.push(Piece::Code(self.run(true)?));
                    self.cursor.take("}").then_some(())?;
                }
                c if c == close => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                    text.push(c);
                }
                c => {
                    depth += usize::from(c == open && open != close);
                    text.push(c);
                }
            }
        }
        self.depth -= 1;
        if pieces.is_empty() {
            return Some(Token::new(Kind::Text, text));
        }
        pieces.push(Piece::Text(text));
        Some(Token::new(Kind::Mixed(pieces), ""))
    }

    fn escape(&mut self, text: &mut String) -> Option<()> {
        match self.cursor.next()? {
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            'e' | 'a' | 'b' | 's' | 'v' | 'f' => text.push(' '),
            '\n' => {}
            c if c.is_ascii_alphanumeric() => return self.coded(c, text),
            c => text.push(c),
        }
        Some(())
    }

    /// `\u0041`, `\x41`, `\101`
    fn coded(&mut self, kind: char, text: &mut String) -> Option<()> {
        let value = match kind {
            'u' if self.cursor.peek() != Some('{') => self.cursor.hex(4)?,
            'x' => self.cursor.hex(2)?,
            '0'..='7' => {
                let more = self.cursor.while_(|c| c.is_digit(8));
                u32::from_str_radix(&format!("{kind}{more}"), 8).ok()?
            }
            _ => return None,
        };
        text.push(char::from_u32(value)?);
        Some(())
    }

    /// A regular expression, with its interpolations.
    fn regex(&mut self) -> Option<Token> {
        let mut pieces = Vec::new();
        self.cursor.at += 1;
        loop {
            match self.cursor.next()? {
                '\\' => drop(self.cursor.next()?),
                '/' => break,
                '\n' => return None,
                '#' if self.cursor.take("{") => {
                    self.depth += 1;
                    (self.depth <= MAX_NESTING).then_some(())?;
                    pieces.push(Piece::Code(self.run(true)?));
                    self.depth -= 1;
                    self.cursor.take("}").then_some(())?;
                }
                _ => {}
            }
        }
        self.cursor.while_(|c| c.is_ascii_alphabetic());
        Some(if pieces.is_empty() { Token::new(Kind::Value, "//") } else { Token::new(Kind::Mixed(pieces), "/") })
    }

    /// `%w[a b]`, `%i[a b]`, `%q(a)`, `%Q(a)`
    fn percent(&mut self) -> Option<Token> {
        self.cursor.at += 1;
        let kind = self.cursor.next()?;
        let open = self.cursor.peek().filter(|c| !c.is_alphanumeric() && !c.is_whitespace())?;
        let close = match open {
            '(' => ')',
            '[' => ']',
            '{' => '}',
            '<' => '>',
            other => other,
        };
        match kind {
            'w' | 'i' | 'q' => self.plain(open, close).map(|_| Token::new(Kind::Value, "%")),
            'Q' | 'W' => self.double(open, close),
            _ => None,
        }
    }
}

/// Names behind which a value stands.
fn takes_values(last: Option<&Token>) -> bool {
    const TAKING: [&str; 22] = [
        "puts",
        "print",
        "p",
        "pp",
        "printf",
        "match",
        "match?",
        "split",
        "gsub",
        "sub",
        "scan",
        "grep",
        "raise",
        "format",
        "sprintf",
        "warn",
        "grep_v",
        "start_with?",
        "delete",
        "include?",
        "gsub!",
        "sub!",
    ];
    last.and_then(Token::name).is_some_and(|name| TAKING.contains(&name))
}
