//! What a syntax tree would do: every branch counts, every known value is followed.
//!
//! Owns the walk, the variables and the directories. It errs towards "might happen": conditional assignments add values instead
//! of replacing them, and a `cd` that may fail leaves both directories possible. Page: `spec/shell.md`.

mod record;
mod values;

pub(crate) use values::{cut, runs_again, unknown_word};

use std::collections::{HashMap, HashSet};
use std::hash::RandomState;

use writ_core::Span;

use crate::action::{Access, Analysis, Dir, Env, NetTarget, Part, UnresolvedKind, Word};
use crate::expand::{Fields, Text, product};
use crate::parser::parse;
use crate::syntax::{Next, Node, RawWord, Redirect, RedirectKind, Simple};

/// Most commands that one line is followed to.
const MAX_COMMANDS: usize = 2000;
/// Deepest nesting of code in code and of calls.
const MAX_DEPTH: usize = 12;
/// Most work on one line.
const BUDGET: usize = 4 << 20;
/// Longest value of a variable, in bytes and in fields.
const MAX_VALUE: usize = 16 << 10;
/// Most arguments that are followed as `$@`.
const MAX_ARGUMENTS: usize = 2000;
/// Most values that a loop runs through one by one.
const MAX_ROUNDS: usize = 300;
/// Most files, or hosts, on record.
const MAX_USES: usize = 10_000;

/// What a command reads on standard input.
#[derive(Clone, Debug)]
pub enum Input {
    /// Nothing from this line.
    None,
    /// This text.
    Text(String),
    /// Paths, one a line (`find … |`); the flag says that everything below them is meant.
    Paths(Vec<Word>, bool),
    /// Something not known.
    Unknown,
}

/// The walk's state.
pub struct Eval<'e> {
    env: &'e Env,
    pub(crate) out: Analysis,
    vars: HashMap<String, Vec<Fields>>,
    functions: HashMap<String, Node>,
    arguments: Option<Vec<Word>>,
    dirs: Vec<Dir>,
    /// Above zero inside branches: assignments add.
    weak: usize,
    depth: usize,
    /// Above zero where files are another machine's.
    pub(crate) remote: usize,
    /// Above zero where an operand stands for a whole tree (`find -exec`).
    pub(crate) trees: usize,
    fixed: Option<Span>,
    /// What the last command hands to the next in its pipeline.
    pub(crate) output: Input,
    /// Work that may still be done: bytes and pieces of expanded words.
    budget: usize,
    /// Hashes of the files, hosts and open ends on record, so that each stands there once.
    seen: HashSet<u64>,
    hasher: RandomState,
}

/// Walks a whole line.
pub fn run(node: &Node, env: &Env) -> Analysis {
    let mut eval = Eval {
        env,
        out: Analysis::default(),
        vars: HashMap::new(),
        functions: HashMap::new(),
        arguments: None,
        dirs: vec![Dir::Start(String::new())],
        weak: 0,
        depth: 0,
        remote: 0,
        trees: 0,
        fixed: None,
        output: Input::None,
        budget: BUDGET,
        seen: HashSet::new(),
        hasher: RandomState::new(),
    };
    eval.node(node, &Input::None);
    eval.out
}

