//! Which names a Python program makes, and what paths they may hold.

use std::collections::{HashMap, HashSet};

use crate::code::token::{Kind, Token, arguments, inside, outside, past_bracket, split};

/// How a name gets a value.
#[derive(Clone, Debug)]
pub enum Binding<'t> {
    /// `name = expression`
    Is(&'t [Token]),
    /// `for name in expression`
    Each(&'t [Token]),
    /// In a way that is not followed.
    Other,
}

/// All names of a program.
#[derive(Debug, Default)]
pub struct Bindings<'t> {
    pub names: HashMap<&'t str, Vec<Binding<'t>>>,
    /// Members that the program gives to its own objects.
    pub members: HashSet<&'t str>,
}

/// How many tokens on a target or an iterable may reach.
const MAX_REACH: usize = 1024;
/// Most functions whose calls are followed.
const MAX_FUNCTIONS: usize = 32;
const UPDATES: [&str; 13] = ["+=", "-=", "*=", "/=", "//=", "%=", "&=", "|=", "^=", "**=", ">>=", "<<=", "@="];

impl<'t> Bindings<'t> {
    /// Reads a program's statements.
    pub fn of(tokens: &'t [Token]) -> Self {
        let mut out = Self::default();
        out.read(tokens, 0);
        out.functions(tokens);
        out
    }

    fn bind(&mut self, name: &'t str, binding: Binding<'t>) {
        self.names.entry(name).or_default().push(binding);
    }

    /// Every name in a target, as bound in some way.
    fn targets(&mut self, tokens: &'t [Token]) {
        for (at, token) in tokens.iter().enumerate() {
            let Some(name) = token.name() else { continue };
            if at.checked_sub(1).and_then(|at| tokens.get(at)).is_some_and(|before| before.is(".")) {
                self.members.insert(name);
            } else {
                self.bind(name, Binding::Other);
            }
        }
    }

    fn read(&mut self, tokens: &'t [Token], nesting: usize) {
        let mut start = 0;
        let mut depth = 0i32;
        for (at, token) in tokens.iter().enumerate() {
            match token.kind {
                Kind::Sign => match token.text.as_str() {
                    "(" | "[" | "{" => depth += 1,
                    ")" | "]" | "}" => depth -= 1,
                    ";" if depth == 0 => {
                        self.statement(tokens.get(start..at).unwrap_or_default());
                        start = at + 1;
                    }
                    ":" if depth == 0 && is_head(tokens.get(start..at).unwrap_or_default()) => {
                        self.header(tokens.get(start..at).unwrap_or_default());
                        start = at + 1;
                    }
                    _ => {}
                },
                Kind::Line if depth == 0 => {
                    self.statement(tokens.get(start..at).unwrap_or_default());
                    start = at + 1;
                }
                Kind::Name | Kind::Text | Kind::Mixed(_) | Kind::Value | Kind::Line => {}
            }
            self.inner(tokens, start, at, nesting);
        }
        self.statement(tokens.get(start..).unwrap_or_default());
    }

    /// Names made within expressions: `for` of a comprehension, `lambda`, `:=`, `as`, and those in texts.
    fn inner(&mut self, tokens: &'t [Token], start: usize, at: usize, nesting: usize) {
        let Some(token) = tokens.get(at) else { return };
        let end = tokens.len().min(at + 1 + MAX_REACH);
        let rest = tokens.get(at + 1..end).unwrap_or_default();
        if let Kind::Mixed(pieces) = &token.kind
            && nesting < 4
        {
            for piece in pieces {
                if let crate::code::token::Piece::Code(code) = piece {
                    self.read(code, nesting + 1);
                }
            }
        }
        if token.is(":=")
            && let Some(name) = at.checked_sub(1).and_then(|at| tokens.get(at)).and_then(Token::name)
        {
            self.bind(name, Binding::Other);
        }
        match token.name() {
            Some("for") => self.each(rest),
            Some("lambda") => {
                let end = outside(rest, |token| token.is(":")).unwrap_or(rest.len());
                self.targets(rest.get(..end).unwrap_or_default());
            }
            // The names of imports are looked at with these.
            Some("as") if tokens.get(start).is_some_and(|first| first.named("import") || first.named("from")) => {}
            Some("as") => {
                let end = outside(rest, |token| token.is(",") || token.is(":") || token.kind == Kind::Line);
                self.targets(rest.get(..end.unwrap_or(rest.len())).unwrap_or_default());
            }
            Some("case" | "global" | "nonlocal" | "del") => {
                let end = outside(rest, |token| token.is(":") || token.is(";") || token.kind == Kind::Line);
                self.targets(rest.get(..end.unwrap_or(rest.len())).unwrap_or_default());
            }
            _ => {}
        }
    }

    /// `name in expression` behind a `for`.
    fn each(&mut self, rest: &'t [Token]) {
        let Some(cut) = outside(rest, |token| token.named("in")) else { return };
        let target = rest.get(..cut).unwrap_or_default();
        let values = rest.get(cut + 1..).unwrap_or_default();
        let mut depth = 0i32;
        let end = values.iter().position(|token| {
            match token.text.as_str() {
                "(" | "[" | "{" if token.kind == Kind::Sign => depth += 1,
                ")" | "]" | "}" if token.kind == Kind::Sign => depth -= 1,
                _ => {}
            }
            let ends = token.is(":") || token.named("if") || token.named("for") || token.named("else");
            depth < 0 || (depth == 0 && (ends || token.kind == Kind::Line))
        });
        let values = values.get(..end.unwrap_or(values.len())).unwrap_or_default();
        match target {
            [only] if only.name().is_some() => self.bind(only.text.as_str(), Binding::Each(values)),
            _ => self.targets(target),
        }
    }

