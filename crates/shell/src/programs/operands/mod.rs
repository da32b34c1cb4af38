//! Which operands and options of a program are files and hosts: one entry of `data/programs` a program.
//!
//! A program that is not in the table has its path-like operands read. Page: `spec/shell.md`.

mod copy;
pub(crate) mod git;
pub(crate) mod net;
mod particular;
pub(crate) mod patch;
mod printing;
mod references;
pub(crate) mod repository;
pub mod sends;
pub mod table;
pub(crate) mod tar;
mod unlisted;
mod values;

use std::hash::BuildHasher;

use writ_core::Span;

use crate::action::{Access, NetTarget, NetUse, UnknownUseKind};
use crate::eval::Eval;
use crate::eval::input::Input;
use crate::programs::entries;
use crate::programs::entries::words::{Operands, Role};
use crate::shape::{base_of, is_flag, is_url, literal_prefix, looks_like_path, tail, text_word};
use crate::word::{Part, Source, Word};
use table::Split;

pub use copy::unpack;

/// Puts the files and hosts of a command on record.
pub fn run(eval: &mut Eval<'_>, base: &str, arguments: &[Word], span: Span, input: &Input) {
    if matches!(base, "git" | "hub") {
        return git::run(eval, arguments, span, input);
    }
    if git::by_its_own_name(eval, base, arguments, span) {
        return;
    }
    let own = if base == "writ" { subcommand(base, arguments) } else { None };
    if let Some((name, rest)) = own
        && by_entry(eval, &name, rest, span).is_some()
    {
        return;
    }
    if by_entry(eval, base, arguments, span).is_some() {
        if let (true, Input::Text(text)) = (table::reads_code(base), input) {
            eval.unknown_use(UnknownUseKind::Text, vec![text_word(text, span)], span);
        }
        return;
    }
    unknown(eval, arguments);
    unlisted::texts(eval, arguments.iter());
    let known = entries::is_listed(base);
    eval.unknown_use(
        if known { UnknownUseKind::Operands } else { UnknownUseKind::Arguments },
        arguments.to_vec(),
        span,
    );
    if let (false, Input::Text(text)) = (entries::reads_input(base), input) {
        eval.unknown_use(UnknownUseKind::Text, vec![text_word(text, span)], span);
    }
}

/// The longest subcommand that has an entry, `writ agentfile new`, and the words behind it.
fn subcommand<'w>(base: &str, arguments: &'w [Word]) -> Option<(String, &'w [Word])> {
    let (mut name, mut rest, mut found) = (base.to_owned(), arguments, None);
    while let Some((first, behind)) = rest.split_first() {
        let Some(word) = first.literal() else { break };
        rest = behind;
        if is_flag(first) {
            // The value of `--color` stands by itself, or in the same word.
            rest = behind.get(usize::from(word == "--color")..).unwrap_or_default();
            continue;
        }
        name = format!("{name} {word}");
        if entries::entry(&name).is_none() {
            break;
        }
        found = Some((name.clone(), rest));
    }
    found
}

/// Commands that only a wrapper follows name hosts too.
pub fn hosts_of_wrapped(eval: &mut Eval<'_>) {
    let mut found = Vec::new();
    for command in &eval.out.commands {
        let Some((name, arguments)) = command.words.split_first() else { continue };
        let name = name.literal().unwrap_or_default();
        let base = base_of(&name);
        if !eval.hosts_recorded.contains(&eval.keys.hash_one((command.span, base, arguments))) {
            found.extend(net::of(base, arguments, command.span));
        }
    }
    for net in found {
        if !eval.out.nets.contains(&net) {
            eval.out.nets.push(net);
        }
    }
}

/// `mail $USER`: the command reads nothing else that is not known, and who runs it has no host.
fn is_own_user(eval: &Eval<'_>, split: &Split<'_>, target: &NetTarget, span: Span) -> bool {
    let here = eval.span(eval.here);
    let mut read = eval.out.variables.iter().filter(|variable| variable.span == here).peekable();
    let mut open = split.operands.iter().filter(|word| word.literal().is_none());
    let name = |word: &&Word| matches!(word.parts.as_slice(), [Part::Unknown(Source::Name | Source::Outside)]);
    *target == NetTarget::Unknown
        && open.next().is_some_and(|word| word.span == span && name(word))
        && open.next().is_none()
        && read.peek().is_some()
        && read.all(|variable| matches!(variable.name.as_str(), "USER" | "LOGNAME"))
}

