//! Imports: listed modules by their full names; what is not listed may be imported, and little more.

use crate::code::python::{Import, LANGUAGE, Reader, end_of_line, starts_statement};
use crate::code::table;
use crate::code::token::{Token, split};
use crate::programs::entries::words::List;

impl Reader<'_> {
    /// Every import of the program, wherever it stands.
    pub(super) fn import_all(&mut self) {
        let tokens = self.tokens;
        for (at, token) in tokens.iter().enumerate() {
            if !(token.named("import") || token.named("from")) || !starts_statement(tokens, at) {
                continue;
            }
            let statement = tokens.get(at + 1..end_of_line(tokens, at)).unwrap_or_default();
            if token.named("import") {
                for one in split(statement, ",") {
                    self.import(one);
                }
            } else {
                self.from(statement);
            }
        }
    }

    /// `a.b as c`
    fn import(&mut self, tokens: &[Token]) {
        let cut = tokens.iter().position(|token| token.named("as"));
        let Some(name) = dotted(tokens.get(..cut.unwrap_or(tokens.len())).unwrap_or_default()) else {
            return self.refuse();
        };
        let first = name.split('.').next().unwrap_or_default().to_owned();
        let (own, full) = match cut.and_then(|cut| tokens.get(cut + 1)).and_then(Token::name) {
            Some(own) if cut.is_some_and(|cut| tokens.len() == cut + 2) => (own.to_owned(), name.clone()),
            None if cut.is_none() => (first.clone(), first.clone()),
            _ => return self.refuse(),
        };
        self.out.modules.push(first);
        let listed = table::is_module(LANGUAGE, &full) && table::is_module(LANGUAGE, &name);
        self.out.loads |= !listed;
        self.make(&own, if listed { Import::Listed(full) } else { Import::Opaque });
    }

    /// `a.b import c as d, e`
    fn from(&mut self, tokens: &[Token]) {
        let Some(cut) = tokens.iter().position(|token| token.named("import")) else { return self.refuse() };
        let Some(module) = tokens.get(..cut).and_then(dotted) else { return self.refuse() };
        self.out.modules.push(module.split('.').next().unwrap_or_default().to_owned());
        let names = tokens.get(cut + 1..).unwrap_or_default();
        let names = match names {
            [open, inner @ .., close] if open.is("(") && close.is(")") => inner,
            names => names,
        };
        for one in split(names, ",") {
            let (member, own) = match one {
                [] => continue,
                [member] => (member, member),
                [member, as_, own] if as_.named("as") => (member, own),
                _ => return self.refuse(),
            };
            let (Some(member), Some(own)) = (member.name(), own.name()) else { return self.refuse() };
            let full = format!("{module}.{member}");
            let listed = table::is_module(LANGUAGE, &full) || table::member(LANGUAGE, &module, member).is_some();
            if !listed && table::is_module(LANGUAGE, &module) {
                self.refuse();
            }
            self.out.loads |= !listed;
            self.make(own, if listed { Import::Listed(full) } else { Import::Opaque });
        }
    }

    fn make(&mut self, own: &str, import: Import) {
        let before = self.imports.insert(own.to_owned(), import.clone());
        let hides = table::has(LANGUAGE, List::Reserved, own) && !matches!(&import, Import::Listed(_));
        if before.is_some_and(|before| before != import) || hides || own.starts_with("__") {
            self.refuse();
        }
    }
}

/// `a.b.c`
fn dotted(tokens: &[Token]) -> Option<String> {
    let mut out = String::new();
    for (at, token) in tokens.iter().enumerate() {
        match (at % 2, token.name()) {
            (0, Some(name)) => out.push_str(name),
            (1, None) if token.is(".") => out.push('.'),
            _ => return None,
        }
    }
    (tokens.len() % 2 == 1).then_some(out)
}
