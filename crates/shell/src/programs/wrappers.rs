//! Wrappers whose inner command is more than a rest of words: `env -S`, `xargs`, `find -exec`, `ssh`, `flock`, `crontab`.
//!
//! Their options are the `own` of their entries; of all other wrappers `runs` says everything. Page: `spec/shell.md`.

use writ_core::Span;

use crate::action::{Access, NetTarget, UnknownUseKind, UnresolvedKind};
use crate::eval::Eval;
use crate::eval::command::Place;
use crate::eval::input::Input;
use crate::options::Options;
use crate::programs::entries::own;
use crate::programs::entries::words::Role;
use crate::programs::runs::{self};
use crate::programs::{containers, find};
use crate::shape::{host, is_flag, joined, substitute, text_word};
use crate::text::{Text, split_at};
use crate::word::{Part, Source, Word};

/// Runs the command behind a wrapper. False when `base` is none, or is more than one.
pub fn run_wrapped(eval: &mut Eval<'_>, words: &[Word], place: &Place<'_>) -> bool {
    let arguments = words.get(1..).unwrap_or_default();
    let &Place { base, via, span, .. } = place;
    match base {
        "env" | "printenv" => env(eval, arguments, place),
        "xargs" | "gxargs" | "parallel" => xargs(eval, arguments, place),
        "find" | "gfind" => find::run(eval, arguments, via, span),
        "fd" | "fdfind" => find::run_fd(eval, arguments, via, span),
        "ssh" | "autossh" | "slogin" => ssh(eval, arguments, place),
        "mosh" => {
            let options = Options::read(arguments, own("mosh"), false);
            if let Some(target) = options.operands.first().and_then(|at| arguments.get(*at)) {
                contacted(eval, target);
            }
            runs::run(eval, arguments, place);
        }
        "flock" => flock(eval, arguments, place),
        "runuser" => runuser(eval, arguments, place),
        "at" | "batch" => at(eval, arguments, place),
        "crontab" => crontab(eval, arguments, place),
        "docker" | "podman" | "nerdctl" | "docker-compose" | "kubectl" | "oc" => {
            containers::files(eval, arguments);
            let verb = arguments.iter().find(|word| !is_flag(word)).and_then(Word::literal).unwrap_or_default();
            let makes = verb == "create" && !matches!(base, "kubectl" | "oc");
            if !makes && !matches!(verb.as_str(), "run" | "exec" | "compose" | "container" | "debug" | "logs") {
                eval.unknown_use(UnknownUseKind::Files, arguments.to_vec(), place.span);
            }
            let mounts = containers::mounts(eval, arguments);
            let before = std::mem::replace(&mut eval.mounts, mounts);
            runs::run(eval, arguments, place);
            eval.mounts = before;
        }
        _ => return runs::run(eval, arguments, place),
    }
    true
}

/// `at now`, `batch`: shell code on standard input or in a file. It runs later, elsewhere: always asked about.
fn at(eval: &mut Eval<'_>, arguments: &[Word], place: &Place<'_>) {
    let options = Options::read(arguments, own("at"), true);
    crate::programs::effects::options(eval, &options, place);
    let lists = ['l', 'd', 'r', 'c', 'V'].iter().any(|flag| options.has(*flag, ""))
        || options.of(Role::Script).next().is_some();
    if let Some(file) = options.of(Role::Script).next() {
        let known = eval.text_known(file);
        known.into_iter().for_each(|text| eval.code(&text_word(&text, place.span), None, place.base));
    }
    if lists {
        return;
    }
    if let Input::Text(text) = place.input {
        eval.code(&text_word(text, place.span), None, place.base);
    }
    eval.unresolved(UnresolvedKind::Script, place.base, place.span);
}

/// `crontab -`: behind five fields, or one that begins with `@`, shell code. It runs later, elsewhere: always asked about.
fn crontab(eval: &mut Eval<'_>, arguments: &[Word], place: &Place<'_>) {
    let options = Options::read(arguments, own("crontab"), true);
    let mut plain = options.operands.iter().filter_map(|at| arguments.get(*at)).peekable();
    let named = plain.peek().is_some();
    let file = plain.peek().filter(|file| file.literal().as_deref() != Some("-"));
    if !named && (matches!(place.input, Input::None) || !options.flags.is_empty()) {
        return;
    }
    let input = match file {
        Some(file) => {
            eval.file((*file).clone(), Access::Read, false);
            eval.text_known(file).map_or(Input::Unknown, Input::Text)
        }
        None => place.input.clone(),
    };
    if let Input::Text(text) = &input {
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            let fields = if line.starts_with('@') { 1 } else { 5 };
            let mut rest = line;
            for _ in 0..fields {
                rest = rest.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim_start());
            }
            if !rest.is_empty() {
                eval.code(&text_word(rest, place.span), None, place.base);
            }
        }
    }
    eval.unresolved(UnresolvedKind::Script, place.base, place.span);
}

