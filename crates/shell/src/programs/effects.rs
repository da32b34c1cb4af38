//! What the options and operands of particular programs run: terminals, editors, clients, makefiles.

use super::{interpreters, makefile, operands, runs};
use crate::action::{Access, GivenKind, Part, UnresolvedKind, Word};
use crate::code;
use crate::eval::command::{assign, host, is_flag, joined, text_word};
use crate::eval::{Eval, Input};
use crate::options::{Options, tail};
use crate::programs::foreign::{MARK, Script, marked, mentions, revived, script_of};
use crate::programs::runs::Place;

/// What the values of options do.
pub fn options(eval: &mut Eval<'_>, options: &Options, place: &Place<'_>) {
    for (name, role, value) in &options.values {
        let what = format!("{} {name}", place.base);
        match *role {
            "s" => eval.code(value, None, &what),
            "@" => {
                eval.remote += 1;
                eval.code(value, None, &what);
                eval.remote -= 1;
            }
            "q" => {
                if let Some(code) = value.literal().as_deref().and_then(|text| text.strip_prefix("exec=")) {
                    eval.code(&text_word(code, value.span), None, &what);
                }
            }
            // Read with the program's arguments.
            "x" if code::Language::of(place.base).is_some() => {}
            "G" => eval.given(GivenKind::Option, vec![value.clone()], value.span),
            "I" => match value.literal().filter(|text| text.starts_with("data:") || text.contains("//")) {
                Some(_) => eval.unresolved_with(UnresolvedKind::Code, &what, value.span, mentions(value)),
                None if operands::looks_like_path(value) => eval.file(value.clone(), Access::Read, false),
                None => {}
            },
            "x" => eval.unresolved_with(UnresolvedKind::Code, &what, value.span, mentions(value)),
            "v" => editor(eval, &what, value),
            "!" => client(eval, place.base, value),
            "g" => debugged(eval, place.base, value),
            "m" => makefile::text(eval, &what, value),
            "M" => match script_of(value, place.input) {
                Script::Text(text) => makefile::text(eval, &what, &text_word(&text, value.span)),
                Script::File => eval.run_file(value, "make", None),
                Script::Unknown => eval.unresolved(UnresolvedKind::Script, &what, value.span),
            },
            "f" => interpreters::script(eval, value, place.base, place.input),
            "k" => ssh_option(eval, value),
            "A" => {
                let text = marked(value);
                if let Some((_, code)) = text.split_once('=').filter(|(name, _)| name.contains("Invoke")) {
                    eval.code(&revived(code, value.span), None, &what);
                }
            }
            "c" => cargo_setting(eval, &what, value),
            "C" => {
                let code = Word {
                    parts: [&[Part::Text("cargo ".to_owned())], value.parts.as_slice()].concat(),
                    span: value.span,
                };
                eval.code(&code, None, &what);
            }
            "b" => binding(eval, &what, value),
            "a" => assign(eval, value, place.span),
            "r" => eval.file(value.clone(), Access::Read, false),
            "L" => {
                eval.file(value.clone(), Access::Read, false);
                lines(eval, place.base, &what, value);
            }
            "w" => eval.file(value.clone(), Access::Write, false),
            "P" => match value.literal().as_deref().and_then(|text| text.strip_prefix(['|', '!'])) {
                Some(code) => eval.code(&text_word(code, value.span), None, &what),
                None => eval.file(value.clone(), Access::Write, false),
            },
            "h" => {
                let machines = value.literal().unwrap_or_default();
                for machine in machines.split(',').map(|text| text.rsplit('@').next().unwrap_or_default()) {
                    eval.net(host(machine.split(':').next().unwrap_or_default(), value.span), value.span);
                }
            }
            _ => {}
        }
    }
}

/// A file of an editor's, a debugger's or a client's commands, where this line or the agent wrote it.
fn lines(eval: &mut Eval<'_>, base: &str, what: &str, file: &Word) {
    let Some(text) = eval.text_known(file) else { return };
    eval.deeper(|eval| match base {
        "gdb" | "lldb" => text.lines().for_each(|line| debugged(eval, base, &text_word(line, file.span))),
        "ex" | "vim" | "vi" | "nvim" | "view" | "gvim" | "vimdiff" | "rvim" => {
            text.lines().for_each(|line| editor(eval, what, &text_word(line, file.span)));
        }
        "psql" | "mysql" | "mariadb" | "duckdb" | "sqlite3" => client(eval, base, &text_word(&text, file.span)),
        _ => eval.given(GivenKind::Text, vec![text_word(&text, file.span)], file.span),
    });
}

