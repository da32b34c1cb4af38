//! JavaScript: every free name is on a list, every method that is called too, and no member leads to `Function`.
//!
//! A value of such a program is one of the language's own or a function of the program. From them, code made of text can be
//! reached through `constructor` alone (or through what reads members by name), so the names that lead there are refused, and
//! `value[key]` with a key that is no number stands only behind data: a parsed text, a literal, what a listed method returns.

mod bind;
mod calls;
mod imports;
mod lex;
mod members;

use std::cell::Cell;
use std::collections::HashMap;

use self::bind::{Binding, Bindings, bindings};
use crate::code::token::{Kind, MAX_NESTING, Piece, Token, inside};
use crate::code::{Around, Reading, table};
use crate::programs::entries::words::{Effect, List};

const LANGUAGE: &str = "javascript";

/// What an imported name is.
#[derive(Clone, Debug, PartialEq)]
enum Import {
    /// A listed module or a member of one, by its full name.
    Listed(String),
    /// A JSON file: data.
    Data,
    /// A module that is not on a list.
    Opaque,
}

struct Reader<'t> {
    tokens: &'t [Token],
    bindings: Bindings<'t>,
    imports: HashMap<String, Import>,
    around: &'t Around<'t>,
    out: Reading,
    /// Whether methods by the names of the language's own are these.
    own_methods: bool,
    /// How much more is looked at.
    steps: Cell<usize>,
}

/// Reads a program.
pub fn read(text: &str, around: &Around<'_>) -> Reading {
    let Some(tokens) = lex::tokens(text) else { return Reading::default() };
    let mut reader = Reader {
        tokens: &tokens,
        bindings: bindings(&tokens),
        imports: HashMap::new(),
        around,
        out: Reading { harmless: true, ..Reading::default() },
        own_methods: !members::redefines(&tokens),
        steps: Cell::new(400_000),
    };
    reader.import_all();
    reader.own_names();
    reader.walk(&tokens, 0);
    reader.out
}

impl<'t> Reader<'t> {
    /// Something is not on the list.
    fn refuse(&mut self) {
        self.out.harmless = false;
    }

    /// Names that the program makes may not be those that mean something else.
    fn own_names(&mut self) {
        let bad = |name: &&&str| {
            let name = **name;
            let known = table::has(LANGUAGE, List::Reserved, name)
                || table::has(LANGUAGE, List::Names, name)
                || is_global(name);
            let escapes = table::has(LANGUAGE, List::Escapes, name);
            let imported = self.imports.contains_key(name) && !self.is_import_only(name);
            escapes || imported || (known && !self.imports.contains_key(name))
        };
        if self.bindings.keys().any(|name| bad(&name)) {
            self.refuse();
        }
    }

