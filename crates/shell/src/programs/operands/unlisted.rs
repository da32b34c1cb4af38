//! Operands and options whose use an entry does not tell: formatters, values that are run, settings that are set.

use writ_core::Span;

use crate::action::{Access, UnknownUseKind};
use crate::eval::Eval;
use crate::programs::entries::Uses;
use crate::programs::operands::table::Split;
use crate::programs::operands::values;
use crate::shape::{is_flag, looks_like_path, text_word};
use crate::word::Word;

/// Formatters: their files are written where an option says so, or always.
pub fn fixed(eval: &mut Eval<'_>, base: &str, split: &Split<'_>) {
    const ALWAYS: [&str; 9] =
        ["black", "isort", "autopep8", "yapf", "rustfmt", "nixfmt", "mdformat", "pyupgrade", "ocamlformat"];
    const WRITES: [&str; 12] = [
        "-w",
        "-i",
        "--write",
        "--fix",
        "--in-place",
        "--inplace",
        "--apply",
        "--autocorrect",
        "-a",
        "-A",
        "--unsafe-fixes",
        "--overwrite",
    ];
    const LOOKS: [&str; 6] = ["--check", "--diff", "-d", "-l", "--list-different", "--check-only"];
    let has = |known: &[&str]| split.flags.iter().any(|flag| known.contains(&flag.as_str()));
    let verb = split.operands.first().and_then(|word| word.literal()).unwrap_or_default();
    let writes =
        (ALWAYS.contains(&base) || has(&WRITES) || matches!(verb.as_str(), "format" | "fmt" | "fix")) && !has(&LOOKS);
    for word in split.operands.iter().filter(|word| looks_like_path(word) && word.literal().as_deref() != Some(".")) {
        eval.file((*word).clone(), if writes { Access::Write } else { Access::Read }, false);
    }
}

/// The texts of files that a program gets which does not simply read them: a process substitution, or what the agent wrote.
pub fn texts<'w>(eval: &mut Eval<'_>, words: impl Iterator<Item = &'w Word>) {
    if !eval.knows_texts() {
        return;
    }
    for word in words {
        let side = values::value_side(word);
        for file in [word, &side].into_iter().filter(|file| !is_flag(file)) {
            if let Some(text) = eval.text_known(file).filter(|text| text.len() < 64 << 10) {
                eval.unknown_use(UnknownUseKind::Text, vec![text_word(&text, word.span)], word.span);
                break;
            }
        }
    }
}

/// Options that are not listed and whose name says that their value is run: `--editor x`, `--diff-cmd x`.
pub fn running(eval: &mut Eval<'_>, program: &Uses, arguments: &[Word], span: Span) {
    const SIGNS: [&str; 25] = [
        "command",
        "cmd",
        "exec",
        "shell",
        "prog",
        "hook",
        "script",
        "editor",
        "pager",
        "browser",
        "wrapper",
        "launch",
        "linker",
        "compiler",
        "interpreter",
        "binary",
        "askpass",
        "helper",
        "viewer",
        "sendmail",
        "rsh",
        "runner",
        "run-under",
        "opener",
        "python",
    ];
    for (word, next) in arguments.iter().zip(arguments.iter().skip(1)) {
        let Some(text) = word.text().filter(|text| text.starts_with('-') && text.len() > 3 && !text.contains('='))
        else {
            continue;
        };
        let name = text.to_ascii_lowercase();
        if SIGNS.iter().any(|sign| name.contains(sign)) && !program.names(&text) && !is_flag(next) {
            eval.unknown_use(UnknownUseKind::Option, vec![next.clone()], span);
        }
    }
}

/// Settings that are set: `npm config set editor x`, `go env -w CC=x`, `sysctl kernel.core_pattern='|x'`.
pub fn assigned(eval: &mut Eval<'_>, split: &Split<'_>, span: Span) {
    let sets =
        split.operands.iter().take(3).any(|word| matches!(word.text().as_deref(), Some("set" | "config" | "env")));
    for (at, word) in split.operands.iter().enumerate() {
        let whole = word.text().unwrap_or_default();
        let value = whole.split_once('=').map(|(_, value)| value).filter(|_| sets || whole.contains('|'));
        if let Some(value) = value {
            eval.unknown_use(UnknownUseKind::Text, vec![text_word(value, span)], span);
        } else if sets && at > 1 && at + 1 == split.operands.len() {
            eval.unknown_use(UnknownUseKind::Text, vec![(*word).clone()], span);
        } else if whole.starts_with('!') && whole.len() > 1 {
            eval.unknown_use(UnknownUseKind::Option, vec![text_word(whole.trim_start_matches('!'), span)], span);
        }
    }
}