/// `vim -c`: shell code behind `!`, files behind `r`, `w`, `e`.
fn editor(eval: &mut Eval<'_>, what: &str, value: &Word) {
    let text = marked(value);
    let open = |eval: &mut Eval<'_>| eval.unresolved_with(UnresolvedKind::Code, what, value.span, mentions(value));
    let ranged =
        text.trim_start_matches(|c: char| matches!(c, ':' | '%' | '$' | '.' | ',' | '\'' | ' ') || c.is_ascii_digit());
    if let Some(code) = ranged.strip_prefix('!') {
        eval.code(&revived(code, value.span), None, what);
        return open(eval);
    }
    let (verb, rest) = ranged.split_once(' ').unwrap_or((ranged, ""));
    let (verb, rest) = match verb.split_once('!') {
        Some((verb, glued)) if !glued.is_empty() => (verb, format!("!{glued} {rest}")),
        _ => (verb, rest.to_owned()),
    };
    let rest = rest.trim();
    match verb.trim_end_matches('!') {
        "r" | "re" | "read" | "w" | "write" if rest.starts_with('!') => {
            eval.code(&revived(rest.trim_start_matches('!'), value.span), None, what);
        }
        "r" | "re" | "read" | "so" | "source" if !rest.is_empty() => {
            eval.file(revived(rest, value.span), Access::Read, false)
        }
        "w" | "write" | "wq" | "x" | "sav" | "saveas" | "up" | "update" | "e" | "edit" | "sp" | "vs" | "tabe"
            if !rest.is_empty() =>
        {
            eval.file(revived(rest, value.span), Access::Write, false);
        }
        "q" | "qa" | "wq" | "wqa" | "x" | "xa" | "w" | "wa" | "e" => {}
        _ if text.contains(MARK) && !rest.is_empty()
            || text.contains("!")
            || ["system", "shell", "job", "term", "py", "lua", "perl", "ruby", "exe", "make", "grep"]
                .iter()
                .any(|sign| text.contains(sign)) =>
        {
            eval.unresolved_with(UnresolvedKind::Code, what, value.span, mentions(value));
        }
        _ => {}
    }
}

/// Database clients, `ftp` and `ed`: `\! code`, `.shell code`, `system code`, `!code`, `COPY … PROGRAM 'code'`.
pub fn client(eval: &mut Eval<'_>, base: &str, value: &Word) {
    let text = marked(value);
    for line in text.split('\n') {
        let line = line.trim();
        let line = line.find("\\!").and_then(|at| line.get(at..)).unwrap_or(line);
        let code = ["\\!", ".shell ", ".system ", "system ", "!"].iter().find_map(|sign| line.strip_prefix(sign));
        if let Some(code) = code.map(str::trim).filter(|code| !code.is_empty()) {
            eval.code(&revived(code.trim_end_matches(';'), value.span), None, base);
        } else if base == "ed" && (line.starts_with("r !") || line.starts_with("w !") || line.starts_with("e !")) {
            eval.code(&revived(line.get(3..).unwrap_or_default(), value.span), None, base);
        }
        let piped = ["\\o |", "\\g |", "pager ", ".output |", ".once |", ".import |", ".read |", ".excel |", ".open |"];
        if let Some(sign) = piped.iter().find(|sign| line.starts_with(**sign)) {
            eval.code(&revived(line.get(sign.len()..).unwrap_or_default(), value.span), None, base);
        }
        if matches!(base, "duckdb" | "clickhouse" | "clickhouse-local") {
            eval.given(GivenKind::Text, vec![revived(line, value.span)], value.span);
            eval.out.mentions.extend(mentions(&revived(line, value.span)));
        }
        file_of(eval, line, value);
        program(eval, base, line, value);
    }
}

/// `.read file`, `.output file`, `\o file`, `\i file`.
fn file_of(eval: &mut Eval<'_>, line: &str, value: &Word) {
    for (sign, access) in [("readfile('", Access::Read), ("writefile('", Access::Write)] {
        let file = line.split_once(sign).and_then(|(_, rest)| rest.split('\'').next());
        file.into_iter().for_each(|file| eval.file(revived(file, value.span), access, false));
    }
    let mut words = line.split_whitespace();
    if line.starts_with("\\copy ") {
        // `\copy t from 'file'`
        let way = words.by_ref().find(|word| matches!(word.to_ascii_lowercase().as_str(), "from" | "to"));
        let access = if way.is_some_and(|way| way.eq_ignore_ascii_case("to")) { Access::Write } else { Access::Read };
        if let Some(file) =
            words.next().filter(|file| !matches!(*file, "stdin" | "stdout" | "pstdin" | "pstdout" | "program"))
        {
            eval.file(revived(file.trim_matches('\''), value.span), access, false);
        }
        return;
    }
    let access = match words.next() {
        Some(
            ".read" | ".restore" | ".import" | ".open" | "\\i" | "\\ir" | "source" | "put" | "mput" | "send" | "reput"
            | "cat",
        ) => Access::Read,
        Some(".output" | ".once" | ".backup" | ".save" | ".log" | "\\o" | "\\w") => Access::Write,
        _ => return,
    };
    if let Some(file) = words.next().filter(|file| !file.starts_with(['|', '-']) && *file != "stdout") {
        let file = revived(file.trim_matches(['\'', '"', ';']), value.span);
        if access == Access::Read {
            lines(eval, "sqlite3", "", &file);
        }
        eval.file(file, access, false);
    }
}

