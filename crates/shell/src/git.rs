//! `git`: which files a subcommand reads and writes, which remotes it contacts.

use writ_core::Span;

use crate::action::{Access, Word};
use crate::command::{host, is_flag, text_word};
use crate::eval::Eval;
use crate::operands::{is_url, url, value_flags};

/// Global options with a value.
pub const GLOBALS: &str = "-C -c --git-dir --work-tree --namespace --exec-path --super-prefix --config-env";

/// Puts the files and hosts of a git command on record.
pub fn run(eval: &mut Eval<'_>, arguments: &[Word], span: Span) {
    let at = value_flags(arguments, GLOBALS);
    let dir = arguments
        .iter()
        .zip(arguments.iter().skip(1))
        .take(at)
        .find(|(flag, _)| flag.literal().as_deref() == Some("-C"))
        .map(|(_, dir)| dir.clone());
    let sub = arguments.get(at).and_then(Word::literal).unwrap_or_default();
    let rest = arguments.get(at + 1..).unwrap_or_default();
    eval.in_dir(dir.as_ref(), |eval| subcommand(eval, &sub, rest, span));
}

fn subcommand(eval: &mut Eval<'_>, sub: &str, rest: &[Word], span: Span) {
    let plain: Vec<&Word> = rest.iter().filter(|word| !is_flag(word)).collect();
    let behind = rest
        .iter()
        .position(|word| word.literal().as_deref() == Some("--"))
        .map(|at| rest.get(at + 1..).unwrap_or_default());
    match sub {
        "rm" | "mv" | "restore" | "clean" => {
            plain.iter().for_each(|word| eval.file((*word).clone(), Access::Write, true))
        }
        "checkout" => behind.unwrap_or_default().iter().for_each(|word| eval.file(word.clone(), Access::Write, true)),
        "show" | "cat-file" | "diff" | "log" | "blame" | "annotate" | "grep" => {
            for word in plain {
                // `HEAD:secrets/key` reads that path, whatever the commit.
                if let Some((_, path)) =
                    word.literal().as_deref().and_then(|text| text.split_once(':')).filter(|(_, path)| !path.is_empty())
                {
                    eval.file(text_word(path, word.span), Access::Read, false);
                }
            }
            let files = behind.unwrap_or_default();
            files.iter().for_each(|word| eval.file(word.clone(), Access::Read, false));
            if sub == "blame"
                && behind.is_none()
                && let Some(file) = rest.iter().rfind(|word| !is_flag(word))
            {
                eval.file(file.clone(), Access::Read, false);
            }
        }
        "apply" | "am" | "hash-object" => plain.iter().for_each(|word| eval.file((*word).clone(), Access::Read, false)),
        "clone" => {
            if let Some(source) = plain.first() {
                remote(eval, source);
            }
            if let Some(target) = plain.get(1) {
                eval.file((*target).clone(), Access::Write, false);
            }
        }
        "push" | "fetch" | "pull" | "ls-remote" => {
            if let Some(name) = plain.first() {
                remote(eval, name);
            }
        }
        "remote" if matches!(plain.first().and_then(|word| word.literal()).as_deref(), Some("add" | "set-url")) => {
            if let Some(target) = plain.get(2) {
                remote(eval, target);
            }
        }
        "submodule" if plain.first().and_then(|word| word.literal()).as_deref() == Some("add") => {
            if let Some(target) = plain.get(1) {
                remote(eval, target);
            }
        }
        "archive" => {
            for word in rest {
                if let Some(file) = word.literal().as_deref().and_then(|text| text.strip_prefix("--output=")) {
                    eval.file(text_word(file, word.span), Access::Write, false);
                }
            }
        }
        _ => {}
    }
    let _ = span;
}

/// A remote that is spelled out: a URL, or `user@host:path`. A name like `origin` is the repository's affair.
fn remote(eval: &mut Eval<'_>, word: &Word) {
    if is_url(word) {
        return url(eval, word);
    }
    let Some(text) = word.literal() else { return };
    if let Some((machine, _)) = text
        .split_once(':')
        .filter(|(machine, _)| !machine.contains('/') && (machine.contains('@') || machine.contains('.')))
    {
        eval.net(host(machine.rsplit('@').next().unwrap_or_default(), word.span), word.span);
    } else if text.starts_with(['/', '.', '~']) {
        eval.file(word.clone(), Access::Read, true);
    }
}
