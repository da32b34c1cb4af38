//! Shells, whose code is followed, and the programs whose code has a reader of its own. What other
//! interpreters run, the `runs` of their entries say.

pub(crate) mod awk;
pub(crate) mod git_code;
pub(crate) mod makefile;
pub(crate) mod sed;

use writ_core::Span;

use crate::action::{Access, UnresolvedKind};
use crate::eval::Eval;
use crate::eval::input::Input;
use crate::programs::scripts::{self, is_shell};
use crate::shape::text_word;
use crate::word::Word;

/// Deals with an interpreter. False when `base` is none, or it only runs a plain operand of another kind.
pub fn run(eval: &mut Eval<'_>, base: &str, arguments: &[Word], span: Span, input: &Input) -> bool {
    if is_shell(base) {
        shell(eval, base, arguments, span, input);
        return true;
    }
    match base {
        "awk" | "gawk" | "mawk" | "nawk" => awk::run(eval, base, arguments, input),
        "sed" | "gsed" | "ssed" => sed::run(eval, base, arguments, span, input),
        "git" => crate::programs::interpreters::git_code::run(eval, arguments),
        _ => {}
    }
    false
}

fn shell(eval: &mut Eval<'_>, base: &str, arguments: &[Word], span: Span, input: &Input) {
    let mut at = 0;
    let mut code = false;
    let mut reads_input = false;
    while let Some(word) = arguments.get(at) {
        let Some(text) = word.literal() else { break };
        match text.as_str() {
            "--rcfile" | "--init-file" => {
                if let Some(file) = arguments.get(at + 1) {
                    script(eval, file, base, input);
                }
                at += 2;
                continue;
            }
            "--" => {
                at += 1;
                break;
            }
            "-" => reads_input = true,
            "--login" => started(eval, base, true, word.span),
            long if long.starts_with("--") => {}
            short if short.starts_with(['-', '+']) => {
                code |= short.starts_with('-') && short.contains('c');
                reads_input |= short.contains('s');
                if short.contains(['i', 'l']) && short.starts_with('-') {
                    started(eval, base, short.contains('l'), word.span);
                }
                // Each takes a word of its own, wherever it stands among the letters.
                let names = short.matches(['o', 'O']).count();
                let named = arguments.get(at + 1..).unwrap_or_default().iter().take(names);
                let physical = |word: &Word| word.literal().is_none_or(|name| name == "physical");
                eval.physical |= short.contains('P') || named.into_iter().any(physical);
                at += names;
            }
            _ => break,
        }
        at += 1;
    }
    let rest = arguments.get(at..).unwrap_or_default();
    match rest.first() {
        Some(text) if code => {
            let arguments = rest.get(1..).unwrap_or_default();
            let zero = arguments.first().cloned().unwrap_or_else(|| text_word(base, span));
            let list = std::iter::once(zero).chain(arguments.iter().skip(1).cloned()).collect();
            let what = format!("{base} -c");
            eval.code(text, Some(list), &what);
        }
        Some(file) if !reads_input => script_with(eval, file, base, input, Some(rest.to_vec())),
        _ => {
            // `bash -s a b`: the code on standard input gets the arguments.
            let zero = text_word(base, span);
            run_standard_input(
                eval,
                base,
                span,
                input,
                Some(std::iter::once(zero).chain(rest.iter().cloned()).collect()),
            );
        }
    }
}

/// What a shell runs when it starts, where the agent wrote it.
fn started(eval: &mut Eval<'_>, base: &str, login: bool, span: Span) {
    let files: &[&str] = match (base, login) {
        ("zsh", _) => &[".zshenv", ".zprofile", ".zshrc", ".zlogin"],
        (_, true) => &[".bash_profile", ".bash_login", ".profile", ".bashrc"],
        (_, false) => &[".bashrc", ".shrc", ".kshrc", ".mkshrc"],
    };
    let Some(home) = eval.home() else { return };
    files.iter().for_each(|name| scripts::run_file(eval, &text_word(&format!("{home}/{name}"), span), base, None));
}

/// A shell that reads its code from standard input.
fn run_standard_input(eval: &mut Eval<'_>, base: &str, span: Span, input: &Input, arguments: Option<Vec<Word>>) {
    match input {
        Input::None => {}
        Input::Text(text) => eval.code(&text_word(text, span), arguments, base),
        Input::Partly(_) | Input::Unknown => eval.unresolved(UnresolvedKind::Script, &format!("| {base}"), span),
    }
}

/// A script file: read, not looked into. What is no file at all is code that is not known.
pub fn script(eval: &mut Eval<'_>, file: &Word, what: &str, input: &Input) {
    script_with(eval, file, what, input, None);
}

/// The same with the words that the script gets, its own name first.
fn script_with(eval: &mut Eval<'_>, file: &Word, what: &str, input: &Input, arguments: Option<Vec<Word>>) {
    match file.literal().as_deref() {
        Some("/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") => run_standard_input(eval, what, file.span, input, None),
        Some(path) if path.starts_with("/dev/fd/") || path.starts_with("/proc/") => {
            eval.unresolved(UnresolvedKind::Script, &format!("{what} <(…)"), file.span);
        }
        _ => {
            eval.file(file.clone(), Access::Read, false);
            eval.file(file.clone(), Access::Exec, false);
            scripts::run_file(eval, file, what, arguments);
        }
    }
}
