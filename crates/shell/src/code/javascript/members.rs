//! `value[key]`: behind data, or with a key that is a number or a harmless text; and what may be assigned so.

use crate::code::javascript::{Binding, LANGUAGE, Reader, ends_operand};
use crate::code::table;
use crate::code::token::{Kind, Token, inside, past_bracket};
use crate::programs::entries::words::List;

/// Methods that return no function, whatever they are called on.
const PLAIN: [&str; 15] = [
    "split", "map", "filter", "slice", "sort", "reverse", "concat", "match", "flat", "flatMap", "keys", "values",
    "entries", "toSorted", "trim",
];

/// Whether the program gives one of these names another meaning.
pub fn redefines(tokens: &[Token]) -> bool {
    tokens.iter().enumerate().any(|(at, token)| {
        let own = matches!(token.kind, Kind::Name | Kind::Text) && PLAIN.contains(&token.text.as_str());
        let member =
            at.checked_sub(1).and_then(|at| tokens.get(at)).is_some_and(|before| before.is(".") || before.is("?."));
        own && tokens.get(at + 1).is_some_and(|next| next.is(":") || next.is("=") || (next.is("(") && !member))
    })
}

/// Whether the template here is `String.raw`'s.
pub fn is_raw(tokens: &[Token], at: usize) -> bool {
    let before = at.checked_sub(3).and_then(|from| tokens.get(from..at));
    matches!(before, Some([string, dot, raw]) if string.named("String") && dot.is(".") && raw.named("raw"))
}

