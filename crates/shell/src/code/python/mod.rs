//! Python: every name, member and import is on a list or made by the program itself; what a listed call touches is named.
//!
//! Nothing in the harmless part leads out of it: a module is never a value, a member is one of a list, and what opens files or
//! runs commands stands only where it is called. So every value of such a program is harmless, whatever is done with it.

mod bind;
mod calls;
mod imports;
mod lex;
mod values;

pub(crate) use values::below;

use std::cell::Cell;
use std::collections::HashMap;

use self::bind::{Binding, Bindings};
use crate::code::token::{Kind, MAX_NESTING, Piece, Token};
use crate::code::{Around, Reading, table};
use crate::programs::entries::words::{Effect, List};

const LANGUAGE: &str = "python";

/// What an imported name is.
#[derive(Clone, Debug, PartialEq)]
enum Import {
    /// A listed module or class, or a member of one, by its full name.
    Listed(String),
    /// A module that is not on a list.
    Opaque,
}

struct Reader<'t> {
    tokens: &'t [Token],
    bindings: Bindings<'t>,
    imports: HashMap<String, Import>,
    around: &'t Around<'t>,
    out: Reading,
    /// How much more is looked at.
    steps: Cell<usize>,
}

/// Reads a program.
pub fn read(text: &str, around: &Around<'_>) -> Reading {
    let Some(tokens) = lex::tokens(text) else { return Reading::default() };
    let bindings = Bindings::of(&tokens);
    let mut reader = Reader {
        tokens: &tokens,
        bindings,
        imports: HashMap::new(),
        around,
        out: Reading { harmless: true, ..Reading::default() },
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
        let reserved = |name: &&str| {
            table::has(LANGUAGE, List::Reserved, name) || name.starts_with("__") || self.imports.contains_key(*name)
        };
        // A method may be called `__init__`, a loop's variable may not.
        let defined = |name: &&str| {
            let pairs = self.tokens.iter().zip(self.tokens.iter().skip(1));
            let defs = pairs.filter(|(_, own)| own.named(name)).filter(|(def, _)| def.named("def")).count();
            let made = self.bindings.names.get(*name).map_or(0, Vec::len);
            name.starts_with("__")
                && defs == made
                && self.bindings.names.get(*name).is_some_and(|all| all.iter().all(|it| matches!(it, Binding::Other)))
        };
        let bad = self.bindings.names.keys().any(|name| reserved(name) && !defined(name));
        if bad {
            self.refuse();
        }
    }

    fn walk(&mut self, tokens: &'t [Token], depth: usize) {
        if depth > MAX_NESTING {
            return self.refuse();
        }
        let mut at = 0;
        // Whether a bracket is a call's, so that `name=` in it is no name of the program.
        let mut brackets: Vec<bool> = Vec::new();
        while let Some(token) = tokens.get(at) {
            let before = at.checked_sub(1).and_then(|at| tokens.get(at));
            let next = tokens.get(at + 1);
            match &token.kind {
                Kind::Mixed(pieces) => {
                    for piece in pieces {
                        if let Piece::Code(code) = piece {
                            self.walk(code, depth + 1);
                        }
                    }
                }
                Kind::Sign => match token.text.as_str() {
                    "(" => brackets.push(before.is_some_and(ends_operand)),
                    "[" | "{" => brackets.push(false),
                    ")" | "]" | "}" => drop(brackets.pop()),
                    _ => {}
                },
                Kind::Name => {
                    if before.is_some_and(|before| before.is(".")) {
                        self.attribute(tokens, at);
                    } else if matches!(token.text.as_str(), "import" | "from") && starts_statement(tokens, at) {
                        at = end_of_line(tokens, at);
                        continue;
                    } else if before.is_some_and(|before| before.named("def") || before.named("class")) {
                        // Its name was looked at with the program's own.
                    } else if table::has(LANGUAGE, List::Keywords, &token.text) {
                    } else if brackets.last() == Some(&true)
                        && next.is_some_and(|next| next.is("="))
                        && before.is_some_and(|before| before.is("(") || before.is(",") || before.kind == Kind::Line)
                    {
                        // The name of an argument.
                    } else {
                        at = self.head(tokens, at);
                        continue;
                    }
                }
                Kind::Text | Kind::Value | Kind::Line => {}
            }
            at += 1;
        }
    }

    /// A name that begins an expression. Returns where to go on.
    fn head(&mut self, tokens: &'t [Token], at: usize) -> usize {
        let Some(name) = tokens.get(at).and_then(Token::name) else { return at + 1 };
        match self.imports.get(name) {
            Some(Import::Opaque) => {
                let shown = tokens.get(at + 1).is_some_and(|dot| dot.is("."))
                    && tokens.get(at + 2).is_some_and(|member| table::has(LANGUAGE, List::Opaque, &member.text))
                    && !tokens
                        .get(at + 3)
                        .is_some_and(|next| next.is("(") || next.is(".") || next.is("=") || next.is("["));
                let printed = at.checked_sub(2).is_some_and(|from| {
                    matches!(tokens.get(from..at + 2), Some([print, open, _, close]) if print.named("print") && open.is("(") && close.is(")"))
                });
                if shown {
                    return at + 3;
                }
                if !printed {
                    self.refuse();
                }
                return at + 1;
            }
            Some(Import::Listed(_)) => return self.chain(tokens, at),
            None => {}
        }
        if let Some(role) = table::role(LANGUAGE, List::Names, name) {
            if role != Effect::Harmless {
                self.call(role, name, tokens, at + 1, at);
            }
        } else if !self.bindings.names.contains_key(name) {
            self.out.computes |= matches!(name, "eval" | "exec" | "compile" | "__import__");
            self.refuse();
        }
        at + 1
    }

    /// An imported name and the members behind it, as far as they are a module's.
    fn chain(&mut self, tokens: &'t [Token], at: usize) -> usize {
        let Some((path, end)) = self.path_at(tokens, at) else {
            self.refuse();
            return at + 1;
        };
        let assigned = tokens.get(end).is_some_and(|next| next.is("="));
        let (module, member) = path.rsplit_once('.').unwrap_or(("", &path));
        // A module as a value does anything.
        self.out.computes |= matches!(path.as_str(), "os" | "subprocess");
        match table::member(LANGUAGE, module, member) {
            // Whoever has the list can change where modules come from.
            None if path == "sys.path" && only_shown(tokens, at, end) => {}
            None => self.refuse(),
            Some(Effect::Harmless) if assigned => self.refuse(),
            // Making a path touches nothing.
            Some(Effect::Harmless | Effect::MakesPath) => {}
            Some(role) => self.call(role, &path, tokens, end, at),
        }
        end
    }

    /// The full name of what stands here, and the place behind it.
    fn path_at(&self, tokens: &[Token], at: usize) -> Option<(String, usize)> {
        let Import::Listed(full) = self.imports.get(tokens.get(at)?.name()?)? else { return None };
        let (mut full, mut at) = (full.clone(), at + 1);
        while let (Some(dot), Some(member)) = (tokens.get(at), tokens.get(at + 1).and_then(Token::name)) {
            let longer = format!("{full}.{member}");
            // Behind a member of a module stand the members of values.
            let inside = table::is_module(LANGUAGE, &full);
            if !dot.is(".") || !inside {
                break;
            }
            (full, at) = (longer, at + 2);
        }
        Some((full, at))
    }

    /// The same for an expression that begins so; a builtin by its own name.
    fn path_of(&self, tokens: &[Token]) -> Option<(String, usize)> {
        let name = tokens.first()?.name()?;
        self.path_at(tokens, 0).or_else(|| {
            let own = name == "str" && !self.bindings.names.contains_key(name);
            own.then(|| (name.to_owned(), 1))
        })
    }

    /// A member of a value.
    fn attribute(&mut self, tokens: &'t [Token], at: usize) {
        let Some(name) = tokens.get(at).and_then(Token::name) else { return };
        let next = tokens.get(at + 1);
        let called = next.is_some_and(|next| next.is("("));
        match table::role(LANGUAGE, List::Attributes, name) {
            // `Path.replace(target)` moves a file, `str.replace(a, b)` does not; `Path.copy` takes a target.
            Some(_) if matches!(name, "replace" | "copy") => self.replaces(name, tokens, at),
            Some(Effect::Harmless | Effect::OwnLists) => {}
            Some(role) => self.call(role, name, tokens, at + 1, at),
            None if self.bindings.members.contains(name) && !is_reflective(name) => {}
            None if matches!(name, "__name__" | "__init__" | "__doc__" | "__version__")
                && (!called || name == "__init__") => {}
            None => self.refuse(),
        }
    }
}

