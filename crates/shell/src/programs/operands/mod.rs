//! Which operands and options of a program are files and hosts: one line of `data/programs.txt` a program.
//!
//! A program that is not in the table has its path-like operands read. Page: `spec/shell.md`.

mod copy;
mod given;
mod net;
mod references;
pub mod table;
mod values;

use std::hash::BuildHasher;

use writ_core::Span;

use crate::action::{Access, FileUse, GivenKind, NetUse, Part, Word};
use crate::eval::command::{is_flag, text_word};
use crate::eval::expand::Text;
use crate::eval::output::split_at;
use crate::eval::{Eval, Input};
use crate::listing::Source;
use crate::options::{lead, tail};
use crate::programs::{git, runs, searches};

pub use copy::unpack;
use table::Split;

/// Puts the files and hosts of a command on record.
pub fn run(eval: &mut Eval<'_>, base: &str, arguments: &[Word], span: Span, input: &Input) {
    if matches!(base, "git" | "hub") {
        return git::run(eval, arguments, span, input);
    }
    if git::by_its_own_name(eval, base, arguments, span) {
        return;
    }
    if told(eval, base, arguments, span).is_some() {
        if let (true, Input::Text(text)) = (table::reads_code(base), input) {
            eval.given(GivenKind::Text, vec![text_word(text, span)], span);
        }
        return;
    }
    unknown(eval, arguments);
    given::texts(eval, arguments.iter());
    let known = runs::is_listed(base);
    eval.given(if known { GivenKind::Operands } else { GivenKind::Arguments }, arguments.to_vec(), span);
    if let (false, Input::Text(text)) = (runs::reads_input(base), input) {
        eval.given(GivenKind::Text, vec![text_word(text, span)], span);
    }
}

impl Eval<'_> {
    /// Commands that only a wrapper follows name hosts too.
    pub(crate) fn hosts_of_wrapped(&mut self) {
        let mut found = Vec::new();
        for command in &self.out.commands {
            let Some((name, arguments)) = command.words.split_first() else { continue };
            let name = name.literal().unwrap_or_default();
            let base = base_of(&name);
            if !self.told.contains(&self.keys.hash_one((command.span, base, arguments))) {
                found.extend(net::of(base, arguments));
            }
        }
        for net in found {
            if !self.out.nets.contains(&net) {
                self.out.nets.push(net);
            }
        }
    }
}

/// The same for a program that has a line; its words, told apart.
pub fn told<'w>(eval: &mut Eval<'_>, base: &str, arguments: &'w [Word], span: Span) -> Option<Split<'w>> {
    let program = table::lookup(base)?;
    let split = table::split(program, arguments);
    for NetUse { target, span } in net::nets(base, program, &split) {
        eval.net(target, span);
    }
    if eval.quiet == 0 && eval.remote == 0 {
        eval.told.insert(eval.keys.hash_one((span, base, arguments)));
    }
    for (role, value) in &split.values {
        values::value(eval, role, value);
    }
    for file in listed(eval, base, arguments) {
        eval.file(file, Access::Read, split.tree);
    }
    let there = |eval: &mut Eval<'_>| {
        for shape in program.shapes() {
            files(eval, base, shape, &split, arguments, span);
        }
        let options =
            split.values.iter().filter(|(role, _)| matches!(*role, "?" | "l" | "g")).map(|(_, value)| value.clone());
        options.for_each(|value| eval.given(GivenKind::Option, vec![value], span));
        given::running(eval, program, arguments, span);
        given::assigned(eval, &split, span);
        let mostly_none =
            |shape: &str| matches!(shape, "n" | "db" | "go" | "image" | "text" | "aws" | "ssl" | "dns" | "h" | "h1");
        if program.shapes().any(mostly_none) {
            given::texts(eval, split.operands.iter().copied().chain(split.values.iter().map(|(_, value)| value)));
            eval.given(GivenKind::Operands, split.operands.iter().map(|word| (*word).clone()).collect(), span);
        }
    };
    match split.value("C") {
        None => there(eval),
        folder => eval.in_dir(folder, there),
    }
    Some(split)
}

