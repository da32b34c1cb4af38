//! Code that git runs: in its configuration, in the options that take a command.

use writ_core::Span;

use crate::action::{Access, NetTarget, UnresolvedKind};
use crate::eval::Eval;
use crate::eval::input::Input;
use crate::programs::operands::git;
use crate::shape::{host, is_flag, joined, text_word};
use crate::word::Word;

/// Settings whose value is a command.
const COMMANDS: [&str; 14] = [
    "core.pager",
    "core.editor",
    "core.sshcommand",
    "core.fsmonitor",
    "core.askpass",
    "core.gitproxy",
    "core.alternaterefscommand",
    "sequence.editor",
    "credential.helper",
    "gpg.program",
    "gpg.ssh.defaultkeycommand",
    "diff.external",
    "interactive.difffilter",
    "sendemail.smtpserver",
];
/// How the names of settings end whose value is a command.
const COMMAND_ENDINGS: [&str; 14] = [
    ".clean",
    ".smudge",
    ".process",
    ".textconv",
    ".command",
    ".driver",
    ".cmd",
    ".helper",
    ".program",
    ".uploadpack",
    ".receivepack",
    ".packobjectshook",
    ".sendmailcmd",
    ".vcs",
];
/// Settings that lead git to other settings or hooks.
const STEERING: [&str; 4] = ["core.hookspath", "protocol.ext.allow", "include.path", "init.templatedir"];

/// Follows what an invocation of git makes it run besides itself.
pub fn run(eval: &mut Eval<'_>, arguments: &[Word]) {
    for (at, word) in arguments.iter().enumerate() {
        let Some(text) = word.literal() else { continue };
        let rest = arguments.get(at + 1..).unwrap_or_default();
        match text.as_str() {
            "-c" | "--config" => {
                let none = |value: &&Word| value.literal().is_some_and(|text| is_without_hooks(&text));
                rest.first().filter(|value| !none(value)).into_iter().for_each(|value| setting(eval, value, arguments));
            }
            "config" => match configured(rest) {
                Some(value) => setting(eval, &value, arguments),
                None => open_setting(eval, rest),
            },
            "--config-env" | "--exec-path" | "--template" if !rest.is_empty() => variable_unresolved(eval, &text, word),
            "run" if before(arguments, at).as_deref() == Some("bisect") && !rest.is_empty() => {
                eval.inner(rest.to_vec(), &[], "git", word.span, &Input::None);
            }
            "foreach" => {
                let words: Vec<Word> = rest.iter().filter(|word| !is_flag(word)).cloned().collect();
                if !words.is_empty() {
                    eval.code(&joined(&words, word.span), None, "git submodule foreach");
                }
            }
            text if text.starts_with("ext::") => {
                eval.unresolved(UnresolvedKind::Code, "git ext::", word.span);
                eval.net(NetTarget::Unknown, word.span);
            }
            text => {
                let (name, value) = text.split_once('=').unwrap_or_default();
                match name {
                    "--config-env" | "--exec-path" | "--template" => variable_unresolved(eval, name, word),
                    "--config" => setting(eval, &text_word(value, word.span), arguments),
                    _ => {}
                }
            }
        }
    }
}

/// A file of git's settings: what it makes git run and contact.
pub fn settings(eval: &mut Eval<'_>, text: &str, span: Span) {
    let mut section = String::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        let rest = match line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            Some((head, rest)) => {
                section = head.replace([' ', '\t'], ".").replace('"', "").replace("..", ".");
                rest.trim()
            }
            None => line,
        };
        if let Some((name, value)) = rest.split_once('=') {
            let value = value.trim().trim_matches('"');
            setting(eval, &text_word(&format!("{section}.{}={value}", name.trim()), span), &[]);
        }
    }
}

fn variable_unresolved(eval: &mut Eval<'_>, what: &str, word: &Word) {
    eval.unresolved(UnresolvedKind::Environment, &format!("git {what}"), word.span);
}

fn before(arguments: &[Word], at: usize) -> Option<String> {
    arguments.get(at.checked_sub(1)?)?.literal()
}

/// `git config [set] NAME VALUE` as `NAME=VALUE`.
fn configured(rest: &[Word]) -> Option<Word> {
    let (name, value) = name_and_value(rest)?;
    Some(text_word(&format!("{}={}", name.literal()?, value.literal()?), value.span))
}

fn name_and_value(rest: &[Word]) -> Option<(&Word, &Word)> {
    let verb = |word: &&Word| matches!(word.literal().as_deref(), Some("set" | "--add" | "--replace-all"));
    let mut plain = rest.iter().filter(|word| !is_flag(word)).skip_while(verb);
    Some((plain.next()?, plain.next()?))
}

