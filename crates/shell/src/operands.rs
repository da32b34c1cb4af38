//! Which operands of a program are files and hosts: one line of `data/programs.txt` a family of programs.
//!
//! The table is scanned as text, because a hook looks up a handful of programs and then ends. A program that is not in it
//! has its path-like operands read. Page: `spec/shell.md`.

use std::collections::HashMap;
use std::sync::LazyLock;

use writ_core::Span;

use crate::action::{Access, NetTarget, Part, Word};
use crate::command::{host, is_flag, text_word};
use crate::eval::Eval;
use crate::git;

const TABLE: &str = include_str!("../data/programs.txt");

/// A program's line.
#[derive(Clone, Copy)]
struct Program<'t> {
    operands: &'t str,
    options: &'t str,
    trees: &'t str,
}

fn lookup(base: &str) -> Option<Program<'static>> {
    static LINES: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('|'));
        lines.flat_map(|(names, rest)| names.trim().split(',').map(move |name| (name, rest))).collect()
    });
    let mut columns = LINES.get(base)?.splitn(3, '|').map(str::trim);
    Some(Program { operands: columns.next()?, options: columns.next()?, trees: columns.next().unwrap_or_default() })
}

impl Program<'_> {
    /// The role of an option's value.
    fn role(&self, option: &str) -> Option<&str> {
        self.options.split_whitespace().find_map(|entry| entry.strip_prefix(option)?.strip_prefix('='))
    }

    /// Whether an option, alone or in a cluster, means everything below.
    fn is_tree(&self, flag: &str) -> bool {
        self.trees.split_whitespace().any(|tree| {
            let letter = tree.strip_prefix('-').filter(|letter| letter.len() == 1);
            flag == tree
                || letter
                    .is_some_and(|letter| flag.starts_with('-') && !flag.starts_with("--") && flag.contains(letter))
        })
    }
}

/// Options and operands, told apart.
struct Split<'w> {
    operands: Vec<&'w Word>,
    /// Role and value of options that have one.
    values: Vec<(String, Word)>,
    tree: bool,
}

fn split<'w>(program: Program<'_>, arguments: &'w [Word]) -> Split<'w> {
    let mut out = Split { operands: Vec::new(), values: Vec::new(), tree: false };
    let mut at = 0;
    let mut plain = false;
    while let Some(word) = arguments.get(at) {
        at += 1;
        let text = word.literal().unwrap_or_default();
        if plain || !is_flag(word) {
            out.operands.push(word);
            continue;
        }
        if text == "--" {
            plain = true;
            continue;
        }
        out.tree |= program.is_tree(&text);
        if let Some((name, value)) = text.split_once('=').filter(|(name, _)| name.starts_with("--")) {
            if let Some(role) = program.role(name) {
                out.values.push((role.to_owned(), text_word(value, word.span)));
            } else if crate::operands::looks_like_path(&text_word(value, word.span)) {
                out.values.push(("l".to_owned(), text_word(value, word.span)));
            }
            continue;
        }
        if let Some(role) = program.role(&text) {
            if let Some(value) = arguments.get(at) {
                out.values.push((role.to_owned(), value.clone()));
            }
            at += 1;
            continue;
        }
        if text.starts_with("--") {
            continue;
        }
        // A cluster: the first letter that takes a value takes the rest, or the next word.
        let letters: Vec<(usize, char)> = text.char_indices().skip(1).collect();
        for (place, letter) in letters {
            let Some(role) = program.role(&format!("-{letter}")) else { continue };
            let glued = text.get(place + letter.len_utf8()..).unwrap_or_default();
            if glued.is_empty() {
                if let Some(value) = arguments.get(at) {
                    out.values.push((role.to_owned(), value.clone()));
                }
                at += 1;
            } else {
                out.values.push((role.to_owned(), text_word(glued.trim_start_matches('='), word.span)));
            }
            break;
        }
    }
    out
}

