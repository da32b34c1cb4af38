//! Programs that run code: shells, whose code is followed, and other languages, whose code is not.

use writ_core::Span;

use crate::action::{Access, Part, UnresolvedKind, Word};
use crate::command::{is_flag, text_word};
use crate::eval::{Eval, Input};
use crate::foreign::mentions;
use crate::{awk, sed};

const SHELLS: [&str; 9] = ["sh", "bash", "zsh", "dash", "ksh", "ash", "mksh", "fish", "rbash"];

/// Interpreters: a beginning of their names and the options that take inline code.
const LANGUAGES: &[(&str, &[&str])] = &[
    ("python", &["-c"]),
    ("pypy", &["-c"]),
    ("perl", &["-e", "-E", "-ne", "-pe", "-ie", "-pie", "-lne", "-lpe", "-le", "-lane", "-ane", "-nE", "-0777"]),
    ("ruby", &["-e", "-ne", "-pe"]),
    ("node", &["-e", "-p", "--eval", "--print", "-pe"]),
    ("nodejs", &["-e", "-p", "--eval", "--print"]),
    ("bun", &["-e", "--eval", "-p", "--print"]),
    ("deno", &["eval"]),
    ("php", &["-r", "-B", "-R", "-E"]),
    ("lua", &["-e"]),
    ("luajit", &["-e"]),
    ("Rscript", &["-e"]),
    ("julia", &["-e", "-E"]),
    ("osascript", &["-e"]),
    ("elixir", &["-e"]),
    ("erl", &["-eval"]),
    ("ghc", &["-e"]),
    ("groovy", &["-e"]),
    ("scala", &["-e"]),
    ("tclsh", &[]),
    ("expect", &["-c"]),
    ("pwsh", &["-c", "-Command", "-EncodedCommand"]),
    ("powershell", &["-c", "-Command", "-EncodedCommand"]),
    ("emacs", &["--eval", "-eval"]),
    ("vim", &["-c", "+"]),
    ("vi", &["-c"]),
    ("nvim", &["-c"]),
    ("ex", &["-c"]),
];

/// Deals with an interpreter. False when `base` is none, or it only runs a plain operand of another kind.
pub fn run(eval: &mut Eval<'_>, base: &str, arguments: &[Word], span: Span, input: &Input) -> bool {
    if SHELLS.contains(&base) {
        shell(eval, base, arguments, span, input);
        return true;
    }
    match base {
        "awk" | "gawk" | "mawk" | "nawk" => awk::run(eval, base, arguments, input),
        "sed" | "gsed" | "ssed" => sed::run(eval, base, arguments, span, input),
        "git" => crate::git_code::run(eval, arguments),
        "tar" | "bsdtar" | "gtar" => tar(eval, arguments),
        "rsync" => option_code(eval, arguments, &["-e", "--rsh"], base),
        "make" | "gmake" => option_code(eval, arguments, &["--eval"], base),
        "psql" | "sqlite3" | "mysql" | "ed" => client(eval, base, arguments, input),
        _ => {}
    }
    let version = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let Some((name, flags)) = LANGUAGES.iter().find(|(name, _)| *name == version || *name == base) else {
        return false;
    };
    language(eval, base, name, flags, arguments, span, input)
}

