//! What a syntax tree would do: every branch counts, every known value is followed.
//!
//! Owns the walk, the variables and the directories. It errs towards "might happen": conditional assignments add values instead
//! of replacing them, and a `cd` that may fail leaves both directories possible. Page: `spec/shell.md`.

pub(crate) mod again;
pub(crate) mod asked;
pub(crate) mod braces;
pub(crate) mod budget;
pub(crate) mod builtins;
pub(crate) mod command;
pub(crate) mod descriptors;
pub(crate) mod dirs;
pub(crate) mod echo;
pub(crate) mod expand;
pub(crate) mod globs;
pub(crate) mod kept;
pub(crate) mod listed;
pub(crate) mod loops;
pub(crate) mod output;
pub(crate) mod params;
pub(crate) mod pattern;
pub(crate) mod reads;
pub(crate) mod record;
pub(crate) mod temporary;
pub(crate) mod vars;
pub(crate) mod written;

use std::collections::{HashMap, HashSet};
use std::hash::RandomState;
use std::rc::Rc;

use writ_core::Span;

use crate::Sources;
use crate::action::{Access, Analysis, Dir, Env, NetTarget, Part, UnresolvedKind, Word};
use crate::eval::budget::MAX_STEPS;
use crate::eval::descriptors::Descriptors;
use crate::eval::expand::{Fields, Text};
use crate::eval::globs::Globbing;
use crate::eval::vars::{Arguments, Change, Function};
use crate::eval::written::Written;
use crate::listing::Source;
use crate::parser::parse;
use crate::parser::syntax::{Assignment, Next, Node, RawPart, Redirect, RedirectKind, Simple};
use crate::programs::linked::Links;
use crate::programs::mounts::Mounts;
use crate::programs::settings;

/// Deepest nesting of code in code and of calls.
pub const MAX_DEPTH: usize = 12;

/// What a command reads on standard input.
#[derive(Clone, Debug)]
pub enum Input {
    /// Nothing from this line.
    None,
    /// This text.
    Text(String),
    /// Text of which some is not known (`find … |`).
    Partly(Text),
    /// Something not known.
    Unknown,
}

impl Input {
    /// A text as input.
    pub fn of(text: Text) -> Self {
        match literal(&text) {
            Some(known) if !text.iter().any(|part| matches!(part, Part::Glob(_))) => Self::Text(known),
            _ if text.iter().all(|part| matches!(part, Part::Unknown(source) if source.is_made())) => Self::Unknown,
            _ => Self::Partly(text),
        }
    }

    /// The text; `None` where it may be any, or nobody gives one.
    pub fn text(&self) -> Option<Text> {
        match self {
            Self::Text(text) => Some(vec![Part::Text(text.clone())]),
            Self::Partly(text) => Some(text.clone()),
            Self::None | Self::Unknown => None,
        }
    }
}

