//! What a syntax tree would do: every branch counts, every known value is followed.
//!
//! Owns the walk, the variables and the directories. It errs towards "might happen": conditional assignments add values instead
//! of replacing them, and a `cd` that may fail leaves both directories possible. Page: `spec/shell.md`.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash, RandomState};

use writ_core::Span;

use crate::action::{
    Access, Analysis, Command, Dir, Env, FileUse, NetTarget, NetUse, Part, Unresolved, UnresolvedKind, Word,
};
use crate::expand::{Fields, MAX_ALTERNATIVES, Text, product};
use crate::parser::parse;
use crate::syntax::{Assignment, Next, Node, RawWord, Redirect, RedirectKind, Simple};

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

    fn assign(&mut self, assignment: &Assignment, span: Span) {
        let mut values: Vec<Fields> = Vec::new();
        if assignment.array {
            let mut list: Vec<Vec<Word>> = vec![Vec::new()];
            for word in &assignment.values {
                let here = self.expand(word);
                list = product(list, &here, &unknown_word(span));
            }
            values.extend(list.into_iter().map(|words| words.into_iter().map(|word| word.parts).collect::<Fields>()));
        } else if let Some(word) = assignment.values.first() {
            values.extend(self.expand_text(&word.parts).into_iter().map(|text| vec![text]));
        }
        self.set(&assignment.name, values, assignment.adds, span);
    }

    /// Gives a variable values.
    pub(crate) fn set(&mut self, name: &str, mut values: Vec<Fields>, adds: bool, span: Span) {
        self.judge_assignment(name, &values, span);
        for value in &mut values {
            if size(value) > MAX_VALUE {
                *value = vec![vec![Part::Unknown]];
                self.unresolved(UnresolvedKind::Limit, "a value too long to follow", span);
            }
        }
        // Prompts, arithmetic and `${x@P}` run what a value holds.
        let held: Vec<String> = values.iter().flatten().filter_map(literal).filter(|text| runs_again(text)).collect();
        held.iter().for_each(|text| self.run_again(text, span));
        if adds {
            // `+=` appends; an element changes one of many. Both leave more than one value possible.
            let old = self.vars.get(name).cloned().unwrap_or_default();
            let appended = product(old.clone(), &values, &vec![Part::Unknown]);
            let joined = appended.into_iter().map(|fields| vec![fields.concat()]);
            values = old.into_iter().chain(joined).chain(values.clone()).collect();
        } else if self.weak > 0
            && let Some(old) = self.vars.get(name)
        {
            values.extend(old.iter().cloned());
        }
        cut(&mut values);
        self.vars.insert(name.to_owned(), values);
    }

    /// Text that bash expands once more: the commands in it run.
    pub(crate) fn run_again(&mut self, text: &str, span: Span) {
        let code = format!(": \"{}\"", text.replace('"', "\\\""));
        self.code(&Word { parts: vec![Part::Text(code)], span }, None, "text that is expanded again");
    }

    /// Does work; what is beyond the budget is not looked at, and said so.
    pub(crate) fn spend(&mut self, cost: usize, span: Span) -> bool {
        self.budget = self.budget.saturating_sub(cost + 1);
        if self.budget == 0 {
            self.unresolved(UnresolvedKind::Limit, "too much to follow", span);
        }
        self.budget > 0
    }

    fn is_new(&mut self, item: &impl Hash) -> bool {
        let hash = self.hasher.hash_one(item);
        self.seen.insert(hash)
    }

    /// What a variable may hold; `None` when nobody assigned it.
    pub(crate) fn values(&self, name: &str) -> Option<Vec<Fields>> {
        let text = |text: String| vec![vec![vec![Part::Text(text)]]];
        if let Some(named) = name.strip_prefix('!') {
            return self.indirect(named);
        }
        if let Some(array) = name.strip_suffix("[?]") {
            // Whichever element is meant.
            let elements = self.vars.get(array)?.iter().flatten().map(|field| vec![field.clone()]);
            return Some(elements.collect());
        }
        let base = name.strip_suffix("[@]").unwrap_or(name);
        if let Some(values) = self.vars.get(base) {
            return Some(values.clone());
        }
        match name {
            "HOME" => self.home().map(text),
            "PWD" if self.dirs == [Dir::Start(String::new())] => self.env.cwd.clone().map(text),
            "IFS" => Some(text(" ".to_owned())),
            "@" | "*" => {
                self.arguments.as_ref().map(|words| vec![words.iter().skip(1).map(|word| word.parts.clone()).collect()])
            }
            _ => {
                let index: usize = name.parse().ok()?;
                let words = self.arguments.as_ref()?;
                Some(vec![words.get(index).map(|word| vec![word.parts.clone()]).unwrap_or_default()])
            }
        }
    }

    /// Whether this line says how words are split.
    pub(crate) fn has_ifs(&self) -> bool {
        self.vars.contains_key("IFS")
    }

    /// `${!name}`: what the value of `name` names.
    fn indirect(&self, name: &str) -> Option<Vec<Fields>> {
        if name == "#" {
            return Some(vec![vec![self.arguments.as_ref()?.last()?.parts.clone()]]);
        }
        let names = self.values(name)?;
        let named = names.iter().flatten().map(|text| literal(text).filter(|text| !text.starts_with('!')));
        let values = named.map(|named| named.and_then(|named| self.values(&named)));
        let mut out = Vec::new();
        for value in values {
            out.extend(value.unwrap_or_else(|| vec![vec![vec![Part::Unknown]]]));
        }
        Some(out)
    }

    /// Whether a name nobody assigned here surely has a value from outside.
    pub(crate) fn is_environment(&self, name: &str) -> bool {
        matches!(
            name,
            "PATH"
                | "USER"
                | "SHELL"
                | "TMPDIR"
                | "PWD"
                | "OLDPWD"
                | "HOSTNAME"
                | "HOME"
                | "?"
                | "$"
                | "!"
                | "#"
                | "-"
                | "0"
                | "@"
                | "*"
                | "RANDOM"
                | "SECONDS"
                | "LINENO"
                | "UID"
        )
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

    pub(crate) fn set_arguments(&mut self, words: Vec<Word>) {
        if words.len() > MAX_ARGUMENTS {
            let span = words.first().map_or(Span { start: 0, end: 0 }, |word| word.span);
            self.unresolved(UnresolvedKind::Limit, "too many arguments", span);
            self.arguments = None;
            return;
        }
        self.arguments = Some(words);
    }

    /// `shift`, however far: any of the arguments may then be the first.
    pub(crate) fn shift(&mut self, by: usize) {
        if let Some(words) = &mut self.arguments {
            let end = (by + 1).min(words.len());
            words.drain(1.min(end)..end);
        }
    }

    pub(crate) fn define(&mut self, name: &str, body: Node) {
        self.functions.insert(name.to_owned(), body);
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

    /// Puts a command on record.
    pub(crate) fn record(&mut self, words: &[Word], via: &[String], span: Span) -> bool {
        if self.out.commands.len() >= MAX_COMMANDS {
            if !self.out.unresolved.iter().any(|open| open.kind == UnresolvedKind::Limit) {
                self.unresolved(UnresolvedKind::Limit, "too many commands", span);
            }
            return false;
        }
        self.out.commands.push(Command { words: words.to_vec(), span, via: via.to_vec() });
        true
    }

    pub(crate) fn unresolved(&mut self, kind: UnresolvedKind, what: &str, span: Span) {
        self.unresolved_with(kind, what, span, Vec::new());
    }

    pub(crate) fn unresolved_with(&mut self, kind: UnresolvedKind, what: &str, span: Span, mentions: Vec<Word>) {
        let open = Unresolved { kind, what: what.to_owned(), span, mentions };
        if self.is_new(&open) {
            self.out.unresolved.push(open);
        }
    }

    pub(crate) fn file(&mut self, path: Word, access: Access, tree: bool) {
        let Some(file) = self.place(path, access, tree) else { return };
        let lost = file.dirs.contains(&Dir::Unknown) && file.path.literal().is_some_and(|text| !text.starts_with('/'));
        let span = file.span;
        if self.out.files.len() >= MAX_USES {
            return self.unresolved(UnresolvedKind::Limit, "too many files", Span { start: 0, end: 0 });
        }
        if self.is_new(&file) {
            self.out.files.push(file);
        }
        if lost && access != Access::List {
            self.unresolved(UnresolvedKind::Directory, "a folder that is not known", span);
        }
    }

    /// A use of a file here, which is put on record by whoever asks; `None` on another machine.
    pub(crate) fn place(&self, path: Word, access: Access, tree: bool) -> Option<FileUse> {
        if self.remote > 0 || path.parts.is_empty() {
            return None;
        }
        let tree = tree || (self.trees > 0 && access != Access::List);
        let (span, dirs) = (path.span, self.dirs.clone());
        Some(FileUse { path, dirs, access, tree, span })
    }

    pub(crate) fn net(&mut self, target: NetTarget, span: Span) {
        let net = NetUse { target, span };
        if self.out.nets.len() >= MAX_USES {
            return self.unresolved(UnresolvedKind::Limit, "too many hosts", Span { start: 0, end: 0 });
        }
        if self.is_new(&net) {
            self.out.nets.push(net);
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

/// No more values than a word may have; that some were left out is a value of its own.
pub(crate) fn cut(values: &mut Vec<Fields>) {
    if values.len() > MAX_ALTERNATIVES {
        values.truncate(MAX_ALTERNATIVES - 1);
        values.push(vec![vec![Part::Unknown]]);
    }
}

fn unknown_word(span: Span) -> Word {
    Word { parts: vec![Part::Unknown], span }
}

/// Bytes and fields of a value.
fn size(fields: &Fields) -> usize {
    let part = |part: &Part| match part {
        Part::Text(text) | Part::Glob(text) => text.len(),
        Part::Unknown => 1,
    };
    fields.iter().map(|text| 1 + text.iter().map(part).sum::<usize>()).sum()
}

/// Whether text holds commands that run when it is expanded.
pub(crate) fn runs_again(text: &str) -> bool {
    text.contains("$(") || text.contains('`') || text.contains("${")
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
