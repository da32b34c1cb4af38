//! What the arguments of known programs say of variables and of addresses: whether they print all, run a command, take code. Page:
//! `spec/grants.md`.

use writ_shell::{Command, NetTarget, NetUse, Word};

/// Programs whose code may ask for variables.
const INTERPRETERS: [&str; 12] =
    ["python", "node", "nodejs", "deno", "bun", "perl", "ruby", "php", "lua", "awk", "gawk", "jq"];

/// Programs that contact hosts by protocols of their own.
const OTHER_PROTOCOLS: [&str; 16] = [
    "psql",
    "pg_dump",
    "pg_restore",
    "pg_isready",
    "createdb",
    "dropdb",
    "mysql",
    "mariadb",
    "mysqldump",
    "mysqladmin",
    "redis-cli",
    "scp",
    "sftp",
    "ping",
    "nslookup",
    "whois",
];

/// Whether `env` takes an argument apart, which then may hold a command.
pub(super) fn splits(arguments: &[Option<String>]) -> bool {
    arguments.iter().flatten().any(|text| text.starts_with("-S") || text.starts_with("--split-string"))
}

/// Whether an argument of `ps` is letters of BSD's with the one that shows environments.
pub(super) fn shows_environments(arguments: &[Option<String>]) -> bool {
    let mut texts = arguments.iter().map(|text| text.as_deref().unwrap_or_default());
    while let Some(text) = texts.next() {
        if text.starts_with('-') {
            // Their values are names and numbers.
            let value = !text.contains('=')
                && (text.starts_with("--")
                    || text.ends_with(['o', 'O', 'C', 'u', 'U', 'g', 'G', 'p', 'q', 't', 's', 'k', 'N']));
            if value {
                texts.next();
            }
        } else if text.contains('e') && text.chars().all(|letter| letter.is_ascii_alphabetic()) {
            return true;
        }
    }
    false
}

/// Whether `make` has `-p` among letters that take no value.
pub(super) fn prints_its_data(arguments: &[Option<String>]) -> bool {
    let letters = arguments.iter().flatten().filter_map(|text| text.strip_prefix('-'));
    letters.into_iter().any(|letters| letters.contains('p') && letters.chars().all(|c| "bBdeiknpqrRsStwv".contains(c)))
}

/// Whether `env` has a command behind its options and assignments.
pub(super) fn runs_a_command(arguments: &[Option<String>]) -> bool {
    let mut texts = arguments.iter().map(|text| text.as_deref().unwrap_or("\u{1}"));
    while let Some(text) = texts.next() {
        match text {
            "-u" | "--unset" | "-C" | "--chdir" => drop(texts.next()),
            "--" => return texts.any(|text| !text.contains('=')),
            _ if text.starts_with('-') || text.contains('=') => {}
            _ => return true,
        }
    }
    false
}

/// Whether a program's code may ask for variables.
pub(super) fn may_ask(program: &str) -> bool {
    let plain = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.contains(&plain) || program.ends_with("awk")
}

/// Whether a command is an interpreter that takes its code from its standard input.
pub(super) fn takes_code(words: &[Option<String>]) -> bool {
    const MORE: [&str; 4] = ["uv", "cmake", "tsx", "ts-node"];
    let Some((Some(program), rest)) = words.split_first() else { return false };
    let name = program.rsplit('/').next().unwrap_or_default();
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let known = INTERPRETERS.contains(&plain) || MORE.contains(&plain) || name.ends_with("awk");
    let texts = || rest.iter().map(|text| text.as_deref().unwrap_or("-"));
    known && (texts().all(|text| text.starts_with('-')) || texts().any(|text| text == "-" || text == "/dev/stdin"))
}

/// Whether a program works on all that lies below an address of a store.
pub(super) fn goes_below(program: &str, arguments: &[Option<String>]) -> bool {
    const ALWAYS: [&str; 4] = ["sync", "rsync", "mirror", "rb"];
    let deep = |text: &str| {
        let letters = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        ALWAYS.contains(&text) || text.starts_with("--recursive") || letters.is_some_and(|all| all.contains(['r', 'R']))
    };
    ALWAYS.contains(&program) || arguments.iter().flatten().any(|text| deep(text))
}

/// Whether no program that contacts a host there asks for anything by HTTP that is not looked at by itself. By `ssh` a host that a rule names may be asked all the same.
pub(super) fn speaks_no_http(commands: &[Command], net: &NetUse) -> bool {
    let named = match &net.target {
        NetTarget::Url(word) | NetTarget::Host(word) => word.literal().is_some(),
        NetTarget::Unknown => false,
    };
    let around = |command: &&Command| command.span.start <= net.span.start && net.span.end <= command.span.end;
    let mut there = commands.iter().filter(around).peekable();
    there.peek().is_some()
        && there.all(|command| {
            let texts: Vec<Option<String>> = command.words.iter().map(Word::literal).collect();
            let program = program_of(&texts);
            // Of `gh api` the URL is looked at by itself.
            let api = program == "gh" && texts.get(1).and_then(Option::as_deref) == Some("api");
            OTHER_PROTOCOLS.contains(&program) || program == "ssh" && !named || api
        })
}

/// The base name of the program that a command runs.
pub(super) fn program_of(texts: &[Option<String>]) -> &str {
    let program = texts.first().and_then(Option::as_deref).unwrap_or_default();
    program.rsplit('/').next().unwrap_or_default()
}
