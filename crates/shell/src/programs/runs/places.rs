//! Inner commands that stand at a place of their program's own: `tmux`, `screen`, `gdb --args`, `nix run`, `cmake -E`, `make`.

use crate::action::{UnknownUseKind, UnresolvedKind};
use crate::eval::Eval;
use crate::eval::command::Place;
use crate::eval::input::Input;
use crate::options::Options;
use crate::programs::entries::words::Role;
use crate::programs::foreign::{MARK, marked, unmarked};
use crate::programs::interpreters::makefile;
use crate::programs::runs;
use crate::shape::{is_flag, joined, tail, text_word};
use crate::word::{Part, Word};

/// One word of shell code, or a command.
pub fn terminal(eval: &mut Eval<'_>, words: &[Word], place: &Place<'_>) {
    match words {
        [] => {}
        [code] => eval.code(code, None, place.base),
        _ => eval.inner(words.to_vec(), place.via, place.base, place.span, &Input::Unknown),
    }
}

/// Keys typed into a shell.
pub fn keys<'w>(eval: &mut Eval<'_>, words: impl Iterator<Item = &'w Word>, place: &Place<'_>) {
    let mut parts = Vec::new();
    for word in words {
        match word.literal().as_deref() {
            Some("Enter" | "C-m" | "C-j" | "KPEnter") => parts.push(Part::Text("\n".to_owned())),
            Some("Space") => parts.push(Part::Text(" ".to_owned())),
            Some(key)
                if key.starts_with("C-")
                    || key.starts_with("M-")
                    || matches!(
                        key,
                        "Escape" | "Tab" | "Up" | "Down" | "Left" | "Right" | "BSpace" | "q" | "y" | "n"
                    ) => {}
            _ => parts.extend(word.parts.iter().cloned()),
        }
    }
    if !parts.is_empty() {
        eval.code(&Word { parts, span: place.span }, None, place.base);
    }
}

/// tmux's commands, one behind another.
pub fn tmux(eval: &mut Eval<'_>, words: &[Word], place: &Place<'_>) {
    for command in words.split(|word| word.literal().as_deref() == Some(";")) {
        let Some((sub, rest)) = command.split_first() else { continue };
        let name = sub.literal().unwrap_or_default();
        if matches!(name.as_str(), "load-buffer" | "loadb" | "source-file" | "source" | "save-buffer" | "saveb") {
            eval.unknown_use(UnknownUseKind::Files, rest.to_vec(), place.span);
        }
        if name.starts_with("source") {
            eval.unresolved(UnresolvedKind::Code, "tmux source-file", place.span);
        }
        runs::subcommand(eval, &format!("tmux {name}"), rest, place);
    }
}

/// `screen -dmS name command`, `screen -X stuff 'keys'`.
pub fn screen(eval: &mut Eval<'_>, options: &Options, words: &[Word], place: &Place<'_>) {
    if options.has('X', "") {
        if let Some((verb, rest)) = words.split_first() {
            match verb.literal().as_deref() {
                Some("stuff") => {
                    let text = joined(rest, place.span);
                    let text = marked(&text)
                        .replace("\\n", "\n")
                        .replace("^M", "\n")
                        .replace("\\015", "\n")
                        .replace("\\r", "\n");
                    eval.code(&unmarked(&text, place.span), None, "screen");
                }
                Some("exec" | "screen") => terminal(eval, rest, place),
                Some("readbuf" | "source" | "writebuf" | "hardcopy" | "logfile") => {
                    eval.unknown_use(UnknownUseKind::Files, rest.to_vec(), place.span);
                }
                _ => {}
            }
        }
    } else if !words.is_empty() && !['r', 'x', 'R'].iter().any(|flag| options.has(*flag, "")) {
        eval.inner(words.to_vec(), place.via, place.base, place.span, &Input::Unknown);
    }
}

/// `gdb --args command`
pub fn debugger(eval: &mut Eval<'_>, arguments: &[Word], place: &Place<'_>) -> bool {
    let at = arguments.iter().position(|word| matches!(word.literal().as_deref(), Some("--args" | "-args" | "--")));
    let Some(command) = at.and_then(|at| arguments.get(at + 1..)).filter(|words| !words.is_empty()) else {
        return false;
    };
    eval.inner(command.to_vec(), place.via, place.base, place.span, place.input);
    true
}

/// `nix develop -c command…`
pub fn rest(eval: &mut Eval<'_>, arguments: &[Word], place: &Place<'_>) -> bool {
    let at = arguments.iter().position(|word| matches!(word.literal().as_deref(), Some("-c" | "--command")));
    let Some(command) = at.and_then(|at| arguments.get(at + 1..)).filter(|words| !words.is_empty()) else {
        return false;
    };
    eval.inner(command.to_vec(), place.via, place.base, place.span, place.input);
    true
}

/// `nix run nixpkgs#name -- arguments`
pub fn package(eval: &mut Eval<'_>, arguments: &[Word], place: &Place<'_>) {
    let Some(package) = arguments.iter().find(|word| !is_flag(word)) else { return };
    let Some(name) = package.literal().and_then(|text| text.split_once('#').map(|(_, name)| name.to_owned())) else {
        return;
    };
    let dashes = arguments.iter().position(|word| word.literal().as_deref() == Some("--")).unwrap_or(arguments.len());
    let rest = arguments.get(dashes + 1..).unwrap_or_default();
    let words = [&[text_word(&name, package.span)], rest].concat();
    eval.inner(words, place.via, place.base, place.span, place.input);
}

/// `cmake -E env command`, `cmake -E time command`
pub fn cmake(eval: &mut Eval<'_>, options: &Options, words: &[Word], place: &Place<'_>) -> bool {
    let Some(mode) = options.of(Role::CmakeMode).next().and_then(Word::literal) else { return false };
    let skip = match mode.as_str() {
        "env" => words
            .iter()
            .take_while(|word| is_flag(word) || word.literal().is_some_and(|text| text.contains('=')))
            .count(),
        "time" => 0,
        "chdir" => 1,
        _ => return false,
    };
    if let Some(command) = words.get(skip..).filter(|words| !words.is_empty()) {
        eval.inner(command.to_vec(), place.via, place.base, place.span, place.input);
    }
    true
}

/// `make CC='command' X='$(shell code)'`
pub fn make<'w>(eval: &mut Eval<'_>, words: impl Iterator<Item = &'w Word>) -> bool {
    for word in words {
        let text = marked(word);
        if let Some(cut) = text.find('=') {
            makefile::functions(eval, "make", &text, word.span);
            if let Some(name) = text.get(..cut).filter(|name| !name.contains(MARK)) {
                eval.unknown_use(UnknownUseKind::Text, vec![tail(word, cut + 1)], word.span);
                eval.variable_set(
                    name.trim_end_matches([':', '?', '+']),
                    &[vec![tail(word, cut + 1).parts]],
                    word.span,
                );
            }
        }
    }
    false
}