fn files(eval: &mut Eval<'_>, base: &str, shape: &str, split: &Split<'_>, arguments: &[Word], span: Span) {
    let words = split.operands.as_slice();
    let from = |at: usize| words.get(at..).unwrap_or_default();
    match shape {
        "r" => all(eval, words, Access::Read, split.tree),
        "fix" => given::fixed(eval, base, split),
        "w" => edited(eval, words, split.tree),
        "l" => {
            let sign = |word: &&Word| {
                word.literal().is_some_and(|text| matches!(text.as_str(), "]" | "=" | "!=" | "==" | "!"))
            };
            let files: Vec<&Word> = words.iter().copied().filter(|word| !sign(word)).collect();
            all(eval, &files, Access::List, false);
        }
        "r1" => all(eval, words.get(..1).unwrap_or_default(), Access::Read, false),
        "w1" => all(eval, words.get(..1).unwrap_or_default(), Access::Write, false),
        "s1" => {
            all(eval, words.get(..1).unwrap_or_default(), Access::Write, false);
            from(1).iter().for_each(|word| values::sql(eval, word));
        }
        "c1" => {
            all(eval, words.get(..1).unwrap_or_default(), Access::Read, false);
            all(eval, words.get(1..2).unwrap_or_default(), Access::Write, false);
        }
        "mode" => all(eval, from(usize::from(!has_mode(base, split))), Access::Write, split.tree),
        "p" | "P" => searched(eval, base, shape == "P", split, arguments, span),
        "yq" => yq(eval, split),
        "copy" | "move" | "link" | "sync" | "remote" => copy::copy(eval, base, shape, split, span),
        "zip" => {
            all(eval, words.get(..1).unwrap_or_default(), Access::Write, false);
            all(eval, from(1), Access::Read, true);
        }
        "archive" | "unpack" | "cpio" => archive(eval, base, shape, split, span),
        "compress" => {
            let reads = split.has(&['c', 't', 'l'], "--stdout") || split.has(&[], "--list") || split.has(&[], "--test");
            all(eval, words, if reads { Access::Read } else { Access::Write }, split.tree);
        }
        "u" => {
            copy::download(eval, base, split, span);
            let local =
                words.iter().filter(|word| !is_url(word) && looks_like_path(word) && !matches!(base, "curl" | "wget"));
            local.for_each(|word| guess(eval, word, Access::Read));
        }
        "http" => from(1).iter().for_each(|word| values::value(eval, "@F", word)),
        "aws" => copy::store(eval, words),
        "socat" => words.iter().for_each(|word| values::socat(eval, word)),
        "dd" => dd(eval, words),
        "tar" => crate::programs::tar::run(eval, arguments, span),
        "ssl" => {
            let files: Vec<&Word> = from(1).iter().copied().filter(|word| looks_like_path(word)).collect();
            all(eval, &files, Access::Read, false);
        }
        "W" if base == "git-restore" => git::restored(eval, words, arguments),
        "W" => all(eval, words, Access::Write, true),
        "guess" => git::revisions(eval, words, arguments, Access::Read),
        "guessw" => git::revisions(eval, words, arguments, Access::Write),
        "far1" => words.iter().take(1).for_each(|word| git::local_remote(eval, word)),
        "n" | "db" | "go" => words.iter().for_each(|word| clear_path(eval, word)),
        _ => {}
    }
}

/// Options that say where the names of files are, by program.
const LISTS: [(&str, &str); 6] = [
    ("wc", "--files0-from"),
    ("sort", "--files0-from"),
    ("du", "--files0-from"),
    ("rsync", "--files-from"),
    ("file", "--files-from"),
    ("file", "-f"),
];