fn shell(eval: &mut Eval<'_>, base: &str, arguments: &[Word], span: Span, input: &Input) {
    let mut at = 0;
    let mut code = false;
    let mut reads_input = false;
    while let Some(word) = arguments.get(at) {
        let Some(text) = word.literal() else { break };
        match text.as_str() {
            "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file" => {
                if text.starts_with("--")
                    && let Some(file) = arguments.get(at + 1)
                {
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
            long if long.starts_with("--") => {}
            short if short.starts_with(['-', '+']) => {
                code |= short.starts_with('-') && short.contains('c');
                reads_input |= short.contains('s');
                if short.ends_with('o') {
                    at += 1;
                }
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
        Some(file) if !reads_input => script(eval, file, base, input),
        _ => feed(eval, base, span, input),
    }
}

/// A shell that reads its code from standard input.
fn feed(eval: &mut Eval<'_>, base: &str, span: Span, input: &Input) {
    match input {
        Input::None => {}
        Input::Text(text) => eval.code(&text_word(text, span), None, base),
        Input::Paths(..) | Input::Unknown => eval.unresolved(UnresolvedKind::Script, &format!("| {base}"), span),
    }
}

/// A script file: read, not looked into. What is no file at all is code that is not known.
pub fn script(eval: &mut Eval<'_>, file: &Word, what: &str, input: &Input) {
    match file.literal().as_deref() {
        Some("/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") => feed(eval, what, file.span, input),
        Some(path) if path.starts_with("/dev/fd/") || path.starts_with("/proc/") => {
            eval.unresolved(UnresolvedKind::Script, &format!("{what} <(…)"), file.span);
        }
        _ => {
            eval.file(file.clone(), Access::Read, false);
            eval.file(file.clone(), Access::Exec, false);
        }
    }
}

/// Subcommands of `deno` and `bun`, behind which a script may stand.
const RUNNER_WORDS: [&str; 15] = [
    "run", "test", "install", "add", "x", "fmt", "lint", "build", "check", "task", "create", "init", "remove",
    "update", "pm",
];

fn language(
    eval: &mut Eval<'_>,
    base: &str,
    name: &str,
    flags: &[&str],
    arguments: &[Word],
    span: Span,
    input: &Input,
) -> bool {
    let editor = matches!(name, "vim" | "vi" | "nvim" | "ex" | "emacs");
    for (at, word) in arguments.iter().enumerate() {
        let text = word.literal().unwrap_or_default();
        if let Some(glued) = takes_code(name, flags, &text) {
            let code = if glued { Some(word) } else { arguments.get(at + 1).or(Some(word)) };
            if editor && code.and_then(Word::literal).is_some_and(|code| only_edits(&code)) {
                continue;
            }
            let mentions = code.map(mentions).unwrap_or_default();
            eval.unresolved_with(UnresolvedKind::Code, &format!("{base} {text}"), word.span, mentions);
            return !editor;
        }
        if !is_flag(word) && text != "-" {
            break;
        }
        if matches!(name, "python" | "pypy") && text.starts_with("-m") {
            return true;
        }
    }
    if editor {
        return false;
    }
    match arguments.iter().find(|word| !is_flag(word)) {
        Some(word)
            if matches!(name, "deno" | "bun")
                && word.literal().is_some_and(|text| RUNNER_WORDS.contains(&text.as_str())) =>
        {
            let file = arguments.iter().filter(|word| !is_flag(word)).nth(1);
            if let Some(file) = file.filter(|file| file.literal().is_some_and(|text| text.contains('.'))) {
                script(eval, file, base, &Input::None);
            }
        }
        Some(word) if word.literal().as_deref() != Some("-") => {
            script(eval, word, base, &Input::None);
            let rest = arguments.iter().skip_while(|other| *other != word).skip(1).filter(|word| !is_flag(word));
            for operand in rest.filter(|word| crate::operands::looks_like_path(word)) {
                eval.file(operand.clone(), Access::Read, false);
            }
        }
        _ => code_from_input(eval, base, arguments, span, input),
    }
    true
}

/// Whether an option is one that takes code; true inside when the code is glued to it.
fn takes_code(name: &str, flags: &[&str], text: &str) -> Option<bool> {
    let short = text.starts_with('-') && !text.starts_with("--");
    let glued = !name.starts_with("pwsh")
        && short
        && flags.iter().any(|flag| flag.len() == 2 && *flag != "-p" && text.starts_with(flag) && text.len() > 2);
    let clustered = match name {
        "perl" | "ruby" => short && text.ends_with(['e', 'E']),
        "python" => short && text.ends_with('c'),
        _ => false,
    };
    let long = flags.iter().any(|flag| flag.starts_with("--") && text.starts_with(&format!("{flag}=")));
    (flags.contains(&text) || glued || clustered || long).then_some(glued)
}

/// Whether an editor's command leaves the shell alone.
fn only_edits(code: &str) -> bool {
    !code.contains('!') && !code.contains("system") && !code.contains("shell")
}

/// Code on standard input.
fn code_from_input(eval: &mut Eval<'_>, base: &str, arguments: &[Word], span: Span, input: &Input) {
    let asks_only = || {
        let informs = ["--version", "-V", "-v", "--help", "-h"];
        arguments.iter().any(|word| word.literal().is_some_and(|text| informs.contains(&text.as_str())))
    };
    match input {
        Input::None => {}
        Input::Text(text) => {
            let mentions = mentions(&text_word(text, span));
            eval.unresolved_with(UnresolvedKind::Code, &format!("{base} <input"), span, mentions);
        }
        Input::Paths(..) | Input::Unknown if asks_only() => {}
        Input::Paths(..) | Input::Unknown => eval.unresolved(UnresolvedKind::Code, &format!("| {base}"), span),
    }
}

fn tar(eval: &mut Eval<'_>, arguments: &[Word]) {
    for (at, word) in arguments.iter().enumerate() {
        let text = word.literal().unwrap_or_default();
        let code = [
            "--to-command=",
            "--checkpoint-action=exec=",
            "--use-compress-program=",
            "--rmt-command=",
            "--rsh-command=",
            "--info-script=",
            "--new-volume-script=",
        ]
        .iter()
        .find_map(|option| text.strip_prefix(option).map(str::to_owned));
        let next = |eval: &mut Eval<'_>| {
            if let Some(code) = arguments.get(at + 1) {
                let text = code.literal().unwrap_or_default();
                let body = text.strip_prefix("exec=").unwrap_or(&text).to_owned();
                eval.code(&text_word(&body, code.span), None, "tar");
            }
        };
        if let Some(code) = code {
            eval.code(&text_word(&code, word.span), None, "tar");
        } else if matches!(
            text.as_str(),
            "--to-command" | "--checkpoint-action" | "--use-compress-program" | "-I" | "-F"
        ) {
            next(eval);
        }
    }
}

fn option_code(eval: &mut Eval<'_>, arguments: &[Word], options: &[&str], what: &str) {
    for (at, word) in arguments.iter().enumerate() {
        let text = word.literal().unwrap_or_default();
        if options.contains(&text.as_str()) {
            if let Some(code) = arguments.get(at + 1) {
                eval.code(code, None, what);
            }
        } else if let Some(code) = options.iter().find_map(|option| text.strip_prefix(&format!("{option}="))) {
            eval.code(&text_word(code, word.span), None, what);
        }
    }
}

/// Database clients and `ed`: `\! cmd`, `.shell cmd`, `!cmd`.
fn client(eval: &mut Eval<'_>, base: &str, arguments: &[Word], input: &Input) {
    let escapes = |text: &str| {
        text.contains("\\!")
            || text.contains(".shell")
            || text.contains(".system")
            || text.contains("system ")
            || (base == "ed" && text.contains('!'))
    };
    for word in arguments {
        if word.literal().is_some_and(|text| escapes(&text)) {
            eval.unresolved(UnresolvedKind::Code, base, word.span);
        }
    }
    if let Input::Text(text) = input
        && escapes(text)
        && let Some(word) = arguments.first()
    {
        eval.unresolved(UnresolvedKind::Code, base, word.span);
    }
}

/// A word for people, unknown parts as `…`.
pub fn shown(word: &Word) -> String {
    word.parts
        .iter()
        .map(|part| match part {
            Part::Text(text) | Part::Glob(text) => text.as_str(),
            Part::Unknown => "…",
        })
        .collect()
}
