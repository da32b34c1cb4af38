//! Programs that only read: none of them changes what a file holds.

use crate::action::Command;
use crate::word::Word;

/// Programs that only read, and end by themselves.
const READ_ONLY: [&str; 38] = [
    "[",
    "[[",
    ":",
    "basename",
    "cat",
    "cd",
    "column",
    "cut",
    "date",
    "diff",
    "dirname",
    "du",
    "echo",
    "file",
    "grep",
    "egrep",
    "fgrep",
    "head",
    "jq",
    "ls",
    "mapfile",
    "md5sum",
    "nl",
    "patch",
    "printf",
    "pwd",
    "read",
    "readarray",
    "rg",
    "set",
    "sha256sum",
    "sort",
    "stat",
    "tail",
    "test",
    "true",
    "uniq",
    "wc",
];

/// Subcommands of git that only read.
const GIT_READ_ONLY: [&str; 10] =
    ["status", "diff", "log", "show", "rev-parse", "ls-files", "blame", "describe", "branch", "apply"];

/// Whether a command changes nothing, and ends by itself.
pub fn is_read_only(command: &Command) -> bool {
    let words: Vec<String> = command.words.iter().filter_map(Word::literal).collect();
    let Some((name, arguments)) = words.split_first() else { return false };
    let operand = arguments.iter().find(|text| !text.starts_with('-'));
    let has = |flag: &str| arguments.iter().any(|text| text == flag);
    match name.as_str() {
        "git" => operand.is_some_and(|sub| {
            GIT_READ_ONLY.contains(&sub.as_str())
                && (sub != "apply" || has("--check") || has("--stat") || has("--numstat"))
        }),
        "patch" => has("--dry-run"),
        // What it runs is a command of its own.
        "xargs" => true,
        name => READ_ONLY.contains(&name),
    }
}