/// The walk's state.
pub struct Eval<'e> {
    env: &'e Env,
    pub(crate) out: Analysis,
    pub(crate) vars: HashMap<String, Vec<Fields>>,
    pub(crate) functions: HashMap<String, Function>,
    /// How to take back changes of the two above.
    pub(crate) changes: Vec<Change>,
    /// `declare -n`: what a name stands for.
    pub(crate) references: HashMap<String, String>,
    /// `readonly`: an assignment may fail.
    pub(crate) frozen: HashSet<String>,
    /// `declare -i`, `-l`, `-u`: an assignment changes the value.
    pub(crate) shaped: HashSet<String>,
    pub(crate) aliases: HashMap<String, String>,
    pub(crate) links: Links,
    /// What the line wrote into files, and what stood there before.
    pub(crate) written: Written,
    pub(crate) sources: &'e dyn Sources,
    /// How many lists of names were read from files.
    pub(crate) lists: usize,
    /// One of them is read line by line, and has to stay as it is until the end.
    relies: bool,
    pub(crate) descriptors: Descriptors,
    /// Above zero where an assignment goes to the environment of what is run.
    pub(crate) exports: usize,
    pub(crate) arguments: Option<Arguments>,
    pub(crate) dirs: Vec<Dir>,
    /// Where commands run if a `cd` in the midst of a chain failed (`cd x && a; b`).
    pub(crate) unlikely: Vec<Dir>,
    /// Above zero inside branches: assignments add.
    pub(crate) weak: usize,
    pub(crate) depth: usize,
    /// Above zero where files are another machine's.
    pub(crate) remote: usize,
    /// What of this machine is seen there.
    pub(crate) mounts: Mounts,
    /// Above zero in another shell, which need not know this one's functions.
    pub(crate) strange: usize,
    /// Above zero where a loop's body is walked once more.
    pub(crate) repeats: usize,
    /// A loop is followed word by word.
    pub(crate) stepping: bool,
    /// Above zero where only a value is wanted.
    pub(crate) quiet: usize,
    /// A program's name is expanded.
    pub(crate) naming: bool,
    pub(crate) fixed: Option<Span>,
    /// The command that is looked at.
    pub(crate) here: Span,
    pub(crate) steps: usize,
    pub(crate) limited: bool,
    /// What is on record, hashed with a key that no line can know.
    pub(crate) seen: HashSet<u64>,
    pub(crate) keys: RandomState,
    /// Whether the agent may have written anything before this line.
    pub(crate) remembers: bool,
    /// Commands whose hosts are on record, hashed likewise: where they stand, the program, its arguments.
    pub(crate) told: HashSet<u64>,
    /// Functions that are not called so far, and where they were defined.
    pub(crate) uncalled: Vec<(String, Rc<Node>, Vec<Dir>)>,
    /// Code that runs at the end.
    pub(crate) traps: Vec<Word>,
    /// What the command that is looked at reads.
    pub(crate) stdin: Input,
    /// What `$_` may be, where the line asks for it.
    pub(crate) last: Option<Vec<Fields>>,
    /// Folders that were left behind, which `cd -` and `popd` may lead to.
    pub(crate) left: Vec<Dir>,
    /// How globs match here.
    pub(crate) globbing: Globbing,
}

/// Walks a whole line.
pub fn run(node: &Node, env: &Env, sources: &dyn Sources, line: &str) -> Analysis {
    let mut eval = Eval {
        env,
        out: Analysis::default(),
        vars: HashMap::new(),
        functions: HashMap::new(),
        changes: Vec::new(),
        references: HashMap::new(),
        frozen: HashSet::new(),
        shaped: HashSet::new(),
        aliases: HashMap::new(),
        links: Links::default(),
        written: Written::default(),
        sources,
        lists: 0,
        relies: false,
        descriptors: Descriptors::default(),
        exports: 0,
        arguments: None,
        dirs: vec![Dir::Start(String::new())],
        unlikely: Vec::new(),
        weak: 0,
        depth: 0,
        remote: 0,
        mounts: Mounts::default(),
        strange: 0,
        repeats: 0,
        stepping: false,
        quiet: 0,
        naming: false,
        fixed: None,
        here: Span { start: 0, end: 0 },
        steps: MAX_STEPS,
        limited: false,
        seen: HashSet::new(),
        keys: RandomState::new(),
        remembers: sources.any(),
        told: HashSet::new(),
        uncalled: Vec::new(),
        traps: Vec::new(),
        stdin: Input::None,
        last: line.contains("$_").then(Vec::new).or_else(|| line.contains("${_").then(Vec::new)),
        left: Vec::new(),
        globbing: Globbing::spoken_of(line),
    };
    eval.node(node, &Input::None);
    eval.leave();
    if eval.relies && !eval.only_looks(None) {
        eval.unresolved(UnresolvedKind::Script, "a list that the line may change", Span { start: 0, end: line.len() });
    }
    eval.out.written = std::mem::take(&mut eval.written.kept);
    eval.reopen();
    eval.hosts_of_wrapped();
    eval.out
}