/// Whether the value between two places is only printed, counted, joined or walked through.
fn only_shown(tokens: &[Token], at: usize, end: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).and_then(|at| tokens.get(at));
    let shows = |name: &Token| ["print", "pprint", "len", "join"].iter().any(|known| name.named(known));
    let closed = tokens.get(end).is_some_and(|next| next.is(")"));
    let given = closed && before(1).is_some_and(|open| open.is("(")) && before(2).is_some_and(shows);
    let walked = before(1).is_some_and(|word| word.named("in"))
        && tokens.get(end).is_none_or(|next| next.is(")") || next.is("]") || next.is(":") || next.kind == Kind::Line);
    given || walked
}

/// Members of frames, code, generators and tracebacks.
fn is_reflective(name: &str) -> bool {
    ["__", "f_", "gi_", "cr_", "ag_", "tb_", "co_", "func_", "im_"].iter().any(|start| name.starts_with(start))
        || name == "mro"
}

/// Whether a bracket behind this token is a call or a subscript.
fn ends_operand(token: &Token) -> bool {
    match token.kind {
        Kind::Name => !table::has(LANGUAGE, List::Keywords, &token.text),
        Kind::Text | Kind::Mixed(_) | Kind::Value => true,
        Kind::Sign => matches!(token.text.as_str(), ")" | "]" | "}"),
        Kind::Line => false,
    }
}

/// Whether a statement begins here.
fn starts_statement(tokens: &[Token], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|at| tokens.get(at));
    before.is_none_or(|before| before.kind == Kind::Line || before.is(";") || before.is(":"))
}

/// The place behind the statement that begins here.
fn end_of_line(tokens: &[Token], at: usize) -> usize {
    let rest = tokens.get(at..).unwrap_or_default();
    rest.iter().position(|token| token.kind == Kind::Line || token.is(";")).map_or(tokens.len(), |end| at + end)
}