impl Eval<'_> {
    pub(crate) fn node(&mut self, node: &Node, input: &Input) {
        self.output = Input::Unknown;
        match node {
            Node::Simple(simple) => self.simple(simple, input),
            Node::Pipe(stages) => self.pipe(stages, input),
            Node::List(items) => self.list(items, input),
            Node::Subshell(inner) => self.scoped(|eval| eval.node(inner, input)),
            Node::Branches(branches) => {
                self.weak += 1;
                branches.iter().for_each(|branch| self.node(branch, input));
                self.weak -= 1;
                self.output = Input::Unknown;
            }
            Node::For { name, words, body } => self.for_loop(name, words.as_deref(), body, input),
            Node::Function { name, body } => {
                self.functions.insert(name.clone(), (**body).clone());
                // A function that is never called here may be called by what this line starts; look at it once.
                let arguments = self.arguments.take();
                self.weak += 1;
                self.scoped(|eval| eval.node(body, &Input::Unknown));
                self.weak -= 1;
                self.arguments = arguments;
            }
            Node::Words(words) => {
                for word in words.iter().flat_map(|word| self.expand(word)).flatten().collect::<Vec<_>>() {
                    // Arithmetic comparisons expand their operands once more.
                    if let Some(text) = word.literal().filter(|text| runs_again(text)) {
                        self.run_again(&text, word.span);
                    }
                }
            }
            Node::Redirected(inner, redirects) => {
                let inner_input = self.redirects(redirects).unwrap_or_else(|| input.clone());
                self.node(inner, &inner_input);
            }
        }
    }

    fn list(&mut self, items: &[(Node, Next)], input: &Input) {
        for (node, next) in items {
            let before = self.dirs.clone();
            self.node(node, input);
            match next {
                Next::OnSuccess => {}
                // What comes next runs where a `cd` succeeded or where it failed.
                Next::Always | Next::OnFailure => self.add_dirs(before),
                Next::Background => self.dirs = before,
            }
        }
    }

    fn add_dirs(&mut self, more: Vec<Dir>) {
        for dir in more {
            if !self.dirs.contains(&dir) && self.dirs.len() < 8 {
                self.dirs.push(dir);
            }
        }
    }

    fn pipe(&mut self, stages: &[Node], input: &Input) {
        let mut input = input.clone();
        for stage in stages {
            let text = self.static_output_from(stage, &input);
            self.scoped(|eval| eval.node(stage, &input));
            input = match (text, &self.output) {
                (Some(text), _) => Input::Text(text),
                (None, Input::Paths(paths, tree)) => Input::Paths(paths.clone(), *tree),
                (None, _) => Input::Unknown,
            };
        }
        self.output = Input::Unknown;
    }

    fn for_loop(&mut self, name: &str, words: Option<&[RawWord]>, body: &Node, input: &Input) {
        let mut values: Vec<Text> = Vec::new();
        match words {
            None => match &self.arguments {
                Some(words) => values.extend(words.iter().skip(1).map(|word| word.parts.clone())),
                None => values.push(vec![Part::Unknown]),
            },
            Some(words) => {
                for word in words {
                    values.extend(self.expand(word).into_iter().flatten().map(|word| word.parts));
                }
            }
        }
        if values.len() > MAX_ROUNDS {
            values.truncate(MAX_ROUNDS);
            values.push(vec![Part::Unknown]);
        }
        self.weak += 1;
        for value in values {
            self.vars.insert(name.to_owned(), vec![vec![value]]);
            self.node(body, input);
        }
        self.weak -= 1;
    }

    /// Runs where changes of directory and variables stay inside.
    pub(crate) fn scoped(&mut self, run: impl FnOnce(&mut Self)) {
        let (vars, dirs) = (self.vars.clone(), self.dirs.clone());
        run(self);
        (self.vars, self.dirs) = (vars, dirs);
    }

    /// A substitution's commands.
    pub(crate) fn isolated(&mut self, node: &Node) {
        let output = std::mem::replace(&mut self.output, Input::None);
        self.scoped(|eval| eval.node(node, &Input::Unknown));
        self.output = output;
    }

    fn simple(&mut self, simple: &Simple, input: &Input) {
        let span = self.span(simple.span);
        let piped = self.redirects(&simple.redirects);
        let input = piped.unwrap_or_else(|| input.clone());
        let declared = !simple.words.is_empty();
        let names = simple.assignments.iter().map(|assignment| assignment.name.clone());
        let before: Vec<_> = names.map(|name| (self.vars.get(&name).cloned(), name)).collect();
        for assignment in &simple.assignments {
            self.assign(assignment, span);
        }
        let mut alternatives: Vec<Vec<Word>> = vec![Vec::new()];
        for word in &simple.words {
            let here = self.expand(word);
            alternatives = product(alternatives, &here, &unknown_word(span));
        }
        let export = alternatives.first().and_then(|words| words.first()).and_then(Word::literal);
        let keeps = matches!(export.as_deref(), Some("export" | "declare" | "typeset" | "local" | "readonly"));
        drop_unlikely(&mut alternatives);
        for words in alternatives.into_iter().filter(|words| !words.is_empty()) {
            self.command(words, &[], span, &input);
        }
        // `A=b cmd`: the command sees A, this shell does not keep it.
        for (value, name) in before.into_iter().filter(|_| declared && !keeps) {
            match value {
                Some(value) => self.vars.insert(name, value),
                None => self.vars.remove(&name),
            };
        }
    }

    /// Redirections; `Some` when they say what standard input is.
    fn redirects(&mut self, redirects: &[Redirect]) -> Option<Input> {
        let mut input = None;
        for redirect in redirects {
            if redirect.kind == RedirectKind::Text {
                let text = self.expand_text(&redirect.word.parts);
                let known = text.first().filter(|_| text.len() == 1).and_then(literal);
                input = Some(known.map_or(Input::Unknown, Input::Text));
                continue;
            }
            for word in self.expand(&redirect.word).into_iter().flatten() {
                let access = match redirect.kind {
                    RedirectKind::Read => Access::Read,
                    RedirectKind::Duplicate => {
                        let text = word.literal().unwrap_or_default();
                        if text.trim_end_matches('-').chars().all(|c| c.is_ascii_digit()) {
                            continue;
                        }
                        Access::Write
                    }
                    RedirectKind::Write | RedirectKind::ReadWrite | RedirectKind::Text => Access::Write,
                };
                if access == Access::Read {
                    input = Some(Input::Unknown);
                }
                if let Some(host) = word.literal().and_then(|text| socket(&text)) {
                    let target = NetTarget::Host(Word { parts: vec![Part::Text(host)], span: word.span });
                    self.net(target, word.span);
                } else {
                    self.file(word, access, false);
                }
            }
        }
        input
    }
    pub(crate) fn home(&self) -> Option<String> {
        self.env.home.clone()
    }

    pub(crate) fn cwd(&self) -> Option<String> {
        (self.dirs == [Dir::Start(String::new())]).then(|| self.env.cwd.clone()).flatten()
    }

    pub(crate) fn span(&self, span: Span) -> Span {
        self.fixed.unwrap_or(span)
    }
    /// Calls a function defined in this line.
    pub(crate) fn call(&mut self, name: &str, words: &[Word], input: &Input) -> bool {
        let Some(body) = self.functions.get(name).cloned() else { return false };
        if self.depth >= MAX_DEPTH {
            return true;
        }
        self.depth += 1;
        let before = self.arguments.replace(words.to_vec());
        self.node(&body, input);
        self.arguments = before;
        self.depth -= 1;
        true
    }

    /// Code inside a word: `sh -c`, `eval`, `trap`. Everything found in it gets the word's span.
    pub(crate) fn code(&mut self, code: &Word, arguments: Option<Vec<Word>>, what: &str) {
        let mut text = String::new();
        for part in &code.parts {
            match part {
                Part::Text(known) | Part::Glob(known) => text.push_str(known),
                Part::Unknown => text.push_str(" $__unknown "),
            }
        }
        if code.literal().is_none() {
            self.unresolved(UnresolvedKind::Script, what, code.span);
        }
        if self.depth >= MAX_DEPTH {
            return self.unresolved(UnresolvedKind::Limit, what, code.span);
        }
        match parse(&text, Some(code.span), self.depth) {
            Err(_) => self.unresolved(UnresolvedKind::Script, what, code.span),
            Ok(node) => {
                let fixed = self.fixed.replace(code.span);
                let before = self.arguments.take();
                self.arguments = arguments;
                self.depth += 1;
                self.node(&node, &Input::Unknown);
                self.depth -= 1;
                self.arguments = before;
                self.fixed = fixed;
            }
        }
    }
    /// `cd`: `None` is a place not known.
    pub(crate) fn change_dir(&mut self, to: Option<&str>) {
        self.dirs = match to {
            None => vec![Dir::Unknown],
            Some(path) if path.starts_with('/') => vec![Dir::Start(path.to_owned())],
            Some(path) => {
                let join = |dir: &Dir| match dir {
                    Dir::Start(base) if base.is_empty() => Dir::Start(path.to_owned()),
                    Dir::Start(base) => Dir::Start(format!("{base}/{path}")),
                    Dir::Unknown => Dir::Unknown,
                };
                self.dirs.iter().map(join).collect()
            }
        };
    }

    /// Runs with another directory (`git -C x`).
    pub(crate) fn in_dir(&mut self, dir: Option<&Word>, run: impl FnOnce(&mut Self)) {
        let before = self.dirs.clone();
        if let Some(dir) = dir {
            self.change_dir(dir.literal().as_deref());
        }
        run(self);
        self.dirs = before;
    }

    pub(crate) fn deeper(&mut self, run: impl FnOnce(&mut Self)) -> bool {
        if self.depth >= MAX_DEPTH {
            return false;
        }
        self.depth += 1;
        run(self);
        self.depth -= 1;
        true
    }
}

/// A program whose name is partly unknown is left out where another alternative knows it.
fn drop_unlikely(alternatives: &mut Vec<Vec<Word>>) {
    let known = |words: &Vec<Word>| words.first().is_some_and(|word| word.literal().is_some());
    if alternatives.iter().any(known) {
        alternatives.retain(known);
    }
}

/// A value that is certain.
pub fn literal(text: &Text) -> Option<String> {
    text.iter()
        .map(|part| match part {
            Part::Text(text) | Part::Glob(text) => Some(text.as_str()),
            Part::Unknown => None,
        })
        .collect()
}

/// The host of bash's `/dev/tcp/host/port`.
fn socket(path: &str) -> Option<String> {
    let rest = path.strip_prefix("/dev/tcp/").or_else(|| path.strip_prefix("/dev/udp/"))?;
    rest.split('/').next().map(str::to_owned)
}