/// A setting of which something is not known: it may be what git runs, or where it goes.
fn open_setting(eval: &mut Eval<'_>, rest: &[Word]) {
    let asks = |word: &Word| {
        word.literal().is_some_and(|text| text.starts_with("--get") || text.starts_with("--unset") || text == "get")
    };
    let Some((name, value)) = name_and_value(rest).filter(|_| !rest.iter().any(asks)) else { return };
    let known = name.literal().map(|name| name.to_lowercase());
    match known.as_deref() {
        Some(name) if is_address(name) || name.ends_with(".insteadof") || name.ends_with(".pushinsteadof") => {
            eval.net(NetTarget::Unknown, value.span);
        }
        Some(name) if !is_code(name) && !steers(name) && !name.starts_with("alias.") => {}
        _ => eval.unresolved(UnresolvedKind::Code, "git config", value.span),
    }
}

/// Whether a setting's value is a command.
fn is_code(name: &str) -> bool {
    COMMANDS.contains(&name)
        || name.starts_with("pager.")
        || (COMMAND_ENDINGS.iter().any(|ending| name.ends_with(ending)) && !name.starts_with("credential"))
}

/// `core.hooksPath=/dev/null` for one command: it runs none.
fn is_without_hooks(text: &str) -> bool {
    text.split_once('=')
        .is_some_and(|(name, value)| name.eq_ignore_ascii_case("core.hookspath") && value == "/dev/null")
}

/// Whether a setting leads git to other settings or hooks.
fn steers(name: &str) -> bool {
    STEERING.contains(&name) || name.starts_with("includeif.")
}

/// Whether a setting's value is where git goes.
fn is_address(name: &str) -> bool {
    name.ends_with(".proxy")
        || (name.starts_with("remote.") && name.ends_with("url"))
        || (name.starts_with("submodule.") && name.ends_with(".url"))
        || (name.starts_with("branch.") && name.ends_with("remote"))
        || name == "remote.pushdefault"
}

/// `NAME=VALUE`, where the value may be a command, a host or a file.
fn setting(eval: &mut Eval<'_>, word: &Word, arguments: &[Word]) {
    let Some(text) = word.literal() else {
        return eval.unresolved(UnresolvedKind::Code, "git -c", word.span);
    };
    // A name may hold `=` itself: `url.https://x/?a=b.insteadOf=…`.
    let Some((name, value)) = text.split_once('=') else { return };
    let name = name.to_lowercase();
    let credential = name.starts_with("credential");
    let runs = is_code(&name);
    let updates = name.starts_with("submodule.") && name.ends_with(".update");
    match value.strip_prefix('!') {
        Some(code) if name.starts_with("alias.") || credential || updates => {
            eval.code(&text_word(code, word.span), None, "git -c");
        }
        None if name.starts_with("alias.") => alias(eval, name.trim_start_matches("alias."), value, word, arguments),
        _ if runs => eval.code(&text_word(value, word.span), None, "git -c"),
        _ if steers(&name) => {
            variable_unresolved(eval, &format!("-c {name}"), word);
        }
        _ => place(eval, &name, value, word),
    }
}

/// What an alias stands for, with what follows its name.
fn alias(eval: &mut Eval<'_>, name: &str, value: &str, word: &Word, arguments: &[Word]) {
    eval.aliases.insert(format!("git {name}"), value.to_owned());
    let words: Vec<&str> = value.split_whitespace().collect();
    let used = arguments.iter().position(|word| word.literal().is_some_and(|text| text.to_lowercase() == name));
    let rest = used.and_then(|at| arguments.get(at + 1..)).unwrap_or_default();
    git::as_git(eval, &words, rest, word.span);
}

/// A setting that names a host or a file.
fn place(eval: &mut Eval<'_>, name: &str, value: &str, word: &Word) {
    let url = |text: &str| NetTarget::Url(text_word(text, word.span));
    let instead = name.strip_suffix(".insteadof").or_else(|| name.strip_suffix(".pushinsteadof"));
    if let Some(base) = instead.and_then(|name| name.strip_prefix("url.")) {
        match base.split_once("://") {
            Some(_) => eval.net(url(base), word.span),
            None => remote_path(eval, base, word),
        }
    } else if is_address(name) {
        match value.split_once("://") {
            Some(_) => eval.net(url(value), word.span),
            None if name.ends_with(".proxy") && !value.is_empty() => {
                eval.net(host(value.split(':').next().unwrap_or_default(), word.span), word.span);
            }
            None => remote_path(eval, value, word),
        }
    } else if name.ends_with("file") || name.ends_with("path") || name == "core.worktree" {
        eval.file(text_word(value, word.span), Access::Read, false);
    }
}

/// `user@host:path`
fn remote_path(eval: &mut Eval<'_>, text: &str, word: &Word) {
    if let Some((machine, _)) = text.split_once(':').filter(|(machine, _)| !machine.contains('/')) {
        eval.net(host(machine.rsplit('@').next().unwrap_or_default(), word.span), word.span);
    }
}
