//! What the values of options run: editors, clients, debuggers, makefiles.

use crate::action::{Access, NetTarget, UnknownUseKind, UnresolvedKind};
use crate::code;
use crate::eval::Eval;
use crate::eval::command::Place;
use crate::options::Options;
use crate::programs::entries::words::Role;
use crate::programs::foreign::{MARK, Script, marked, mentions, script_of, unmarked};
use crate::programs::interpreters::{self, makefile};
use crate::programs::scripts;
use crate::shape::{host, looks_like_path, text_word};
use crate::word::{Part, Word};

/// What the values of options do.
pub fn options(eval: &mut Eval<'_>, options: &Options, place: &Place<'_>) {
    for (name, role, value) in &options.values {
        let what = format!("{} {name}", place.base);
        match role {
            Role::Command => eval.code(value, None, &what),
            Role::RemoteCommand => {
                eval.remote += 1;
                eval.code(value, None, &what);
                eval.remote -= 1;
            }
            Role::CheckpointAction => {
                if let Some(code) = value.literal().as_deref().and_then(|text| text.strip_prefix("exec=")) {
                    eval.code(&text_word(code, value.span), None, &what);
                }
            }
            // Read with the program's arguments.
            Role::Code if code::Language::of(place.base).is_some() => {}
            Role::Code => eval.unresolved_with(UnresolvedKind::Code, &what, value.span, mentions(value)),
            Role::Unknown => eval.unknown_use(UnknownUseKind::Option, vec![value.clone()], value.span),
            Role::Module => module(eval, &what, value),
            Role::EditorCommand => editor(eval, &what, value),
            Role::ClientCommand => client(eval, place.base, value),
            Role::DebuggerCommand => debugged(eval, place.base, value),
            Role::MakefileText => makefile::text(eval, &what, value),
            Role::Makefile => match script_of(value, place.input) {
                Script::Text(text) => makefile::text(eval, &what, &text_word(&text, value.span)),
                Script::File => scripts::run_file(eval, value, "make", None),
                Script::Unknown => eval.unresolved(UnresolvedKind::Script, &what, value.span),
            },
            Role::Script => interpreters::script(eval, value, place.base, place.input),
            Role::SshOption => ssh_option(eval, value),
            Role::AptSetting => {
                let text = marked(value);
                if let Some((_, code)) = text.split_once('=').filter(|(name, _)| name.contains("Invoke")) {
                    eval.code(&unmarked(code, value.span), None, &what);
                }
            }
            Role::CargoSetting => cargo_setting(eval, &what, value),
            Role::CargoSubcommand => {
                let code = Word {
                    parts: [&[Part::Text("cargo ".to_owned())], value.parts.as_slice()].concat(),
                    span: value.span,
                };
                eval.code(&code, None, &what);
            }
            Role::KeyBinding => binding(eval, &what, value),
            Role::Assignment => eval.assigned(value, place.span),
            Role::Reads => eval.file(value.clone(), Access::Read, false),
            Role::ReadsTree => eval.file(value.clone(), Access::Read, true),
            Role::Commands => {
                eval.file(value.clone(), Access::Read, false);
                lines(eval, place.base, &what, value);
            }
            Role::Writes => eval.file(value.clone(), Access::Write, false),
            Role::WritesOrPipes => match value.literal().as_deref().and_then(|text| text.strip_prefix(['|', '!'])) {
                Some(code) => eval.code(&text_word(code, value.span), None, &what),
                None => eval.file(value.clone(), Access::Write, false),
            },
            Role::Hosts => {
                let machines = value.literal().unwrap_or_default();
                for machine in machines.split(',').map(|text| text.rsplit('@').next().unwrap_or_default()) {
                    eval.net(host(machine.split(':').next().unwrap_or_default(), value.span), value.span);
                }
            }
            // Text, folders, and what the readers of operands look at.
            _ => {}
        }
    }
}

/// A module by its path, or its text in a URL.
fn module(eval: &mut Eval<'_>, what: &str, value: &Word) {
    match value.literal().filter(|text| text.starts_with("data:") || text.contains("//")) {
        Some(_) => eval.unresolved_with(UnresolvedKind::Code, what, value.span, mentions(value)),
        None if looks_like_path(value) => eval.file(value.clone(), Access::Read, false),
        None => {}
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
        _ => eval.unknown_use(UnknownUseKind::Text, vec![text_word(&text, file.span)], file.span),
    });
}

