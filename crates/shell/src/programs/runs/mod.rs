//! What programs run besides themselves, by the `runs` of their entries.
//!
//! An entry says which options take code or a file, and where among the operands the inner command stands. Where that is not
//! certain, every place it may begin at is followed. Page: `spec/shell.md`.

pub(crate) mod modules;
pub(crate) mod places;

use crate::action::{Access, UnknownUseKind, UnresolvedKind};
use crate::code;
use crate::eval::Eval;
use crate::eval::command::Place;
use crate::eval::input::Input;
use crate::options::Options;
use crate::programs::effects;
use crate::programs::entries::words::{Role, Run, Stdin};
use crate::programs::entries::{self, Runs, canonical};
use crate::programs::foreign::{Script, script_of};
use crate::programs::interpreters::script;
use crate::programs::scripts::languages;
use crate::shape::{is_assignment, joined, text_word};
use crate::word::Word;

/// Follows what a program runs. True when nothing else is to be known about its operands.
pub fn run(eval: &mut Eval<'_>, arguments: &[Word], place: &Place<'_>) -> bool {
    let name = canonical(place.base).to_owned();
    entries::runs(&name).is_some_and(|runs| follow(eval, &name, runs, arguments, place))
}

/// The same for a subcommand by its full name.
pub fn subcommand(eval: &mut Eval<'_>, name: &str, arguments: &[Word], place: &Place<'_>) {
    if let Some(runs) = entries::runs(name) {
        follow(eval, name, runs, arguments, place);
    }
}

fn follow(eval: &mut Eval<'_>, name: &str, runs: &'static Runs, arguments: &[Word], place: &Place<'_>) -> bool {
    for kind in runs.operands.iter().copied() {
        let options = Options::read(arguments, &runs.options, is_mixed(kind) || is_parted(kind, arguments));
        if kind == Run::Subcommand {
            let at = options.operands.first().copied();
            let sub = at.and_then(|at| arguments.get(at)).and_then(Word::literal);
            let found = sub.map(|sub| format!("{name} {sub}")).and_then(|sub| Some((entries::runs(&sub)?, sub)));
            if let (Some((runs, sub)), Some(at)) = (found, at) {
                effects::options(eval, &options, place);
                let dir = options.of(Role::RunsIn).next().cloned();
                let rest = arguments.get(at + 1..).unwrap_or_default();
                let mut done = false;
                eval.in_dir(dir.as_ref(), |eval| done = follow(eval, &sub, runs, rest, place));
                return done;
            }
            if runs.operands.len() == 1 {
                effects::options(eval, &options, place);
                return false;
            }
            continue;
        }
        effects::options(eval, &options, place);
        for (name, _, value) in options.values.iter().filter(|(_, role, _)| *role == Role::Code) {
            if code::Language::of(place.base).is_some() {
                languages::inline(eval, place.base, &format!("{} {name}", place.base), value, arguments, &options);
            }
        }
        let call = Call { runs, arguments, options: &options, kind, skip: runs.after.unwrap_or(0), place };
        let dir = options.of(Role::RunsIn).next().cloned();
        eval.remote += usize::from(runs.remote);
        let inside = eval.mounts.start().filter(|_| runs.remote);
        let outside = inside.map(|inside| std::mem::replace(&mut eval.dirs, inside));
        let mut done = false;
        // What these run, they run in the shell itself.
        if matches!(place.base, "command" | "builtin") {
            done = call.operands(eval);
        } else {
            eval.in_dir(dir.as_ref(), |eval| done = call.operands(eval));
        }
        if let Some(outside) = outside {
            eval.dirs = outside;
        }
        eval.remote -= usize::from(runs.remote);
        return done;
    }
    false
}

/// Whether a `--` parts the program's own words from the command: up to it options may stand behind operands.
fn is_parted(kind: Run, arguments: &[Word]) -> bool {
    kind == Run::CommandBehindDashes && arguments.iter().any(|word| word.literal().as_deref() == Some("--"))
}

/// Whether options may stand behind operands.
fn is_mixed(kind: Run) -> bool {
    matches!(kind, Run::None | Run::Written | Run::ShellCodeEach | Run::Variables | Run::ClientCommands | Run::Debugger)
}

struct Call<'c> {
    runs: &'static Runs,
    arguments: &'c [Word],
    options: &'c Options,
    kind: Run,
    skip: usize,
    place: &'c Place<'c>,
}

