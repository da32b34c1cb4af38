//! Programs that run other programs: `sudo`, `env`, `xargs`, `find -exec`, `ssh`, `docker exec` and their like.
//!
//! Each is a row: how many words of its own come first, and which of its options take a value. What is left is the inner
//! command. Page: `spec/shell.md`.

use writ_core::Span;

use crate::action::{Access, NetTarget, Part, UnresolvedKind, Word};
use crate::command::{host, is_flag, joined, text_word};
use crate::eval::{Eval, Input};
use crate::operands::value_flags;

/// A wrapper: its names, the options that take a value, and how many operands come before the inner command.
struct Wrapper {
    names: &'static [&'static str],
    values: &'static str,
    skip: usize,
}

const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        names: &["sudo", "doas"],
        values: "-u -g -p -C -h -r -t -T -U -D -R --user --group --host --prompt --chdir",
        skip: 0,
    },
    Wrapper {
        names: &[
            "command",
            "builtin",
            "exec",
            "nohup",
            "setsid",
            "time",
            "dbus-run-session",
            "entr",
            "rlwrap",
            "unbuffer",
            "caffeinate",
        ],
        values: "-a",
        skip: 0,
    },
    Wrapper { names: &["nice"], values: "-n --adjustment", skip: 0 },
    Wrapper { names: &["ionice", "chrt"], values: "-c -n -p --class --classdata", skip: 0 },
    Wrapper { names: &["timeout"], values: "-s -k --signal --kill-after", skip: 1 },
    Wrapper { names: &["stdbuf"], values: "-i -o -e --input --output --error", skip: 0 },
    Wrapper { names: &["taskset"], values: "", skip: 1 },
    Wrapper { names: &["watch"], values: "-n -q --interval", skip: 0 },
    Wrapper { names: &["strace", "ltrace"], values: "-e -o -p -s -u -E -a -P -S", skip: 0 },
    Wrapper {
        names: &["unshare", "nsenter", "systemd-run", "firejail", "fakeroot", "proot", "bwrap"],
        values: "-t -p --property --unit --slice --setenv --uid --gid",
        skip: 0,
    },
    Wrapper { names: &["chroot"], values: "--userspec --groups", skip: 1 },
    Wrapper { names: &["busybox", "toybox"], values: "", skip: 0 },
    Wrapper {
        names: &["npx", "bunx", "pnpx", "uvx", "pipx-run"],
        values: "-p --package --from --with -c --call",
        skip: 0,
    },
    Wrapper {
        names: &[
            "chronic",
            "ts",
            "sem",
            "torsocks",
            "proxychains",
            "proxychains4",
            "xvfb-run",
            "catchsegv",
            "valgrind",
            "perf-stat",
        ],
        values: "",
        skip: 0,
    },
];

/// Subcommands that run what follows: `poetry run x`, `npm exec x`.
const RUNNERS: &[(&str, &[&str])] = &[
    ("poetry", &["run"]),
    ("uv", &["run"]),
    ("pipenv", &["run"]),
    ("bundle", &["exec"]),
    ("npm", &["exec", "x"]),
    ("pnpm", &["exec", "dlx"]),
    ("yarn", &["exec", "dlx"]),
    ("bun", &["x"]),
    ("pipx", &["run"]),
    ("rye", &["run"]),
    ("hatch", &["run"]),
    ("pdm", &["run"]),
    ("conda", &["run"]),
    ("mamba", &["run"]),
    ("direnv", &["exec"]),
    ("rtk", &["proxy"]),
    ("mise", &["exec"]),
    ("asdf", &["exec"]),
];

