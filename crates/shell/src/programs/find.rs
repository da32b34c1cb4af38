//! `find` and `fd`: the expression, and what is done with the entries that it lets through.

use writ_core::Span;

use crate::action::Access;
use crate::eval::Eval;
use crate::eval::input::Input;
use crate::listing::{Ignores, Listing, Printed, Test};
use crate::shape::{is_flag, substitute, text_word};
use crate::text::{Text, tidy};
use crate::word::{Part, Word};

/// Tests and options with one argument, of which nothing is known before it runs.
const ONE: [&str; 28] = [
    "-regex",
    "-iregex",
    "-lname",
    "-ilname",
    "-newer",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-size",
    "-perm",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-links",
    "-inum",
    "-samefile",
    "-fstype",
    "-used",
    "-xtype",
    "-context",
    "-anewer",
    "-cnewer",
    "-newermt",
    "-newerct",
];
/// Those without an argument.
const NONE: [&str; 7] = ["-empty", "-readable", "-writable", "-executable", "-nouser", "-nogroup", "-quit"];

/// What is done with an entry.
enum Action {
    Print(Printed),
    Exec(Vec<Word>),
    Delete,
    /// Its name goes into a file.
    Note(Word),
    /// Something about it is printed that is no name.
    Other,
}

/// A `find`, told apart.
struct Search<'w> {
    roots: Vec<Word>,
    words: &'w [Word],
    at: usize,
    actions: Vec<Action>,
    /// The action whose place in the expression is asked for.
    wanted: usize,
    depth: (u16, u16),
    /// A link is what it leads to.
    follows: bool,
}

impl<'w> Search<'w> {
    fn of(arguments: &'w [Word], span: Span) -> Self {
        let begins = |word: &Word| {
            let text = word.literal().unwrap_or_default();
            (text.starts_with('-') && !matches!(text.as_str(), "-L" | "-P" | "-H")) || text == "(" || text == "!"
        };
        let split = arguments.iter().position(begins).unwrap_or(arguments.len());
        let (before, words) = arguments.split_at(split);
        let mut roots: Vec<Word> = before.iter().filter(|word| !is_flag(word)).cloned().collect();
        if roots.is_empty() {
            roots.push(text_word(".", span));
        }
        let follow = |word: &Word| word.literal().is_none_or(|text| matches!(text.as_str(), "-L" | "-follow"));
        let follows = arguments.iter().any(follow);
        Self { roots, words, at: 0, actions: Vec::new(), wanted: 0, depth: (0, u16::MAX), follows }
    }

    /// The whole expression; its actions are gathered on the way.
    fn expression(&mut self, wanted: usize) -> Test {
        (self.at, self.wanted) = (0, wanted);
        self.actions.clear();
        let mut tests = Vec::new();
        while self.at < self.words.len() {
            let before = self.at;
            tests.push(self.either(0));
            // A bracket that was never opened.
            self.at += usize::from(self.at == before);
        }
        let prints = |action: &Action| !matches!(action, Action::Other);
        if !self.actions.iter().any(prints) && wanted == self.actions.len() {
            self.actions.push(Action::Print(Printed::Path));
            tests.push(Test::Here);
        }
        if self.depth != (0, u16::MAX) {
            tests.insert(0, Test::Depth(self.depth.0, self.depth.1));
        }
        Test::All(tests)
    }

    fn peek(&self) -> Option<String> {
        self.words.get(self.at).map(|word| word.literal().unwrap_or_default())
    }

    fn either(&mut self, depth: usize) -> Test {
        let mut tests = vec![self.all(depth)];
        while matches!(self.peek().as_deref(), Some("-o" | "-or" | ",")) {
            self.at += 1;
            tests.push(self.all(depth));
        }
        if tests.len() > 1 { Test::Either(tests) } else { tests.pop().unwrap_or(Test::Always) }
    }

    fn all(&mut self, depth: usize) -> Test {
        let mut tests = Vec::new();
        while let Some(text) = self.peek() {
            match text.as_str() {
                "-o" | "-or" | "," | ")" => break,
                "-a" | "-and" => self.at += 1,
                _ => tests.push(self.one(depth)),
            }
        }
        Test::All(tests)
    }

