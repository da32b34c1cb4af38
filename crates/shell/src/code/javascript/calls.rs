//! What listed calls touch, and which texts are certain.

use crate::action::Access;
use crate::code::javascript::{Binding, Import, LANGUAGE, Reader, is_global};
use crate::code::python::below;
use crate::code::token::{Kind, MAX_NESTING, Piece, Token, arguments, inside, past_bracket, split};
use crate::code::{MAX_VALUES, Value, joined, known, table, text_of};
use crate::programs::entries::words::Effect;
use crate::word::Part;

/// Settings of a child process that change neither what runs nor where.
const SAFE: [&str; 6] = ["encoding", "stdio", "timeout", "maxBuffer", "windowsHide", "killSignal"];

impl<'t> Reader<'t> {
    /// A call of something that touches more than values. `open` is where its bracket stands.
    pub(super) fn call(&mut self, role: Effect, name: &str, tokens: &'t [Token], open: usize) {
        let given = tokens.get(open).filter(|token| token.is("(")).and_then(|_| inside(tokens, open)).map(arguments);
        if given.and_then(|given| self.touch(role, name, &given)).is_none() {
            self.out.computes |= matches!(role, Effect::ShellCode | Effect::Command);
            self.refuse();
        }
    }

    fn touch(&mut self, role: Effect, name: &str, given: &[&'t [Token]]) -> Option<()> {
        // Commands are followed, and asked about all the same.
        if matches!(role, Effect::ShellCode | Effect::Command) {
            self.refuse();
        }
        match role {
            Effect::Reads => self.each_file(given.first()?, Access::Read, false),
            Effect::Writes => self.each_file(given.first()?, Access::Write, false),
            Effect::WritesTree => self.each_file(given.first()?, Access::Write, true),
            Effect::Lists => Some(()),
            Effect::Moves => {
                self.each_file(given.first()?, Access::Write, false)?;
                self.each_file(given.get(1)?, Access::Write, false)
            }
            Effect::Copies | Effect::CopiesTree => {
                self.each_file(given.first()?, Access::Read, role == Effect::CopiesTree)?;
                self.each_file(given.get(1)?, Access::Write, role == Effect::CopiesTree)
            }
            Effect::ShellCode => {
                let code = self.values(given.first()?, 0)?;
                self.settings(given.get(1..)?)?;
                self.out.shells.extend(code);
                Some(())
            }
            Effect::Command => self.command(given),
            Effect::Url => {
                let urls = self.values(given.first()?, 0)?;
                let web = |url: &Value| matches!(url.first(), Some(Part::Text(text)) if text.starts_with("http://") || text.starts_with("https://"));
                urls.iter().all(web).then(|| self.out.urls.extend(urls))
            }
            // A function is given, not a text that would be code.
            Effect::Callback => {
                let first = given.first()?;
                let function = first.iter().any(|token| token.is("=>") || token.named("function"));
                (function || matches!(first, [name] if name.name().is_some())).then_some(())
            }
            _ => {
                let _: &str = name;
                None
            }
        }
    }

    fn each_file(&mut self, path: &'t [Token], access: Access, tree: bool) -> Option<()> {
        // Standard input by its number.
        if matches!(path, [number] if number.kind == Kind::Value && matches!(number.text.as_str(), "0" | "1" | "2")) {
            return Some(());
        }
        let paths = self.values(path, 0)?;
        self.out.files.extend(paths.into_iter().map(|path| (path, access, tree)));
        Some(())
    }

    /// `spawnSync('a', ['b'], {encoding: 'utf8'})`
    fn command(&mut self, given: &[&'t [Token]]) -> Option<()> {
        let (program, mut more) = given.split_first()?;
        let mut words = vec![self.only(program)?];
        if let Some((list, rest)) = more.split_first()
            && list.first().is_some_and(|open| open.is("["))
        {
            for word in arguments(inside(list, 0)?) {
                words.push(self.only(word)?);
            }
            more = rest;
        }
        self.settings(more)?;
        self.out.commands.push(words);
        Some(())
    }

    fn only(&self, tokens: &'t [Token]) -> Option<Value> {
        let mut values = self.values(tokens, 0)?;
        values.pop().filter(|_| values.is_empty())
    }

    /// Options and a callback.
    fn settings(&self, given: &[&'t [Token]]) -> Option<()> {
        for one in given {
            if one.iter().any(|token| token.is("=>")) {
                continue;
            }
            for pair in arguments(inside(one, 0).filter(|_| one.first().is_some_and(|open| open.is("{")))?) {
                let key = pair.first().filter(|_| pair.get(1).is_some_and(|colon| colon.is(":")))?;
                SAFE.contains(&key.text.as_str()).then_some(())?;
            }
        }
        Some(())
    }

    /// The full name of a listed member that an expression begins with, and the place behind it.
    pub(super) fn path_of(&self, tokens: &[Token]) -> Option<(String, usize)> {
        let name = tokens.first()?.name()?;
        let mut at = 1;
        let mut full = match self.imports.get(name) {
            Some(Import::Listed(full)) => full.clone(),
            Some(Import::Data | Import::Opaque) => return None,
            None if name == "require" => {
                let module =
                    tokens.get(2).filter(|name| name.kind == Kind::Text)?.text.replace("node:", "").replace('/', ".");
                at = 4;
                module
            }
            None if is_global(name) && !self.bindings.contains_key(name) => name.to_owned(),
            None => return None,
        };
        while table::is_module(LANGUAGE, &full) {
            let Some(member) =
                tokens.get(at + 1).and_then(Token::name).filter(|_| tokens.get(at).is_some_and(|dot| dot.is(".")))
            else {
                break;
            };
            full = format!("{full}.{member}");
            at += 2;
        }
        Some((full, at))
    }

    /// Every text that an expression may be; `None` where that is not known.
    pub(super) fn values(&self, tokens: &'t [Token], depth: usize) -> Option<Vec<Value>> {
        self.steps.set(self.steps.get().checked_sub(1 + tokens.len())?);
        if depth > MAX_NESTING {
            return None;
        }
        let sides = split(tokens, "+");
        if sides.len() > 1 {
            let mut out = vec![Value::new()];
            for side in sides {
                out = joined(&out, &self.values(side, depth + 1)?)?;
            }
            return Some(out);
        }
        let first = tokens.first()?;
        match (&first.kind, tokens) {
            (Kind::Text, [_]) => return Some(vec![known(&first.text)]),
            (Kind::Mixed(pieces), [_]) => {
                let mut out = vec![Value::new()];
                for piece in pieces {
                    let here = match piece {
                        Piece::Text(text) => vec![known(text)],
                        Piece::Code(code) => self.values(code, depth + 1)?,
                    };
                    out = joined(&out, &here)?;
                }
                return Some(out);
            }
            _ => {}
        }
        if first.is("(") && past_bracket(tokens, 0) == Some(tokens.len()) {
            return self.values(inside(tokens, 0)?, depth + 1);
        }
        if let Some((path, end)) = self.path_of(tokens) {
            return self.called(&path, tokens.get(end..)?, depth);
        }
        let [name] = tokens else { return None };
        let name = name.name()?;
        if name == "__dirname" && !self.bindings.contains_key(name) {
            return Some(vec![known(".")]);
        }
        let mut out = Vec::new();
        for binding in self.bindings.get(name)? {
            out.extend(match binding {
                Binding::Is(value) => self.values(value, depth + 1)?,
                Binding::Each(list) => self.elements(list, depth + 1)?,
                Binding::Other => return None,
            });
            if out.len() > MAX_VALUES {
                return None;
            }
        }
        Some(out)
    }

    fn called(&self, path: &str, rest: &'t [Token], depth: usize) -> Option<Vec<Value>> {
        if path == "process.argv" {
            let [open, place, close] = rest else { return None };
            let place: usize = place.text.parse().ok().filter(|_| open.is("[") && close.is("]"))?;
            let word = self.around.arguments.get(place.checked_sub(1)?)?;
            return Some(vec![word.parts.clone()]);
        }
        if past_bracket(rest, 0) != Some(rest.len()) {
            return None;
        }
        let given = arguments(inside(rest, 0)?);
        match (path, given.as_slice()) {
            ("process.cwd", []) => Some(vec![known(".")]),
            ("os.homedir", []) => Some(vec![known(self.around.home.as_deref()?)]),
            ("path.join" | "path.resolve", [first, more @ ..]) => {
                let mut out = self.values(first, depth + 1)?;
                for next in more {
                    let next = self.values(next, depth + 1)?;
                    // `join` puts an absolute path below, `resolve` begins with it: both are looked at.
                    let rooted =
                        |value: &Value| matches!(value.first(), Some(Part::Text(text)) if text.starts_with('/'));
                    if next.iter().any(rooted) {
                        return None;
                    }
                    out = below(&out, &next)?;
                }
                Some(out)
            }
            _ => None,
        }
    }

    fn elements(&self, tokens: &'t [Token], depth: usize) -> Option<Vec<Value>> {
        let first = tokens.first().filter(|_| depth < MAX_NESTING)?;
        if first.is("[") && past_bracket(tokens, 0) == Some(tokens.len()) {
            let mut out = Vec::new();
            for element in arguments(inside(tokens, 0)?) {
                out.extend(self.values(element, depth + 1)?);
            }
            return (out.len() <= MAX_VALUES && !out.iter().any(|value| text_of(value).is_none())).then_some(out);
        }
        let [name] = tokens else { return None };
        let [Binding::Is(value)] = self.bindings.get(name.name()?)?.as_slice() else { return None };
        let used = |at: usize| self.tokens.get(at + 1).is_some_and(|next| next.is(".") || next.is("["));
        let changed = self.tokens.iter().enumerate().any(|(at, token)| token.named(&name.text) && used(at));
        (!changed).then(|| self.elements(value, depth + 1))?
    }
}