/// Peels a wrapper off. False when `base` is none.
pub fn peel(eval: &mut Eval<'_>, base: &str, words: &[Word], via: &[String], span: Span, input: &Input) -> bool {
    let arguments = words.get(1..).unwrap_or_default();
    match base {
        "env" => env(eval, arguments, via, span, input),
        "xargs" | "parallel" => xargs(eval, base, arguments, via, span, input),
        "find" | "fd" | "fdfind" => find(eval, base, arguments, via, span),
        "ssh" | "mosh" => ssh(eval, base, arguments, via, span),
        "docker" | "podman" | "nerdctl" | "kubectl" | "oc" | "docker-compose" => {
            container(eval, base, arguments, via, span)
        }
        "su" | "runuser" | "script" | "flock" => code_option(eval, base, arguments, via, span, input),
        "at" | "batch" => eval.unresolved(UnresolvedKind::Script, base, span),
        "crontab"
            if arguments.iter().any(|word| word.literal().as_deref() == Some("-"))
                || matches!(input, Input::Unknown | Input::Text(_)) =>
        {
            eval.unresolved(UnresolvedKind::Script, base, span);
        }
        "gdb" => match position(arguments, "--args") {
            Some(at) => eval.inner(arguments.get(at + 1..).unwrap_or_default().to_vec(), via, base, span, input),
            None => return false,
        },
        _ => {
            if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&base)) {
                plain(eval, base, wrapper, arguments, via, span, input);
            } else if let Some((_, subcommands)) = RUNNERS.iter().find(|(name, _)| *name == base)
                && let Some(at) = arguments.iter().position(|word| !is_flag(word))
                && arguments.get(at).and_then(Word::literal).is_some_and(|word| subcommands.contains(&word.as_str()))
            {
                let rest = arguments.get(at + 1..).unwrap_or_default();
                let rest = rest
                    .get(value_flags(rest, "-p --package -C --directory -n --name --with --python -e")..)
                    .unwrap_or_default();
                if !rest.is_empty() {
                    eval.inner(rest.to_vec(), via, base, span, input);
                }
            } else {
                return false;
            }
        }
    }
    true
}

fn position(words: &[Word], text: &str) -> Option<usize> {
    words.iter().position(|word| word.literal().as_deref() == Some(text))
}