    fn one(&mut self, depth: usize) -> Test {
        let Some(text) = self.peek() else { return Test::Always };
        self.at += 1;
        match text.as_str() {
            "!" | "-not" if depth < 32 => Test::Not(Box::new(self.one(depth + 1))),
            "(" if depth < 32 => {
                let inner = self.either(depth + 1);
                self.at += usize::from(self.peek().as_deref() == Some(")"));
                inner
            }
            "-name" | "-iname" => self.name(text == "-iname", false),
            "-path" | "-wholename" | "-ipath" | "-iwholename" => self.name(text.starts_with("-i"), true),
            "-type" => match self.argument().and_then(|kind| kind.literal()).as_deref() {
                Some("d") => Test::Folder,
                Some("f") if self.follows => Test::Not(Box::new(Test::Folder)),
                Some("f") => Test::All(vec![Test::Not(Box::new(Test::Folder)), Test::Not(Box::new(Test::Link))]),
                Some("l") if !self.follows => Test::Link,
                _ => Test::Maybe,
            },
            "-maxdepth" => self.limit(false),
            "-mindepth" => self.limit(true),
            "-prune" => Test::Prune,
            "-false" => Test::Not(Box::new(Test::Always)),
            "-regextype" => {
                self.at += 1;
                Test::Always
            }
            _ if NONE.contains(&text.as_str()) => Test::Maybe,
            _ if ONE.contains(&text.as_str()) => {
                self.at += 1;
                Test::Maybe
            }
            _ => self.action(&text),
        }
    }

    fn argument(&mut self) -> Option<&'w Word> {
        self.at += 1;
        self.words.get(self.at - 1)
    }

    fn name(&mut self, folded: bool, path: bool) -> Test {
        let pattern = self.argument().and_then(Word::literal);
        pattern.map_or(Test::Maybe, |pattern| Test::Name { pattern, path, folded })
    }

    fn limit(&mut self, least: bool) -> Test {
        let depth = self.argument().and_then(Word::literal).and_then(|text| text.parse().ok());
        match depth {
            Some(depth) if least => self.depth.0 = depth,
            Some(depth) => self.depth.1 = depth,
            None => {}
        }
        Test::Always
    }

    fn action(&mut self, text: &str) -> Test {
        let action = match text {
            "-print" | "-print0" => Action::Print(Printed::Path),
            "-printf" => {
                match self.argument().and_then(Word::literal).as_deref().map(|it| it.trim_end_matches(['\\', 'n', '0']))
                {
                    Some("%p") => Action::Print(Printed::Path),
                    Some("%P") => Action::Print(Printed::Relative),
                    Some("%f") => Action::Print(Printed::Name),
                    _ => Action::Other,
                }
            }
            "-ls" => Action::Other,
            "-delete" => Action::Delete,
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                let file = self.argument();
                self.at += usize::from(text == "-fprintf");
                file.map_or(Action::Other, |file| Action::Note(file.clone()))
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => Action::Exec(self.command()),
            // `-depth`, `-xdev`, `-true`, and what is not listed.
            _ => return Test::Always,
        };
        self.actions.push(action);
        let here = self.actions.len() - 1 == self.wanted;
        match self.actions.last() {
            _ if here => Test::Here,
            Some(Action::Exec(_)) => Test::Maybe,
            _ => Test::Always,
        }
    }

    /// Up to `;`, or to a `+` behind `{}`.
    fn command(&mut self) -> Vec<Word> {
        let mut words = Vec::new();
        while let Some(word) = self.argument() {
            match word.literal().as_deref() {
                Some(";") => break,
                Some("+") if words.last().and_then(Word::literal).as_deref() == Some("{}") => break,
                _ => words.push(word.clone()),
            }
        }
        words
    }
}

/// The entries that reach an action, one word a root.
fn entries(eval: &mut Eval<'_>, roots: &[Word], test: &Test, printed: Printed) -> Vec<Word> {
    let item = |eval: &mut Eval<'_>, root: &Word| {
        let (folder, dirs) = (root.clone(), eval.dirs.clone());
        let listing =
            Listing { folder, dirs, test: test.clone(), tree: true, hidden: true, ignores: Ignores::Nothing, printed };
        Word { parts: vec![eval.listing(listing)], span: root.span }
    };
    roots.iter().map(|root| item(eval, root)).collect()
}

/// Follows a `find`.
pub fn run(eval: &mut Eval<'_>, arguments: &[Word], via: &[String], span: Span) {
    let mut search = Search::of(arguments, span);
    for root in &search.roots {
        eval.file(root.clone(), Access::List, true);
    }
    search.expression(usize::MAX);
    for at in 0..search.actions.len() {
        if !eval.spend(8) {
            return;
        }
        let test = search.expression(at);
        match search.actions.get(at) {
            Some(Action::Exec(command)) => {
                for item in entries(eval, &search.roots, &test, Printed::Path) {
                    let words: Vec<Word> = command.iter().map(|word| substitute(word, "{}", &item)).collect();
                    eval.inner(words, via, "find", span, &Input::None);
                }
            }
            Some(Action::Delete) => {
                let items = entries(eval, &search.roots, &test, Printed::Path);
                items.into_iter().for_each(|item| eval.file(item, Access::Write, false));
            }
            Some(Action::Note(file)) => eval.file(file.clone(), Access::Write, false),
            Some(Action::Print(_) | Action::Other) | None => {}
        }
    }
}

