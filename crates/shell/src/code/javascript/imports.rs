//! `require` and `import`: listed modules by their full names, JSON files as data, the rest opaque.

use crate::action::Access;
use crate::code::javascript::{Import, LANGUAGE, Reader};
use crate::code::token::{Kind, Piece, Token, past_bracket, split};
use crate::code::{known, table};

/// What a module's name stands for.
fn module(name: &str) -> Import {
    if name.ends_with(".json") {
        return Import::Data;
    }
    let plain = name.strip_prefix("node:").unwrap_or(name).replace('/', ".");
    if !name.starts_with(['.', '/']) && table::member(LANGUAGE, "modules", &plain).is_some() {
        Import::Listed(plain)
    } else {
        Import::Opaque
    }
}

impl<'t> Reader<'t> {
    /// Whether a name is made by nothing but imports.
    pub(super) fn is_import_only(&self, name: &str) -> bool {
        let own = |binding: &super::Binding<'_>| match binding {
            super::Binding::Is(value) => {
                value.first().is_some_and(|first| first.named("require")) || self.path_of(value).is_some()
            }
            super::Binding::Other => true,
            super::Binding::Each(_) => false,
        };
        // What patterns and `import` bind is bound once.
        self.bindings.get(name).is_none_or(|all| all.len() == 1 && all.iter().all(own))
    }

    /// Every import of the program, wherever it stands.
    pub(super) fn import_all(&mut self) {
        let tokens = self.tokens;
        for (at, token) in tokens.iter().enumerate() {
            let declares = ["const", "let", "var"].iter().any(|word| token.named(word));
            if token.named("import") {
                self.import(tokens, at);
            } else if declares && let Some((target, name, rest)) = required(tokens.get(at + 1..).unwrap_or_default()) {
                let found = module(name);
                // `require('fs').promises`
                let found = match (found, rest) {
                    (Import::Listed(full), [dot, member, ..]) if dot.is(".") => {
                        let longer = format!("{full}.{}", member.text);
                        if !table::is_module(LANGUAGE, &longer)
                            || rest.get(2).is_some_and(|next| next.is(".") || next.is("("))
                        {
                            continue;
                        }
                        Import::Listed(longer)
                    }
                    // The value of a call or member is no module.
                    (_, [next, ..]) if next.is(".") || next.is("(") || next.is("[") || next.is("?.") => continue,
                    (found, _) => found,
                };
                self.make(target, found);
            }
        }
    }

    /// `fs`, `{a, b: c}`, `{a, b as c}`, `* as fs`
    fn make(&mut self, target: &'t [Token], import: Import) {
        match target {
            [name] if name.name().is_some() => self.insert(&name.text, import),
            [star, as_, name] if star.is("*") && as_.named("as") => self.insert(&name.text, import),
            [open, inner @ .., close] if open.is("{") && close.is("}") => {
                for one in split(inner, ",") {
                    let (member, own) = match one {
                        [] => continue,
                        [member] => (member, member),
                        [member, sign, own] if sign.is(":") || sign.named("as") => (member, own),
                        _ => return self.refuse(),
                    };
                    let import = match &import {
                        Import::Listed(full) => {
                            let longer = format!("{full}.{}", member.text);
                            if table::member(LANGUAGE, full, &member.text).is_none()
                                && !table::is_module(LANGUAGE, &longer)
                            {
                                self.refuse();
                            }
                            Import::Listed(longer)
                        }
                        // A member of data is anything.
                        Import::Data => continue,
                        Import::Opaque => Import::Opaque,
                    };
                    self.insert(&own.text, import);
                }
            }
            _ => self.refuse(),
        }
    }

    fn insert(&mut self, name: &str, import: Import) {
        let before = self.imports.insert(name.to_owned(), import.clone());
        if before.is_some_and(|before| before != import) {
            self.refuse();
        }
    }

    /// `import a from 'b'`, `import {a} from 'b'`, `import 'b'`
    fn import(&mut self, tokens: &'t [Token], at: usize) {
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        let rest = tokens.get(at + 1..).unwrap_or_default();
        if before.is_some_and(|before| !(before.kind == Kind::Line || before.is(";"))) {
            return;
        }
        let Some(from) = rest.iter().take(256).position(|token| token.named("from")) else { return };
        let Some(name) = rest.get(from + 1).filter(|name| name.kind == Kind::Text) else { return };
        let target = rest.get(..from).unwrap_or_default();
        for one in split(target, ",") {
            self.make(one, module(&name.text));
        }
    }

    /// An import where it stands. Returns where to go on.
    pub(super) fn import_at(&mut self, tokens: &'t [Token], at: usize) -> usize {
        let rest = tokens.get(at + 1..).unwrap_or_default();
        let end = rest.iter().take(256).position(|token| token.kind == Kind::Text);
        let named = |end: usize| end == 0 || rest.get(end - 1).is_some_and(|from| from.named("from"));
        let Some((end, name)) = end.filter(|end| named(*end)).and_then(|end| Some((end, &rest.get(end)?.text))) else {
            self.out.computes |= rest.first().is_some_and(|open| open.is("(")) && makes_module(rest);
            self.refuse();
            return at + 1;
        };
        let more = rest.get(end + 1);
        if more.is_some_and(|more| more.named("with") || more.named("assert")) {
            self.refuse();
        }
        self.load(name);
        at + 2 + end
    }

    /// `require('x')` where it stands, with what follows. Returns where to go on.
    pub(super) fn require(&mut self, tokens: &'t [Token], at: usize) -> usize {
        let dot = tokens.get(at + 1).is_some_and(|dot| dot.is("."));
        if dot
            && tokens.get(at + 2).is_some_and(|it| it.named("resolve"))
            && tokens.get(at + 3).is_some_and(|open| open.is("("))
        {
            return at + 3;
        }
        let name = match tokens.get(at + 1..at + 4) {
            Some([open, name, close]) if open.is("(") && close.is(")") && name.kind == Kind::Text => name,
            _ => {
                self.out.computes |= makes_module(tokens.get(at + 1..).unwrap_or_default());
                self.refuse();
                return at + 1;
            }
        };
        self.load(&name.text);
        let end = at + 4;
        let member = tokens.get(end).is_some_and(|next| next.is(".") || next.is("?."));
        match module(&name.text) {
            Import::Listed(full) if member => return self.chain(full, tokens, end),
            Import::Opaque if member => self.opaque(tokens, end),
            Import::Data => {}
            // Alone in its statement, or what a name is made of.
            Import::Listed(_) | Import::Opaque => {
                let before = at.checked_sub(1).and_then(|at| tokens.get(at));
                let ends = tokens.get(end).is_none_or(|next| next.kind == Kind::Line || next.is(";") || next.is(","));
                let target = before.is_some_and(|before| before.is("=")) && self.is_made_here(tokens, at);
                let alone = before.is_none_or(|before| before.kind == Kind::Line || before.is(";"));
                if !(ends && (target || alone)) {
                    self.refuse();
                }
            }
        }
        end
    }

    /// Whether `const x = ` or `const {…} = ` stands before `at`, as [`Reader::import_all`] reads it.
    fn is_made_here(&self, tokens: &[Token], at: usize) -> bool {
        let declares =
            |at: usize| tokens.get(at).is_some_and(|it| ["const", "let", "var"].iter().any(|word| it.named(word)));
        let Some(target) = at.checked_sub(2) else { return false };
        match tokens.get(target) {
            Some(name) if name.name().is_some() => target.checked_sub(1).is_some_and(declares),
            Some(close) if close.is("}") => super::members::is_declared_before(tokens, at - 1),
            _ => false,
        }
    }

    /// A module is run, a JSON file read.
    fn load(&mut self, name: &str) {
        self.out.loads |= matches!(module(name), Import::Opaque);
        if name.starts_with('.') || name.starts_with('/') {
            if name.ends_with(".json") {
                self.out.files.push((known(name), Access::Read, false));
            } else {
                self.out.files.push((known(name), Access::Exec, false));
                self.out.modules.push(name.to_owned());
            }
        }
    }
}