fn plain(
    eval: &mut Eval<'_>,
    base: &str,
    wrapper: &Wrapper,
    arguments: &[Word],
    via: &[String],
    span: Span,
    input: &Input,
) {
    if matches!(base, "command" | "exec")
        && arguments.first().and_then(Word::literal).is_some_and(|flag| matches!(flag.as_str(), "-v" | "-V"))
    {
        return;
    }
    let mut at = value_flags(arguments, wrapper.values);
    // `sudo A=b cmd`
    while arguments.get(at).and_then(Word::literal).is_some_and(|word| is_assignment(&word)) {
        assign(eval, arguments.get(at), span);
        at += 1;
    }
    let rest = arguments.get(at + wrapper.skip..).unwrap_or_default();
    if base == "watch" {
        let code = joined(rest, span);
        if !rest.is_empty() {
            eval.code(&code, None, base);
        }
        return;
    }
    if base == "nice" && rest.first().and_then(Word::literal).is_some_and(|word| word.parse::<i32>().is_ok()) {
        return eval.inner(rest.get(1..).unwrap_or_default().to_vec(), via, base, span, input);
    }
    if !rest.is_empty() {
        eval.inner(rest.to_vec(), via, base, span, input);
    } else if matches!(base, "sudo" | "doas")
        && arguments.iter().any(|word| matches!(word.literal().as_deref(), Some("-s" | "-i")))
        && !matches!(input, Input::None)
    {
        eval.unresolved(UnresolvedKind::Script, base, span);
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

fn assign(eval: &mut Eval<'_>, word: Option<&Word>, span: Span) {
    let Some(text) = word.and_then(Word::literal) else { return };
    if let Some((name, value)) = text.split_once('=') {
        eval.judge_assignment(name, &[vec![vec![Part::Text(value.to_owned())]]], span);
    }
}

fn env(eval: &mut Eval<'_>, arguments: &[Word], via: &[String], span: Span, input: &Input) {
    let mut at = 0;
    let mut dir = None;
    while let Some(word) = arguments.get(at) {
        let text = word.literal();
        match text.as_deref() {
            Some("-S" | "--split-string") => {
                let code = joined(arguments.get(at + 1..).unwrap_or_default(), span);
                return eval.code(&code, None, "env -S");
            }
            Some(text) if text.starts_with("-S") || text.starts_with("--split-string=") => {
                let code = text.trim_start_matches("--split-string=").trim_start_matches("-S").to_owned();
                let rest = joined(
                    &[&[text_word(&code, word.span)], arguments.get(at + 1..).unwrap_or_default()].concat(),
                    span,
                );
                return eval.code(&rest, None, "env -S");
            }
            Some("-C" | "--chdir") => {
                dir = arguments.get(at + 1);
                at += 2;
            }
            Some("-u" | "--unset") => at += 2,
            Some(text) if text.starts_with('-') => at += 1,
            Some(text) if is_assignment(text) => {
                assign(eval, Some(word), span);
                at += 1;
            }
            _ => break,
        }
    }
    let rest = arguments.get(at..).unwrap_or_default().to_vec();
    if !rest.is_empty() {
        let (via, input) = (via.to_vec(), input.clone());
        eval.in_dir(dir, |eval| eval.inner(rest, &via, "env", span, &input));
    }
}

fn xargs(eval: &mut Eval<'_>, base: &str, arguments: &[Word], via: &[String], span: Span, input: &Input) {
    let values =
        "-I -i -n -P -L -s -a -d -E -j --replace --max-args --max-procs --max-lines --arg-file --delimiter --jobs";
    let at = value_flags(arguments, values);
    let flags = arguments.get(..at).unwrap_or_default();
    let mut replace = flags
        .iter()
        .zip(flags.iter().skip(1))
        .find(|(flag, _)| flag.literal().as_deref() == Some("-I"))
        .and_then(|(_, value)| value.literal());
    replace = replace.or_else(|| {
        flags
            .iter()
            .find_map(|flag| flag.literal()?.strip_prefix("-I").filter(|rest| !rest.is_empty()).map(str::to_owned))
    });
    let mut inner = arguments.get(at..).unwrap_or_default().to_vec();
    let mut items: Vec<Word> = Vec::new();
    if let Some(cut) = inner.iter().position(|word| word.literal().is_some_and(|text| text == ":::" || text == "::::"))
    {
        items = inner.split_off(cut).into_iter().skip(1).collect();
        replace = Some("{}".to_owned());
    }
    if base == "parallel" && replace.is_none() {
        replace = Some("{}".to_owned());
    }
    let mut tree = false;
    if items.is_empty() {
        items = match input {
            Input::Text(text) => text.split_whitespace().take(64).map(|item| text_word(item, span)).collect(),
            Input::Paths(paths, below) => {
                tree = *below;
                paths.clone()
            }
            Input::None | Input::Unknown => vec![Word { parts: vec![Part::Unknown], span }],
        };
    }
    if inner.is_empty() {
        // `parallel` without a command runs its input's lines; `xargs` echoes them.
        if base == "parallel" {
            let code = items.iter().cloned().map(|item| vec![item]).collect::<Vec<_>>().concat();
            let code = joined(&code, span);
            eval.code(&code, None, base);
        }
        return;
    }
    eval.trees += usize::from(tree);
    match replace {
        Some(mark) if inner.iter().any(|word| word.literal().is_some_and(|text| text.contains(&mark))) => {
            for item in &items {
                let words: Vec<Word> = inner.iter().map(|word| substitute(word, &mark, item)).collect();
                eval.inner(words, via, base, span, &Input::None);
            }
        }
        _ => eval.inner([inner, items].concat(), via, base, span, &Input::None),
    }
    eval.trees -= usize::from(tree);
}

/// `word` with `item` in place of `mark`.
fn substitute(word: &Word, mark: &str, item: &Word) -> Word {
    let mut parts = Vec::new();
    for part in &word.parts {
        match part {
            Part::Text(text) if text.contains(mark) => {
                for (index, piece) in text.split(mark).enumerate() {
                    if index > 0 {
                        parts.extend(item.parts.iter().cloned());
                    }
                    parts.push(Part::Text(piece.to_owned()));
                }
            }
            other => parts.push(other.clone()),
        }
    }
    parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
    Word { parts, span: word.span }
}

fn find(eval: &mut Eval<'_>, base: &str, arguments: &[Word], via: &[String], span: Span) {
    let starts_expression = |word: &Word| {
        word.literal().is_some_and(|text| {
            text.starts_with('-') && !matches!(text.as_str(), "-L" | "-P" | "-H") || text == "(" || text == "!"
        })
    };
    let split = arguments.iter().position(starts_expression).unwrap_or(arguments.len());
    let (before, rest) = arguments.split_at(split);
    let mut roots: Vec<Word> = before.iter().filter(|word| !is_flag(word)).cloned().collect();
    if base != "find" {
        // `fd pattern roots…`
        roots = roots.split_off(roots.len().min(1));
    }
    if roots.is_empty() {
        roots.push(text_word(".", span));
    }
    for root in &roots {
        eval.file(root.clone(), Access::List, true);
    }
    let name = rest
        .iter()
        .zip(rest.iter().skip(1))
        .find(|(flag, _)| matches!(flag.literal().as_deref(), Some("-name" | "-iname")))
        .map(|(_, name)| name.clone());
    let found: Vec<Word> = roots.iter().map(|root| found_below(root, name.as_ref())).collect();
    let tree = name.is_none();
    let mut at = 0;
    while let Some(word) = rest.get(at) {
        match word.literal().as_deref() {
            Some("-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch") => {
                let tail = rest.get(at + 1..).unwrap_or_default();
                let len = tail
                    .iter()
                    .position(|word| matches!(word.literal().as_deref(), Some(";" | "+")))
                    .unwrap_or(tail.len());
                let command = tail.get(..len).unwrap_or_default();
                eval.trees += usize::from(tree);
                for item in &found {
                    let words: Vec<Word> = command.iter().map(|word| substitute(word, "{}", item)).collect();
                    eval.inner(words, via, base, span, &Input::None);
                }
                eval.trees -= usize::from(tree);
                at += len + 1;
            }
            Some("-delete") => found.iter().for_each(|item| eval.file(item.clone(), Access::Write, tree)),
            Some("-fprint" | "-fprintf" | "-fls" | "-fprint0") => {
                if let Some(file) = rest.get(at + 1) {
                    eval.file(file.clone(), Access::Write, false);
                }
            }
            _ => {}
        }
        at += 1;
    }
    eval.output = Input::Paths(found, tree);
}

/// A tree's root, or the files of that name somewhere below it.
fn found_below(root: &Word, name: Option<&Word>) -> Word {
    let Some(name) = name.and_then(Word::literal) else { return root.clone() };
    let mut parts = root.parts.clone();
    parts.push(Part::Text("/".to_owned()));
    parts.push(Part::Glob(format!("**/{name}")));
    Word { parts, span: root.span }
}

fn ssh(eval: &mut Eval<'_>, base: &str, arguments: &[Word], via: &[String], span: Span) {
    let values = "-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w";
    for (flag, value) in arguments.iter().zip(arguments.iter().skip(1)) {
        match flag.literal().as_deref() {
            Some("-i" | "-F") => eval.file(value.clone(), Access::Read, false),
            Some("-E") => eval.file(value.clone(), Access::Write, false),
            Some("-o") => ssh_option(eval, value),
            _ => {}
        }
    }
    for word in arguments {
        if let Some(option) =
            word.literal().as_deref().and_then(|text| text.strip_prefix("-o").filter(|rest| !rest.is_empty()))
        {
            ssh_option(eval, &text_word(option, word.span));
        }
    }
    let at = value_flags(arguments, values);
    if let Some(target) = arguments.get(at) {
        let name = target.literal().map(|text| {
            text.trim_start_matches("ssh://")
                .rsplit('@')
                .next()
                .unwrap_or_default()
                .split([':', '/'])
                .next()
                .unwrap_or_default()
                .to_owned()
        });
        eval.net(name.map_or(NetTarget::Unknown, |name| host(&name, target.span)), target.span);
    }
    let rest = arguments.get(at + 1..).unwrap_or_default();
    if !rest.is_empty() {
        let code = joined(rest, rest.first().map_or(span, |word| word.span));
        let _ = via;
        eval.remote += 1;
        eval.code(&code, None, base);
        eval.remote -= 1;
    }
}

/// `ProxyCommand=…` and the like run here.
fn ssh_option(eval: &mut Eval<'_>, option: &Word) {
    let Some(text) = option.literal() else { return };
    if let Some((name, value)) = text.split_once(['=', ' '])
        && matches!(name.trim().to_lowercase().as_str(), "proxycommand" | "localcommand" | "knownhostscommand")
    {
        eval.code(&text_word(value, option.span), None, "ssh -o");
    }
}

fn container(eval: &mut Eval<'_>, base: &str, arguments: &[Word], via: &[String], span: Span) {
    let values = "-e --env -v --volume -p --publish --name -w --workdir -u --user --network --net -l --label --entrypoint --mount -h --hostname \
        --platform -n --namespace -c --container --context --kubeconfig -f --file --env-file -m --memory --cpus --add-host";
    let Some(at) = arguments.iter().position(|word| !is_flag(word)) else { return };
    let mut sub = arguments.get(at).and_then(Word::literal).unwrap_or_default();
    let mut rest = arguments.get(at + 1..).unwrap_or_default();
    if matches!(sub.as_str(), "compose" | "container") {
        sub = rest.first().and_then(Word::literal).unwrap_or_default();
        rest = rest.get(1..).unwrap_or_default();
    }
    for (flag, value) in arguments.iter().zip(arguments.iter().skip(1)) {
        let text = value.literal().unwrap_or_default();
        if matches!(flag.literal().as_deref(), Some("-v" | "--volume")) && text.starts_with(['/', '.', '~']) {
            let source = text.split(':').next().unwrap_or_default();
            eval.file(text_word(source, value.span), Access::Write, true);
        }
        if matches!(flag.literal().as_deref(), Some("-f" | "--file" | "--env-file")) && sub != "logs" {
            eval.file(value.clone(), Access::Read, false);
        }
    }
    if !matches!(sub.as_str(), "run" | "exec") {
        if sub == "cp" {
            for word in rest.iter().filter(|word| !is_flag(word)) {
                if word.literal().is_none_or(|text| !text.contains(':')) {
                    eval.file(word.clone(), Access::Write, true);
                }
            }
        }
        return;
    }
    let entry = rest
        .iter()
        .zip(rest.iter().skip(1))
        .find(|(flag, _)| flag.literal().as_deref() == Some("--entrypoint"))
        .map(|(_, value)| value.clone());
    let own = value_flags(rest, values) + 1;
    let tail = rest.get(own..).unwrap_or_default();
    let tail = if tail.first().and_then(Word::literal).as_deref() == Some("--") {
        tail.get(1..).unwrap_or_default()
    } else {
        tail
    };
    let inner: Vec<Word> = entry.into_iter().chain(tail.iter().cloned()).collect();
    if !inner.is_empty() {
        eval.remote += 1;
        eval.inner(inner, via, base, span, &Input::Unknown);
        eval.remote -= 1;
    }
}

/// `su -c code`, `script -c code`, `flock file cmd`.
fn code_option(eval: &mut Eval<'_>, base: &str, arguments: &[Word], via: &[String], span: Span, input: &Input) {
    for (at, word) in arguments.iter().enumerate() {
        let text = word.literal().unwrap_or_default();
        let code = match text.as_str() {
            "-c" | "--command" => arguments.get(at + 1).cloned(),
            _ => text
                .strip_prefix("--command=")
                .or_else(|| text.strip_prefix("-c").filter(|_| !text.starts_with("--")))
                .map(|code| text_word(code, word.span)),
        };
        if let Some(code) = code {
            return eval.code(&code, None, base);
        }
    }
    match base {
        "flock" => {
            let at = value_flags(arguments, "-w -E --timeout --conflict-exit-code");
            if let Some(lock) =
                arguments.get(at).filter(|lock| lock.literal().is_none_or(|text| text.parse::<u32>().is_err()))
            {
                eval.file(lock.clone(), Access::Write, false);
            }
            let rest = arguments.get(at + 1..).unwrap_or_default().to_vec();
            if !rest.is_empty() {
                eval.inner(rest, via, base, span, input);
            }
        }
        "runuser" => {
            let at = value_flags(arguments, "-u -g --user --group");
            let rest = arguments.get(at..).unwrap_or_default().to_vec();
            if !rest.is_empty() {
                eval.inner(rest, via, base, span, input);
            }
        }
        "su" if matches!(input, Input::Text(_) | Input::Unknown) => eval.unresolved(UnresolvedKind::Script, base, span),
        _ => {
            for word in arguments.iter().filter(|word| !is_flag(word)) {
                if base == "script" {
                    eval.file(word.clone(), Access::Write, false);
                }
            }
        }
    }
}
