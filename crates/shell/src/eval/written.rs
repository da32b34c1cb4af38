//! What the line itself writes into files, and what runs there later in it.
//!
//! A file whose text is known is followed as if the text stood where it runs; one that the line writes without its text being
//! known runs something that is not known. What the agent wrote before this line comes from [`Sources`].

use writ_core::Span;

use crate::Sources;
use crate::action::{UnresolvedKind, Word};
use crate::code::{self, Origin};
use crate::eval::command::text_word;
use crate::eval::output::may_be_static;
use crate::eval::{Eval, Input};
use crate::parser::syntax::{Next, Node, Redirect, RedirectKind, Simple};
use crate::programs::interpreters::is_shell;
use crate::programs::{makefile, projects};

/// Most files and texts that are kept.
const MOST: usize = 256;
/// Longest text that is kept.
const MAX_TEXT: usize = 128 << 10;

/// Programs that write what they make from a project's own files, or change a file's properties alone.
const MAKERS: [&str; 45] = [
    "chmod", "chown", "chgrp", "touch", "mkdir", "ln", "cp", "mv", "install", "rm", "rmdir", "git", "gcc", "cc", "g++",
    "c++", "clang", "clang++", "ld", "go", "rustc", "cargo", "tsc", "esbuild", "javac", "kotlinc", "swiftc", "zig",
    "ghc", "nim", "dotnet", "make", "cmake", "ninja", "npm", "pnpm", "yarn", "bun", "pip", "uv", "ruff", "black",
    "prettier", "gofmt", "tee",
];

/// Programs that run what a file of a known name says; `python -m` beside them.
const BY_NAME: [&str; 12] =
    ["npm", "pnpm", "yarn", "bun", "make", "gmake", "just", "direnv", "pytest", "py.test", "cargo", "task"];

/// What the line wrote.
#[derive(Debug, Default)]
pub struct Written {
    /// Where, and what: `None` is text that is not known.
    texts: Vec<(String, Option<String>)>,
    /// The program that is looked at changes no text that it does not name.
    pub(crate) keeping: bool,
    /// Files of the project that were followed: once for each line.
    pub(crate) followed: Vec<String>,
    /// How many process substitutions there were.
    substituted: usize,
    /// Texts in the order they were written, for who remembers them.
    pub(crate) kept: Vec<String>,
}

impl Written {
    /// Whether the line wrote anything so far.
    pub(crate) const fn holds_any(&self) -> bool {
        !self.texts.is_empty()
    }
}

/// What stands in a file.
enum Stored {
    /// One of these texts, written by this line; `false` where it may be another.
    Line(Vec<String>, bool),
    /// Written by the agent before.
    Earlier(String),
}

