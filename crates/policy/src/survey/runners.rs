//! Programs of a line that run what lies in the repository, or that nobody knows: under `dataFlow` they may read and send anything.
//!
//! Owns which programs do, and in which forms they only tell something. Page: `spec/flow.md`.

use writ_shell::{Analysis, Command, Word};

use super::Survey;
use crate::command::Candidate;

/// Programs that the tables know, and that run what lies in the repository.
const RUNNERS: [&str; 38] = [
    "make",
    "gmake",
    "ninja",
    "cmake",
    "meson",
    "just",
    "task",
    "rake",
    "npm",
    "npx",
    "pnpm",
    "yarn",
    "bun",
    "deno",
    "cargo",
    "go",
    "pytest",
    "tox",
    "nox",
    "poetry",
    "uv",
    "pip",
    "pre-commit",
    "gradle",
    "gradlew",
    "mvn",
    "mvnw",
    "ant",
    "sbt",
    "bundle",
    "composer",
    "dotnet",
    "docker",
    "podman",
    "terraform",
    "tofu",
    "ansible-playbook",
    "bazel",
];
/// Those that run something when they are told nothing.
const BY_THEMSELVES: [&str; 14] = [
    "make", "gmake", "ninja", "just", "task", "rake", "pytest", "tox", "nox", "gradle", "gradlew", "ant", "yarn",
    "bundle",
];
/// Those that tell their version for `-v`, and run nothing of the repository for it.
const VERSION: [&str; 9] = ["make", "gmake", "npm", "docker", "podman", "terraform", "tofu", "node", "ruby"];
/// What only tells about a program, where it stands alone: behind something else it may be meant for what runs.
const TELLS: [&str; 2] = ["--version", "--help"];
/// Interpreters, which do what a file says that they are given, and the letters of theirs that code stands behind.
const INTERPRETERS: [(&str, &str); 8] = [
    ("python", "c"),
    ("node", "ep"),
    ("ruby", "e"),
    ("perl", "eE"),
    // Lua runs a script behind its code, too.
    ("lua", ""),
    ("php", ""),
    ("Rscript", "e"),
    ("osascript", "e"),
];

/// Shells: a line that they are given is followed, a script is not.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "zsh", "ksh"];
/// What runs a script in the shell itself.
const SOURCING: [&str; 2] = ["source", "."];
/// Programs whose searches, and what they run with what they find, the analysis follows by itself.
const FOLLOWED: [&str; 3] = ["find", "fd", "fdfind"];
/// What of programs that run only tells of them, or of what they have. None is here that takes code from the repository all the same
/// (`yarn`, `pnpm` and `cargo` do, by their settings).
const TELLING: [(&str, &[&str]); 7] = [
    ("go", &["version", "env", "help"]),
    ("terraform", &["version"]),
    ("tofu", &["version"]),
    ("docker", &["ps", "images", "version", "info"]),
    ("podman", &["ps", "images", "version", "info"]),
    ("npm", &["ls", "list", "root", "prefix", "help"]),
    ("pip", &["list", "show", "freeze", "help"]),
];

/// Whether a shell is given a line first thing: `-c`, or letters with it that name no file of their own to read. `-n` alone reads a
/// script and runs nothing of it.
fn takes_a_line(shell: &Command) -> bool {
    let texts: Vec<Option<String>> = shell.words.iter().skip(1).map(Word::literal).collect();
    match texts.as_slice() {
        [Some(flag), Some(script)] if flag == "-n" => !script.starts_with(['-', '+']),
        [Some(flag), ..] => flag
            .strip_prefix('-')
            .is_some_and(|letters| letters.ends_with('c') && letters.chars().all(|c| "leuxc".contains(c))),
        _ => false,
    }
}

/// Whether an interpreter is given code in its line, before anything else that could be a script, and no module to load.
fn takes_code(interpreter: &Command, code: &str) -> bool {
    let plain = |c: char| "abBdEiIlnpqsSuvwWx".contains(c) || c.is_ascii_digit() || code.contains(c);
    let mut given = false;
    for text in interpreter.words.iter().skip(1).map(Word::literal) {
        let letters = text.as_deref().and_then(|text| text.strip_prefix('-')).filter(|letters| !letters.is_empty());
        match letters {
            Some("-input-type=module") => {}
            Some(letters) if letters.len() <= 4 && letters.chars().all(plain) => {
                given |= letters.ends_with(|last| code.contains(last));
            }
            Some(_) => return false,
            None if given => {}
            None => return false,
        }
        // The others look for options behind their code, too.
        if given && code == "c" {
            return true;
        }
    }
    given
}

/// Whether a program is only asked about itself, by an option that stands alone.
fn tells(program: &str, command: &Command) -> bool {
    let [_, option] = command.words.as_slice() else { return false };
    let option = option.literal().unwrap_or_default();
    match option.as_str() {
        "-v" => VERSION.contains(&program),
        "-V" => matches!(program, "pip" | "uv" | "poetry") || program.starts_with("python"),
        option => TELLS.contains(&option),
    }
}

fn only_tells(program: &str, first: &str) -> bool {
    TELLING.iter().any(|(own, words)| *own == program && words.contains(&first))
}

impl Survey<'_> {
    /// Programs that may read and contact whatever they like.
    pub(super) fn line_flows(&mut self, analysis: &Analysis) {
        if !self.policy.flow.any() {
            return;
        }
        if analysis.loads {
            self.may_do_anything();
        }
        for command in &analysis.commands {
            let candidate = Candidate::of(command);
            let program = candidate.program();
            let plain = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            let first = candidate.operands().next();
            let only_tells = tells(program, command)
                || first.as_ref().and_then(Option::as_deref).is_some_and(|word| only_tells(program, word));
            let interpreter = INTERPRETERS.iter().find(|(own, _)| *own == plain);
            // Of an interpreter, an option may name what it loads: `-mx`.
            let given = if interpreter.is_some() { command.words.len() > 1 } else { first.is_some() };
            let operand = (given || BY_THEMSELVES.contains(&program)) && !only_tells;
            let runs = RUNNERS.contains(&program)
                || SOURCING.contains(&program)
                || interpreter.is_some_and(|(_, code)| !takes_code(command, code));
            let known = writ_shell::program(program).is_some()
                || candidate.is_harmless()
                || BUILTINS.contains(&program)
                || SOURCING.contains(&program)
                || FOLLOWED.contains(&program)
                || SHELLS.contains(&program) && takes_a_line(command)
                || analysis.functions.contains(program);
            if !known || program.is_empty() || runs && operand {
                self.may_do_anything();
            }
        }
    }
}

/// What the shell does itself, and what only shows what is known anyway.
const BUILTINS: [&str; 22] = [
    "break", "continue", "eval", "exec", "type", "alias", "unalias", "trap", "ulimit", "umask", "jobs", "bg", "fg",
    "kill", "let", "getopts", "hash", "history", "shopt", "builtin", "command", "enable",
];