impl Eval<'_> {
    pub(crate) fn node(&mut self, node: &Node, input: &Input) {
        if !self.spend(1) {
            return;
        }
        match node {
            Node::Simple(simple) => self.simple(simple, input),
            Node::Pipe(stages) => self.pipe(stages, input),
            Node::List(items) => self.list(items, input),
            Node::Subshell(inner) => self.scoped(|eval| eval.node(inner, input)),
            Node::Branches(branches) => {
                let dirs = self.dirs.clone();
                for branch in branches {
                    self.weakly(|eval| eval.node(branch, input));
                    self.add_dirs(dirs.clone());
                }
            }
            Node::Loop(nodes) => self.looped(nodes, input),
            Node::For { name, words, body } => self.for_loop(name, words.as_deref(), body, input),
            Node::Function { name, body } => {
                self.define(name, body);
                if self.quiet == 0 && !self.uncalled.iter().any(|(_, own, _)| Rc::ptr_eq(own, body)) {
                    self.uncalled.push((name.clone(), Rc::clone(body), self.dirs.clone()));
                }
            }
            Node::Words(words) => words.iter().for_each(|word| drop(self.expand(word))),
            Node::Test(words) => self.test(words),
            Node::Redirected(inner, redirects) => {
                let lists = self.lists;
                let inner_input = self.redirects(redirects).unwrap_or_else(|| input.clone());
                self.relies |= self.lists > lists;
                self.written_settings(redirects, |eval| eval.static_output_from(inner, input));
                // A redirection that fails leaves the command out.
                if redirects.iter().any(may_fail) {
                    self.weakly(|eval| eval.node(inner, &inner_input));
                } else {
                    self.node(inner, &inner_input);
                }
                self.note_redirects(redirects, inner, input);
            }
        }
    }

    /// What runs when all is done; and a function that is never called here may be called by what this line starts: looked
    /// at once.
    fn leave(&mut self) {
        for code in std::mem::take(&mut self.traps) {
            self.code(&code, None, "trap");
        }
        while let Some((_, body, dirs)) = self.uncalled.pop() {
            self.scoped(|eval| {
                (eval.arguments, eval.dirs) = (None, dirs);
                eval.weakly(|eval| eval.node(&body, &Input::Unknown));
            });
        }
    }

    /// `[[ … ]]`: a word may be arithmetic, or a variable's name.
    fn test(&mut self, words: &[crate::parser::syntax::RawWord]) {
        for raw in words {
            for word in self.expand(raw).into_iter().flatten() {
                let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                match word.literal() {
                    Some(text) if text.chars().all(name) => self.number(&word.parts, 0),
                    _ => self.subscripts(&word.parts),
                }
            }
        }
    }

    fn list(&mut self, items: &[(Node, Next)], input: &Input) {
        // Where the commands of this `&&` and `||` chain began: one that failed leaves the rest out.
        let mut chain: Vec<Dir> = Vec::new();
        let mut linked = false;
        for ((node, next), background) in items.iter().zip(in_background(items)) {
            let before = self.dirs.clone();
            if !linked && *next == Next::Background {
                self.scoped(|eval| eval.node(node, input));
            } else if linked || background {
                self.weakly(|eval| eval.node(node, input));
            } else {
                self.node(node, input);
            }
            linked = matches!(next, Next::OnSuccess | Next::OnFailure);
            if *next == Next::OnFailure {
                self.add_dirs(before.clone());
            }
            if linked {
                chain.extend(before);
            } else if background {
                self.dirs = if chain.is_empty() { before } else { std::mem::take(&mut chain) };
            } else {
                // What comes next runs where a `cd` succeeded or where it failed; in the midst of a chain that is unlikely.
                self.add_dirs(before);
                self.add_unlikely(std::mem::take(&mut chain));
            }
        }
    }

    fn pipe(&mut self, stages: &[Node], input: &Input) {
        let mut input = input.clone();
        let Some((last, before)) = stages.split_last() else { return };
        for stage in before {
            let text = self.output_from(stage, &input);
            self.scoped(|eval| eval.node(stage, &input));
            input = text.map_or(Input::Unknown, Input::of);
        }
        self.scoped(|eval| eval.node(last, &input));
    }

    /// A substitution's commands.
    pub(crate) fn isolated(&mut self, node: &Node) {
        if self.quiet > 0 {
            return;
        }
        let naming = std::mem::take(&mut self.naming);
        let here = self.here;
        self.scoped(|eval| eval.node(node, &Input::Unknown));
        (self.here, self.naming) = (here, naming);
    }

    fn simple(&mut self, simple: &Simple, input: &Input) {
        let span = self.span(simple.span);
        self.here = span;
        self.links.ignored = false;
        let piped = self.redirects(&simple.redirects);
        self.written_settings(&simple.redirects, |eval| {
            let texts = simple.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Text).cloned();
            let own = Node::Simple(Simple { redirects: texts.collect(), ..simple.clone() });
            eval.static_output_from(&own, input)
        });
        // A redirection that fails leaves the command out.
        let may_fail = simple.redirects.iter().any(may_fail);
        self.weak += usize::from(may_fail);
        let input = piped.unwrap_or_else(|| input.clone());
        let mut alternatives: Vec<Vec<Word>> = vec![Vec::new()];
        for word in &simple.words {
            self.naming = alternatives.iter().any(Vec::is_empty);
            let here = self.expand(word);
            self.naming = false;
            alternatives = self.product(alternatives, &here);
        }
        let mark = self.changes.len();
        let declares = |words: &Vec<Word>| {
            let first = words.first().and_then(Word::literal);
            matches!(first.as_deref(), Some("export" | "declare" | "typeset" | "local" | "readonly"))
        };
        let keeps = simple.words.is_empty() || alternatives.iter().any(declares);
        // What only the command sees replaces what was there, in a branch too.
        let weak = if keeps { self.weak } else { 0 };
        let weak = std::mem::replace(&mut self.weak, weak);
        let exporting = |words: &Vec<Word>| words.first().and_then(Word::literal).is_some_and(|name| name == "export");
        let exports = !keeps || alternatives.iter().any(exporting);
        self.exports += usize::from(exports);
        for assignment in &simple.assignments {
            self.assign(assignment, span);
        }
        self.exports -= usize::from(exports);
        self.weak = weak;
        let lent = if keeps { Vec::new() } else { self.changed(mark) };
        // `A=b cmd`: the command sees A, this shell does not keep it.
        let before: Vec<Option<Vec<Fields>>> = lent.iter().map(|name| self.before(mark, name)).collect();
        let several = alternatives.len() > 1;
        let last = self.last_words(&alternatives);
        self.weak += usize::from(several);
        for words in alternatives.into_iter().filter(|words| !words.is_empty()) {
            self.here = span;
            self.declared(&words, &simple.assignments);
            self.command(words, &[], span, &input);
        }
        if !simple.redirects.is_empty() {
            self.note_simple(simple, &input);
        }
        self.weak -= usize::from(several) + usize::from(may_fail);
        self.last = last.or_else(|| self.last.take());
        for (name, before) in lent.into_iter().zip(before) {
            self.put(&name, before.unwrap_or_else(|| vec![Fields::new()]));
            if self.vars.get(&name).is_some_and(|values| values == &[Fields::new()]) {
                self.vars.remove(&name);
            }
        }
    }

    /// What `$_` is after a command; where it may not run, what it was before too.
    fn last_words(&self, alternatives: &[Vec<Word>]) -> Option<Vec<Fields>> {
        let mut out: Vec<Fields> = if self.weak > 0 || self.strange > 0 { self.last.clone()? } else { Vec::new() };
        self.last.as_ref()?;
        out.extend(alternatives.iter().filter_map(|words| Some(vec![words.last()?.parts.clone()])));
        (out.len() <= 64 && !alternatives.iter().all(Vec::is_empty)).then_some(out)
    }

    /// Redirections; `Some` when they say what standard input is.
    fn redirects(&mut self, redirects: &[Redirect]) -> Option<Input> {
        let mut input = None;
        for redirect in redirects {
            if redirect.kind == RedirectKind::Text {
                let text = self.expand_text(&redirect.word.parts);
                let only = text.first().filter(|_| text.len() == 1).cloned();
                // Another descriptor's text is not what standard input gives.
                if !redirect.other {
                    input = Some(only.map_or(Input::Unknown, Input::of));
                }
                continue;
            }
            if let (RedirectKind::Read, [RawPart::Process(node)]) = (redirect.kind, redirect.word.parts.as_slice()) {
                let text = self.output_from(node, &Input::None);
                if !redirect.other {
                    input = Some(text.map_or(Input::Unknown, Input::of));
                }
                self.isolated(node);
                continue;
            }
            for word in self.expand(&redirect.word).into_iter().flatten() {
                let access = match redirect.kind {
                    RedirectKind::Read => Access::Read,
                    RedirectKind::Duplicate => {
                        let text = word.literal().unwrap_or_default();
                        if text.trim_end_matches('-').chars().all(|c| c.is_ascii_digit()) {
                            // What another descriptor gives is not known here.
                            if redirect.input && !redirect.other && !matches!(text.as_str(), "0" | "-") {
                                input = Some(Input::Unknown);
                            }
                            self.duplicated(redirect.descriptor, &text);
                            continue;
                        }
                        Access::Write
                    }
                    RedirectKind::Write | RedirectKind::ReadWrite | RedirectKind::Text => Access::Write,
                };
                if access == Access::Read && !redirect.other {
                    let text = self.text_known(&word).or_else(|| self.names_in(&word));
                    input = Some(text.map_or(Input::Unknown, Input::Text));
                }
                // What is written is known once the command was walked.
                self.written.keeping = redirect.kind == RedirectKind::Write;
                if let Some(host) = word.literal().and_then(|text| socket(&text)) {
                    let target = NetTarget::Host(Word { parts: vec![Part::Text(host)], span: word.span });
                    self.net(target, word.span);
                } else {
                    self.opened(redirect.descriptor, &word);
                    self.file(word, access, false);
                }
            }
        }
        input
    }

    /// Hosts in a settings file that a redirection writes.
    fn written_settings(&mut self, redirects: &[Redirect], text: impl FnOnce(&mut Self) -> Option<String>) {
        let plain = |redirect: &&Redirect| {
            matches!(redirect.kind, RedirectKind::Write | RedirectKind::ReadWrite | RedirectKind::Duplicate)
                && !matches!(redirect.word.parts.as_slice(), [RawPart::Plain(path)] if !settings::is_settings(path))
        };
        let words: Vec<Word> =
            redirects.iter().filter(plain).flat_map(|redirect| self.expand(&redirect.word)).flatten().collect();
        let found: Vec<&Word> =
            words.iter().filter(|word| word.literal().is_some_and(|path| settings::is_settings(&path))).collect();
        if !found.is_empty() {
            let text = text(self);
            found.into_iter().for_each(|word| self.settings_file(word, text.as_deref()));
        }
    }

    fn assign(&mut self, assignment: &Assignment, span: Span) {
        let name = &assignment.name;
        if !assignment.array {
            let parts = assignment.values.first().map(|(_, word)| word.parts.as_slice()).unwrap_or_default();
            let values: Vec<Fields> = self.expand_text(parts).into_iter().map(|text| vec![text]).collect();
            match &assignment.key {
                Some(key) => {
                    let key = self.key_text(key);
                    self.set_element(name, &key, values, span);
                }
                None => self.set_all(name, values, assignment.adds.then_some(false), span),
            }
            return;
        }
        let mut list: Vec<Vec<Word>> = vec![Vec::new()];
        let mut keyed: Vec<(Text, Vec<Fields>)> = Vec::new();
        for (key, word) in &assignment.values {
            let here = self.expand(word);
            if let Some(key) = key {
                let key = self.key_text(key);
                let fields = |words: &Vec<Word>| words.iter().map(|word| word.parts.clone()).collect::<Fields>();
                keyed.push((key, here.iter().map(fields).collect()));
            } else {
                list = self.product(list, &here);
            }
        }
        let values = list.into_iter().map(|words| words.into_iter().map(|word| word.parts).collect()).collect();
        self.set_all(name, values, assignment.adds.then_some(true), span);
        keyed.into_iter().for_each(|(key, values)| self.set_element(name, &key, values, span));
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

    pub(crate) fn toplevel(&self) -> Option<String> {
        self.env.toplevel.clone().filter(|_| self.dirs.iter().all(|dir| *dir == Dir::Start(String::new())))
    }

    pub(crate) fn start_dir(&self) -> Option<String> {
        self.env.cwd.clone()
    }

    pub(crate) fn cwd(&self) -> Option<String> {
        (self.dirs == [Dir::Start(String::new())]).then(|| self.env.cwd.clone()).flatten()
    }

    pub(crate) fn span(&self, span: Span) -> Span {
        self.fixed.unwrap_or(span)
    }

    /// Code inside a word: `sh -c`, `eval`, `trap`. Everything found in it gets the word's span.
    pub(crate) fn code(&mut self, code: &Word, arguments: Option<Vec<Word>>, what: &str) {
        let mut text = String::new();
        for part in &code.parts {
            match part {
                Part::Text(known) | Part::Glob(known) => text.push_str(known),
                Part::Unknown(source) => text.push_str(&format!(" ${} ", stand_in(*source))),
            }
        }
        if code.literal().is_none() && !counts(code) {
            self.unresolved(UnresolvedKind::Script, what, code.span);
        }
        if self.depth >= MAX_DEPTH {
            return self.unresolved(UnresolvedKind::Limit, what, code.span);
        }
        match parse(&text, Some(code.span), self.depth) {
            Err(_) => self.unresolved(UnresolvedKind::Script, what, code.span),
            Ok(node) => {
                let (fixed, here) = (self.fixed.replace(code.span), self.here);
                self.depth += 1;
                // `eval` and its like run in this shell; all else in another, with words of its own.
                if matches!(what, "eval" | "." | "source") {
                    self.node(&node, &Input::Unknown);
                } else if matches!(what, "trap" | "alias" | "mapfile") {
                    self.weakly(|eval| eval.node(&node, &Input::Unknown));
                } else {
                    self.strange += 1;
                    self.scoped(|eval| {
                        eval.arguments = arguments.map(Arguments::of);
                        eval.node(&node, &Input::Unknown);
                    });
                    self.strange -= 1;
                }
                self.depth -= 1;
                (self.fixed, self.here) = (fixed, here);
            }
        }
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

/// Whether all of a code that is not known are numbers, each a word of its own: `kill $PID`.
fn counts(code: &Word) -> bool {
    let blank = |c: char| c.is_whitespace() || c == ';';
    code.parts.iter().enumerate().all(|(at, part)| match part {
        Part::Text(text) => !text.contains(['\'', '"', '`', '\\', '#']),
        Part::Unknown(Source::Number) => {
            let before = at.checked_sub(1).and_then(|at| code.parts.get(at));
            let starts = matches!(before, Some(Part::Text(text)) if text.ends_with(char::is_whitespace));
            let ends = match code.parts.get(at + 1) {
                None => true,
                Some(Part::Text(text)) => text.starts_with(blank),
                Some(_) => false,
            };
            starts && ends
        }
        Part::Unknown(_) | Part::Glob(_) => false,
    })
}

/// For each command of a list whether the chain it belongs to ends in `&`.
fn in_background(items: &[(Node, Next)]) -> Vec<bool> {
    let mut background = false;
    let mut out: Vec<bool> = Vec::new();
    for (_, next) in items.iter().rev() {
        background = match next {
            Next::Background => true,
            Next::Always => false,
            Next::OnSuccess | Next::OnFailure => background,
        };
        out.push(background);
    }
    out.reverse();
    out
}

/// Whether a redirection may find no file.
fn may_fail(redirect: &Redirect) -> bool {
    let null = matches!(redirect.word.parts.as_slice(), [RawPart::Plain(path)] if path == "/dev/null");
    !matches!(redirect.kind, RedirectKind::Text | RedirectKind::Duplicate) && !null
}

/// What is left of a text when some of it is taken away, or its letters are changed.
pub fn blurred(text: &Text) -> Source {
    let made = text.iter().all(|part| matches!(part, Part::Text(_)));
    let one = |part: &Part| match part {
        Part::Text(text) if text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '\n')) => {
            Source::Number
        }
        // A text of the line's own may become `..`.
        Part::Text(_) if made => Source::Any,
        Part::Text(text) | Part::Glob(text) if text.contains('/') => Source::Outside,
        Part::Text(_) | Part::Glob(_) => Source::Name,
        Part::Unknown(Source::Listed(_)) => Source::Outside,
        Part::Unknown(source) => *source,
    };
    text.iter().map(one).fold(Source::Number, Source::with)
}