    fn walk(&mut self, tokens: &'t [Token], depth: usize) {
        if depth > MAX_NESTING {
            return self.refuse();
        }
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let before = at.checked_sub(1).and_then(|at| tokens.get(at));
            match &token.kind {
                Kind::Mixed(pieces) => {
                    // A template behind a value calls it.
                    if before.is_some_and(ends_operand) && !members::is_raw(tokens, at) {
                        self.refuse();
                    }
                    for piece in pieces {
                        if let Piece::Code(code) = piece {
                            self.walk(code, depth + 1);
                        }
                    }
                }
                Kind::Sign => self.sign(tokens, at),
                Kind::Text => {
                    let key = tokens.get(at + 1).is_some_and(|next| next.is(":"));
                    if key && table::has(LANGUAGE, List::Escapes, &token.text) {
                        self.refuse();
                    }
                }
                Kind::Name => {
                    at = self.name(tokens, at);
                    continue;
                }
                Kind::Value | Kind::Line => {}
            }
            at += 1;
        }
    }

    /// A name, wherever it stands. Returns where to go on.
    fn name(&mut self, tokens: &'t [Token], at: usize) -> usize {
        let Some(name) = tokens.get(at).and_then(Token::name) else { return at + 1 };
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        let next = tokens.get(at + 1);
        if before.is_some_and(|before| before.is(".") || before.is("?.")) {
            self.member(tokens, at);
            return at + 1;
        }
        let key = next.is_some_and(|next| next.is(":"))
            && before.is_some_and(|before| before.is("{") || before.is(",") || before.kind == Kind::Line);
        if key {
            if table::has(LANGUAGE, List::Escapes, name) {
                self.refuse();
            }
            return at + 1;
        }
        match name {
            "new" => return self.construct(tokens, at),
            "require" => return self.require(tokens, at),
            // What an import makes was looked at with the imports.
            "const" | "let" | "var" => return at + 1 + imports::target_len(tokens.get(at + 1..).unwrap_or_default()),
            "import" => return self.import_at(tokens, at),
            _ => {}
        }
        if name == "of"
            && before.is_some_and(|before| before.is("]") || before.is("}"))
            && !members::is_declared_before(tokens, at)
        {
            self.refuse();
        }
        if table::has(LANGUAGE, List::Keywords, name) {
            return at + 1;
        }
        match self.imports.get(name) {
            Some(Import::Listed(full)) => return self.chain(full.clone(), tokens, at + 1),
            Some(Import::Data) => return at + 1,
            Some(Import::Opaque) => {
                self.opaque(tokens, at + 1);
                return at + 1;
            }
            None => {}
        }
        if let Some(role) = table::role(LANGUAGE, List::Names, name) {
            if role != Effect::Harmless {
                self.call(role, name, tokens, at + 1);
            }
        } else if self.bindings.contains_key(name) {
            // The program's own.
        } else if is_global(name) {
            return self.chain(name.to_owned(), tokens, at + 1);
        } else {
            self.out.computes |= matches!(name, "eval" | "Function" | "child_process");
            self.refuse();
        }
        at + 1
    }

    /// The members behind a listed module or object, as far as they are its own. Returns where to go on.
    fn chain(&mut self, mut full: String, tokens: &'t [Token], mut at: usize) -> usize {
        while table::is_module(LANGUAGE, &full) {
            let dot = tokens.get(at).is_some_and(|dot| dot.is(".") || dot.is("?."));
            let Some(member) = tokens.get(at + 1).and_then(Token::name).filter(|_| dot) else { break };
            full = format!("{full}.{member}");
            at += 2;
        }
        let (module, member) = full.rsplit_once('.').unwrap_or(("", &full));
        let assigned = tokens.get(at).is_some_and(|next| next.is("="));
        self.out.computes |= full == "child_process";
        match table::member(LANGUAGE, module, member) {
            // `new Date()` and `Number(x)` are names too.
            None if module.is_empty() && table::has(LANGUAGE, List::Callable, member) => {}
            Some(Effect::Harmless) if !assigned || member == "exitCode" => {}
            None | Some(Effect::Harmless) => self.refuse(),
            Some(role) => self.call(role, &full, tokens, at),
        }
        at
    }

    /// A module that is not on a list: its version may be looked at.
    fn opaque(&mut self, tokens: &[Token], at: usize) {
        let shown = tokens.get(at).is_some_and(|dot| dot.is("."))
            && tokens.get(at + 1).is_some_and(|member| table::has(LANGUAGE, List::Opaque, &member.text))
            && !tokens.get(at + 2).is_some_and(|next| next.is("(") || next.is(".") || next.is("[") || next.is("="));
        if !shown {
            self.refuse();
        }
    }

    /// `new Name(…)`: a listed class.
    fn construct(&mut self, tokens: &'t [Token], at: usize) -> usize {
        let class = tokens.get(at + 1).and_then(Token::name);
        if class.is_some_and(|class| table::has(LANGUAGE, List::Classes, class) && !self.bindings.contains_key(class))
            && !tokens.get(at + 2).is_some_and(|next| next.is(".") || next.is("["))
        {
            return at + 2;
        }
        let international = class == Some("Intl")
            && tokens.get(at + 2).is_some_and(|dot| dot.is("."))
            && tokens.get(at + 3).is_some_and(|class| table::member(LANGUAGE, "Intl", &class.text).is_some());
        if international {
            return at + 4;
        }
        self.refuse();
        at + 1
    }

    /// A member of a value: not one that leads out, and if it is called, a listed one.
    fn member(&mut self, tokens: &'t [Token], at: usize) {
        let Some(token) = tokens.get(at) else { return };
        let called = tokens
            .get(at + 1)
            .is_some_and(|next| next.is("(") || next.is("?.") && tokens.get(at + 2).is_some_and(|open| open.is("(")));
        // `module.require(…)`, `process.binding('spawn_sync')`
        self.out.computes |= called && matches!(token.text.as_str(), "require" | "_load" | "binding");
        if table::has(LANGUAGE, List::Escapes, &token.text)
            || token.text.starts_with("__")
            || (called && !table::has(LANGUAGE, List::Methods, &token.text))
        {
            self.refuse();
        }
    }

    fn sign(&mut self, tokens: &'t [Token], at: usize) {
        let Some(token) = tokens.get(at) else { return };
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        match token.text.as_str() {
            "[" => {
                let value = before.is_some_and(|before| ends_operand(before) || before.is("?."));
                let key = inside(tokens, at).unwrap_or_default();
                if value {
                    if !self.is_safe_key(tokens, at, key) {
                        self.refuse();
                    }
                } else if before.is_some_and(|before| before.is("{") || before.is(",")) {
                    // `{[name]: value}`
                    let after = crate::code::token::past_bracket(tokens, at).and_then(|end| tokens.get(end));
                    if after.is_some_and(|after| after.is(":") || after.is("(")) {
                        self.refuse();
                    }
                }
            }
            "=" | "||=" | "&&=" | "??=" => self.assignment(tokens, at),
            "@" => self.refuse(),
            _ => {}
        }
    }
}

/// Objects of the language and of its programs that have a list of members.
fn is_global(name: &str) -> bool {
    table::is_module(LANGUAGE, name)
}

/// Whether a bracket or template behind this token belongs to it.
fn ends_operand(token: &Token) -> bool {
    match token.kind {
        Kind::Name => !table::has(LANGUAGE, List::Keywords, &token.text),
        Kind::Text | Kind::Mixed(_) | Kind::Value => true,
        Kind::Sign => matches!(token.text.as_str(), ")" | "]" | "}"),
        Kind::Line => false,
    }
}