impl Eval<'_> {
    /// Whether this line wrote a text that is known.
    pub(crate) fn wrote_a_text(&self) -> bool {
        self.written.texts.iter().any(|(_, text)| text.is_some())
    }

    /// Whether anything is known of what any file holds.
    pub(crate) fn knows_texts(&self) -> bool {
        self.remembers || !self.written.texts.is_empty()
    }

    /// Says what the next program does to files whose text is known.
    pub(crate) fn keeps_texts(&mut self, base: &str) {
        self.written.keeping = MAKERS.contains(&base);
    }

    /// A file is written with something.
    pub(crate) fn note_write(&mut self, path: &Word) {
        if self.written.keeping || self.quiet > 0 {
            return;
        }
        if let Some(path) = path.place() {
            let places = self.places(&path);
            places.into_iter().for_each(|place| self.store(place, None));
        }
    }

    fn store(&mut self, place: String, text: Option<String>) {
        if self.weak == 0 {
            self.written.texts.retain(|(own, _)| *own != place);
        }
        if self.written.texts.len() < MOST {
            self.written.texts.push((place, text.filter(|text| text.len() <= MAX_TEXT)));
        } else {
            self.limit("too many files written");
        }
    }

    /// A file is written with a text, or that is put behind what it holds.
    pub(crate) fn note_text(&mut self, path: &Word, text: Option<&str>, append: bool) {
        let (Some(path), true) = (path.place(), self.quiet == 0) else { return };
        let text = text.filter(|text| text.len() <= MAX_TEXT);
        for place in self.places(&path) {
            let before = self.stored(&place).filter(|_| append);
            let whole = match (text, before) {
                (None, _) | (_, Some(Stored::Line(_, false))) => None,
                (Some(text), Some(Stored::Line(texts, true))) => {
                    Some(format!("{}{text}", texts.last().map_or("", String::as_str)))
                }
                (Some(text), Some(Stored::Earlier(before))) => Some(format!("{before}{text}")),
                (Some(text), None) => Some(text.to_owned()),
            };
            if let Some(whole) = &whole
                && self.written.kept.len() < MOST
            {
                self.written.kept.push(whole.clone());
            }
            self.store(place, whole);
        }
    }

    /// A copy or another name of a file.
    pub(crate) fn note_copy(&mut self, from: &str, to: &str) {
        // What a descriptor gives is no file's text.
        if from.starts_with("/dev/") || from.starts_with("/proc/") {
            return self.store(to.to_owned(), None);
        }
        let found: Vec<Option<String>> =
            self.written.texts.iter().filter(|(own, _)| own == from).map(|(_, text)| text.clone()).collect();
        if found.is_empty() && !self.written.texts.is_empty() {
            self.written.texts.retain(|(own, _)| own != to);
        }
        found.into_iter().for_each(|text| self.store(to.to_owned(), text));
    }

    fn stored(&self, place: &str) -> Option<Stored> {
        let mut texts = self.written.texts.iter().filter(|(own, _)| own == place).peekable();
        if texts.peek().is_none() {
            self.remembers.then_some(())?;
            // It, or what the line made a copy of.
            let start = self.start_dir()?;
            let absolute =
                |place: &str| if place.starts_with('/') { place.to_owned() } else { format!("{start}/{place}") };
            let names = std::iter::once(place).chain(self.origins(place));
            return names.map(absolute).find_map(|path| self.sources.authored(&path)).map(Stored::Earlier);
        }
        let all: Vec<Option<String>> = texts.map(|(_, text)| text.clone()).collect();
        let known = all.iter().all(Option::is_some);
        Some(Stored::Line(all.into_iter().flatten().collect(), known))
    }

    /// What redirections write, once the command that they belong to was walked.
    pub(crate) fn note_redirects(&mut self, redirects: &[Redirect], node: &Node, input: &Input) {
        let writes = |redirect: &&Redirect| matches!(redirect.kind, RedirectKind::Write) && !redirect.discards();
        if self.quiet > 0 || !redirects.iter().any(|redirect| writes(&redirect)) {
            return;
        }
        let known = !matches!(node, Node::Simple(simple) if !may_be_static(simple, input));
        let text = if known { self.whole_output(node, input) } else { None };
        for redirect in redirects.iter().filter(writes) {
            self.quiet += 1;
            let words: Vec<Word> = self.expand(&redirect.word).into_iter().flatten().collect();
            self.quiet -= 1;
            // Errors alone are no text that anybody chose.
            let text = if redirect.other { None } else { text.as_deref() };
            words.iter().for_each(|word| self.note_text(word, text, redirect.appends));
        }
    }

    /// The same for a command's own redirections.
    pub(crate) fn note_simple(&mut self, simple: &Simple, input: &Input) {
        if simple.redirects.iter().any(|redirect| redirect.kind == RedirectKind::Write && !redirect.discards()) {
            self.note_redirects(&simple.redirects, &Node::Simple(simple.clone()), input);
        }
    }

    /// The text of a file that this line or the agent wrote, where it is certain.
    pub(crate) fn text_known(&self, path: &Word) -> Option<String> {
        (self.remembers || self.wrote_a_text()).then_some(())?;
        let [place] = self.places(&path.place()?).try_into().ok()?;
        let place: String = place;
        match self.stored(&place)? {
            Stored::Line(mut texts, true) if texts.len() == 1 => texts.pop(),
            Stored::Line(..) => None,
            Stored::Earlier(text) => Some(text),
        }
    }

    /// The text of a file that this line wrote, where it is certain.
    pub(crate) fn text_in(&self, path: &Word) -> Option<String> {
        let [place] = self.places(&path.place()?).try_into().ok()?;
        let place: String = place;
        let mut texts = self.written.texts.iter().filter(|(own, _)| *own == place).map(|(_, text)| text);
        texts.next()?.clone().filter(|_| texts.next().is_none())
    }

    /// Where this line wrote something, absolute.
    pub(crate) fn written_here(&self) -> Vec<String> {
        let start = self.start_dir().unwrap_or_default();
        let places = self.written.texts.iter().map(|(place, _)| place);
        places.map(|place| if place.starts_with('/') { place.clone() } else { format!("{start}/{place}") }).collect()
    }

    /// What a process substitution gives, as the file that a program sees.
    pub(crate) fn substituted(&mut self, text: Option<String>) -> String {
        let place = format!("/dev/fd/{}", 63 - self.written.substituted % 32);
        if self.quiet == 0 {
            self.written.substituted += 1;
            self.written.texts.retain(|(own, _)| *own != place);
            if text.is_some() {
                self.store(place.clone(), text);
            }
        }
        place
    }

    /// Follows a text of a known kind that the agent wrote.
    pub(crate) fn followed(&mut self, what: &str, path: &str, text: &str, span: Span) {
        self.run_text(text, what, path, span, None, Origin::Earlier);
    }

    /// The output of one command or of several, redirections of output left out.
    fn whole_output(&mut self, node: &Node, input: &Input) -> Option<String> {
        match node {
            Node::List(items) => {
                let mut out = String::new();
                for (node, next) in items {
                    matches!(next, Next::Always | Next::OnSuccess).then_some(())?;
                    out.push_str(&self.whole_output(node, input)?);
                }
                Some(out)
            }
            Node::Subshell(inner) => self.whole_output(inner, input),
            Node::Simple(simple) => {
                let own = |redirect: &&Redirect| matches!(redirect.kind, RedirectKind::Text | RedirectKind::Read);
                let redirects: Vec<Redirect> = simple.redirects.iter().filter(own).cloned().collect();
                let plain = Simple { redirects, ..simple.clone() };
                self.static_output_from(&Node::Simple(plain), input)
            }
            other @ (Node::Pipe(_)
            | Node::Branches(_)
            | Node::Loop(_)
            | Node::For { .. }
            | Node::Function { .. }
            | Node::Words(_)
            | Node::Test(_)
            | Node::Redirected(..)) => self.static_output_from(other, input),
        }
    }

    /// `tee file`
    pub(crate) fn note_tee(&mut self, arguments: &[Word], input: &Input) {
        let text = if let Input::Text(text) = input { Some(text.as_str()) } else { None };
        let flag = |word: &&Word| word.literal().is_some_and(|text| text.starts_with('-'));
        let append =
            arguments.iter().filter(flag).any(|word| matches!(word.literal().as_deref(), Some("-a" | "--append")));
        arguments.iter().filter(|word| !flag(word)).for_each(|file| self.note_text(file, text, append));
    }

    /// A file is run by an interpreter (`what`), or by itself where that is empty.
    pub(crate) fn run_file(&mut self, file: &Word, what: &str, arguments: Option<Vec<Word>>) {
        if self.quiet > 0 || self.remote > 0 || !self.knows_texts() {
            return;
        }
        let Some(path) = file.place() else { return };
        for place in self.places(&path) {
            match self.stored(&place) {
                None => {}
                Some(Stored::Line(texts, known)) => {
                    texts
                        .iter()
                        .for_each(|text| self.run_text(text, what, &path, file.span, arguments.clone(), Origin::Line));
                    if !known {
                        let what = format!("{what} {path}");
                        self.unresolved(UnresolvedKind::Script, what.trim(), file.span);
                    }
                }
                Some(Stored::Earlier(text)) => {
                    self.run_text(&text, what, &path, file.span, arguments.clone(), Origin::Earlier)
                }
            }
        }
    }

    fn run_text(
        &mut self,
        text: &str,
        what: &str,
        path: &str,
        span: Span,
        arguments: Option<Vec<Word>>,
        origin: Origin,
    ) {
        if !self.spend(16 + text.len() / 8) {
            return;
        }
        let shebang = text.strip_prefix("#!").and_then(|rest| rest.lines().next()).unwrap_or_default();
        let named = shebang.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or_default());
        let named = named.filter(|word| *word != "env" && !word.starts_with('-')).map(str::to_owned).next();
        let interpreter = if what.is_empty() { named.unwrap_or_else(|| "sh".to_owned()) } else { what.to_owned() };
        if is_shell(&interpreter) || matches!(interpreter.as_str(), "." | "source") {
            if !self.deeper(|eval| eval.code(&text_word(text, span), arguments, &interpreter)) {
                self.unresolved(UnresolvedKind::Limit, path, span);
            }
        } else if matches!(interpreter.as_str(), "make" | "just") {
            makefile::text(self, &interpreter, &text_word(&makefile::with_variables(text), span));
        } else if interpreter == "package.json" {
            self.package_scripts(text, span);
        } else {
            let known = self.deeper(|eval| code::script(eval, &interpreter, path, text, span, arguments, origin));
            if !known {
                self.unresolved(UnresolvedKind::Limit, path, span);
            }
        }
    }

    /// The modules that a program loads, where this line or the agent wrote them.
    pub(crate) fn run_modules(&mut self, base: &str, modules: &[String], span: Span) {
        for module in modules.iter().take(64) {
            let files = match code::Language::of(base) {
                Some(code::Language::Python) => vec![format!("{module}.py"), format!("{module}/__init__.py")],
                Some(code::Language::JavaScript) => {
                    ["", ".js", ".mjs", ".cjs", ".ts", "/index.js"].iter().map(|end| format!("{module}{end}")).collect()
                }
                _ => Vec::new(),
            };
            files.iter().for_each(|file| self.run_file(&text_word(file, span), base, None));
        }
    }

    /// Programs that run what a file of a known name says: `npm run`, `make`, `pytest`, `direnv`.
    pub(crate) fn run_by_name(&mut self, base: &str, arguments: &[Word], span: Span) {
        if self.quiet > 0 || self.remote > 0 || !self.knows_texts() {
            return;
        }
        projects::run(self, base, arguments, span);
        if !BY_NAME.contains(&base) && !base.starts_with("python") {
            return;
        }
        let first = arguments.iter().filter_map(Word::literal).find(|text| !text.starts_with('-'));
        let first = first.as_deref().unwrap_or_default();
        let runs: (&[&str], &str) = match (base, first) {
            (
                "npm" | "pnpm" | "yarn",
                "run" | "run-script" | "test" | "t" | "start" | "install" | "i" | "ci" | "add" | "publish" | "pack",
            )
            | ("bun", "run" | "install" | "i" | "add") => (&["package.json"], "package.json"),
            ("yarn" | "pnpm", _) => (&["package.json"], "package.json"),
            ("make" | "gmake", _) => (&["GNUmakefile", "makefile", "Makefile"], "make"),
            ("just", _) => (&["justfile", "Justfile", ".justfile"], "just"),
            ("direnv", "allow" | "exec" | "reload" | "export") => (&[".envrc"], "source"),
            (python, _) if python.starts_with("python") => return self.run_module(base, arguments, span),
            ("pytest" | "py.test", _) => (&["conftest.py"], "python3"),
            ("cargo", "build" | "test" | "run" | "check" | "clippy" | "b" | "t" | "r" | "c") => (&["build.rs"], "rust"),
            ("task", _) => (&["Taskfile.yml", "Taskfile.yaml"], "task"),
            _ => return,
        };
        for file in runs.0 {
            self.run_file(&text_word(file, span), runs.1, None);
        }
        if matches!(base, "pytest" | "py.test") {
            let python = |path: &String| path.ends_with(".py");
            let mut files: Vec<String> =
                self.written.texts.iter().map(|(path, _)| path.clone()).filter(python).collect();
            files.extend(arguments.iter().filter_map(Word::literal).filter(python));
            files.dedup();
            files.iter().for_each(|file| self.run_file(&text_word(file, span), "python3", None));
        }
    }

    /// `python -m module`
    fn run_module(&mut self, base: &str, arguments: &[Word], span: Span) {
        let at = arguments.iter().position(|word| word.literal().as_deref() == Some("-m"));
        let Some((at, module)) = at.and_then(|at| Some((at, arguments.get(at + 1)?.literal()?))) else { return };
        if module == "pytest" {
            return self.run_by_name("pytest", arguments.get(at + 2..).unwrap_or_default(), span);
        }
        let path = module.replace('.', "/");
        self.run_modules(base, &[path.clone(), format!("{path}/__main__")], span);
    }

    /// Every script of a `package.json`.
    pub(crate) fn package_scripts(&mut self, text: &str, span: Span) {
        let parsed = writ_core::json::parse_with(text.as_bytes(), writ_core::json::Limits::FOREIGN).ok();
        let Some(scripts) = parsed.as_ref().and_then(|package| package.get("scripts")?.as_object()) else { return };
        for (_, script) in scripts.iter().take(64) {
            if let Some(script) = script.as_str() {
                self.deeper(|eval| eval.code(&text_word(script, span), None, "npm run"));
            }
        }
    }
}

/// Nothing was written before.
pub struct Nothing;

impl Sources for Nothing {
    fn authored(&self, _path: &str) -> Option<String> {
        None
    }

    fn any(&self) -> bool {
        false
    }
}
