//! Heuristics: signs of danger in what no rule knows (R36): verbs, statements without a client, code that is put together while it runs.
//!
//! Owns what may be said of a program by its words alone. A sign never says what would be lost, only that something would.

mod secrets;

use writ_shell::{Command, Word};

use crate::rules::Subject;

pub use secrets::{is_secret, lists_environment, own_keys, prints_secret, sends_input};

/// Words that take something away wherever they are the verb.
const VERBS: [&str; 19] = [
    "delete",
    "remove",
    "rm",
    "rmr",
    "reset",
    "revoke",
    "unlink",
    "deleteall",
    "destroy",
    "purge",
    "drop",
    "wipe",
    "erase",
    "teardown",
    "terminate",
    "nuke",
    "obliterate",
    "delete-all",
    "destroy-all",
];
/// Words that a line without any of them can hardly do harm with, even if it is no shell program.
const HARMFUL: [&str; 58] = [
    "rm",
    "rmdir",
    "del",
    "rd",
    "ri",
    "rf",
    "dd",
    "mkfs",
    "shred",
    "srm",
    "wipe",
    "wipefs",
    "delete",
    "destroy",
    "drop",
    "truncate",
    "purge",
    "erase",
    "format",
    "remove",
    "uninstall",
    "prune",
    "reset",
    "clean",
    "force",
    "hard",
    "kill",
    "killall",
    "pkill",
    "shutdown",
    "reboot",
    "halt",
    "poweroff",
    "chmod",
    "chown",
    "sudo",
    "su",
    "doas",
    "eval",
    "exec",
    "sh",
    "bash",
    "zsh",
    "iex",
    "invoke",
    "base64",
    "nc",
    "ncat",
    "ssh",
    "scp",
    "crontab",
    "mv",
    "dev",
    "etc",
    "revoke",
    "disable",
    "stop",
    "clear",
];

/// How the statements begin that [`is_statement`] knows.
const STATEMENTS: [&str; 17] = [
    "FLUSHALL", "FLUSHDB", "DELETE", "MERGE", "UPDATE", "ALTER", "GRANT", "REVOKE", "SELECT", "EXPLAIN", "TRUNCATE",
    "PREPARE", "COPY", "RESET", "DROP", "CREATE", "WITH",
];

/// Whether a program's first words name a deletion: `tool delete x`, `tool apps:destroy`, `tool delete-index`.
pub fn names_deletion(command: &Command) -> bool {
    let words: Vec<String> = command.words.iter().skip(1).map_while(Word::literal).collect();
    if words.iter().any(|word| matches!(word.as_str(), "--help" | "--dry-run" | "--dryrun")) {
        return false;
    }
    words.iter().filter(|word| !word.starts_with('-')).take(3).any(|word| {
        let verb = word.rsplit(':').next().unwrap_or_default();
        // `DeleteInstance`, `deleteSite`.
        let camel =
            ["Delete", "delete", "Terminate", "terminate", "Destroy", "destroy", "Purge", "purge", "Drop"].iter().any(
                |start| verb.strip_prefix(start).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase())),
            );
        camel
            || VERBS.contains(&verb)
            || ["delete-", "destroy-", "purge-", "drop-"].iter().any(|start| verb.starts_with(start))
    })
}

/// Whether a text that is no shell program has a word that could do harm in another one.
pub fn may_harm(text: &str) -> bool {
    const STEMS: [&str; 8] = ["drop", "delet", "remov", "destroy", "shutdown", "truncat", "eras", "wip"];
    let lower = text.to_lowercase();
    STEMS.iter().any(|stem| lower.contains(stem))
        || lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| HARMFUL.contains(&word))
}

/// Whether a line is a statement for a database's own prompt.
pub fn is_statement(line: &str) -> bool {
    // Nearly every line begins with a program. A comment may stand before a statement.
    let start = line.trim_start();
    let first = start.split(|c: char| c.is_whitespace() || c == ';').next().unwrap_or_default();
    let begins = STATEMENTS.iter().any(|verb| first.eq_ignore_ascii_case(verb));
    if !begins && !start.starts_with(['-', '/', '#', ';']) {
        return false;
    }
    let upper = without_comments(line).to_uppercase();
    let words: Vec<&str> =
        upper.split(|c: char| c.is_whitespace() || c == ';').filter(|word| !word.is_empty()).collect();
    match words.as_slice() {
        ["FLUSHALL" | "FLUSHDB", ..] => words.len() < 3,
        ["DELETE", "FROM", _, ..] | ["MERGE", "INTO", ..] | ["UPDATE", _, "SET", ..] => true,
        ["ALTER", "TABLE" | "SYSTEM" | "DATABASE" | "SCHEMA", _, ..] => true,
        ["GRANT" | "REVOKE", .., "TO" | "FROM", _] => true,
        ["SELECT", .., "FROM", _] => true,
        ["SELECT", rest @ ..] => rest.contains(&"FROM"),
        ["EXPLAIN", "ANALYZE", ..] => words.len() > 3,
        ["TRUNCATE", "TABLE", _, ..] => true,
        ["TRUNCATE", _, "CASCADE"] | ["PREPARE", _, "AS", ..] | ["COPY", _, "TO" | "FROM", "PROGRAM", ..] => true,
        ["RESET", "MASTER" | "BINARY", ..] => true,
        ["TRUNCATE", name] => !name.starts_with('-') && !name.contains('.'),
        [
            "DROP" | "CREATE",
            "TABLE" | "DATABASE" | "SCHEMA" | "INDEX" | "VIEW" | "MATERIALIZED" | "ROLE" | "USER" | "TABLESPACE"
            | "KEYSPACE" | "EXTENSION" | "TRIGGER" | "FUNCTION" | "OWNED" | "SNAPSHOT" | "MODEL" | "ROW" | "UNIQUE",
            _,
            ..,
        ] => true,
        _ => false,
    }
}

