//! Ruby: listed methods and functions, names of the program, texts whose code is read too.
//!
//! All that Ruby does is a method, so every method that is called is on the list, whatever it is called on; a constant stands
//! only before a listed member of its own. Symbols become methods behind `&` and in `reduce`, and are held against the list.

mod lex;

use std::collections::HashSet;

use self::lex::Before;
use crate::action::Access;
use crate::code::token::{Kind, MAX_NESTING, Piece, Token, arguments, inside};
use crate::code::{Around, Reading, Value, joined, known, table, text_of};
use crate::programs::entries::words::{Effect, List};

const LANGUAGE: &str = "ruby";

struct Reader<'t> {
    own: HashSet<&'t str>,
    around: &'t Around<'t>,
    out: Reading,
    /// The operands are opened as files.
    opens: bool,
}

/// Reads a program.
pub fn read(text: &str, around: &Around<'_>) -> Reading {
    let Some(tokens) = lex::tokens(text) else { return Reading::default() };
    let mut own = HashSet::new();
    names(&tokens, &mut own, 0);
    // Behind a bracket, in another block or before it is made, such a name is the method.
    let made_twice = |name: &&str| {
        let pairs = tokens.iter().zip(tokens.iter().skip(1));
        pairs.clone().any(|(def, own)| def.named("def") && own.named(name))
            && pairs.clone().any(|(own, next)| own.named(name) && (next.is("=") || next.is("|") || next.is(",")))
    };
    let reserved =
        own.len() > 256 || own.iter().any(|name| table::has(LANGUAGE, List::Reserved, name) || made_twice(name));
    let opens = around.switches.contains(['n', 'p', 'i']);
    let mut reader = Reader { own, around, out: Reading { harmless: !reserved, ..Reading::default() }, opens };
    reader.walk(&tokens, 0);
    if reader.opens {
        // What is put there is opened.
        reader.out.harmless &= !tokens.iter().any(|token| token.named("ARGV"));
        let access = if around.switches.contains('i') { Access::Write } else { Access::Read };
        reader.out.harmless &= around.arguments.iter().all(crate::code::perl::is_plain_name);
        let operands = around.arguments.iter().filter(|word| word.literal().as_deref() != Some("-"));
        reader.out.files.extend(operands.map(|word| (word.parts.clone(), access, false)));
    }
    reader.out
}

/// Names that are assigned, or stand between bars or in a definition's brackets.
fn names<'t>(tokens: &'t [Token], own: &mut HashSet<&'t str>, depth: usize) {
    let mut bars = false;
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        let next = tokens.get(at + 1);
        match &token.kind {
            Kind::Mixed(pieces) if depth < 4 => {
                for piece in pieces {
                    if let Piece::Code(code) = piece {
                        names(code, own, depth + 1);
                    }
                }
            }
            Kind::Sign if token.text == "|" => bars = !bars && before.is_some_and(|it| it.is("{") || it.named("do")),
            Kind::Name => {
                let member = before.is_some_and(|before| before.is(".") || before.is("&.") || before.is("::"));
                let lower = token.text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
                let assigned = next.is_some_and(|next| {
                    matches!(next.text.as_str(), "=" | "+=" | "-=" | "*=" | "||=" | "<<=" | "/=")
                        && next.kind == Kind::Sign
                });
                let listed = next.is_some_and(|next| next.is(","))
                    && tokens.get(at + 2).is_some_and(|it| it.kind == Kind::Name)
                    && tokens.get(at + 3).is_some_and(|it| it.is("=") || it.is(","));
                let defined = before.is_some_and(|before| before.named("def") || before.named("for"));
                let second = before.is_some_and(|before| before.is(",")) && assigned;
                if lower && !member && (bars || assigned || defined || listed || second) {
                    own.insert(token.text.as_str());
                }
                if defined && next.is_some_and(|open| open.is("(")) {
                    let parameters = inside(tokens, at + 1).unwrap_or_default();
                    own.extend(parameters.iter().filter_map(Token::name));
                }
            }
            Kind::Sign if token.text == "->" && next.is_some_and(|open| open.is("(")) => {
                own.extend(inside(tokens, at + 1).unwrap_or_default().iter().filter_map(Token::name));
            }
            Kind::Text | Kind::Mixed(_) | Kind::Value | Kind::Sign | Kind::Line => {}
        }
    }
}

