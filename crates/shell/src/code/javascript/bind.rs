//! Which names a JavaScript program makes, and from what.

use std::collections::HashMap;

use crate::code::token::{Kind, Piece, Token, inside, past_bracket, split};

/// How a name gets a value.
#[derive(Clone, Copy, Debug)]
pub enum Binding<'t> {
    /// `const name = expression`, `name = expression`
    Is(&'t [Token]),
    /// `for (const name of expression)`
    Each(&'t [Token]),
    /// In a way that is not followed.
    Other,
}

/// All names of a program.
pub type Bindings<'t> = HashMap<&'t str, Vec<Binding<'t>>>;

/// How many tokens on an expression may reach.
const MAX_REACH: usize = 4096;
const UPDATES: [&str; 15] =
    ["+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "**=", "<<=", ">>=", ">>>=", "&&=", "||=", "??="];

/// Reads a program's declarations and assignments.
pub fn bindings(tokens: &[Token]) -> Bindings<'_> {
    let mut out = Bindings::new();
    read(tokens, &mut out, 0);
    out
}

fn read<'t>(tokens: &'t [Token], out: &mut Bindings<'t>, nesting: usize) {
    for (at, token) in tokens.iter().enumerate() {
        let end = tokens.len().min(at + 1 + MAX_REACH);
        let rest = tokens.get(at + 1..end).unwrap_or_default();
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        match &token.kind {
            Kind::Mixed(pieces) if nesting < 4 => {
                for piece in pieces {
                    if let Piece::Code(code) = piece {
                        read(code, out, nesting + 1);
                    }
                }
            }
            Kind::Name => match token.text.as_str() {
                "const" | "let" | "var" => declaration(rest, out),
                "function" => {
                    let rest = rest.strip_prefix(&[Token::new(Kind::Sign, "*")]).unwrap_or(rest);
                    let named = rest.first().and_then(Token::name);
                    if let Some(name) = named {
                        bind(out, name, Binding::Other);
                    }
                    parameters(rest.get(usize::from(named.is_some())..).unwrap_or_default(), out);
                }
                "catch"
                    if rest.first().is_some_and(|open| open.is("("))
                        && !before.is_some_and(|it| it.is(".") || it.is("?.")) =>
                {
                    parameters(rest, out);
                }
                "import" => import(rest, out),
                name => {
                    let member = before.is_some_and(|before| before.is(".") || before.is("?."));
                    if rest.first().is_some_and(|next| next.is("=>")) {
                        bind(out, name, Binding::Other);
                    } else if !member && rest.first().is_some_and(|next| next.is("=")) && !is_declared(before) {
                        bind(out, name, Binding::Is(expression(rest.get(1..).unwrap_or_default())));
                    } else if before.is_some_and(|before| before.is("("))
                        && rest.first().is_some_and(|next| next.named("of") || next.named("in"))
                    {
                        // `for (name of …)` without a declaration.
                        bind(out, name, Binding::Other);
                    } else if !member && rest.first().is_some_and(|next| UPDATES.iter().any(|sign| next.is(sign))) {
                        bind(out, name, Binding::Other);
                    }
                }
            },
            Kind::Sign if token.text == "(" => {
                let closed = past_bracket(rest_with(tokens, at, end), 0);
                if closed.is_some_and(|closed| tokens.get(at + closed).is_some_and(|next| next.is("=>"))) {
                    parameters(rest_with(tokens, at, end), out);
                }
            }
            Kind::Text | Kind::Mixed(_) | Kind::Value | Kind::Sign | Kind::Line => {}
        }
    }
}

fn rest_with(tokens: &[Token], at: usize, end: usize) -> &[Token] {
    tokens.get(at..end).unwrap_or_default()
}

fn bind<'t>(out: &mut Bindings<'t>, name: &'t str, binding: Binding<'t>) {
    out.entry(name).or_default().push(binding);
}

/// Whether what stands before a name declares it.
fn is_declared(before: Option<&Token>) -> bool {
    before.is_some_and(|before| ["const", "let", "var"].iter().any(|word| before.named(word)))
}

/// Up to the end of an expression: a comma, a semicolon, a line, or a bracket that closes what is around it.
pub fn expression(tokens: &[Token]) -> &[Token] {
    let mut depth = 0i32;
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Sign => match token.text.as_str() {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" if depth == 0 => return tokens.get(..at).unwrap_or_default(),
                ")" | "]" | "}" => depth -= 1,
                "," | ";" if depth == 0 => return tokens.get(..at).unwrap_or_default(),
                _ => {}
            },
            Kind::Line if depth == 0 => return tokens.get(..at).unwrap_or_default(),
            Kind::Name | Kind::Text | Kind::Mixed(_) | Kind::Value | Kind::Line => {}
        }
    }
    tokens
}

/// `a = 1, {b, c: d} = e`, `x of y`
fn declaration<'t>(tokens: &'t [Token], out: &mut Bindings<'t>) {
    let mut rest = tokens;
    loop {
        let Some(first) = rest.first() else { return };
        if let Some(name) = first.name() {
            match rest.get(1) {
                Some(next) if next.is("=") => {
                    let value = expression(rest.get(2..).unwrap_or_default());
                    bind(out, name, Binding::Is(value));
                    rest = rest.get(2 + value.len()..).unwrap_or_default();
                }
                Some(next) if next.named("of") => {
                    return bind(out, name, Binding::Each(expression(rest.get(2..).unwrap_or_default())));
                }
                _ => {
                    bind(out, name, Binding::Other);
                    rest = rest.get(1..).unwrap_or_default();
                }
            }
        } else if first.is("{") || first.is("[") {
            let Some(end) = past_bracket(rest, 0) else { return };
            names(rest.get(..end).unwrap_or_default(), out);
            let value = expression(rest.get(end..).unwrap_or_default());
            rest = rest.get(end + value.len()..).unwrap_or_default();
        } else {
            return;
        }
        if !rest.first().is_some_and(|next| next.is(",")) {
            return;
        }
        rest = rest.get(1..).unwrap_or_default();
    }
}

/// The parameters in the brackets that begin here.
fn parameters<'t>(tokens: &'t [Token], out: &mut Bindings<'t>) {
    if tokens.first().is_some_and(|open| open.is("("))
        && let Some(inner) = inside(tokens, 0)
    {
        for one in split(inner, ",") {
            // A default value makes no name.
            let sides = split(one, "=");
            names(sides.first().copied().unwrap_or_default(), out);
        }
    }
}

/// Every name of a pattern that is neither a key nor in a default value.
fn names<'t>(tokens: &'t [Token], out: &mut Bindings<'t>) {
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let key = tokens.get(at + 1).is_some_and(|next| next.is(":"));
        if token.is("=") {
            at += expression(tokens.get(at + 1..).unwrap_or_default()).len();
        } else if let Some(name) = token.name().filter(|_| !key) {
            bind(out, name, Binding::Other);
        }
        at += 1;
    }
}

/// `import a, {b as c} from 'd'`
fn import<'t>(tokens: &'t [Token], out: &mut Bindings<'t>) {
    let end = tokens.iter().position(|token| token.named("from")).unwrap_or(0);
    for (at, token) in tokens.get(..end).unwrap_or_default().iter().enumerate() {
        let renamed = tokens.get(at + 1).is_some_and(|next| next.named("as"));
        if let Some(name) = token.name().filter(|name| *name != "as" && !renamed) {
            bind(out, name, Binding::Other);
        }
    }
}
