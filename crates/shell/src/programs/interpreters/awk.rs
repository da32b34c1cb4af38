//! awk's programs: which commands they run, which files they read and write.
//!
//! A lexer, no parser: strings, regular expressions (where `/` cannot divide) and comments are told apart, and `>`, `>>` and
//! `|` count only where they redirect: in `print` and `printf` outside parentheses, and with `getline`.

use writ_core::Span;

use crate::action::{Access, UnresolvedKind};
use crate::eval::Eval;
use crate::eval::input::Input;
use crate::options::Options;
use crate::programs::entries::own;
use crate::programs::entries::words::Role;
use crate::programs::foreign::{Script, mentions, past_regex, script_text};
use crate::shape::{host, text_word};
use crate::word::{Part, Source, Word};

/// Follows the program of a call of awk.
pub fn run(eval: &mut Eval<'_>, base: &str, arguments: &[Word], input: &Input) {
    let options = Options::read(arguments, own("awk"), false);
    let mut given = false;
    let mut in_place = false;
    for (name, role, value) in &options.values {
        if *role == Role::Code {
            program(eval, base, value);
        } else if *role == Role::Script {
            match script_text(eval, value, input) {
                Script::Text(text) => program(eval, base, &text_word(&text, value.span)),
                Script::File => {}
                Script::Unknown => eval.unresolved(UnresolvedKind::Script, &format!("{base} {name}"), value.span),
            }
        } else if *role == Role::Include && value.literal().is_some_and(|text| text.starts_with("inplace")) {
            in_place = true;
        } else if matches!(role, Role::Include | Role::Library) {
            eval.unresolved(UnresolvedKind::Code, &format!("{base} {name}"), value.span);
        }
        given |= matches!(role, Role::Code | Role::Script);
    }
    let mut operands = options.operands.iter().filter_map(|at| arguments.get(*at));
    if !given && let Some(code) = operands.next() {
        program(eval, base, code);
    }
    if in_place {
        for file in operands {
            eval.file(file.clone(), Access::Write, false);
            eval.file(file.clone(), Access::Read, false);
        }
    }
}

fn program(eval: &mut Eval<'_>, base: &str, code: &Word) {
    let open = |eval: &mut Eval<'_>| eval.unresolved_with(UnresolvedKind::Code, base, code.span, mentions(code));
    let Some(tokens) = code.literal().as_deref().and_then(tokens) else { return open(eval) };
    let mut reader = Reader { eval, base, tokens: &tokens, at: 0, span: code.span, open: false };
    reader.statements();
    if reader.open {
        open(eval);
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Text(String),
    /// A number, a regular expression: an operand that is no name.
    Value,
    Name(String),
    /// Operators and brackets, one or two characters; `\n` and `;` end statements.
    Sign(&'static str),
}

const SIGNS: [&str; 44] = [
    "|&", "||", "&&", ">>", ">=", "<=", "==", "!=", "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "**", "!~", "{",
    "}", "(", ")", "[", "]", ";", "\n", ",", "+", "-", "*", "/", "%", "^", "!", ">", "<", "|", "?", ":", "~", "$", "=",
    "@", ".",
];

/// `None` where a string or a regular expression does not end.
fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut out: Vec<Token> = Vec::new();
    // For every open parenthesis: whether it holds the condition of an `if`, `while` or `for`.
    let mut conditions: Vec<bool> = Vec::new();
    // Whether what comes next may be divided by.
    let mut operand = false;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let mut taken = c.len_utf8();
        match c {
            '"' => {
                let (string, len) = string(rest)?;
                out.push(Token::Text(string));
                (taken, operand) = (len, true);
            }
            '/' if !operand => {
                taken = regex(rest)?;
                out.push(Token::Value);
                operand = true;
            }
            '#' => taken = rest.find('\n').unwrap_or(rest.len()),
            '\\' => taken = rest.char_indices().nth(2).map_or(rest.len(), |(at, _)| at),
            c if c.is_ascii_digit() => {
                taken = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(rest.len());
                out.push(Token::Value);
                operand = true;
            }
            c if c.is_alphabetic() || c == '_' => {
                taken = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                let name = rest.get(..taken)?;
                operand =
                    !matches!(name, "print" | "printf" | "return" | "in" | "else" | "do" | "case" | "getline" | "exit");
                out.push(Token::Name(name.to_owned()));
            }
            c if c.is_whitespace() && c != '\n' => {}
            _ => {
                let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign))?;
                match *sign {
                    "(" => {
                        conditions.push(out.last().is_some_and(takes_condition));
                        operand = false;
                    }
                    ")" => operand = !conditions.pop().unwrap_or_default(),
                    "]" => operand = true,
                    "++" | "--" => {}
                    _ => operand = false,
                }
                out.push(Token::Sign(sign));
                taken = sign.len();
            }
        }
        rest = rest.get(taken..).unwrap_or_default();
    }
    Some(out)
}

fn takes_condition(token: &Token) -> bool {
    matches!(token, Token::Name(name) if matches!(name.as_str(), "if" | "while" | "for" | "switch"))
}

/// A string's value and its length with the quotes.
fn string(text: &str) -> Option<(String, usize)> {
    let mut out = String::new();
    let mut chars = text.char_indices().skip(1);
    loop {
        match chars.next()? {
            (at, '"') => return Some((out, at + 1)),
            (_, '\\') => match chars.next()?.1 {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                digit @ '0'..='7' => {
                    // Enough for the octal digits that hide a letter.
                    let mut value = digit.to_digit(8)?;
                    let mut more = chars.clone();
                    for _ in 0..2 {
                        let Some(next) = more.next().and_then(|(_, c)| c.to_digit(8)) else { break };
                        value = value * 8 + next;
                        chars.next();
                    }
                    out.push(char::from_u32(value)?);
                }
                '\n' => {}
                other => out.push(other),
            },
            (_, c) => out.push(c),
        }
    }
}