/// The files whose names a program reads from a list.
fn listed(eval: &Eval<'_>, base: &str, arguments: &[Word]) -> Vec<Word> {
    let mut out = Vec::new();
    for (_, option) in LISTS.iter().filter(|(program, _)| *program == base) {
        let next = arguments.iter().zip(arguments.iter().skip(1));
        let next = next.filter(|(flag, _)| flag.literal().as_deref() == Some(option)).map(|(_, value)| value.clone());
        let glued =
            |word: &Word| lead(word).strip_prefix(option)?.starts_with('=').then(|| tail(word, option.len() + 1));
        for list in next.chain(arguments.iter().filter_map(glued)) {
            out.extend(names_in(eval, &list));
        }
    }
    if base == "zip" && arguments.iter().any(|word| word.literal().as_deref() == Some("-@")) {
        out.extend(names_in(eval, &text_word("-", eval.here)));
    }
    out
}

/// The names in a list: standard input where the line knows it, else any.
pub fn names_in(eval: &Eval<'_>, list: &Word) -> Vec<Word> {
    let span = list.span;
    let piped = matches!(list.literal().as_deref(), Some("-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0"));
    let word = |parts: Text| Word { parts, span };
    match eval.stdin.text().filter(|_| piped) {
        Some(text) => split_at(&text, |c| c == '\0' || c == '\n').into_iter().map(word).collect(),
        None => vec![word(vec![Part::Unknown(Source::Any)])],
    }
}

/// Files by name; `-` is standard input or output.
fn all(eval: &mut Eval<'_>, words: &[&Word], access: Access, tree: bool) {
    for word in words.iter().filter(|word| word.literal().as_deref() != Some("-")) {
        eval.file((*word).clone(), access, tree);
    }
}

/// An operand that may be a path: it counts where there is such a file, or where a rule names it.
pub fn guess(eval: &mut Eval<'_>, word: &Word, access: Access) {
    if let Some(file) = placed(eval, word, access, false).filter(|file| !eval.out.guesses.contains(file)) {
        eval.out.guesses.push(file);
    }
}

/// The same for everything below it.
pub fn guess_tree(eval: &mut Eval<'_>, word: &Word, access: Access) {
    if let Some(file) = placed(eval, word, access, true).filter(|file| !eval.out.guesses.contains(file)) {
        eval.out.guesses.push(file);
    }
}

/// A file use that is not on record by itself; `None` where files are another machine's.
fn placed(eval: &mut Eval<'_>, word: &Word, access: Access, tree: bool) -> Option<FileUse> {
    eval.place(word.clone(), access, tree)
}

/// Files to write; `+x` is an editor's command.
fn edited(eval: &mut Eval<'_>, words: &[&Word], tree: bool) {
    for word in words {
        match word.literal().as_deref().and_then(|text| text.strip_prefix('+')) {
            Some(command) => values::vim(eval, &text_word(command, word.span)),
            None => all(eval, &[word], Access::Write, tree),
        }
    }
}

/// Whether a mode is given as an option (`chmod -x`), or by a file that has it.
fn has_mode(base: &str, split: &Split<'_>) -> bool {
    let letters = if base == "chmod" { "rwxXstugoa,=+-" } else { "aAcCdDeFijmPsStTux" };
    let is_mode = |flag: &String| {
        flag.strip_prefix('-').is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| letters.contains(c)))
    };
    split.flags.iter().any(|flag| flag.starts_with("--ref"))
        || (base != "chown" && base != "chgrp" && split.flags.iter().any(is_mode))
}