/// The same for a program that has a line; its words, told apart.
pub fn by_entry<'w>(eval: &mut Eval<'_>, base: &str, arguments: &'w [Word], span: Span) -> Option<Split<'w>> {
    let program = table::lookup(base)?;
    let split = table::split(program, arguments);
    for NetUse { target, span } in net::nets(base, program, arguments, &split, span) {
        if !(program.operands.contains(&Operands::Addresses) && is_own_user(eval, &split, &target, span)) {
            eval.net(target, span);
        }
    }
    if eval.quiet == 0 && eval.remote == 0 {
        eval.hosts_recorded.insert(eval.keys.hash_one((span, base, arguments)));
    }
    for (role, value) in &split.values {
        values::value(eval, *role, value);
    }
    for file in listed(eval, base, arguments) {
        eval.file(file, Access::Read, split.tree);
    }
    let there = |eval: &mut Eval<'_>| {
        for operands in program.operands {
            files(eval, base, *operands, &split, arguments, span);
        }
        let open = split.values.iter().filter(|(role, _)| matches!(role, Role::Unknown | Role::Lists));
        open.for_each(|(_, value)| eval.unknown_use(UnknownUseKind::Option, vec![value.clone()], span));
        unlisted::running(eval, program, arguments, span);
        unlisted::assigned(eval, &split, span);
        if program.operands.iter().any(|operands| mostly_not_files(*operands)) {
            unlisted::texts(eval, split.operands.iter().copied().chain(split.values.iter().map(|(_, value)| value)));
            eval.unknown_use(
                UnknownUseKind::Operands,
                split.operands.iter().map(|word| (*word).clone()).collect(),
                span,
            );
        }
    };
    match split.value(Role::RunsIn) {
        None => there(eval),
        folder => eval.in_dir(folder, there),
    }
    Some(split)
}

/// Whether a rule is held against operands that are none of the files.
fn mostly_not_files(operands: Operands) -> bool {
    matches!(
        operands,
        Operands::MostlyNotFiles
            | Operands::Database
            | Operands::GoPackages
            | Operands::Docker
            | Operands::HasUrls
            | Operands::CloudStore
            | Operands::Openssl
            | Operands::DnsNames
            | Operands::Hosts
            | Operands::FirstHost
    )
}

