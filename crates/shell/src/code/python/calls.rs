//! What listed calls touch: files by paths that are known, hosts, shell code and commands. What is not known is refused.

use crate::action::Access;
use crate::code::python::{LANGUAGE, Reader};
use crate::code::token::{Kind, Token, arguments, inside};
use crate::code::{Value, known, sql, table, text_of};
use crate::programs::entries::words::{Effect, List};

/// Arguments of `subprocess`' functions that change neither what runs nor where.
const SAFE: [&str; 14] = [
    "capture_output",
    "text",
    "check",
    "shell",
    "stdout",
    "stderr",
    "stdin",
    "timeout",
    "universal_newlines",
    "encoding",
    "errors",
    "bufsize",
    "close_fds",
    "start_new_session",
];

impl<'t> Reader<'t> {
    /// A call of something that touches more than values. `open` is where its bracket stands.
    pub(super) fn call(&mut self, role: Effect, name: &str, tokens: &'t [Token], open: usize, at: usize) {
        let done = tokens.get(open).is_some_and(|token| token.is("("))
            && inside(tokens, open).is_some_and(|inner| {
                let given = arguments(inner);
                self.touch(role, name, &given, tokens, at).is_some()
            });
        if !done {
            self.out.computes |= matches!(role, Effect::ShellCode | Effect::Command);
            self.refuse();
        }
    }

    fn touch(&mut self, role: Effect, name: &str, given: &[&'t [Token]], tokens: &'t [Token], at: usize) -> Option<()> {
        let own = || receiver(tokens, at);
        // Commands are followed, and asked about all the same.
        if matches!(role, Effect::ShellCode | Effect::Command) {
            self.refuse();
        }
        match role {
            Effect::Reads => self.each_file(given.first(), Access::Read, false),
            Effect::Writes => self.each_file(given.first(), Access::Write, false),
            Effect::WritesTree => self.each_file(given.first(), Access::Write, true),
            Effect::Lists => Some(()),
            Effect::Moves => {
                self.each_file(given.first(), Access::Write, false)?;
                self.each_file(given.get(1), Access::Write, false)
            }
            Effect::Copies | Effect::CopiesTree => {
                self.each_file(given.first(), Access::Read, role == Effect::CopiesTree)?;
                self.each_file(given.get(1), Access::Write, role == Effect::CopiesTree)
            }
            Effect::Opens => self.open(given.first()?, given.get(1..)?),
            Effect::OwnOpens => self.open(own()?, given),
            Effect::OwnReads => self.each_file(Some(&own()?), Access::Read, false),
            Effect::OwnWrites => self.each_file(Some(&own()?), Access::Write, false),
            Effect::OwnMoves => {
                self.each_file(Some(&own()?), Access::Write, false)?;
                self.each_file(given.first(), Access::Write, false)
            }
            Effect::ShellCode => {
                let code = self.values(given.first()?, 0)?;
                self.out.shells.extend(code);
                (given.len() == 1).then_some(())
            }
            Effect::Command => self.command(given),
            Effect::Url => self.url(given, name),
            Effect::Sql => {
                let texts = self.values(given.first()?, 0)?;
                texts.iter().all(|text| text_of(text).is_some_and(|text| sql::is_harmless(&text))).then_some(())
            }
            _ => None,
        }
    }

    fn each_file(&mut self, path: Option<&&'t [Token]>, access: Access, tree: bool) -> Option<()> {
        let path = positional(path?, &["file", "path", "src", "dst", "name", "filename", "database", "source", "f"])?;
        let paths = self.values(path, 0)?;
        self.out.files.extend(paths.into_iter().map(|path| (path, access, tree)));
        Some(())
    }

    /// `open(path, mode)`; a number is a descriptor that is open already.
    fn open(&mut self, path: &'t [Token], more: &[&'t [Token]]) -> Option<()> {
        let path = positional(path, &["file", "filename"])?;
        if matches!(path, [number] if number.kind == Kind::Value && matches!(number.text.as_str(), "0" | "1" | "2")) {
            return Some(());
        }
        let mode = more.iter().enumerate().find_map(|(place, words)| match words {
            [name, equals, value @ ..] if equals.is("=") => name.named("mode").then_some(value),
            words => (place == 0).then_some(*words),
        });
        let modes = match mode {
            None => vec![known("r")],
            Some(mode) => self.values(mode, 0).unwrap_or_else(|| vec![known("r+")]),
        };
        let reads = |mode: &Value| text_of(mode).is_some_and(|mode| !mode.contains(['w', 'a', 'x', '+']));
        let (mut read, mut write) = (false, false);
        for mode in &modes {
            let reading = reads(mode);
            read |= reading || text_of(mode).is_none_or(|mode| mode.contains('+'));
            write |= !reading;
        }
        if read {
            self.each_file(Some(&path), Access::Read, false)?;
        }
        if write {
            self.each_file(Some(&path), Access::Write, false)?;
        }
        Some(())
    }