/// A script or pattern, then files: `sed`, `grep`, `awk`, `rg`. Those that walk a tree (`walks`) begin where they stand.
fn searched(eval: &mut Eval<'_>, base: &str, walks: bool, split: &Split<'_>, arguments: &[Word], span: Span) {
    const LONG: [&str; 5] = ["--expression", "--regexp", "--file", "--from-file", "--source"];
    let given = LONG.iter().any(|long| split.has(&['e', 'f'], long));
    let names_only = walks && split.has(&[], "--files");
    let skip = usize::from(!given && !names_only);
    let files = split.operands.get(skip..).unwrap_or_default();
    let awk = base.ends_with("awk") && split.values.iter().any(|(_, value)| is_inplace(value));
    let edits = awk || matches!(base, "sed" | "gsed") && arguments.iter().any(in_place);
    let access = if edits { Access::Write } else { Access::Read };
    if access == Access::Read && (split.tree || walks) {
        // What is piped in is searched instead of the folder.
        if walks && files.is_empty() && !matches!(eval.stdin, Input::None) {
            return;
        }
        let access = if names_only { Access::List } else { Access::Read };
        return searches::record(eval, base, access, arguments, files, searches::here(span));
    }
    all(eval, files, access, split.tree);
}

/// gawk's `-i inplace`.
fn is_inplace(value: &Word) -> bool {
    value.literal().is_some_and(|text| text.starts_with("inplace"))
}

/// `-i`, `-i.bak`, `--in-place`, `-ni`
pub fn in_place(word: &Word) -> bool {
    word.literal().is_some_and(|text| {
        let cluster = text.starts_with('-') && !text.starts_with("--") && text.contains('i') && !text.contains('e');
        text.starts_with("-i") || text.starts_with("--in-place") || cluster
    })
}

/// `yq [eval] EXPRESSION files`, which `-i` changes.
fn yq(eval: &mut Eval<'_>, split: &Split<'_>) {
    let sub = |word: &&&Word| matches!(word.literal().as_deref(), Some("e" | "eval" | "ea" | "eval-all"));
    let skip = usize::from(split.operands.first().filter(sub).is_some());
    let skip = skip + usize::from(!split.has(&[], "--from-file"));
    let access = if split.has(&['i'], "--inplace") { Access::Write } else { Access::Read };
    all(eval, split.operands.get(skip..).unwrap_or_default(), access, false);
}

/// Archives in and out: `unzip`, `7z`, `unrar`, `cpio`.
fn archive(eval: &mut Eval<'_>, base: &str, shape: &str, split: &Split<'_>, span: Span) {
    let here = text_word(".", span);
    let folder = split.value("d").unwrap_or(&here).clone();
    let words = split.operands.as_slice();
    let verb = words.first().and_then(|word| word.literal()).unwrap_or_default();
    let (archive, rest) = match (shape, base) {
        ("cpio", _) if split.has(&['i'], "--extract") && !split.has(&['t'], "--list") => return unpack(eval, &here),
        ("cpio", _) if split.has(&['p'], "--pass-through") => {
            eval.file(here, Access::Read, true);
            return words.iter().for_each(|folder| unpack(eval, folder));
        }
        ("cpio", _) if split.has(&['o'], "--create") => return eval.file(here, Access::Read, true),
        ("cpio", _) => return,
        ("archive", _) | (_, "unrar") => (words.get(1), words.get(2..).unwrap_or_default()),
        _ => (words.first(), words.get(1..).unwrap_or_default()),
    };
    let adds = shape == "archive" && matches!(verb.as_str(), "a" | "u" | "d" | "rn");
    let lists = match (shape, base) {
        ("archive", _) | (_, "unrar") => !matches!(verb.as_str(), "x" | "e"),
        (_, "unzip") => split.has(&['l', 'p', 'c', 't', 'v', 'Z'], "--list"),
        _ => false,
    };
    all(
        eval,
        archive.map(std::slice::from_ref).unwrap_or_default(),
        if adds { Access::Write } else { Access::Read },
        false,
    );
    if adds {
        all(eval, rest, Access::Read, true);
    } else if !lists && (rest.is_empty() || base != "unzip") {
        unpack(eval, &folder);
        rest.iter().filter(|_| base == "unrar").for_each(|folder| unpack(eval, folder));
    } else if !lists && rest.iter().any(|word| word.literal().is_none_or(|text| text.contains(['*', '?', '[']))) {
        unpack(eval, &folder);
    } else if !lists {
        eval.in_dir(Some(&folder), |eval| all(eval, rest, Access::Write, true));
    }
}