/// What a `find` prints; `None` where that is more than names.
pub fn printed(eval: &mut Eval<'_>, arguments: &[Word], span: Span) -> Option<Text> {
    if arguments.iter().any(|word| word.literal().is_some_and(|text| text.starts_with("-files0-from"))) {
        return None;
    }
    let mut search = Search::of(arguments, span);
    search.expression(0);
    let mut out = Text::new();
    let mut at = 0;
    loop {
        let test = search.expression(at);
        match search.actions.get(at) {
            Some(Action::Print(printed)) => {
                for item in entries(eval, &search.roots, &test, *printed) {
                    out.extend(item.parts);
                    out.push(Part::Text("\n".to_owned()));
                }
            }
            Some(Action::Exec(_) | Action::Other) => return None,
            Some(Action::Delete | Action::Note(_)) => {}
            None => return Some(tidy(out)),
        }
        at += 1;
    }
}

/// Options of `fd` with a value.
const FD: [&str; 22] = [
    "-e",
    "--extension",
    "-E",
    "--exclude",
    "-t",
    "--type",
    "-d",
    "--max-depth",
    "--min-depth",
    "--exact-depth",
    "-S",
    "--size",
    "-j",
    "--threads",
    "-c",
    "--color",
    "-o",
    "--owner",
    "--changed-within",
    "--changed-before",
    "--search-path",
    "--base-directory",
];

/// An `fd`: what it finds, and the command it runs for that.
fn fd(eval: &mut Eval<'_>, arguments: &[Word], span: Span) -> (Vec<Word>, Vec<Word>) {
    let runs = |word: &Word| matches!(word.literal().as_deref(), Some("-x" | "-X" | "--exec" | "--exec-batch"));
    let cut = arguments.iter().position(runs).unwrap_or(arguments.len());
    let (own, command) = arguments.split_at(cut);
    let (mut plain, mut tests, mut flags) = (Vec::new(), Vec::new(), Vec::new());
    let mut words = own.iter();
    while let Some(word) = words.next() {
        let text = word.literal().unwrap_or_default();
        if FD.contains(&text.as_str()) {
            let value = words.next().and_then(Word::literal).unwrap_or_default();
            if matches!(text.as_str(), "-e" | "--extension") {
                tests.push(Test::Name { pattern: format!("*.{value}"), path: false, folded: true });
            }
        } else if is_flag(word) {
            flags.push(text);
        } else {
            plain.push(word.clone());
        }
    }
    let has = |letters: &[char], long: &str| {
        flags.iter().any(|flag| flag == long || (!flag.starts_with("--") && flag.contains(letters)))
    };
    let open = has(&['u'], "--unrestricted");
    let (hidden, ignores) = (open || has(&['H'], "--hidden"), !(open || has(&['I'], "--no-ignore")));
    let ignores = if ignores { Ignores::Search } else { Ignores::Nothing };
    let globs = has(&['g'], "--glob");
    let pattern = if plain.is_empty() { None } else { Some(plain.remove(0)) };
    match pattern.map(|pattern| pattern.literal()) {
        None => {}
        Some(Some(pattern)) if globs => tests.push(Test::name(&pattern)),
        Some(Some(pattern)) if pattern.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) => {
            let folded = !pattern.contains(|c: char| c.is_ascii_uppercase());
            tests.push(Test::Name { pattern: format!("*{pattern}*"), path: false, folded });
        }
        Some(Some(pattern)) if pattern == "." => {}
        Some(_) => tests.push(Test::Maybe),
    }
    tests.push(Test::Here);
    let printed = if plain.is_empty() { Printed::Relative } else { Printed::Path };
    if plain.is_empty() {
        plain.push(text_word(".", span));
    }
    let found = |eval: &mut Eval<'_>, root: &Word| {
        let (folder, dirs, test) = (root.clone(), eval.dirs.clone(), Test::All(tests.clone()));
        let listing = Listing { folder, dirs, test, tree: true, hidden, ignores, printed };
        Word { parts: vec![eval.listing(listing)], span: root.span }
    };
    for root in &plain {
        eval.file(root.clone(), Access::List, true);
    }
    (plain.iter().map(|root| found(eval, root)).collect(), command.get(1..).unwrap_or_default().to_vec())
}

/// Follows an `fd`.
pub fn run_fd(eval: &mut Eval<'_>, arguments: &[Word], via: &[String], span: Span) {
    let (found, command) = fd(eval, arguments, span);
    if command.is_empty() {
        return;
    }
    for item in found {
        let marked = command.iter().any(|word| word.literal().is_some_and(|text| text.contains('{')));
        let mut words: Vec<Word> = command.iter().map(|word| substitute(word, "{}", &item)).collect();
        if !marked {
            words.push(item);
        }
        eval.inner(words, via, "fd", span, &Input::None);
    }
}

/// What an `fd` prints.
pub fn printed_fd(eval: &mut Eval<'_>, arguments: &[Word], span: Span) -> Option<Text> {
    let (found, command) = fd(eval, arguments, span);
    let lines = found.into_iter().flat_map(|word| word.parts.into_iter().chain([Part::Text("\n".to_owned())]));
    command.is_empty().then(|| tidy(lines.collect()))
}