/// The name of a variable that stands for text that is not known, where code is read that holds it.
fn stand_in(source: Source) -> String {
    match source {
        Source::Listed(at) => format!("{STAND_IN}{at}"),
        Source::Number
        | Source::Fresh
        | Source::Name
        | Source::Outside
        | Source::Any
        | Source::Words
        | Source::Setup => {
            format!("{STAND_IN}{source:?}")
        }
    }
}

/// The source that a variable's name stands for.
pub fn stood_for(name: &str) -> Option<Source> {
    Some(match name.strip_prefix(STAND_IN)? {
        "Number" => Source::Number,
        "Fresh" => Source::Fresh,
        "Name" => Source::Name,
        "Outside" => Source::Outside,
        "Any" | "Setup" => Source::Any,
        at => at.parse().map_or(Source::Words, Source::Listed),
    })
}

const STAND_IN: &str = "__unknown_";

/// A value that is certain.
pub fn literal(text: &Text) -> Option<String> {
    text.iter()
        .map(|part| match part {
            Part::Text(text) | Part::Glob(text) => Some(text.as_str()),
            Part::Unknown(_) => None,
        })
        .collect()
}

/// The host of bash's `/dev/tcp/host/port`.
fn socket(path: &str) -> Option<String> {
    let rest = path.strip_prefix("/dev/tcp/").or_else(|| path.strip_prefix("/dev/udp/"))?;
    rest.split('/').next().map(str::to_owned)
}
