//! Whether zsh would read a line differently from bash.
//!
//! Owns a recogniser, no second grammar: it looks for constructs that zsh has and bash has not, or that both have with another
//! meaning, options that users switch on (`extendedglob`) included. Invariant: a line without them does in zsh what
//! [`crate::analyze`] says, or fails there. Page: `spec/shell.md`.

mod plain;

use std::collections::HashSet;

use writ_core::Span;

use crate::action::{Command, Env};
use crate::word::Word;
use plain::{Mark, Marked};

/// Commands, modifiers and keywords that bash does not have, or that do more in zsh.
const OWN: [&str; 50] = [
    "-",
    "noglob",
    "nocorrect",
    "repeat",
    "foreach",
    "emulate",
    "setopt",
    "unsetopt",
    "zmodload",
    "autoload",
    "zstyle",
    "zcompile",
    "sched",
    "zle",
    "bindkey",
    "add-zsh-hook",
    "vared",
    "print",
    "whence",
    "where",
    "zf_rm",
    "zf_mv",
    "zf_ln",
    "zf_mkdir",
    "zf_rmdir",
    "zf_chmod",
    "zf_chown",
    "zf_chgrp",
    "zf_sync",
    "zsystem",
    "ztcp",
    "zsocket",
    "zselect",
    "zpty",
    "zparseopts",
    "zargs",
    "zmv",
    "zcp",
    "zln",
    "zed",
    "fc",
    "limit",
    "unlimit",
    "rehash",
    "pushln",
    "disable",
    "unfunction",
    "unhash",
    "private",
    "sysopen",
];
/// Parameters that mean something to zsh alone.
const PARAMETERS: [&str; 34] = [
    "functions",
    "dis_functions",
    "aliases",
    "galiases",
    "saliases",
    "commands",
    "nameddirs",
    "options",
    "parameters",
    "mapfile",
    "path",
    "fpath",
    "cdpath",
    "manpath",
    "module_path",
    "mailpath",
    "fignore",
    "argv",
    "prompt",
    "psvar",
    "watch",
    "signals",
    "NULLCMD",
    "READNULLCMD",
    "ZDOTDIR",
    "FPATH",
    "STTY",
    "HISTCHARS",
    "histchars",
    "TMPPREFIX",
    "PROMPT",
    "RPROMPT",
    "status",
    "module",
];
/// Functions that zsh calls by itself.
const HOOKS: [&str; 8] = [
    "precmd",
    "preexec",
    "chpwd",
    "periodic",
    "zshexit",
    "zshaddhistory",
    "command_not_found_handler",
    "zsh_directory_name",
];
/// Commands that change the shell they run in: at the end of a pipe that is, in zsh, the shell itself.
const CHANGING: [&str; 16] = [
    "cd", "pushd", "popd", "read", "export", "declare", "typeset", "readonly", "local", "eval", "source", ".", "set",
    "unset", "trap", "mapfile",
];

/// Longest line that is compared.
const MAX_LINE: usize = 64 << 10;

/// The first thing in `line` that zsh reads in its own way: what it is, and where.
pub fn differs_in_zsh(line: &str, env: &Env) -> Option<(&'static str, Span)> {
    if line.len() > MAX_LINE {
        return Some(("a line of this length", Span { start: 0, end: 1 }));
    }
    let marked = Marked::of(line);
    let analysis = crate::analyze(line, env);
    if let Some((_, span)) = analysis.syntax_error {
        return Some(("a line that bash does not accept", span));
    }
    let commands = analysis.commands;
    let nested = commands.iter().any(|command| matches!(name(command).as_str(), "eval" | "trap" | "source" | "."));
    let raw = nested.then(|| Marked::bare(line));
    characters(&marked)
        .or_else(|| raw.as_ref().and_then(characters))
        .or_else(|| words(&marked))
        .or_else(|| piped(&marked))
        .or_else(|| values(&marked))
        .or_else(|| commands.iter().find_map(|command| program(command, &marked)))
}