/// How long the target of `x = require('name')` is; nothing where it is another declaration.
pub fn target_len(tokens: &[Token]) -> usize {
    required(tokens).map_or(0, |(target, _, _)| target.len())
}

/// Whether a module is loaded whose name may come out as any, the one that starts programs too: `require("child_" + x)`,
/// `const load = require`. A path leads to a file.
fn makes_module(given: &[Token]) -> bool {
    let path = |text: &str| text.starts_with(['.', '/']);
    match given {
        [open, first, close, ..] if open.is("(") && close.is(")") && first.kind == Kind::Text => {
            first.text.trim_start_matches("node:") == "child_process"
        }
        [open, first, ..] if open.is("(") => match &first.kind {
            Kind::Text => !path(&first.text),
            Kind::Mixed(pieces) => !matches!(pieces.first(), Some(Piece::Text(text)) if path(text)),
            _ => {
                let name = first.name().unwrap_or_default();
                let leads = ["path", "__dirname", "resolve", "join", "fileURLToPath", "pathToFileURL", "url"];
                !leads.contains(&name) && !["Path", "File", "_path", "_file"].iter().any(|end| name.ends_with(end))
            }
        },
        [dot, member, ..] if dot.is(".") => {
            !["main", "cache", "extensions", "resolve"].iter().any(|name| member.named(name))
        }
        _ => true,
    }
}

/// `x = require('name')`: the target, the name, and what follows.
fn required(tokens: &[Token]) -> Option<(&[Token], &str, &[Token])> {
    let end = match tokens.first()? {
        open if open.is("{") => past_bracket(tokens, 0)?,
        _ => 1,
    };
    let rest = tokens.get(end..)?;
    let [equals, require, open, name, close, ..] = rest else { return None };
    let whole = equals.is("=") && require.named("require") && open.is("(") && name.kind == Kind::Text && close.is(")");
    whole.then(|| (tokens.get(..end).unwrap_or_default(), name.text.as_str(), rest.get(5..).unwrap_or_default()))
}