/// `COPY t TO PROGRAM 'code'`
fn program(eval: &mut Eval<'_>, base: &str, line: &str, value: &Word) {
    let lower = line.to_ascii_lowercase();
    for (at, word) in lower.match_indices("program") {
        let Some(code) = line.get(at + word.len()..).and_then(|rest| rest.trim_start().strip_prefix('\'')) else {
            continue;
        };
        let code = code.split('\'').next().unwrap_or_default();
        eval.code(&revived(code, value.span), None, base);
    }
}

/// `gdb -ex`: `shell code`, `!code`, `python …`.
fn debugged(eval: &mut Eval<'_>, base: &str, value: &Word) {
    let text = marked(value);
    let text = text.trim();
    let code = ["shell ", "!", "platform shell ", "make "].iter().find_map(|sign| text.strip_prefix(sign));
    if let Some(code) = code {
        eval.code(&revived(code, value.span), None, base);
    } else if ["pipe", "| ", "python", "py ", "guile", "script", "compile", "call system", "print system", "p system"]
        .iter()
        .any(|sign| text.starts_with(sign))
    {
        eval.unresolved_with(UnresolvedKind::Code, base, value.span, mentions(value));
    }
}

/// `fzf --bind 'enter:execute(code)'`
fn binding(eval: &mut Eval<'_>, what: &str, value: &Word) {
    let text = marked(value);
    if ["execute", "reload", "become", "transform", "preview"].iter().any(|action| text.contains(action)) {
        let start = text.find('(').or_else(|| text.rfind(':'));
        let code = start.and_then(|at| text.get(at + 1..)).unwrap_or_default().trim_end_matches(')');
        eval.code(&revived(code, value.span), None, what);
    }
}

/// `ProxyCommand=…` and the like run here; `ProxyJump` and `HostName` say where the line goes.
pub fn ssh_option(eval: &mut Eval<'_>, option: &Word) {
    let Some(text) = option.literal() else { return };
    let Some((name, value)) = text.split_once(['=', ' ']) else { return };
    match name.trim().to_lowercase().as_str() {
        "ssh_command" | "sshcommand" | "proxycommand" | "localcommand" | "knownhostscommand" | "remotecommand"
        | "match" | "xauthlocation" => {
            let code = value.trim().trim_start_matches("exec ");
            eval.code(&text_word(code, option.span), None, "ssh -o");
        }
        "proxyjump" | "hostname" => {
            for machine in value.split(',').map(|text| text.rsplit('@').next().unwrap_or_default()) {
                eval.net(host(machine.trim().split(':').next().unwrap_or_default(), option.span), option.span);
            }
        }
        "pkcs11provider" | "securitykeyprovider" => eval.unresolved(UnresolvedKind::Code, "ssh -o", option.span),
        _ => {}
    }
}

/// `cargo --config build.rustc-wrapper="x"`
fn cargo_setting(eval: &mut Eval<'_>, what: &str, value: &Word) {
    let text = marked(value);
    let Some((name, code)) = text.split_once('=') else { return };
    let name = name.trim();
    if ["wrapper", "runner", "linker", "rustc", "rustdoc", "credential-provider"].iter().any(|end| name.ends_with(end))
    {
        let code = code.trim().trim_matches(['"', '\'', '[', ']']).replace("\",", " ").replace('"', "");
        eval.code(&revived(&code, value.span), None, what);
    }
}

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
            eval.given(GivenKind::Files, rest.to_vec(), place.span);
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
                    eval.code(&revived(&text, place.span), None, "screen");
                }
                Some("exec" | "screen") => terminal(eval, rest, place),
                Some("readbuf" | "source" | "writebuf" | "hardcopy" | "logfile") => {
                    eval.given(GivenKind::Files, rest.to_vec(), place.span);
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
    let Some(mode) = options.of("E").next().and_then(Word::literal) else { return false };
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
                eval.given(GivenKind::Text, vec![tail(word, cut + 1)], word.span);
                eval.judge_assignment(
                    name.trim_end_matches([':', '?', '+']),
                    &[vec![tail(word, cut + 1).parts]],
                    word.span,
                );
            }
        }
    }
    false
}