impl<'t> Reader<'t> {
    fn refuse(&mut self) {
        self.out.harmless = false;
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
                    for piece in pieces {
                        if let Piece::Code(code) = piece {
                            self.walk(code, depth + 1);
                        }
                    }
                }
                Kind::Sign if token.text == "&:" => {
                    // `map(&:name)` calls the method.
                    if !tokens.get(at + 1).is_some_and(|name| table::has(LANGUAGE, List::Methods, &name.text)) {
                        self.refuse();
                    }
                    at += 1;
                }
                Kind::Sign if token.text == ":" && before.is_some_and(|before| before.is(".") || before.is("::")) => {
                    self.refuse()
                }
                Kind::Name => {
                    at = self.name(tokens, at);
                    continue;
                }
                Kind::Sign | Kind::Text | Kind::Value | Kind::Line => {}
            }
            at += 1;
        }
    }

    fn name(&mut self, tokens: &'t [Token], at: usize) -> usize {
        let Some(name) = tokens.get(at).and_then(Token::name) else { return at + 1 };
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        let next = tokens.get(at + 1);
        if before.is_some_and(|before| before.is(".") || before.is("&.")) {
            if !table::has(LANGUAGE, List::Methods, name)
                || (matches!(name, "reduce" | "inject") && !sums(tokens, at + 1))
            {
                self.refuse();
            }
            return at + 1;
        }
        if before.is_some_and(|before| before.named("def")) {
            // A method by a listed name may be anybody's.
            if table::has(LANGUAGE, List::Methods, name) || table::has(LANGUAGE, List::Names, name) {
                self.refuse();
            }
            return at + 1;
        }
        // `key: value`
        if next.is_some_and(|next| next.is(":")) && !before.is_some_and(|before| before.is("?")) {
            return at + 2;
        }
        if table::has(LANGUAGE, List::Keywords, name) || self.own.contains(name) {
            return at + 1;
        }
        if name.starts_with(|c: char| c.is_ascii_uppercase()) {
            return self.constant(name, tokens, at);
        }
        match table::role(LANGUAGE, List::Names, name) {
            Some(Effect::Harmless) => {}
            Some(Effect::Input) => self.opens = true,
            Some(Effect::Module) => {
                let name = tokens.get(at + 1).filter(|name| name.kind == Kind::Text).or_else(|| tokens.get(at + 2));
                if !name.is_some_and(|name| name.kind == Kind::Text && table::has(LANGUAGE, List::Requires, &name.text))
                {
                    self.refuse();
                }
            }
            _ => self.refuse(),
        }
        at + 1
    }

    /// `JSON.parse`, `File.read('x')`, `Math::PI`
    fn constant(&mut self, name: &str, tokens: &'t [Token], at: usize) -> usize {
        let mut full = name.to_owned();
        let mut at = at + 1;
        while tokens.get(at).is_some_and(|sign| sign.is("::")) {
            let Some(member) = tokens.get(at + 1).and_then(Token::name) else { break };
            full = format!("{full}::{member}");
            at += 2;
        }
        if table::has(LANGUAGE, List::Constants, &full) {
            return at;
        }
        let member = tokens.get(at + 1).and_then(Token::name).filter(|_| tokens.get(at).is_some_and(|dot| dot.is(".")));
        match member.and_then(|member| table::member(LANGUAGE, &full, member)) {
            Some(Effect::Harmless) => {}
            Some(Effect::Input) => self.opens = true,
            Some(role) => {
                let open = tokens.get(at + 2);
                let list = if open.is_some_and(|open| open.is("(")) {
                    inside(tokens, at + 2).unwrap_or_default()
                } else {
                    rest_of(tokens, at + 2)
                };
                if self.touch(role, &arguments(list)).is_none() {
                    self.refuse();
                }
            }
            None => self.refuse(),
        }
        at + 2
    }

    fn touch(&mut self, role: Effect, given: &[&'t [Token]]) -> Option<()> {
        let (access, tree) = match role {
            Effect::Reads => (Access::Read, false),
            Effect::Writes => (Access::Write, false),
            Effect::Lists => return Some(()),
            Effect::Opens => {
                let mode = given.get(1).map_or_else(|| Some(known("r")), |mode| self.value(mode));
                let reads = mode.as_deref().and_then(text_of).is_some_and(|mode| !mode.contains(['w', 'a', '+']));
                (if reads { Access::Read } else { Access::Write }, false)
            }
            _ => return None,
        };
        let path = self.value(given.first()?)?;
        // `|command` is no file.
        (!text_of(&path)?.starts_with('|')).then_some(())?;
        self.out.files.push((path, access, tree));
        Some(())
    }

    /// A text that is certain.
    fn value(&self, tokens: &'t [Token]) -> Option<Value> {
        match tokens {
            [text] if text.kind == Kind::Text => Some(known(&text.text)),
            [argv, open, place, close] if argv.named("ARGV") && open.is("[") && close.is("]") => {
                let place: usize = place.text.parse().ok()?;
                self.around.arguments.get(place).map(|word| word.parts.clone())
            }
            [first, plus, rest @ ..] if plus.is("+") && first.kind == Kind::Text => {
                joined(&[known(&first.text)], &[self.value(rest)?])?.pop()
            }
            _ => None,
        }
    }
}