    /// `subprocess.run(['a', 'b'])`, `subprocess.run('a b', shell=True)`
    fn command(&mut self, given: &[&'t [Token]]) -> Option<()> {
        let (first, more) = given.split_first()?;
        let mut shell = false;
        for words in more {
            let [name, equals, value @ ..] = words else { return None };
            let name = name.name().filter(|name| equals.is("=") && SAFE.contains(name))?;
            shell |= name == "shell" && !matches!(value, [value] if value.named("False"));
        }
        let list = first.first().is_some_and(|open| open.is("[") || open.is("("));
        if shell || !list {
            let code = self.values(first, 0)?;
            if shell {
                self.out.shells.extend(code);
            } else {
                self.out.commands.extend(code.into_iter().map(|program| vec![program]));
            }
            return Some(());
        }
        let mut words = Vec::new();
        for word in arguments(inside(first, 0)?) {
            let python = word.len() == 3 && self.path_of(word).is_some_and(|(path, _)| path == "sys.executable");
            let mut values = if python { vec![known("python3")] } else { self.values(word, 0)? };
            let value = values.pop().filter(|_| values.is_empty())?;
            words.push(value);
        }
        (!words.is_empty()).then(|| self.out.commands.push(words))
    }

    fn url(&mut self, given: &[&'t [Token]], name: &str) -> Option<()> {
        let first = given.first()?;
        if let Some((path, _)) = self.path_of(first)
            && path == "urllib.request.Request"
        {
            // Looked at where it stands.
            return Some(());
        }
        let urls = match self.values(first, 0) {
            Some(urls) => urls,
            None => {
                // A request made before.
                let made = first.first().filter(|_| first.len() == 1).and_then(Token::name);
                let requests = self.bindings.names.get(made?)?.iter().all(|binding| match binding {
                    super::Binding::Is(value) => {
                        self.path_of(value).is_some_and(|(path, _)| path == "urllib.request.Request")
                    }
                    super::Binding::Each(_) | super::Binding::Other => false,
                });
                return (requests && name.ends_with("urlopen")).then_some(());
            }
        };
        let web = |url: &Value| matches!(url.first(), Some(crate::word::Part::Text(text)) if text.starts_with("http://") || text.starts_with("https://"));
        let proxied = given.iter().any(|words| matches!(words, [name, equals, ..] if equals.is("=") && (name.named("proxies") || name.named("verify") || name.named("cert"))));
        if !urls.iter().all(web) || proxied {
            return None;
        }
        self.out.urls.extend(urls);
        Some(())
    }

    /// `.replace(a)` and `.copy(a)` are a path's, `.replace(a, b)` and `.copy()` are not.
    pub(super) fn replaces(&mut self, name: &str, tokens: &'t [Token], at: usize) {
        let Some(inner) = tokens.get(at + 1).filter(|open| open.is("(")).and_then(|_| inside(tokens, at + 1)) else {
            return self.refuse();
        };
        let given = arguments(inner);
        let keyed = given.iter().all(|words| words.get(1).is_some_and(|equals| equals.is("=")));
        let harmless = match name {
            "copy" => given.is_empty(),
            _ => {
                keyed
                    || (given.len() >= 2
                        && !given.iter().any(|words| words.first().is_some_and(|star| star.is("*") || star.is("**"))))
            }
        };
        if !harmless && (name == "copy" || self.touch(Effect::OwnMoves, name, &given, tokens, at).is_none()) {
            self.refuse();
        }
        // `target=` is a path's too.
        if name == "replace" && given.iter().any(|words| words.first().is_some_and(|name| name.named("target"))) {
            self.refuse();
        }
    }
}

/// An argument's value, given by place or by one of these names.
fn positional<'t>(words: &'t [Token], names: &[&str]) -> Option<&'t [Token]> {
    match words {
        [star, ..] if star.is("*") || star.is("**") => None,
        [name, equals, value @ ..] if equals.is("=") => names.iter().any(|own| name.named(own)).then_some(value),
        words => Some(words),
    }
}

/// The value whose member stands at `at`.
fn receiver(tokens: &[Token], at: usize) -> Option<&[Token]> {
    let dot = at.checked_sub(1)?;
    let mut start = dot;
    loop {
        let last = start.checked_sub(1)?;
        let token = tokens.get(last)?;
        if token.is(")") || token.is("]") {
            let mut depth = 0usize;
            let mut open = last;
            loop {
                match tokens.get(open)? {
                    token if token.is(")") || token.is("]") || token.is("}") => depth += 1,
                    token if token.is("(") || token.is("[") || token.is("{") => depth -= 1,
                    _ => {}
                }
                if depth == 0 {
                    break;
                }
                open = open.checked_sub(1)?;
            }
            start = open;
            let called = open.checked_sub(1).and_then(|at| tokens.get(at)).is_some_and(|before| {
                before.kind == Kind::Name && !table::has(LANGUAGE, List::Keywords, &before.text)
                    || before.is(")")
                    || before.is("]")
            });
            if !called {
                break;
            }
            continue;
        }
        start = last;
        if token.kind != Kind::Name {
            break;
        }
        match last.checked_sub(1).and_then(|at| tokens.get(at)) {
            Some(before) if before.is(".") => start = last - 1,
            _ => break,
        }
    }
    tokens.get(start..dot)
}