impl Call<'_> {
    fn plain(&self) -> impl Iterator<Item = &Word> {
        self.options.operands.iter().filter_map(|at| self.arguments.get(*at))
    }

    fn from(&self, skip: usize) -> &[Word] {
        let start = self.options.operands.get(skip).copied();
        start.and_then(|at| self.arguments.get(at..)).unwrap_or_default()
    }

    fn operands(&self, eval: &mut Eval<'_>) -> bool {
        let (place, skip) = (self.place, self.skip);
        match self.kind {
            Run::Command => self.command(eval),
            Run::SecondCommand => (skip..skip + 2).for_each(|skip| self.inner(eval, self.from(skip))),
            Run::ShellCode => self.code(eval, self.from(skip)),
            Run::CommandOrCode => places::terminal(eval, self.from(skip), place),
            Run::CommandBehindDashes => self.behind_dashes(eval),
            Run::Package => places::package(eval, self.arguments, place),
            Run::ShellCodeEach => self.plain().skip(skip).for_each(|code| eval.code(code, None, place.base)),
            Run::CodeEach => self.plain().skip(skip).for_each(|code| self.foreign(eval, code)),
            Run::Keys => places::keys(eval, self.plain(), place),
            Run::Written => self.plain().for_each(|file| eval.file(file.clone(), Access::Write, false)),
            Run::Script | Run::ScriptBySuffix => return self.script(eval),
            Run::Tmux => {
                // Its commands come by standard input.
                if self.options.has('C', "") {
                    eval.unresolved(UnresolvedKind::Code, "tmux -C", place.span);
                }
                places::tmux(eval, self.from(0), place);
            }
            Run::Screen => places::screen(eval, self.options, self.from(0), place),
            Run::Debugger => return places::debugger(eval, self.arguments, place),
            Run::CommandBehindOption => return places::rest(eval, self.arguments, place),
            Run::Cmake => return places::cmake(eval, self.options, self.from(0), place),
            Run::Variables => return places::make(eval, self.plain()),
            Run::ClientCommands => {
                self.plain().for_each(|code| effects::client(eval, place.base, code));
                self.standard_input(eval);
                return false;
            }
            Run::None | Run::Subcommand => {
                self.standard_input(eval);
                return false;
            }
        }
        true
    }

    /// A command, at each place it may begin at.
    fn command(&self, eval: &mut Eval<'_>) {
        let mut words = self.from(self.skip);
        let base = self.place.base;
        if base == "command" && (self.options.has('v', "") || self.options.has('V', "")) {
            return;
        }
        if base == "sudo" && self.options.has('e', "--edit") {
            return words.iter().for_each(|file| eval.file(file.clone(), Access::Write, false));
        }
        if words.is_empty() {
            let shell = !matches!(base, "sudo" | "doas")
                || self.options.has('s', "--shell")
                || self.options.has('i', "--login");
            return if shell {
                self.standard_input(eval)
            };
        }
        let entry = self.options.of(Role::Entrypoint).next();
        if let Some(entry) = entry {
            self.inner(eval, &[std::slice::from_ref(entry), words].concat());
        } else {
            self.inner(eval, words);
        }
        let mut start = self.options.operands.first().copied().unwrap_or_default();
        let mut doubtful = self.options.doubtful.contains(&start);
        for _ in 0..4 {
            if !self.runs.unsure || !doubtful {
                return;
            }
            start += 1;
            let rest = self.arguments.get(start..).unwrap_or_default();
            let again = Options::read(rest, &self.runs.options, false);
            let Some(first) = again.operands.first().copied() else { return };
            doubtful = again.doubtful.contains(&first);
            start += first;
            words = self.arguments.get(start + self.skip..).unwrap_or_default();
            self.inner(eval, words);
        }
    }

    /// A command behind `--`; without one, behind so many operands where a number says so.
    fn behind_dashes(&self, eval: &mut Eval<'_>) {
        let dashes = self.arguments.iter().position(|word| word.literal().as_deref() == Some("--"));
        match dashes {
            Some(at) => {
                let rest = self.arguments.get(at + 1..).unwrap_or_default();
                // `capsh -- …` hands the rest to a shell.
                let shell = (self.place.base == "capsh").then(|| text_word("bash", self.place.span));
                self.inner(eval, &[shell.as_slice(), rest].concat());
            }
            None if self.runs.after.is_some() => self.inner(eval, self.from(self.skip)),
            None => {}
        }
    }

    fn inner(&self, eval: &mut Eval<'_>, mut words: &[Word]) {
        let Place { base, via, span, input } = self.place;
        while let Some((first, rest)) = words.split_first() {
            let text = first.literal().unwrap_or_default();
            if is_assignment(&text) {
                eval.assigned(first, *span);
            } else if text != "--" {
                break;
            }
            words = rest;
        }
        if !words.is_empty() {
            eval.inner(words.to_vec(), via, base, *span, input);
        }
    }

    fn code(&self, eval: &mut Eval<'_>, words: &[Word]) {
        if let Some(first) = words.first() {
            let code = if words.len() == 1 { first.clone() } else { joined(words, self.place.span) };
            eval.code(&code, None, self.place.base);
        }
    }

    fn foreign(&self, eval: &mut Eval<'_>, code: &Word) {
        let Self { place, arguments, options, .. } = self;
        languages::inline(eval, place.base, place.base, code, arguments, options);
    }

    /// An interpreter: inline code, or a script and its arguments, or code on standard input.
    fn script(&self, eval: &mut Eval<'_>) -> bool {
        let mut plain = self.plain();
        let edits = matches!(canonical(self.place.base), "perl" | "ruby") && self.options.has('i', "");
        if self.options.values.iter().any(|(name, ..)| *name == "-m") {
            let timed = |(name, _, module): &&(&str, Role, Word)| {
                *name == "-m" && module.literal().as_deref() == Some("timeit")
            };
            if let Some((_, _, module)) = self.options.values.iter().find(timed) {
                self.foreign(eval, module);
            }
            let named = self.options.values.iter().find(|(name, ..)| *name == "-m").map(|(.., module)| module.clone());
            if let Some(module) = named {
                modules::run(eval, &module, self.from(0), self.place);
            }
            return false;
        }
        if self.options.of(Role::Code).next().is_none() {
            let Some(file) = plain.next().filter(|word| word.literal().as_deref() != Some("-")) else {
                self.standard_input(eval);
                return true;
            };
            if self.kind == Run::ScriptBySuffix && file.literal().is_none_or(|text| !text.contains('.')) {
                return true;
            }
            match script_of(file, self.place.input) {
                Script::File => {
                    script(eval, file, self.place.base, &Input::None);
                    self.unknown_use(eval);
                }
                Script::Text(text) => {
                    languages::standard_input(eval, self.place.base, &text, file.span, self.arguments, self.options);
                }
                Script::Unknown => eval.unresolved(UnresolvedKind::Code, self.place.base, file.span),
            }
        }
        for operand in plain.filter(|word| edits || crate::shape::looks_like_path(word)) {
            if edits {
                eval.file(operand.clone(), Access::Write, false);
            }
            eval.file(operand.clone(), Access::Read, false);
        }
        true
    }

    /// What a script file gets: nothing says what it does with texts.
    fn unknown_use(&self, eval: &mut Eval<'_>) {
        let Place { span, input, .. } = self.place;
        if let Input::Text(text) = input {
            eval.unknown_use(UnknownUseKind::Text, vec![text_word(text, *span)], *span);
        }
        let code = |word: &&Word| word.literal().is_some_and(|text| text.contains(['(', ';']));
        for word in self.plain().skip(1).filter(code) {
            eval.unknown_use(UnknownUseKind::Command, vec![word.clone()], *span);
        }
    }

    /// Code on standard input.
    fn standard_input(&self, eval: &mut Eval<'_>) {
        let Place { base, span, input, .. } = self.place;
        match (self.runs.input, input) {
            (Some(Stdin::ShellCode), Input::Text(text)) => eval.code(&text_word(text, *span), None, base),
            (Some(Stdin::ShellCode), Input::Unknown | Input::Partly(_))
                if self.options.of(Role::Command).next().is_none() =>
            {
                eval.unresolved(UnresolvedKind::Script, base, *span);
            }
            (Some(Stdin::ClientCommands), Input::Text(text)) => effects::client(eval, base, &text_word(text, *span)),
            (Some(Stdin::Code), Input::Text(text)) => {
                languages::standard_input(eval, base, text, *span, self.arguments, self.options);
            }
            (Some(Stdin::Code), Input::Unknown | Input::Partly(_)) if !self.asks_only() => {
                eval.unresolved(UnresolvedKind::Code, &format!("| {base}"), *span);
            }
            _ => {}
        }
    }

    fn asks_only(&self) -> bool {
        const INFORMS: [&str; 6] = ["--version", "-V", "-v", "--help", "-h", "-version"];
        self.options.flags.iter().any(|flag| INFORMS.contains(&flag.as_str()))
    }
}