/// Whether `reduce` and `inject` get no method by a name that is not listed.
fn sums(tokens: &[Token], open: usize) -> bool {
    let list =
        if tokens.get(open).is_some_and(|it| it.is("(")) { inside(tokens, open).unwrap_or_default() } else { &[] };
    let bare = tokens.get(open).is_some_and(|next| {
        next.kind == Kind::Name && !next.named("do") || matches!(next.kind, Kind::Text | Kind::Mixed(_))
    });
    !bare
        && list.iter().all(|token| match token.kind {
            Kind::Value => {
                token.text != "symbol" && !token.text.starts_with(':')
                    || matches!(
                        token.text.as_str(),
                        ":+" | ":-" | ":*" | ":|" | ":&" | ":<<" | ":gcd" | ":lcm" | ":merge"
                    )
            }
            Kind::Sign => !token.is("&"),
            Kind::Name | Kind::Text | Kind::Mixed(_) | Kind::Line => false,
        })
}

/// Up to the end of the statement.
fn rest_of(tokens: &[Token], at: usize) -> &[Token] {
    let rest = tokens.get(at..).unwrap_or_default();
    let mut depth = 0i32;
    let end = rest.iter().position(|token| {
        match token.text.as_str() {
            "(" | "[" | "{" if token.kind == Kind::Sign => depth += 1,
            ")" | "]" | "}" if token.kind == Kind::Sign => depth -= 1,
            _ => {}
        }
        depth < 0 || (depth == 0 && (token.kind == Kind::Line || token.is(";") || token.named("do") || token.is("{")))
    });
    rest.get(..end.unwrap_or(rest.len())).unwrap_or_default()
}

/// Whether a token ends a value.
fn before(token: Option<&Token>, own: bool) -> Before {
    let Some(token) = token else { return Before::Start };
    match token.kind {
        Kind::Text | Kind::Mixed(_) | Kind::Value => Before::Operand,
        Kind::Name if own => Before::Operand,
        Kind::Name
            if table::has(LANGUAGE, List::Keywords, &token.text)
                && !matches!(token.text.as_str(), "end" | "self" | "nil" | "true" | "false") =>
        {
            Before::Start
        }
        Kind::Name if matches!(token.text.as_str(), "end" | "self" | "nil" | "true" | "false") => Before::Operand,
        Kind::Name => Before::Name,
        Kind::Sign if matches!(token.text.as_str(), ")" | "]" | "}") => Before::Operand,
        Kind::Sign | Kind::Line => Before::Start,
    }
}