/// A statement without `/* … */`.
fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        out.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, rest)| rest);
    }
    out.push_str(rest);
    out
}

/// An assignment that stops a record or a check from now on, and what it stops.
pub fn switches_off(line: &str) -> Option<&'static str> {
    const SWITCHES: [(&str, &[&str], &str); 8] = [
        ("HISTFILE=", &["", "/dev/null"], "what is run from now on leaves no record"),
        ("HISTSIZE=", &["0", "-1"], "what is run from now on leaves no record"),
        ("HISTFILESIZE=", &["0"], "what is run from now on leaves no record"),
        ("SAVEHIST=", &["0"], "what is run from now on leaves no record"),
        ("HISTCONTROL=", &["ignorespace:ignoredups:erasedups"], "what is run from now on leaves no record"),
        ("NODE_TLS_REJECT_UNAUTHORIZED=", &["0"], "whoever stands in between can read and change what is fetched"),
        ("PYTHONHTTPSVERIFY=", &["0"], "whoever stands in between can read and change what is fetched"),
        ("GIT_SSL_NO_VERIFY=", &["1", "true"], "whoever stands in between can read and change what is fetched"),
    ];
    // Nearly no line has one of these names in it.
    let words = line.split(|c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')'));
    words.filter(|word| word.contains('=')).find_map(|word| {
        SWITCHES.iter().find_map(|(name, values, why)| {
            let value = word.strip_prefix(name)?.trim_matches(['"', '\'']);
            values.contains(&value).then_some(*why)
        })
    })
}

/// Whether a command turns bytes into other text than was written, or brings back what was run before.
pub fn transforms_bytes(command: &Command) -> bool {
    let words: Vec<String> = command.words.iter().filter_map(Word::literal).collect();
    let has = |flags: &[&str]| words.iter().skip(1).any(|word| flags.contains(&word.as_str()));
    match words.first().map(|program| program.rsplit('/').next().unwrap_or_default()) {
        Some("base64" | "base32" | "gbase64") => has(&["-d", "-D", "--decode", "-di", "--d"]),
        Some("xxd") => words.iter().any(|word| word.starts_with('-') && word.contains('r')),
        Some("openssl") => has(&["-d", "-decrypt"]),
        Some("rev" | "history" | "uudecode") => true,
        _ => false,
    }
}

/// Whether code names a command that deletes; many programs call others, and few call these.
pub fn calls_deletion(subject: &Subject) -> bool {
    ["rm -", "'rm'", "\"rm\"", "mkfs", "reset --hard", "'--hard'"].iter().any(|call| subject.says(call))
}

/// Whether a command is an interpreter.
pub fn runs_code(command: &Command) -> bool {
    const INTERPRETERS: [&str; 11] =
        ["python", "python2", "python3", "node", "perl", "ruby", "php", "deno", "bun", "lua", "osascript"];
    program(command).is_some_and(|program| INTERPRETERS.contains(&program.as_str()))
}

/// Whether a command is a shell that takes its lines from somebody.
pub fn is_interactive_shell(command: &Command) -> bool {
    let shell =
        program(command).is_some_and(|program| matches!(program.as_str(), "bash" | "sh" | "zsh" | "dash" | "ksh"));
    shell && command.words.iter().skip(1).filter_map(Word::literal).any(|word| word == "-i" || word == "-il")
}

fn program(command: &Command) -> Option<String> {
    let name = command.words.first().and_then(Word::literal)?;
    Some(name.rsplit('/').next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_told_from_programs() {
        for line in ["DROP TABLE users", "delete from users;", "TRUNCATE orders", "update a set b=1", "SELECT 1 FROM a"]
        {
            assert!(is_statement(line), "{line}");
        }
        for line in
            ["truncate -s 0 a.log", "select x in a b", "drop", "update-alternatives --list", "create-react-app x"]
        {
            assert!(!is_statement(line), "{line}");
        }
    }
}