/// Puts the files and hosts of a command on record.
pub fn run(eval: &mut Eval<'_>, base: &str, arguments: &[Word], span: Span) {
    if matches!(base, "git" | "hub") {
        return git::run(eval, arguments, span);
    }
    let Some(program) = lookup(base) else { return unknown(eval, arguments) };
    let split = split(program, arguments);
    for (role, value) in &split.values {
        option_value(eval, role, value);
    }
    let tree = split.tree;
    let operands = split.operands;
    match program.operands {
        "r" => all(eval, &operands, Access::Read, tree),
        "w" => all(eval, &operands, Access::Write, tree),
        "l" => {
            let sign = |word: &&Word| {
                word.literal().is_some_and(|text| matches!(text.as_str(), "]" | "=" | "!=" | "==" | "!"))
            };
            let files: Vec<&Word> = operands.into_iter().filter(|word| !sign(word)).collect();
            all(eval, &files, Access::List, false);
        }
        "1w" => all(eval, operands.get(1..).unwrap_or_default(), Access::Write, tree),
        "p" | "P" => searched(eval, base, program.operands == "P", arguments, &operands, tree, span),
        "c" | "m" | "c1" => copy(eval, program.operands, &operands, &split.values, tree),
        "z" => {
            let commands = usize::from(matches!(base, "7z" | "7za" | "rar"));
            all(eval, operands.get(commands..=commands).unwrap_or_default(), Access::Write, false);
            all(eval, operands.get(commands + 1..).unwrap_or_default(), Access::Read, true);
        }
        "x" => remote_copy(eval, &operands, tree || base == "rsync" || base == "rclone"),
        "u" => operands.iter().for_each(|word| url(eval, word)),
        "h" | "d" => hosts(eval, program.operands, &operands, span),
        "s" => operands.iter().for_each(|word| socat(eval, word)),
        "s1" => all(eval, operands.get(..1).unwrap_or_default(), Access::Write, false),
        "dd" => dd(eval, arguments),
        "tar" => crate::tar::run(eval, arguments, span),
        "o" => {
            let files: Vec<&Word> = operands.into_iter().skip(1).filter(|word| looks_like_path(word)).collect();
            all(eval, &files, Access::Read, false);
        }
        "n" => operands.iter().filter(|word| is_url(word)).for_each(|word| url(eval, word)),
        _ => {}
    }
    if program.operands == "n" && !matches!(base, "docker" | "podman" | "kubectl") {
        operands_like_paths(eval, arguments);
    }
}

fn all(eval: &mut Eval<'_>, words: &[&Word], access: Access, tree: bool) {
    words.iter().for_each(|word| eval.file((*word).clone(), access, tree));
}

/// A script or pattern, then files: `sed`, `grep`, `awk`, `rg`. Those that walk a tree (`walks`) begin where they stand.
fn searched(
    eval: &mut Eval<'_>,
    base: &str,
    walks: bool,
    arguments: &[Word],
    operands: &[&Word],
    tree: bool,
    span: Span,
) {
    const SCRIPT: [&str; 6] = ["-e", "-f", "--expression", "--regexp", "--file", "--from-file"];
    let given =
        |flags: &[&str]| arguments.iter().any(|word| word.literal().is_some_and(|text| flags.contains(&text.as_str())));
    let skip = usize::from(!given(&SCRIPT) && !(walks && given(&["--files"])));
    let files = operands.get(skip..).unwrap_or_default();
    let edits = matches!(base, "sed" | "gsed") && arguments.iter().any(in_place);
    let access = if edits { Access::Write } else { Access::Read };
    let tree = tree || walks;
    if tree && files.is_empty() {
        eval.file(text_word(".", span), access, true);
    }
    all(eval, files, access, tree);
}

/// `-i`, `-i.bak`, `--in-place`, `-ni`
fn in_place(word: &Word) -> bool {
    word.literal().is_some_and(|text| {
        let cluster = text.starts_with('-') && !text.starts_with("--") && text.contains('i') && !text.contains('e');
        text.starts_with("-i") || text.starts_with("--in-place") || cluster
    })
}

fn operands_like_paths(eval: &mut Eval<'_>, arguments: &[Word]) {
    for word in arguments.iter().filter(|word| !is_flag(word)) {
        let rooted = word.literal().is_some_and(|text| {
            text.starts_with(['/', '~'])
                || text.starts_with("./")
                || text.starts_with("../")
                || (text.contains('/')
                    && !text.starts_with('@')
                    && text.rsplit('/').next().is_some_and(|name| name.contains('.')))
        });
        if rooted && !is_url(word) {
            eval.file(word.clone(), Access::Read, false);
        }
    }
}

/// A program nobody described: operands that look like paths are read, URLs are contacted.
fn unknown(eval: &mut Eval<'_>, arguments: &[Word]) {
    for word in arguments {
        let text = word.literal().unwrap_or_default();
        let value = if is_flag(word) {
            text.split_once('=').map(|(_, value)| text_word(value, word.span))
        } else {
            Some(word.clone())
        };
        let Some(value) = value else { continue };
        if is_url(&value) {
            url(eval, &value);
        } else if looks_like_path(&value) {
            eval.file(value, Access::Read, false);
        }
    }
}

fn option_value(eval: &mut Eval<'_>, role: &str, value: &Word) {
    match role {
        "r" => eval.file(value.clone(), Access::Read, false),
        "w" => eval.file(value.clone(), Access::Write, false),
        "l" => eval.file(value.clone(), Access::List, false),
        "u" => url(eval, value),
        "h" => {
            let name = value.literal().map(|text| text.split(':').next().unwrap_or_default().to_owned());
            eval.net(name.map_or(NetTarget::Unknown, |name| host(&name, value.span)), value.span);
        }
        "@" => {
            // `-d @file`, `-F name=@file`, `-F name=<file`
            if let Some(text) = value.literal() {
                let file = text
                    .strip_prefix('@')
                    .or_else(|| text.split_once("=@").map(|(_, file)| file))
                    .or_else(|| text.split_once("=<").map(|(_, file)| file));
                if let Some(file) = file
                    .map(|file| file.split(';').next().unwrap_or_default())
                    .filter(|file| !file.is_empty() && *file != "-")
                {
                    eval.file(text_word(file, value.span), Access::Read, false);
                }
            }
        }
        _ => {}
    }
}