fn env(eval: &mut Eval<'_>, arguments: &[Word], place: &Place<'_>) {
    let options = Options::read(arguments, own("env"), false);
    let mut at = options.operands.first().copied().unwrap_or(arguments.len());
    // `env` takes any name, such as that of an exported function.
    let assigns = |word: &&Word| crate::shape::literal_prefix(word).find('=').is_some_and(|cut| cut > 0);
    while let Some(word) = arguments.get(at).filter(assigns) {
        eval.assigned(word, place.span);
        at += 1;
    }
    let rest = arguments.get(at..).unwrap_or_default();
    let dir = options.of(Role::RunsIn).next();
    let split = options.values.iter().zip(&options.ends).find(|((_, role, _), _)| *role == Role::SplitString);
    eval.in_dir(dir, |eval| match split {
        Some(((_, _, first), end)) => {
            // The words of the text stand in the place of its own; those behind are not split.
            let behind = arguments.get(*end..).unwrap_or_default().iter().map(as_code);
            let code = joined(&std::iter::once(first.clone()).chain(behind).collect::<Vec<_>>(), place.span);
            let code = [&[Part::Text("env ".to_owned())], code.parts.as_slice()].concat();
            eval.code(&Word { parts: code, span: first.span }, None, "env -S");
        }
        None if rest.is_empty() => {}
        None => eval.inner(rest.to_vec(), place.via, "env", place.span, place.input),
    });
}

/// A word that the shell would read as one.
fn as_code(word: &Word) -> Word {
    let quoted = |part: &Part| match part {
        Part::Text(text) => Part::Text(format!("'{}'", text.replace('\'', "'\\''"))),
        other => other.clone(),
    };
    Word { parts: word.parts.iter().map(quoted).collect(), span: word.span }
}

fn xargs(eval: &mut Eval<'_>, arguments: &[Word], place: &Place<'_>) {
    let &Place { base, span, input, .. } = place;
    let options = Options::read(arguments, own(base), false);
    for (_, role, file) in &options.values {
        if *role == Role::Reads && file.literal().as_deref() != Some("-") {
            eval.file(file.clone(), Access::Read, false);
        } else if *role == Role::Writes {
            eval.file(file.clone(), Access::Write, false);
        }
    }
    let mut replace = options.of(Role::Placeholder).next().and_then(Word::literal);
    for flag in &options.flags {
        let mark = if flag.starts_with("--") {
            flag.strip_prefix("--replace=")
        } else {
            flag.split_once('i').map(|(_, mark)| mark)
        };
        if let Some(mark) = mark {
            let mark = mark.trim_end_matches('=');
            replace = Some(if mark.is_empty() { "{}".to_owned() } else { mark.to_owned() });
        }
    }
    let start = options.operands.first().copied().unwrap_or(arguments.len());
    let mut inner = arguments.get(start..).unwrap_or_default().to_vec();
    let mut items: Vec<Word> = Vec::new();
    if let Some(cut) = inner.iter().position(|word| word.literal().is_some_and(|text| text == ":::" || text == "::::"))
    {
        items = inner.split_off(cut).into_iter().skip(1).collect();
    }
    if base == "parallel" && replace.is_none() {
        replace = Some("{}".to_owned());
    }
    if items.is_empty() {
        let any = || vec![Word { parts: vec![Part::Unknown(Source::Words)], span }];
        let file = options.of(Role::Reads).find(|file| file.literal().as_deref() != Some("-")).cloned();
        let given = match &file {
            Some(file) => &eval.text_in(file).or_else(|| eval.path_list(file)).map_or(Input::Unknown, Input::Text),
            None => input,
        };
        items = match given {
            Input::Text(_) | Input::Partly(_) => {
                let delimiter = options.of(Role::Delimiter).next();
                let text = given.text().unwrap_or_default();
                split_items(&text, delimiter, replace.is_some(), has_null(&options), span)
            }
            Input::None | Input::Unknown => any(),
        };
    }
    if inner.is_empty() {
        // `parallel` without a command runs its input's lines; `xargs` echoes them.
        if base == "parallel" {
            eval.code(&joined(&items, span), None, base);
        }
        return;
    }
    each(eval, inner, items, replace, place);
}

/// `-0`: items end with a NUL.
fn has_null(options: &Options) -> bool {
    options.has('0', "--null")
}

/// Most items that a command is followed for.
const MAX_ITEMS: usize = 64;

fn each(eval: &mut Eval<'_>, inner: Vec<Word>, mut items: Vec<Word>, replace: Option<String>, place: &Place<'_>) {
    if items.len() > MAX_ITEMS {
        items.truncate(MAX_ITEMS);
        items.push(Word { parts: vec![Part::Unknown(Source::Words)], span: place.span });
        eval.unresolved(UnresolvedKind::Limit, place.base, place.span);
    }
    match replace {
        Some(mark) if inner.iter().any(|word| word.literal().is_some_and(|text| text.contains(&mark))) => {
            for item in &items {
                let words: Vec<Word> = inner.iter().map(|word| substitute(word, &mark, item)).collect();
                eval.inner(words, place.via, place.base, place.span, &Input::None);
            }
        }
        _ => eval.inner([inner, items].concat(), place.via, place.base, place.span, &Input::None),
    }
}