fn name(command: &Command) -> String {
    command.words.first().and_then(Word::literal).unwrap_or_default()
}

/// Constructs that show in a few neighbouring characters.
fn characters(marked: &Marked) -> Option<(&'static str, Span)> {
    for at in 0..marked.len() {
        let (c, mark) = marked.at(at);
        let found = match c {
            '$' if mark != Mark::Quoted => expansion(marked, at),
            _ if mark != Mark::Plain => None,
            '(' => paren(marked, at),
            '=' if marked.starts_word(at)
                && (marked.follows(at, |next| is_name(next) || matches!(next, '/' | '.' | '('))) =>
            {
                Some("a word that begins with `=`")
            }
            '=' if at > 1 && marked.at(at - 1).0 == '=' && !marked.starts_word(at - 1) && !marked.in_test(at) => {
                let begins = marked.follows(at, |next| is_name(next) || next == '/');
                let assigned = is_name(marked.at(at - 2).0);
                (begins && assigned).then_some("a value that begins with `=`")
            }
            '~' if marked.starts_word(at) && marked.follows(at, |next| is_name(next) || next == '[') => {
                Some("a named directory")
            }
            '^' if marked.starts_word(at)
                && marked.follows(at, |next| !next.is_whitespace())
                && !marked.in_test(at) =>
            {
                Some("a word that begins with `^`")
            }
            '<' => range(marked, at),
            '*' if marked.follows(at, |next| next == '*') && !marked.in_arithmetic(at) => Some("`**`"),
            '>' if marked.follows(at, |next| next == '!') => Some("`>!`"),
            '>' if marked.text(at + 1).starts_with(">|") || marked.text(at + 1).starts_with("&|") => Some("`>>|`"),
            _ => None,
        };
        if let Some(what) = found {
            return Some((what, marked.span(at)));
        }
    }
    None
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// `$…` in zsh's own form.
fn expansion(marked: &Marked, at: usize) -> Option<&'static str> {
    let rest = marked.text(at + 1);
    let mut chars = rest.chars();
    let flag = |c: char| matches!(c, '~' | '=' | '^' | '+');
    match chars.next()? {
        '{' => braced(rest.get(1..).unwrap_or_default()),
        c if (flag(c) || c == '#') && chars.next().is_some_and(|next| is_name(next) && !next.is_ascii_digit()) => {
            Some("an expansion with a flag")
        }
        c if is_name(c) => {
            let tail = rest.trim_start_matches(is_name);
            let mut tail = tail.chars();
            match (tail.next(), tail.next()) {
                (Some('['), Some(_)) => Some("`$name[`"),
                (Some(':'), Some(next)) if next.is_ascii_alphabetic() || next == '&' => Some("`$name:` and a letter"),
                _ => None,
            }
        }
        _ => None,
    }
}

fn braced(inner: &str) -> Option<&'static str> {
    let first = inner.chars().next()?;
    if matches!(first, '(' | '=' | '~' | '^' | '+' | ':' | '$' | '"') {
        return Some("an expansion in zsh's form");
    }
    let body = inner.trim_start_matches(['#', '!']);
    let tail = body.trim_start_matches(is_name);
    let every = tail.starts_with("[@]") || tail.starts_with("[*]");
    if tail.starts_with('[') && !every {
        return Some("an array's element");
    }
    let tail = if every { tail.get(3..).unwrap_or_default() } else { tail };
    let modifier = tail.strip_prefix(':').and_then(|rest| rest.chars().next());
    let own = modifier.is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '#' | '|' | '*' | '^' | '&'));
    own.then_some("a modifier after `:`")
}