/// `vim -c`: shell code behind `!`, files behind `r`, `w`, `e`.
fn editor(eval: &mut Eval<'_>, what: &str, value: &Word) {
    let text = marked(value);
    let open = |eval: &mut Eval<'_>| eval.unresolved_with(UnresolvedKind::Code, what, value.span, mentions(value));
    let ranged =
        text.trim_start_matches(|c: char| matches!(c, ':' | '%' | '$' | '.' | ',' | '\'' | ' ') || c.is_ascii_digit());
    if let Some(code) = ranged.strip_prefix('!') {
        eval.code(&unmarked(code, value.span), None, what);
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
            eval.code(&unmarked(rest.trim_start_matches('!'), value.span), None, what);
        }
        "r" | "re" | "read" | "so" | "source" if !rest.is_empty() => {
            eval.file(unmarked(rest, value.span), Access::Read, false)
        }
        "w" | "write" | "wq" | "x" | "sav" | "saveas" | "up" | "update" | "e" | "edit" | "sp" | "vs" | "tabe"
            if !rest.is_empty() =>
        {
            eval.file(unmarked(rest, value.span), Access::Write, false);
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
            eval.code(&unmarked(code.trim_end_matches(';'), value.span), None, base);
        } else if base == "ed" && (line.starts_with("r !") || line.starts_with("w !") || line.starts_with("e !")) {
            eval.code(&unmarked(line.get(3..).unwrap_or_default(), value.span), None, base);
        }
        // A backquoted argument of a command of `psql` is a line of the shell's.
        if line.starts_with('\\') {
            for code in line.split('`').skip(1).step_by(2).filter(|code| !code.trim().is_empty()) {
                eval.code(&unmarked(code, value.span), None, base);
            }
        }
        let piped = ["\\o |", "\\g |", "pager ", ".output |", ".once |", ".import |", ".read |", ".excel |", ".open |"];
        if let Some(sign) = piped.iter().find(|sign| line.starts_with(**sign)) {
            eval.code(&unmarked(line.get(sign.len()..).unwrap_or_default(), value.span), None, base);
        }
        if matches!(base, "duckdb" | "clickhouse" | "clickhouse-local") {
            eval.unknown_use(UnknownUseKind::Text, vec![unmarked(line, value.span)], value.span);
            eval.out.mentions.extend(mentions(&unmarked(line, value.span)));
            fetched(line).for_each(|url| eval.net(NetTarget::Url(unmarked(url, value.span)), value.span));
        }
        file_of(eval, line, value);
        program(eval, base, line, value);
    }
}

/// Addresses in SQL that DuckDB and ClickHouse fetch or send to: a text where a table or a function's argument stands, not a value.
fn fetched(line: &str) -> impl Iterator<Item = &str> {
    let is_value = move |before: &str| {
        let mut depth = 0usize;
        let opens = before.char_indices().rev().find(|(_, c)| match c {
            ')' => {
                depth += 1;
                false
            }
            '(' if depth > 0 => {
                depth -= 1;
                false
            }
            c => *c == '(',
        });
        let word = |text: &str| {
            let text = text.trim_end();
            text.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .next()
                .unwrap_or_default()
                .to_ascii_lowercase()
        };
        let last = before.trim_end();
        last.ends_with(['=', '<', '>', '|'])
            || matches!(word(last).as_str(), "like" | "ilike" | "select")
            || opens
                .and_then(|(at, _)| before.get(..at))
                .is_some_and(|front| matches!(word(front).as_str(), "values" | "in") || front.trim_end().ends_with(','))
    };
    let quoted = move |quote: char| {
        let mut at = 0;
        line.split(quote).enumerate().filter_map(move |(number, piece)| {
            let before = line.get(..at).unwrap_or_default().trim_end_matches(quote);
            at += piece.len() + 1;
            let web = ["http://", "https://"].iter().any(|scheme| piece.starts_with(scheme));
            (number % 2 == 1 && web && !is_value(before)).then_some(piece)
        })
    };
    ['\'', '"'].into_iter().flat_map(quoted)
}

/// `.read file`, `.output file`, `\o file`, `\i file`.
fn file_of(eval: &mut Eval<'_>, line: &str, value: &Word) {
    let lower = line.to_ascii_lowercase();
    let reaching = [
        ("readfile('", Access::Read),
        ("writefile('", Access::Write),
        ("attach '", Access::Read),
        ("attach database '", Access::Read),
    ];
    let vacuum = lower.starts_with("vacuum").then_some((" into '", Access::Write));
    for (sign, access) in reaching.into_iter().chain(vacuum) {
        // Letters of ASCII alone change, so that places stay.
        let rest = lower.find(sign).and_then(|at| line.get(at + sign.len()..));
        let file = rest.and_then(|rest| rest.split('\'').next()).filter(|file| !file.is_empty() && *file != ":memory:");
        file.into_iter().for_each(|file| eval.file(unmarked(file, value.span), access, false));
    }
    let mut words = line.split_whitespace();
    if line.starts_with("\\copy ") {
        // `\copy t from 'file'`
        let way = words.by_ref().find(|word| matches!(word.to_ascii_lowercase().as_str(), "from" | "to"));
        let access = if way.is_some_and(|way| way.eq_ignore_ascii_case("to")) { Access::Write } else { Access::Read };
        if let Some(file) =
            words.next().filter(|file| !matches!(*file, "stdin" | "stdout" | "pstdin" | "pstdout" | "program"))
        {
            eval.file(unmarked(file.trim_matches('\''), value.span), access, false);
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
        let file = unmarked(file.trim_matches(['\'', '"', ';']), value.span);
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
        eval.code(&unmarked(code, value.span), None, base);
    }
}

/// `gdb -ex`: `shell code`, `!code`, `python …`.
fn debugged(eval: &mut Eval<'_>, base: &str, value: &Word) {
    let text = marked(value);
    let text = text.trim();
    let code = ["shell ", "!", "platform shell ", "make "].iter().find_map(|sign| text.strip_prefix(sign));
    if let Some(code) = code {
        eval.code(&unmarked(code, value.span), None, base);
    } else if let Some(file) = ["source ", "so "].iter().find_map(|sign| text.strip_prefix(sign)) {
        eval.file(
            unmarked(file.trim().trim_start_matches("-v ").trim_start_matches("-s "), value.span),
            Access::Read,
            false,
        );
        eval.unresolved_with(UnresolvedKind::Code, base, value.span, mentions(value));
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
        eval.code(&unmarked(code, value.span), None, what);
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
        eval.code(&unmarked(&code, value.span), None, what);
    }
}
