//! Programs that take their arguments as text, in which a variable's name is nothing but a word.
//!
//! Owns the list of them. Refuses to guess: what may run an argument, compute it or hand it to something that does is not on it. Page:
//! `spec/grants.md`.

use writ_shell::{Command, Word};

/// Their arguments are patterns, texts and names of files.
const PROGRAMS: [&str; 32] = [
    "find", "grep", "egrep", "fgrep", "rg", "cat", "head", "tail", "ls", "wc", "stat", "file", "touch", "mkdir",
    "rmdir", "rm", "cp", "mv", "ln", "diff", "cmp", "basename", "dirname", "realpath", "readlink", "du", "tr", "cut",
    "tee", "cd", "echo", "printf",
];
/// Programs that may be told a name, and that run nothing of what another prints.
const BESIDE: [&str; 16] = [
    "npm", "pnpm", "yarn", "cargo", "pytest", "tsc", "true", "false", "test", "[", ":", "pwd", "sleep", "date", "uniq",
    "exit",
];
/// Options with which a program runs something, or computes a name: where they stand alone or before `=`, and cut off their value.
const RUNNING: [(&str, &[&str], &[&str]); 4] = [
    ("find", &["-exec", "-execdir", "-ok", "-okdir"], &[]),
    ("rg", &["--pre", "--hostname-bin"], &[]),
    ("git", &[], &["-O", "--open"]),
    ("printf", &[], &["-v"]),
];
/// Commands of git about messages, patterns, names and paths.
const GIT: [&str; 15] = [
    "add", "blame", "branch", "checkout", "commit", "diff", "grep", "log", "mv", "restore", "rm", "show", "status",
    "switch", "tag",
];
/// More of them that run nothing of what another prints.
const GIT_BESIDE: [&str; 3] = ["fetch", "pull", "push"];
/// Commands of GitHub's program about titles and texts.
const GITHUB: [&str; 4] = ["issue", "pr", "release", "search"];

/// What a command makes of its arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arguments {
    /// Text.
    Text,
    /// Perhaps more than text, but it runs no text of others.
    Beside,
    /// Anything.
    Any,
}

/// Of each command whether a variable's name in it is only a word. What is told may be printed, and then be code: nothing in the line may
/// be a program that could run it.
pub(super) fn only_text(commands: &[Command]) -> Vec<bool> {
    let kinds: Vec<Arguments> = commands.iter().map(arguments).collect();
    let plain = !kinds.contains(&Arguments::Any);
    kinds.into_iter().map(|kind| plain && kind == Arguments::Text).collect()
}

fn arguments(command: &Command) -> Arguments {
    let words: Vec<Option<String>> = command.words.iter().map(Word::literal).collect();
    let Some((Some(program), rest)) = words.split_first() else { return Arguments::Any };
    let name = ["/usr/bin/", "/bin/"].iter().find_map(|folder| program.strip_prefix(folder)).unwrap_or(program);
    let first = rest.iter().flatten().map(String::as_str).find(|text| !text.starts_with('-')).unwrap_or_default();
    match name {
        _ if rest.iter().flatten().any(|text| runs(name, text)) => Arguments::Any,
        "git" if GIT.contains(&subcommand(rest)) => Arguments::Text,
        "gh" if GITHUB.contains(&first) => Arguments::Text,
        _ if PROGRAMS.contains(&name) => Arguments::Text,
        "git" if GIT_BESIDE.contains(&subcommand(rest)) => Arguments::Beside,
        _ if BESIDE.contains(&name) => Arguments::Beside,
        _ => Arguments::Any,
    }
}

/// Whether a program runs something with an option, or computes a name.
fn runs(name: &str, option: &str) -> bool {
    let flag = option.split('=').next().unwrap_or_default();
    let with = |(own, alone, joined): &(&str, &[&str], &[&str])| {
        *own == name && (alone.contains(&flag) || joined.iter().any(|joined| option.starts_with(joined)))
    };
    RUNNING.iter().any(with)
}

/// The command of git, where nothing but a folder stands in front of it: `-c` may name a program.
fn subcommand(arguments: &[Option<String>]) -> &str {
    let mut texts = arguments.iter().map(|text| text.as_deref().unwrap_or_default());
    loop {
        match texts.next() {
            Some("-C") => drop(texts.next()),
            Some("--no-pager") => {}
            other => return other.unwrap_or_default(),
        }
    }
}