/// A parenthesis at the end of a word is a glob's qualifier or a group there.
fn paren(marked: &Marked, at: usize) -> Option<&'static str> {
    let before = at.checked_sub(1).map(|before| marked.at(before).0)?;
    let opens = before.is_whitespace() || matches!(before, '(' | ')' | ';' | '|' | '&' | '$' | '<' | '>' | '`' | '{');
    let function = marked.text(at + 1).trim_start().starts_with(')');
    let array = before == '=' && !marked.starts_word(at - 1);
    let quiet = opens || function || array || marked.in_test(at) || marked.in_arithmetic(at);
    (!quiet).then_some("a parenthesis in a word")
}

/// `<1-9>`.
fn range(marked: &Marked, at: usize) -> Option<&'static str> {
    let rest = marked.text(at + 1).trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = rest.strip_prefix('-')?.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.starts_with('>').then_some("a range of numbers")
}

/// Constructs that show in a whole word.
fn words(marked: &Marked) -> Option<(&'static str, Span)> {
    let mut ends = true;
    for (at, word) in marked.words() {
        let found =
            if word == "}" && !ends { Some("`}` after a word") } else { extended(&word).or_else(|| assigned(&word)) };
        let defined = word.strip_suffix("()").unwrap_or_default();
        let hook = HOOKS.contains(&defined) || (defined.starts_with("TRAP") && defined.len() > 4);
        if let Some(what) =
            found.or_else(|| (hook || HOOKS.contains(&word.as_str())).then_some("a function zsh calls by itself"))
        {
            return Some((what, marked.span(at)));
        }
        ends = marked.ends_command(at + word.chars().count())
            || matches!(word.as_str(), "}" | "done" | "fi" | "esac" | "{");
    }
    None
}

/// `^`, `~` and `#` inside a word, under `extendedglob`. Git's names of commits keep theirs.
fn extended(word: &str) -> Option<&'static str> {
    let (at, sign) = word.char_indices().skip(1).find(|(_, c)| matches!(c, '^' | '~' | '#'))?;
    let (head, tail) = (word.get(..at)?, word.get(at + 1..)?);
    let hash = |text: &str| text.len() >= 7 && text.chars().all(|c| c.is_ascii_hexdigit());
    let commit =
        ["HEAD", "@", "main", "master", "develop"].contains(&head) || head.starts_with("origin/") || hash(head);
    let after_sign = head.ends_with([':', '=']) && sign == '~';
    let quiet = commit
        || word.contains("://")
        || after_sign
        || (sign == '~' && tail.is_empty())
        || head.contains(['$', '\u{1}']);
    (!quiet).then_some("a sign that `extendedglob` reads")
}

/// An assignment to an element, or to a parameter of zsh's own.
fn assigned(word: &str) -> Option<&'static str> {
    let (name, _) = word.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let plain = name.split('[').next().unwrap_or_default();
    if plain.is_empty() || !plain.chars().all(is_name) {
        return None;
    }
    let own = PARAMETERS.contains(&plain) || plain.ends_with("_functions");
    if own { Some("a parameter of zsh's own") } else { (name.len() > plain.len()).then_some("an array's element") }
}

/// The last command of a pipe runs in the shell itself: what it sets holds for what follows.
fn piped(marked: &Marked) -> Option<(&'static str, Span)> {
    for at in 0..marked.len() {
        let pipe = marked.at(at) == ('|', Mark::Plain) && !marked.follows(at, |next| next == '|');
        if !pipe || (at > 0 && marked.at(at - 1).0 == '|') {
            continue;
        }
        let rest = marked.text(at + 1);
        let first = rest.trim_start_matches('&').split_whitespace().next().unwrap_or_default();
        let plain = first.trim_end_matches([';', ')']);
        let more = rest.contains([';', '\n']) || rest.contains("&&") || rest.contains("||");
        let sets = CHANGING.contains(&plain) || assigned_name(plain).is_some();
        let group = matches!(plain, "{" | "while" | "for" | "until" | "if")
            && rest.split(|c: char| c.is_whitespace() || matches!(c, ';' | '&' | '{')).any(|word| {
                matches!(word, "cd" | "pushd" | "popd" | "export" | "eval" | "source") || assigned_name(word).is_some()
            });
        let closed = ["done", "fi", "}"].iter().any(|end| {
            rest.rsplit_once(end)
                .is_some_and(|(_, tail)| tail.contains([';', '\n', '&']) && tail.chars().any(char::is_alphanumeric))
        });
        if (sets && more) || (group && closed) {
            return Some(("the end of a pipe, which runs in the shell itself", marked.span(at)));
        }
    }
    None
}