/// The items of `xargs` in a text: words, or lines where they take a mark's place.
fn split_items(text: &Text, delimiter: Option<&Word>, lines: bool, null: bool, span: Span) -> Vec<Word> {
    let own = delimiter.and_then(Word::literal).and_then(|text| text.chars().next()).filter(|c| *c != '\\');
    let ends = |c: char| match own {
        _ if null => c == '\0' || c == '\n',
        Some(own) => c == own || c == '\0' || c == '\n',
        None if lines => c == '\n' || c == '\0',
        None => c.is_whitespace() || c == '\0',
    };
    let item = |parts: Text| {
        if parts.iter().any(|part| matches!(part, Part::Unknown(source) if source.is_made())) {
            return Word { parts: vec![Part::Unknown(Source::Words)], span };
        }
        match parts.as_slice() {
            [Part::Text(known)] => text_word(known.trim().trim_matches(['"', '\'']), span),
            _ => Word { parts, span },
        }
    };
    let items = split_at(text, ends).into_iter().take(MAX_ITEMS + 1).map(item);
    items.filter(|word| word.literal().is_none_or(|text| !text.is_empty())).collect()
}

fn ssh(eval: &mut Eval<'_>, arguments: &[Word], place: &Place<'_>) {
    let options = Options::read(arguments, own("ssh"), false);
    ssh_options(eval, &options, place);
    let Some((target, rest)) = options.operands.first().and_then(|at| arguments.get(*at..)?.split_first()) else {
        return;
    };
    let name = contacted(eval, target);
    let here = matches!(name.as_deref(), Some("localhost" | "127.0.0.1" | "0.0.0.0" | "0" | "" | "ip6-localhost"));
    // Options may stand behind the host too.
    let more = Options::read(rest, own("ssh"), false);
    ssh_options(eval, &more, place);
    let command = more.operands.first().and_then(|at| rest.get(*at..)).unwrap_or_default();
    eval.remote += usize::from(!here);
    if let Some(first) = command.first() {
        let code = if command.len() == 1 { first.clone() } else { joined(command, first.span) };
        eval.code(&code, None, place.base);
    } else if !options.has('N', "") && !more.has('N', "") && options.of(Role::Hosts).next().is_none() {
        match place.input {
            Input::Text(text) => eval.code(&text_word(text, place.span), None, place.base),
            Input::Unknown | Input::Partly(_) => {
                eval.unresolved(UnresolvedKind::Script, &format!("| {}", place.base), place.span)
            }
            Input::None => {}
        }
    }
    eval.remote -= usize::from(!here);
}

/// The machine that `ssh` is told to go to.
fn contacted(eval: &mut Eval<'_>, target: &Word) -> Option<String> {
    let name = target.literal().map(|text| {
        let text = text.trim_start_matches("ssh://").to_owned();
        text.rsplit('@').next().unwrap_or_default().split([':', '/']).next().unwrap_or_default().to_owned()
    });
    let to = name.as_deref().map_or(NetTarget::Unknown, |name| host(name, target.span));
    eval.net(to, target.span);
    name
}

fn ssh_options(eval: &mut Eval<'_>, options: &Options, place: &Place<'_>) {
    crate::programs::effects::options(eval, options, place);
    for (name, _, value) in &options.values {
        let Some(text) = value.literal().filter(|_| matches!(*name, "-L" | "-R")) else { continue };
        // `[bind:]port:host:port`
        if let Some(machine) = text.rsplit(':').nth(1).filter(|machine| machine.parse::<u16>().is_err()) {
            eval.net(host(machine, value.span), value.span);
        }
    }
    if options.values.iter().any(|(name, ..)| *name == "-I") {
        eval.unresolved(UnresolvedKind::Code, "ssh -I", place.span);
    }
}

/// `flock file command`, `flock file -c code`.
fn flock(eval: &mut Eval<'_>, arguments: &[Word], place: &Place<'_>) {
    let options = Options::read(arguments, own("flock"), false);
    let Some((lock, rest)) = options.operands.first().and_then(|at| arguments.get(*at..)?.split_first()) else {
        return;
    };
    if lock.literal().is_none_or(|text| text.parse::<u32>().is_err()) {
        eval.file(lock.clone(), Access::Write, false);
    }
    let more = Options::read(rest, own("flock"), false);
    crate::programs::effects::options(eval, &options, place);
    crate::programs::effects::options(eval, &more, place);
    if let Some(command) = more.operands.first().and_then(|at| rest.get(*at..)) {
        eval.inner(command.to_vec(), place.via, place.base, place.span, place.input);
    }
}

/// `runuser -u name command`, `runuser name -c code`.
fn runuser(eval: &mut Eval<'_>, arguments: &[Word], place: &Place<'_>) {
    let options = Options::read(arguments, own("runuser"), false);
    if options.of(Role::User).next().is_none() {
        let options = Options::read(arguments, own("runuser"), true);
        return crate::programs::effects::options(eval, &options, place);
    }
    crate::programs::effects::options(eval, &options, place);
    if let Some(command) = options.operands.first().and_then(|at| arguments.get(*at..)) {
        eval.inner(command.to_vec(), place.via, place.base, place.span, place.input);
    }
}