fn files(eval: &mut Eval<'_>, base: &str, kind: Operands, split: &Split<'_>, arguments: &[Word], span: Span) {
    let words = split.operands.as_slice();
    let from = |at: usize| words.get(at..).unwrap_or_default();
    let first = from(0).get(..1).unwrap_or_default();
    match kind {
        Operands::Read => all(eval, words, Access::Read, split.tree),
        Operands::WrittenIfFixed => unlisted::fixed(eval, base, split),
        Operands::Written => edited(eval, words, split.tree),
        Operands::Edited => {
            let command = |word: &&Word| word.literal().is_some_and(|text| text.starts_with('+'));
            let files: Vec<&Word> = words.iter().copied().filter(|word| !command(word)).collect();
            all(eval, &files, Access::Read, split.tree);
            edited(eval, words, split.tree);
        }
        Operands::Listed => {
            let sign = |word: &&Word| {
                word.literal().is_some_and(|text| matches!(text.as_str(), "]" | "=" | "!=" | "==" | "!"))
            };
            let files: Vec<&Word> = words.iter().copied().filter(|word| !sign(word)).collect();
            all(eval, &files, Access::List, false);
        }
        Operands::FirstRead => all(eval, first, Access::Read, false),
        Operands::FirstWritten => all(eval, first, Access::Write, false),
        Operands::Sqlite => {
            let database: Vec<Word> = first.iter().map(|word| values::database(word)).collect();
            let database: Vec<&Word> = database.iter().collect();
            all(eval, &database, Access::Read, false);
            all(eval, &database, Access::Write, false);
            from(1).iter().for_each(|word| values::sql(eval, word));
        }
        Operands::ReadThenWritten => {
            all(eval, first, Access::Read, false);
            all(eval, words.get(1..2).unwrap_or_default(), Access::Write, false);
        }
        Operands::ModeThenWritten => {
            all(eval, from(usize::from(!particular::has_mode(base, split))), Access::Write, split.tree);
        }
        Operands::PatternThenRead => particular::searched(eval, base, false, split, arguments, span),
        Operands::PatternThenTrees => particular::searched(eval, base, true, split, arguments, span),
        Operands::Yq => particular::yq(eval, split),
        Operands::Copy | Operands::Move | Operands::Link | Operands::Sync | Operands::RemoteCopy => {
            copy::copy(eval, base, kind, split, span);
        }
        Operands::Zip => {
            all(eval, first, Access::Write, false);
            all(eval, from(1), Access::Read, true);
        }
        Operands::SevenZip | Operands::Unzip | Operands::Cpio => particular::archive(eval, base, kind, split, span),
        Operands::Compress => {
            let reads = split.has(&['c', 't', 'l'], "--stdout") || split.has(&[], "--list") || split.has(&[], "--test");
            all(eval, words, if reads { Access::Read } else { Access::Write }, split.tree);
        }
        Operands::Urls => {
            copy::download(eval, base, split, span);
            let local =
                words.iter().filter(|word| !is_url(word) && looks_like_path(word) && !matches!(base, "curl" | "wget"));
            local.for_each(|word| eval.guess(word, Access::Read, false));
        }
        Operands::Httpie => from(1).iter().for_each(|word| values::value(eval, Role::FormField, word)),
        Operands::CloudStore => copy::store(eval, words),
        Operands::Socat => words.iter().for_each(|word| values::socat(eval, word)),
        Operands::Dd => particular::dd(eval, words),
        Operands::Tar => crate::programs::operands::tar::run(eval, base, arguments, span),
        Operands::Openssl => {
            let files: Vec<&Word> = from(1).iter().copied().filter(|word| looks_like_path(word)).collect();
            all(eval, &files, Access::Read, false);
        }
        Operands::WrittenTrees if base == "git restore" => git::restored(eval, words, arguments),
        Operands::WrittenTrees => all(eval, words, Access::Write, true),
        Operands::GitPathsRead => git::revisions(eval, words, arguments, Access::Read),
        Operands::GitPathsWritten => git::revisions(eval, words, arguments, Access::Write),
        Operands::GitRemoteFirst => first.iter().for_each(|word| git::local_remote(eval, word)),
        Operands::MostlyNotFiles | Operands::Database | Operands::GoPackages => {
            git::fetched(eval, base, words);
            words.iter().for_each(|word| clear_path(eval, word));
        }
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
        let glued = |word: &Word| {
            literal_prefix(word).strip_prefix(option)?.starts_with('=').then(|| tail(word, option.len() + 1))
        };
        for list in next.chain(arguments.iter().filter_map(glued)) {
            out.extend(eval.listed_names(&list));
        }
    }
    let given = |text: &str| arguments.iter().any(|word| word.literal().as_deref() == Some(text));
    let copies_out = || arguments.iter().any(|word| is_flag(word) && literal_prefix(word).contains(['o', 'p', 'w']));
    match base {
        "zip" if given("-@") => out.extend(eval.listed_names(&text_word("-", eval.here))),
        // Of names that are not known, `cpio` counts those below the folder; `pax` may read none.
        "cpio" | "pax" if copies_out() => {
            let names = eval.listed_names(&text_word("-", eval.here));
            let known = |word: &Word| word.parts != [Part::Unknown(Source::Any)];
            out.extend(names.into_iter().filter(known));
        }
        "7z" | "7za" | "7zz" | "7zr" => {
            let list = |word: &Word| {
                let at = ["@", "-i@", "-ir@"].into_iter().find(|sign| literal_prefix(word).starts_with(sign))?;
                Some(eval.listed_names(&tail(word, at.len())))
            };
            out.extend(arguments.iter().filter_map(list).flatten());
        }
        _ => {}
    }
    out
}

/// Files by name; `-` is standard input or output.
fn all(eval: &mut Eval<'_>, words: &[&Word], access: Access, tree: bool) {
    for word in words.iter().filter(|word| word.literal().as_deref() != Some("-")) {
        eval.file((*word).clone(), access, tree);
    }
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

/// `-i`, `-i.bak`, `--in-place`, `-ni`
pub fn in_place(word: &Word) -> bool {
    word.literal().is_some_and(|text| {
        let cluster = text.starts_with('-') && !text.starts_with("--") && text.contains('i') && !text.contains('e');
        text.starts_with("-i") || text.starts_with("--in-place") || cluster
    })
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