/// The bracket that the one before `at` closes.
fn opening(tokens: &[Token], at: usize) -> Option<usize> {
    let mut depth = 0i32;
    tokens.get(..at)?.iter().rposition(|token| {
        match token.text.as_str() {
            ")" | "]" | "}" if token.kind == Kind::Sign => depth += 1,
            "(" | "[" | "{" if token.kind == Kind::Sign => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}

/// Whether the pattern before `at` is declared by `const`, `let` or `var`.
pub fn is_declared_before(tokens: &[Token], at: usize) -> bool {
    let before = opening(tokens, at).and_then(|open| open.checked_sub(1)).and_then(|at| tokens.get(at));
    before.is_some_and(|before| ["const", "let", "var"].iter().any(|word| before.named(word)))
}

impl<'t> Reader<'t> {
    /// Whether a key in brackets at `at` cannot lead out.
    pub(super) fn is_safe_key(&self, tokens: &'t [Token], at: usize, key: &'t [Token]) -> bool {
        match key {
            [] => return false,
            [only] if only.kind == Kind::Text => {
                let called = past_bracket(tokens, at).and_then(|end| tokens.get(end)).is_some_and(|next| next.is("("));
                let harmless = !table::has(LANGUAGE, List::Escapes, &only.text) && !only.text.starts_with("__");
                // The list of a module counts for its members by this name too.
                return harmless && !called && !self.is_module_behind(tokens, at);
            }
            _ => {}
        }
        !self.is_module_behind(tokens, at) && (self.is_number(key, 0) || self.is_data_behind(tokens, at))
    }

    /// Whether a module or listed object stands before the bracket.
    fn is_module_behind(&self, tokens: &[Token], at: usize) -> bool {
        let Some(before) = at.checked_sub(1).and_then(|at| tokens.get(at)).and_then(Token::name) else { return false };
        let member = at.checked_sub(2).and_then(|at| tokens.get(at)).is_some_and(|it| it.is(".") || it.is("?."));
        // `process.argv[1]`, `process.env[name]`
        let data = member && matches!(before, "argv" | "env" | "versions");
        let listed = |name: &str| table::is_module(LANGUAGE, name) && !self.bindings.contains_key(name);
        !data
            && !member
            && (listed(before)
                || matches!(self.imports.get(before), Some(super::Import::Listed(_) | super::Import::Opaque)))
    }

    /// Whether what stands before the bracket is a name that only ever holds data.
    fn is_data_behind(&self, tokens: &'t [Token], at: usize) -> bool {
        let Some(name) = at.checked_sub(1).and_then(|at| tokens.get(at)).and_then(Token::name) else { return false };
        let before = at.checked_sub(2).and_then(|at| tokens.get(at));
        if before.is_some_and(|before| before.is(".") || before.is("?.")) {
            let object = at.checked_sub(3).and_then(|at| tokens.get(at)).and_then(Token::name);
            return object == Some("process")
                && matches!(name, "env" | "argv" | "versions")
                && !self.bindings.contains_key("process");
        }
        if self.imports.get(name) == Some(&super::Import::Data) {
            return true;
        }
        let Some(bindings) = self.bindings.get(name) else { return false };
        bindings.iter().all(|binding| matches!(binding, Binding::Is(value) if self.is_data(value, 0)))
    }

    /// Whether an expression is surely no function.
    fn is_data(&self, tokens: &'t [Token], depth: usize) -> bool {
        let Some(first) = tokens.first().filter(|_| depth < 8) else { return false };
        if first.is("{") || first.is("[") {
            return past_bracket(tokens, 0) == Some(tokens.len());
        }
        // The call that the expression ends in.
        let Some(open) = tokens.last().filter(|last| last.is(")")).and_then(|_| opening(tokens, tokens.len())) else {
            return false;
        };
        let head = tokens.get(..open).unwrap_or_default();
        let simple = !has_operator(head);
        match head {
            [json, dot, parse] if json.named("JSON") && dot.is(".") => parse.named("parse"),
            [object, dot, member] if object.named("Object") && dot.is(".") => {
                matches!(member.text.as_str(), "keys" | "values" | "entries" | "fromEntries")
            }
            [require] if require.named("require") => {
                matches!(inside(tokens, open), Some([name]) if name.kind == Kind::Text && name.text.ends_with(".json"))
            }
            [.., dot, method] => {
                simple && (dot.is(".") || dot.is("?.")) && self.own_methods && PLAIN.contains(&method.text.as_str())
            }
            _ => false,
        }
    }

    /// Whether an expression is surely a number.
    pub(super) fn is_number(&self, tokens: &'t [Token], depth: usize) -> bool {
        if depth > 6 || tokens.is_empty() {
            return false;
        }
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            match &token.kind {
                Kind::Value if token.text != "//" => {}
                Kind::Sign if matches!(token.text.as_str(), "+" | "-" | "*" | "/" | "%" | "(" | ")" | "++" | "--") => {}
                Kind::Name => {
                    let length = tokens.get(at + 1).is_some_and(|dot| dot.is("."))
                        && tokens.get(at + 2).is_some_and(|it| it.named("length"));
                    let counts = || {
                        let own = |binding: &Binding<'t>| match binding {
                            Binding::Is(value) => value.len() < 8 && self.is_number(value, depth + 1),
                            Binding::Each(_) | Binding::Other => false,
                        };
                        self.bindings.get(token.text.as_str()).is_some_and(|all| all.len() < 8 && all.iter().all(own))
                    };
                    // The length of what is no list may be a text; less something, it is a number.
                    if length && tokens.get(at + 3).is_some_and(|next| next.is("-")) {
                        at += 2;
                    } else if !counts() {
                        return false;
                    }
                }
                Kind::Text | Kind::Mixed(_) | Kind::Value | Kind::Sign | Kind::Line => return false,
            }
            at += 1;
        }
        true
    }

    /// `value[key] = …`: what is put there is no function. Patterns assign by `const`, `let` and `var` alone.
    pub(super) fn assignment(&mut self, tokens: &'t [Token], at: usize) {
        let Some(last) = at.checked_sub(1).and_then(|at| tokens.get(at)) else { return };
        if !(last.is("]") || last.is("}")) {
            return;
        }
        if is_declared_before(tokens, at) {
            return;
        }
        let open = opening(tokens, at);
        let before = open.and_then(|open| open.checked_sub(1)).and_then(|at| tokens.get(at));
        let key = open.and_then(|open| inside(tokens, open)).unwrap_or_default();
        let member = last.is("]") && before.is_some_and(ends_operand);
        let literal = matches!(key, [only] if only.kind == Kind::Text);
        let value = super::bind::expression(tokens.get(at + 1..).unwrap_or_default());
        if !member || !(literal || self.is_number(key, 0) || is_primitive(value)) {
            self.refuse();
        }
    }
}

/// Whether a text or number comes out of an expression whatever its names hold, or a new list or object.
fn is_primitive(tokens: &[Token]) -> bool {
    let plain = |token: &Token| match token.kind {
        Kind::Text | Kind::Value | Kind::Mixed(_) => true,
        Kind::Name | Kind::Sign | Kind::Line => matches!(token.text.as_str(), "true" | "false" | "null" | "undefined"),
    };
    match tokens {
        [only] => plain(only),
        [first, .., last] if (first.is("[") && last.is("]")) || (first.is("{") && last.is("}")) => {
            past_bracket(tokens, 0) == Some(tokens.len())
        }
        // `(counts[x] || 0) + 1`
        [.., sign, number] => {
            let enclosed =
                matches!(tokens, [open, ..] if open.is("(")) && past_bracket(tokens, 0) == Some(tokens.len() - 2);
            number.kind == Kind::Value
                && number.text != "//"
                && (sign.is("+") || sign.is("-") || sign.is("*"))
                && (enclosed || !has_operator(tokens.get(..tokens.len() - 2).unwrap_or_default()))
        }
        _ => false,
    }
}

/// Whether an operator joins or chooses between values outside brackets.
fn has_operator(tokens: &[Token]) -> bool {
    let mut depth = 0i32;
    tokens.iter().any(|token| {
        if token.kind != Kind::Sign {
            return token.kind == Kind::Name && matches!(token.text.as_str(), "in" | "of" | "instanceof" | "new");
        }
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            "." | "?." => {}
            _ => return depth == 0,
        }
        false
    })
}