fn assigned_name(word: &str) -> Option<&str> {
    let name = word.split_once('=')?.0;
    (!name.is_empty() && name.chars().all(is_name) && !name.starts_with(|c: char| c.is_ascii_digit())).then_some(name)
}

/// Lists, and values with space in them, come out of an unquoted `$name` in another number of words.
fn values(marked: &Marked) -> Option<(&'static str, Span)> {
    let mut wide = HashSet::new();
    for (at, word) in marked.words() {
        let Some(name) = assigned_name(&word) else { continue };
        let value = marked.original(at, word.chars().count()).split_once('=').map(|(_, value)| value.to_owned());
        let spaced = value.is_some_and(|value| !value.contains("$(") && value.contains([' ', '\t', '\n']));
        if spaced || marked.text(at + name.len() + 1).starts_with('(') {
            wide.insert(name.to_owned());
        }
    }
    for at in (0..marked.len()).filter(|at| marked.at(*at) == ('$', Mark::Plain)) {
        let rest = marked.text(at + 1);
        let inner = rest.strip_prefix('{').unwrap_or(rest);
        let end = inner.find(|c| !is_name(c)).unwrap_or(inner.len());
        let (name, tail) = (inner.get(..end).unwrap_or_default(), inner.get(end..).unwrap_or_default());
        if wide.contains(name) && !tail.starts_with("[@]") && !tail.starts_with("[*]") {
            return Some(("an unquoted list", marked.span(at)));
        }
    }
    None
}

/// Commands that mean something else there.
fn program(command: &Command, marked: &Marked) -> Option<(&'static str, Span)> {
    let program = name(command);
    let arguments: Vec<String> = command.words.iter().skip(1).filter_map(Word::literal).collect();
    let first = arguments.first().map(String::as_str).unwrap_or_default();
    let plain = |word: &str| !word.starts_with('-');
    let what = match program.as_str() {
        own if OWN.contains(&own) => "a command of zsh's own",
        "alias" if arguments.iter().any(|word| word.contains('=')) => "an alias, which zsh expands",
        "hash" if arguments.iter().any(|word| word.contains('=') || word == "-d") => "a command's place set by `hash`",
        "cd" if arguments.iter().filter(|word| plain(word)).count() > 1 => "`cd` with two operands",
        "cd" | "pushd" | "popd" if first.starts_with(['+', '-']) && first.contains(|c: char| c.is_ascii_digit()) => {
            "a folder by its number"
        }
        "set" if first.starts_with(['-', '+']) && !is_plain_set(&arguments) => "`set` with options of zsh's own",
        "echo" if !first.starts_with("-e") && arguments.iter().any(|word| word.contains('\\')) && marked.is_taken() => {
            "`echo` of a backslash"
        }
        _ => return None,
    };
    Some((what, command.span))
}

/// `set` with options that mean the same in both shells.
fn is_plain_set(arguments: &[String]) -> bool {
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next().filter(|word| *word != "--") {
        let Some(letters) = word.strip_prefix(['-', '+']) else { return true };
        if !letters.chars().all(|c| matches!(c, 'e' | 'u' | 'x' | 'v' | 'o')) {
            return false;
        }
        if letters.ends_with('o')
            && !words
                .next()
                .is_none_or(|name| matches!(name, "pipefail" | "errexit" | "nounset" | "xtrace" | "verbose"))
        {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests;