/// An operand of a program that mostly takes other things, when it clearly looks like a path.
fn clear_path(eval: &mut Eval<'_>, word: &Word) {
    let word = &values::value_side(word);
    let clear = word.literal().is_some_and(|text| {
        let file = text.rsplit('/').next().is_some_and(|name| name.contains('.'));
        let hidden = text.starts_with('.') && !text.trim_matches('.').is_empty();
        text.starts_with(['/', '~']) || hidden || (text.contains('/') && !text.starts_with('@') && file)
    });
    if clear && !is_url(word) {
        eval.file(word.clone(), Access::Read, false);
    }
}

/// A program nobody described: operands that look like paths are read, URLs are contacted.
fn unknown(eval: &mut Eval<'_>, arguments: &[Word]) {
    for word in arguments {
        let side = values::value_side(word);
        let candidates = if is_flag(word) { vec![side] } else { vec![word.clone(), side] };
        for value in candidates.into_iter().filter(|value| !is_flag(value)) {
            if is_url(&value) {
                let target = crate::action::NetTarget::Url(value.clone());
                eval.net(target, value.span);
            } else if let Some(url) = inner_url(&value) {
                eval.net(crate::action::NetTarget::Url(url), value.span);
            } else if looks_like_path(&value) || matches!(value.parts.first(), Some(Part::Unknown(Source::Listed(_)))) {
                eval.file(value, Access::Read, false);
            }
        }
    }
}

/// The URL in a word that begins with something else: `rest:https://host/`.
fn inner_url(word: &Word) -> Option<Word> {
    let text = word.literal().filter(|text| !text.contains(char::is_whitespace))?;
    let (front, rest) = text.split_once("://")?;
    let scheme = front.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().filter(|scheme| !scheme.is_empty())?;
    Some(text_word(&format!("{scheme}://{rest}"), word.span))
}

fn dd(eval: &mut Eval<'_>, words: &[&Word]) {
    for word in words {
        for (sign, access) in [("if=", Access::Read), ("of=", Access::Write)] {
            if lead(word).starts_with(sign) {
                eval.file(tail(word, sign.len()), access, false);
            }
        }
    }
}

/// A program's name without its folder.
pub fn base_of(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}

/// `scheme://…`
pub fn is_url(word: &Word) -> bool {
    let pieces = word.parts.iter().map(|part| match part {
        Part::Text(text) | Part::Glob(text) => text.as_str(),
        Part::Unknown(_) => "",
    });
    let text = word.text().unwrap_or_else(|| pieces.collect());
    text.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    })
}

/// Whether a bare operand is likely a path: it has a slash, begins with `.` or `~`, or ends in an extension.
pub fn looks_like_path(word: &Word) -> bool {
    let Some(text) = word.text() else {
        return word.parts.len() > 1
            && word.parts.iter().any(|part| matches!(part, Part::Text(text) if text.contains('/')));
    };
    let odd = text.is_empty()
        || text.contains(char::is_whitespace)
        || text.len() > 4096
        || is_url(word)
        || text.starts_with('@');
    let extension = text.rsplit_once('.').is_some_and(|(head, tail)| {
        !head.is_empty()
            && (1..=5).contains(&tail.len())
            && tail.chars().all(|c| c.is_ascii_alphanumeric())
            && tail.chars().any(|c| c.is_ascii_alphabetic())
    });
    !odd && (text.contains('/') || text.starts_with(['.', '~']) || extension)
}

/// How many words in front are options, values of those in `values` included.
pub fn value_flags(words: &[Word], values: &str) -> usize {
    let mut at = 0;
    while let Some(text) = words.get(at).and_then(Word::literal) {
        if text == "--" {
            return at + 1;
        }
        if !text.starts_with('-') || text.len() < 2 {
            break;
        }
        at += 1 + usize::from(values.split_whitespace().any(|value| value == text));
    }
    at.min(words.len())
}