    /// What stands before a colon: `def f(a, b)`, `class A(B)`.
    fn header(&mut self, tokens: &'t [Token]) {
        let tokens = if tokens.first().is_some_and(|first| first.named("async")) {
            tokens.get(1..).unwrap_or_default()
        } else {
            tokens
        };
        if let [keyword, name, ..] = tokens
            && (keyword.named("def") || keyword.named("class"))
            && let Some(name) = name.name()
        {
            self.bind(name, Binding::Other);
            self.members.insert(name);
        }
    }

    fn statement(&mut self, tokens: &'t [Token]) {
        if tokens.iter().any(|token| UPDATES.iter().any(|sign| token.is(sign))) {
            let cut = tokens.iter().position(|token| UPDATES.iter().any(|sign| token.is(sign))).unwrap_or(0);
            return self.targets(tokens.get(..cut).unwrap_or_default());
        }
        let sides = split(tokens, "=");
        let Some((values, targets)) = sides.split_last() else { return };
        if let [[only]] = targets
            && let Some(name) = only.name()
        {
            self.members.insert(name);
            return self.bind(name, Binding::Is(values));
        }
        if let [name, colon, ..] = tokens
            && colon.is(":")
            && let Some(name) = name.name()
        {
            // `name: type`, with a value or without.
            self.members.insert(name);
            return self.bind(name, Binding::Other);
        }
        targets.iter().for_each(|target| self.targets(target));
    }

    /// The parameters of functions: what every call gives them, where each is a call by name.
    fn functions(&mut self, tokens: &'t [Token]) {
        let mut left = MAX_FUNCTIONS;
        for (at, token) in tokens.iter().enumerate() {
            let (Some(name), Some(open)) = (tokens.get(at + 1).and_then(Token::name), tokens.get(at + 2)) else {
                continue;
            };
            if !token.named("def") || !open.is("(") {
                continue;
            }
            let Some(parameters) = inside(tokens, at + 2) else { continue };
            let given = if left > 0 { calls(tokens, name, at + 1) } else { None };
            left = left.saturating_sub(1);
            for (place, parameter) in arguments(parameters).into_iter().enumerate() {
                let Some(first) = parameter.first() else { continue };
                let Some(own) = first.name() else {
                    self.targets(parameter);
                    continue;
                };
                match (&given, parameter.len()) {
                    // One that is never called by its name may be called by the language.
                    (Some(given), 1) if !given.is_empty() => {
                        for call in given {
                            let keyed = call.iter().find_map(|words| match words {
                                [name, equals, value @ ..] if name.named(own) && equals.is("=") => Some(value),
                                _ => None,
                            });
                            let positional =
                                call.get(place).copied().filter(|words| !words.get(1).is_some_and(|it| it.is("=")));
                            let value = keyed.or(positional);
                            let starred =
                                call.iter().any(|words| words.first().is_some_and(|it| it.is("*") || it.is("**")));
                            self.bind(own, value.filter(|_| !starred).map_or(Binding::Other, Binding::Is));
                        }
                    }
                    _ => self.bind(own, Binding::Other),
                }
            }
        }
    }
}

/// The arguments of each call of a function; `None` where it is used in another way, or has been made twice.
fn calls<'t>(tokens: &'t [Token], name: &str, own: usize) -> Option<Vec<Vec<&'t [Token]>>> {
    let mut out = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if let Kind::Mixed(_) = &token.kind {
            // A call in a text is not followed.
            continue;
        }
        if at == own || !token.named(name) {
            continue;
        }
        let member = at.checked_sub(1).and_then(|at| tokens.get(at)).is_some_and(|before| before.is("."));
        let defines = at.checked_sub(1).and_then(|at| tokens.get(at)).is_some_and(|before| before.named("def"));
        if member || defines || !tokens.get(at + 1)?.is("(") {
            return None;
        }
        past_bracket(tokens, at + 1)?;
        out.push(arguments(inside(tokens, at + 1)?));
    }
    let in_text = |token: &Token| matches!(&token.kind, Kind::Mixed(pieces) if mentions(pieces, name));
    (!tokens.iter().any(in_text)).then_some(out)
}

fn mentions(pieces: &[crate::code::token::Piece], name: &str) -> bool {
    pieces.iter().any(|piece| match piece {
        crate::code::token::Piece::Text(_) => false,
        crate::code::token::Piece::Code(code) => code.iter().any(|token| match &token.kind {
            Kind::Mixed(pieces) => mentions(pieces, name),
            Kind::Name | Kind::Text | Kind::Value | Kind::Sign | Kind::Line => token.named(name),
        }),
    })
}

/// Whether what stands before a colon is the head of a block. One with a `lambda` in it is not told apart, and is no head.
fn is_head(tokens: &[Token]) -> bool {
    const HEADS: [&str; 14] = [
        "if", "elif", "else", "for", "while", "try", "except", "finally", "with", "def", "class", "async", "match",
        "case",
    ];
    let first = tokens.first().and_then(Token::name);
    first.is_some_and(|name| HEADS.contains(&name)) && !tokens.iter().any(|token| token.named("lambda"))
}