/// The length of a regular expression, slashes included.
fn regex(text: &str) -> Option<usize> {
    let mut chars = text.get(1..)?.chars();
    past_regex(&mut chars, '/', true)?;
    let len = text.len() - chars.as_str().len();
    text.get(..len).filter(|regex| !regex.contains('\n')).map(str::len)
}

struct Reader<'r, 'e> {
    eval: &'r mut Eval<'e>,
    base: &'r str,
    tokens: &'r [Token],
    at: usize,
    span: Span,
    /// Whether something in it cannot be known.
    open: bool,
}

impl Reader<'_, '_> {
    fn sign(&self, at: usize) -> &'static str {
        match self.tokens.get(at) {
            Some(Token::Sign(sign)) => sign,
            _ => "",
        }
    }

    fn statements(&mut self) {
        let (mut output, mut depth, mut getline) = (false, 0usize, false);
        while let Some(token) = self.tokens.get(self.at) {
            let here = self.at;
            self.at += 1;
            match token {
                Token::Name(name) => match name.as_str() {
                    "print" | "printf" => (output, depth) = (true, 0),
                    "getline" => getline = true,
                    "system" => self.system(),
                    "ARGV" => self.argument(),
                    _ => {}
                },
                Token::Sign(sign) => match *sign {
                    ";" | "\n" | "{" | "}" => (output, depth, getline) = (false, 0, false),
                    "(" => depth += 1,
                    ")" => (depth, getline) = (depth.saturating_sub(1), false),
                    ">" | ">>" if output && depth == 0 => {
                        let target = self.expression();
                        self.write(target);
                    }
                    "|" | "|&" if matches!(self.tokens.get(here + 1), Some(Token::Name(name)) if name == "getline") => {
                        self.read_from(here);
                    }
                    "|" | "|&" if output && depth == 0 => {
                        let target = self.expression();
                        self.run(target);
                    }
                    "<" if getline => {
                        let target = self.primary();
                        self.open |= target.literal().is_none();
                        self.eval.file(target, Access::Read, false);
                        getline = false;
                    }
                    // `@name()` calls what a string names; `@load` takes a library.
                    "@" if !matches!(self.tokens.get(here + 1), Some(Token::Name(name)) if name == "include" || name == "namespace") =>
                    {
                        self.open |= !matches!(self.tokens.get(here + 1), Some(Token::Value));
                    }
                    _ => {}
                },
                Token::Text(_) | Token::Value => {}
            }
        }
    }

    /// Texts side by side up to the end of the statement; what is no text is unknown.
    fn expression(&mut self) -> Word {
        let mut parts = Vec::new();
        let mut depth = 0usize;
        while let Some(token) = self.tokens.get(self.at) {
            match token {
                Token::Sign(";" | "\n" | "}") => break,
                Token::Sign("(") => depth += 1,
                Token::Sign(")") if depth == 0 => break,
                Token::Sign(")") => depth -= 1,
                Token::Text(text) => parts.push(Part::Text(text.clone())),
                Token::Value | Token::Name(_) | Token::Sign(_) => {
                    if !parts.last().is_some_and(Part::is_unknown) {
                        parts.push(Part::Unknown(Source::Any));
                    }
                }
            }
            self.at += 1;
        }
        Word { parts, span: self.span }
    }

    /// One text, or something unknown.
    fn primary(&mut self) -> Word {
        match self.tokens.get(self.at) {
            Some(Token::Text(text)) => text_word(text, self.span),
            Some(Token::Sign("(")) => {
                self.at += 1;
                self.expression()
            }
            _ => Word { parts: vec![Part::Unknown(Source::Any)], span: self.span },
        }
    }

    /// `system(…)`: followed where it is a text, and code of another interpreter all the same.
    fn system(&mut self) {
        if self.sign(self.at) != "(" {
            return;
        }
        self.at += 1;
        let code = self.expression();
        self.run(code);
        self.open = true;
    }

    /// `ARGV[1] = "file"`: one more file to read.
    fn argument(&mut self) {
        let Some(close) = self.tokens.iter().skip(self.at).take(64).position(|token| *token == Token::Sign("]")) else {
            return;
        };
        if self.sign(self.at) == "[" && self.sign(self.at + close + 1) == "=" {
            self.at += close + 2;
            let file = self.expression();
            self.eval.file(file, Access::Read, false);
        }
    }

    /// What stands before `| getline`.
    fn read_from(&mut self, here: usize) {
        let before = |back: usize| here.checked_sub(back).and_then(|at| self.tokens.get(at));
        let alone = matches!(
            before(2),
            None | Some(Token::Sign("(" | "{" | "}" | ";" | "\n" | "," | "!" | "&&" | "||" | "=" | ")"))
        );
        match before(1) {
            Some(Token::Text(text)) if alone => self.run(text_word(text, self.span)),
            _ => {}
        }
        self.open = true;
    }

    fn run(&mut self, code: Word) {
        if let Some(text) = code.literal()
            && let Some(socket) = text.strip_prefix("/inet")
        {
            if let Some(name) = socket.split('/').nth(3) {
                self.eval.net(host(name, self.span), self.span);
            }
        } else if code.parts.iter().any(|part| !part.is_unknown()) {
            self.eval.code(&code, None, self.base);
        } else {
            self.open = true;
        }
    }

    fn write(&mut self, file: Word) {
        self.open |= file.literal().is_none();
        if !file.literal().is_some_and(|text| matches!(text.as_str(), "-" | "/dev/stdout" | "/dev/stderr" | "/dev/tty"))
        {
            self.eval.file(file, Access::Write, false);
        }
    }
}