fn copy(eval: &mut Eval<'_>, kind: &str, operands: &[&Word], values: &[(String, Word)], tree: bool) {
    let has_target = values.iter().any(|(role, _)| role == "w");
    let (sources, target) = match operands.split_last() {
        Some((last, sources)) if !has_target && !sources.is_empty() => (sources, Some(*last)),
        _ => (operands, None),
    };
    for source in sources {
        let moves = kind == "m";
        eval.file((*source).clone(), if moves { Access::Write } else { Access::Read }, tree || moves);
        if moves {
            // Moving reads too: the content ends up elsewhere.
            eval.file((*source).clone(), Access::Read, true);
        }
    }
    if let Some(target) = target {
        eval.file(target.clone(), Access::Write, false);
    }
}

fn remote_copy(eval: &mut Eval<'_>, operands: &[&Word], tree: bool) {
    let last = operands.len().saturating_sub(1);
    for (at, word) in operands.iter().enumerate() {
        let text = word.literal().unwrap_or_default();
        if is_url(word) {
            url(eval, word);
            continue;
        }
        match text.split_once(':').filter(|(machine, _)| !machine.contains('/') && !machine.is_empty()) {
            Some((machine, _)) => eval.net(host(machine.rsplit('@').next().unwrap_or_default(), word.span), word.span),
            None => {
                eval.file((*word).clone(), if at == last { Access::Write } else { Access::Read }, tree && at != last)
            }
        }
    }
}

/// A URL operand; what has neither scheme nor dot is still a host for a fetching program.
pub fn url(eval: &mut Eval<'_>, word: &Word) {
    if word.literal().is_some_and(|text| text == "-" || text.is_empty()) {
        return;
    }
    let target = if word.parts.iter().all(|part| *part == Part::Unknown) {
        NetTarget::Unknown
    } else {
        NetTarget::Url(word.clone())
    };
    eval.net(target, word.span);
}

fn hosts(eval: &mut Eval<'_>, kind: &str, operands: &[&Word], span: Span) {
    let name = |text: &str| text.rsplit('@').next().unwrap_or_default().to_owned();
    if kind == "d" {
        for word in operands {
            let text = word.literal().unwrap_or_default();
            if text.contains('.') || text.starts_with('@') {
                eval.net(host(&name(&text), word.span), word.span);
            } else if word.literal().is_none() {
                eval.net(NetTarget::Unknown, word.span);
            }
        }
        return;
    }
    let _ = span;
    if let Some(word) = operands.first() {
        let target = word.literal().filter(|text| text.parse::<u16>().is_err());
        match target {
            Some(text) if is_url(word) => eval.net(NetTarget::Url(text_word(&text, word.span)), word.span),
            Some(text) => eval.net(host(&name(&text), word.span), word.span),
            None if word.literal().is_none() => eval.net(NetTarget::Unknown, word.span),
            None => {}
        }
    }
}

/// `TCP:host:port`, `OPEN:file`, `EXEC:cmd`.
fn socat(eval: &mut Eval<'_>, word: &Word) {
    let Some(text) = word.literal() else { return };
    let mut parts = text.split([':', ',']);
    let kind = parts.next().unwrap_or_default().to_uppercase();
    let rest = parts.next().unwrap_or_default();
    match kind.as_str() {
        "EXEC" | "SYSTEM" => eval.code(&text_word(rest, word.span), None, "socat"),
        "OPEN" | "FILE" | "GOPEN" => eval.file(text_word(rest, word.span), Access::Read, false),
        "CREATE" => eval.file(text_word(rest, word.span), Access::Write, false),
        kind if (kind.starts_with("TCP")
            || kind.starts_with("UDP")
            || kind.starts_with("OPENSSL")
            || kind.starts_with("SSL"))
            && !kind.contains("LISTEN") =>
        {
            eval.net(host(rest, word.span), word.span);
        }
        _ => {}
    }
}

fn dd(eval: &mut Eval<'_>, arguments: &[Word]) {
    for word in arguments {
        let text = word.literal().unwrap_or_default();
        if let Some(file) = text.strip_prefix("if=") {
            eval.file(text_word(file, word.span), Access::Read, false);
        } else if let Some(file) = text.strip_prefix("of=") {
            eval.file(text_word(file, word.span), Access::Write, false);
        }
    }
}

/// `scheme://…`
pub fn is_url(word: &Word) -> bool {
    let text: String = word
        .parts
        .iter()
        .map(|part| match part {
            Part::Text(text) | Part::Glob(text) => text.as_str(),
            Part::Unknown => "",
        })
        .collect();
    text.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    })
}

/// Whether a bare operand is likely a path: it has a slash, begins with `.` or `~`, or ends in an extension.
pub fn looks_like_path(word: &Word) -> bool {
    let Some(text) = word.literal() else {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_stands_in_the_table_once() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('|'));
        let mut names: Vec<&str> = lines.flat_map(|(names, _)| names.trim().split(',')).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
