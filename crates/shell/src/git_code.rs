//! Code that git runs: in its configuration, in the options that take a command.

use crate::action::{UnresolvedKind, Word};
use crate::command::{is_flag, joined, text_word};
use crate::eval::{Eval, Input};

/// Settings whose value is a command.
const COMMANDS: [&str; 11] = [
    "core.pager",
    "core.editor",
    "core.sshcommand",
    "core.fsmonitor",
    "core.askpass",
    "core.gitproxy",
    "sequence.editor",
    "credential.helper",
    "gpg.program",
    "diff.external",
    "interactive.difffilter",
];
/// How the names of settings end whose value is a command.
const COMMAND_ENDINGS: [&str; 9] =
    [".clean", ".smudge", ".process", ".textconv", ".command", ".driver", ".cmd", ".helper", ".program"];

/// Follows what an invocation of git makes it run besides itself.
pub fn run(eval: &mut Eval<'_>, arguments: &[Word]) {
    for (at, word) in arguments.iter().enumerate() {
        let Some(text) = word.literal() else { continue };
        let rest = arguments.get(at + 1..).unwrap_or_default();
        match text.as_str() {
            "-c" | "--config" => rest.first().into_iter().for_each(|value| setting(eval, value)),
            "config" => configured(rest).iter().for_each(|value| setting(eval, value)),
            "-x" | "--exec" if arguments.iter().any(|word| word.literal().as_deref() == Some("rebase")) => {
                rest.first().into_iter().for_each(|code| eval.code(code, None, "git rebase --exec"));
            }
            "run" if before(arguments, at).as_deref() == Some("bisect") && !rest.is_empty() => {
                eval.inner(rest.to_vec(), &[], "git", word.span, &Input::None);
            }
            "foreach" => {
                let words: Vec<Word> = rest.iter().filter(|word| !is_flag(word)).cloned().collect();
                if !words.is_empty() {
                    eval.code(&joined(&words, word.span), None, "git submodule foreach");
                }
            }
            text if text.starts_with("ext::") => eval.unresolved(UnresolvedKind::Code, "git ext::", word.span),
            text => {
                let runs = ["--upload-pack=", "--receive-pack=", "--exec="];
                if let Some(code) = runs.iter().find_map(|option| text.strip_prefix(option)) {
                    eval.code(&text_word(code, word.span), None, "git");
                }
            }
        }
    }
}

fn before(arguments: &[Word], at: usize) -> Option<String> {
    arguments.get(at.checked_sub(1)?)?.literal()
}

/// `git config NAME VALUE` as `NAME=VALUE`.
fn configured(rest: &[Word]) -> Option<Word> {
    let mut plain = rest.iter().filter(|word| !is_flag(word));
    let (name, value) = (plain.next()?, plain.next()?);
    Some(text_word(&format!("{}={}", name.literal()?, value.literal()?), value.span))
}

/// `NAME=VALUE`, where the value may be a command.
fn setting(eval: &mut Eval<'_>, word: &Word) {
    let Some(text) = word.literal() else {
        return eval.unresolved(UnresolvedKind::Code, "git -c", word.span);
    };
    let Some((name, value)) = text.split_once('=') else { return };
    let name = name.to_lowercase();
    let credential = name.starts_with("credential");
    let runs = COMMANDS.contains(&name.as_str())
        || name.starts_with("pager.")
        || (COMMAND_ENDINGS.iter().any(|ending| name.ends_with(ending)) && !credential);
    match value.strip_prefix('!') {
        Some(code) if name.starts_with("alias.") || credential => {
            eval.code(&text_word(code, word.span), None, "git -c");
        }
        _ if runs => eval.code(&text_word(value, word.span), None, "git -c"),
        _ if name == "core.hookspath" || name == "protocol.ext.allow" => {
            eval.unresolved(UnresolvedKind::Environment, &format!("git -c {name}"), word.span);
        }
        _ => {}
    }
}
