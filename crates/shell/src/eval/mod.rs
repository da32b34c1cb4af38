//! What a syntax tree would do: every branch counts, every known value is followed.
//!
//! Owns the walk, the variables and the directories; of programs it knows nothing, and asks ([`command::Programs`]). It errs
//! towards "might happen": conditional assignments add values instead of replacing them, and a `cd` that may fail leaves both
//! directories possible. Page: `spec/shell.md`.

pub(crate) mod budget;
pub(crate) mod builtins;
pub(crate) mod code;
pub(crate) mod command;
pub(crate) mod echo;
pub(crate) mod files;
pub(crate) mod input;
pub(crate) mod loops;
pub(crate) mod output;
pub(crate) mod reads;
pub(crate) mod record;
pub(crate) mod redirects;
pub(crate) mod simple;
pub(crate) mod vars;
pub(crate) mod words;

use std::collections::{HashMap, HashSet};
use std::hash::RandomState;
use std::rc::Rc;

use writ_core::Span;

use crate::Sources;
use crate::action::{Analysis, Env, UnresolvedKind};
use crate::eval::budget::MAX_STEPS;
use crate::eval::command::Programs;
use crate::eval::files::descriptors::Descriptors;
use crate::eval::files::links::Links;
use crate::eval::files::mounts::Mounts;
use crate::eval::files::written::Written;
use crate::eval::input::Input;
use crate::eval::redirects::may_fail;
use crate::eval::vars::{Arguments, Change, Function};
use crate::eval::words::globs::Globbing;
use crate::parser::syntax::{Next, Node};
use crate::text::Fields;
use crate::word::{Dir, Word};

/// The walk's state.
pub struct Eval<'e> {
    env: &'e Env,
    pub(crate) programs: &'e Programs,
    pub(crate) out: Analysis,
    pub(crate) vars: HashMap<String, Vec<Fields>>,
    pub(crate) functions: HashMap<String, Function>,
    /// How to take back changes of the two above.
    pub(crate) changes: Vec<Change>,
    /// `declare -n`: what a name stands for, where that is known.
    pub(crate) references: HashMap<String, Option<String>>,
    /// `readonly`: an assignment may fail.
    pub(crate) frozen: HashSet<String>,
    /// `declare -i`, `-l`, `-u`: an assignment changes the value.
    pub(crate) shaped: HashSet<String>,
    /// `declare -i`: what is assigned is computed.
    pub(crate) integers: HashSet<String>,
    /// `declare -A`: subscripts are texts.
    pub(crate) keyed: Vec<String>,
    /// What the loops around set at their beginning.
    pub(crate) counters: Vec<String>,
    pub(crate) aliases: HashMap<String, String>,
    /// Assignments stand in the command that is recorded next.
    pub(crate) assigning: bool,
    pub(crate) links: Links,
    /// What the line wrote into files, and what stood there before.
    pub(crate) written: Written,
    pub(crate) sources: &'e dyn Sources,
    /// How many lists of names were read from files.
    pub(crate) lists: usize,
    /// One of them is read line by line, and has to stay as it is until the end.
    relies: bool,
    pub(crate) descriptors: Descriptors,
    /// Variables that the line may not have assigned, although it may have.
    pub(crate) unsure: HashSet<String>,
    /// Above zero where an assignment goes to the environment of what is run.
    pub(crate) exports: usize,
    /// An assignment is seen by one command alone.
    pub(crate) lends: bool,
    pub(crate) arguments: Option<Arguments>,
    pub(crate) dirs: Vec<Dir>,
    /// Where commands run if a `cd` in the midst of a chain failed (`cd x && a; b`).
    pub(crate) unlikely: Vec<Dir>,
    /// Whether `cd` may have been told to follow links (`-P`): then `..` may mean two folders.
    pub(crate) physical: bool,
    /// Above zero inside branches: assignments add.
    pub(crate) conditional: usize,
    pub(crate) depth: usize,
    /// Above zero where files are another machine's.
    pub(crate) remote: usize,
    /// What of this machine is seen there.
    pub(crate) mounts: Mounts,
    /// Above zero in another shell, which need not know this one's functions.
    pub(crate) other_shell: usize,
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
    pub(crate) hosts_recorded: HashSet<u64>,
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
pub fn run(node: &Node, line: &str, env: &Env, sources: &dyn Sources, programs: &Programs) -> Analysis {
    let mut eval = Eval {
        env,
        programs,
        out: Analysis::default(),
        vars: HashMap::new(),
        functions: HashMap::new(),
        changes: Vec::new(),
        references: HashMap::new(),
        frozen: HashSet::new(),
        shaped: HashSet::new(),
        integers: HashSet::new(),
        keyed: Vec::new(),
        counters: Vec::new(),
        aliases: HashMap::new(),
        assigning: false,
        links: Links::default(),
        written: Written::default(),
        sources,
        lists: 0,
        relies: false,
        descriptors: Descriptors::default(),
        unsure: HashSet::new(),
        exports: 0,
        lends: false,
        arguments: None,
        dirs: vec![Dir::Start(String::new())],
        unlikely: Vec::new(),
        physical: false,
        conditional: 0,
        depth: 0,
        remote: 0,
        mounts: Mounts::default(),
        other_shell: 0,
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
        hosts_recorded: HashSet::new(),
        uncalled: Vec::new(),
        traps: Vec::new(),
        stdin: Input::None,
        last: line.contains("$_").then(Vec::new).or_else(|| line.contains("${_").then(Vec::new)),
        left: Vec::new(),
        globbing: Globbing::named_in(line),
    };
    eval.node(node, &Input::None);
    eval.leave();
    if eval.relies && !eval.only_reads(None) {
        eval.unresolved(UnresolvedKind::Script, "a list that the line may change", Span { start: 0, end: line.len() });
    }
    eval.out.written = std::mem::take(&mut eval.written.kept);
    eval.reopen();
    (programs.finish)(&mut eval);
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
                    self.conditionally(|eval| eval.node(branch, input));
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
                    self.conditionally(|eval| eval.node(inner, &inner_input));
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
                eval.conditionally(|eval| eval.node(&body, &Input::Unknown));
            });
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
                self.conditionally(|eval| eval.node(node, input));
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
