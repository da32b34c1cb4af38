//! Commands inside the arguments of programs that nobody lists: `choom -n 0 rm -rf /`, `csh -c 'rm -rf ~'`.
//!
//! Owns where a command may begin among another's words. What is found there counts like what stands in the line itself; that
//! nothing is found says nothing.

use writ_shell::{Command, Env, Part, Word};

use super::{Findings, evaluate_within};
use crate::report::{Confidence, Metadata, Origin, Tier};
use crate::rules;
use crate::shell::files::DELETES;

/// Deepest command within a command that is looked for.
pub(super) const MAX_DEPTH: usize = 3;
/// Most places of one command, and bytes of one text, that are looked at.
const MAX_PLACES: usize = 16;
const MAX_TEXT: usize = 4096;
/// What the shell does itself, and takes nothing away.
pub(super) const BUILTINS: [&str; 27] = [
    "read",
    "wait",
    "shift",
    "break",
    "continue",
    "return",
    "exit",
    "local",
    "declare",
    "typeset",
    "readonly",
    "export",
    "unset",
    "set",
    "shopt",
    "getopts",
    "times",
    "umask",
    "ulimit",
    "alias",
    "unalias",
    "type",
    "hash",
    "let",
    "mapfile",
    "readarray",
    "jobs",
];

/// Programs that are known and run what one of their arguments says, in a way of their own.
pub(super) const RUNS: [&str; 26] = [
    "expect",
    "ansible",
    "fab",
    "tclsh",
    "wish",
    "pdsh",
    "clush",
    "knife",
    "salt",
    "plink",
    "psexec",
    "winrs",
    "dtach",
    "abduco",
    "screen",
    "tmux",
    "gdb",
    "lldb",
    "emacs",
    "guile",
    "sbcl",
    "ghci",
    "irb",
    "nomad",
    "docker-machine",
    "vagrant",
];
/// Options whose value is a text for people.
const TEXTS: [&str; 14] = [
    "-m",
    "--message",
    "--title",
    "--body",
    "--description",
    "--name",
    "--label",
    "--comment",
    "--note",
    "--text",
    "--prompt",
    "--reason",
    "--subject",
    "--grep",
];

impl Findings<'_> {
    /// Looks for commands in the arguments of a program that is not known.
    pub(super) fn nested(&mut self, command: &Command) {
        if self.depth >= MAX_DEPTH {
            return;
        }
        let mut places = 0;
        for (at, word) in command.words.iter().enumerate().skip(1) {
            let Some(text) = word.literal() else { continue };
            let named = at.checked_sub(1).and_then(|at| command.words.get(at)).and_then(Word::literal);
            let for_people = named.is_some_and(|named| TEXTS.contains(&named.as_str()));
            let line = if is_command(&text) {
                command.words.get(at..).map(quoted)
            } else if !for_people && text.len() <= MAX_TEXT && begins_with_command(&text) {
                Some(text)
            } else {
                None
            };
            let Some(line) = line else { continue };
            places += 1;
            if places > MAX_PLACES {
                return;
            }
            self.found_in(&line, command);
        }
    }

    /// `python -m twine upload`: the module's own command line.
    pub(super) fn module(&mut self, command: &Command) {
        if let Some(words) = command.words.get(2..).filter(|_| self.depth < MAX_DEPTH) {
            self.found_in(&quoted(words), command);
        }
    }

    pub(super) fn found_in(&mut self, line: &str, command: &Command) {
        let env = Env { home: self.env.home.clone(), cwd: self.env.cwd.clone(), ..Env::default() };
        let report = evaluate_within(line, &env, self.probe, self.depth + 1);
        for mut found in report.mutations {
            let counts = found.recoverability.source == Origin::Rules && found.recoverability.tier > Tier::WithEffort;
            let why = &found.recoverability.reasoning;
            if !counts || !self.seen.insert((why.clone(), command.span.start, command.span.end)) {
                continue;
            }
            found.recoverability.confidence = found.recoverability.confidence.min(Confidence::Medium);
            found.intent.metadata = Metadata { rule: found.intent.metadata.rule, ..self.span(command.span) };
            self.mutations.push(found);
        }
    }
}

/// Whether a word names a program that is known to take something away.
fn is_command(word: &str) -> bool {
    let name = rules::name_of(word);
    !word.starts_with('-')
        && !name.is_empty()
        && (DELETES.contains(&name.as_str()) || rules::of(&name).next().is_some())
}

/// Whether a text with several words begins with such a program.
fn begins_with_command(text: &str) -> bool {
    let mut words = text.split_whitespace().skip_while(|word| {
        matches!(*word, "sudo" | "exec" | "env" | "spawn" | "system" | "shell" | "!") || word.contains('=')
    });
    let first = words.next().unwrap_or_default();
    words.next().is_some() && is_command(first.trim_start_matches(['(', '{', '!']))
}

/// Words as a line that says the same; what is not known stays so.
fn quoted(words: &[Word]) -> String {
    let mut out = String::new();
    for word in words {
        for part in &word.parts {
            match part {
                Part::Text(text) => {
                    out.push('\'');
                    out.push_str(&text.replace('\'', "'\\''"));
                    out.push('\'');
                }
                Part::Glob(text) => out.push_str(text),
                Part::Unknown(_) => out.push_str("\"$_WRIT_UNKNOWN\""),
            }
        }
        if word.parts.is_empty() {
            out.push_str("''");
        }
        out.push(' ');
    }
    out
}
