//! Variables that make other programs run code or contact a host: the `variables` of the entries, and `PATH`.

use writ_core::Span;

use crate::action::{Access, NetTarget, UnknownUseKind, UnresolvedKind};
use crate::eval::Eval;
use crate::eval::command::Place;
use crate::eval::input::Input;
use crate::options::Options;
use crate::programs::entries::words::Variable;
use crate::programs::entries::{self, ProgramVariable};
use crate::programs::foreign::marked;
use crate::programs::operands::{net, unpack};
use crate::programs::runs::places;
use crate::programs::{effects, scripts};
use crate::shape::{host, is_system, tail, text_word};
use crate::word::{Part, Source, Word};

/// What an assignment does beyond naming a value.
pub fn variable_set(eval: &mut Eval<'_>, name: &str, values: &[Vec<Vec<Part>>], span: Span) {
    let steers = name.starts_with("BASH_FUNC")
        // Which program, or which text, a name stands for; where `cd` looks.
        || matches!(name.split('[').next(), Some("BASH_CMDS" | "BASH_ALIASES"))
        || (name == "CDPATH" && !values.iter().all(|fields| is_here(&fields.concat())))
        || (name.starts_with("GIT_CONFIG") && name != "GIT_CONFIG_NOSYSTEM" && !is_harmless_setting(name, values))
        || (name == "PATH"
            && !values.iter().all(|fields| is_safe_search_path(&fields.concat(), eval.home().as_deref())));
    if steers {
        eval.unresolved(UnresolvedKind::Environment, name, span);
    }
    if matches!(name, "PS0" | "PS1" | "PS2" | "PS4") {
        values.iter().for_each(|fields| eval.reevaluate(&fields.concat(), name));
    }
    if let Some(body) = name.strip_prefix("BASH_FUNC").and(values.first()).map(|fields| fields.concat()) {
        let body = Word { parts: body, span };
        eval.code(&tail(&body, body.literal().map_or(0, |text| text.find('{').unwrap_or(0))), None, name);
    }
    let Some(steering) = entries::variable(name) else { return exported(eval, values, span) };
    for fields in values {
        let value = Word { parts: fields.concat(), span };
        if !value.parts.is_empty() {
            variable(eval, name, steering, &value);
        }
    }
}

/// What the environment hands to programs may be anything to them.
fn exported(eval: &mut Eval<'_>, values: &[Vec<Vec<Part>>], span: Span) {
    if eval.exports == 0 {
        return;
    }
    for fields in values {
        let value = Word { parts: fields.concat(), span };
        if value.literal().is_some_and(|text| (1..=4096).contains(&text.len())) {
            eval.unknown_use(UnknownUseKind::Text, vec![value], span);
        }
    }
}

/// A file or a folder of settings: it may name commands and hosts.
fn settings(eval: &mut Eval<'_>, name: &str, value: &Word) {
    let home = eval.home();
    let harmless = |text: &str| {
        let own = home.as_deref().and_then(|home| text.strip_prefix(home)).or_else(|| text.strip_prefix('~'));
        let dotted = own.is_some_and(|rest| rest.is_empty() || rest.starts_with("/."));
        matches!(text, "/dev/null" | "/dev/zero") || text.starts_with("/etc/") || dotted && !text.contains("..")
    };
    if value.literal().is_some_and(|text| text.split(':').all(|one| one.is_empty() || harmless(one))) {
        return;
    }
    eval.unresolved(UnresolvedKind::Environment, name, value.span);
    eval.net(NetTarget::Unknown, value.span);
}

fn variable(eval: &mut Eval<'_>, name: &str, steering: &ProgramVariable, value: &Word) {
    let span = value.span;
    match steering.holds {
        Variable::Command => eval.code(value, None, name),
        Variable::Program => {
            eval.code(value, None, name);
            if value.literal().is_none_or(|text| text.contains('/') && !is_system(&text)) {
                eval.unresolved(UnresolvedKind::Environment, name, span);
            }
        }
        Variable::Filter => {
            let text = marked(value);
            let code = text.trim_start_matches(['|', '-']).replace("%s", "");
            eval.code(&crate::programs::foreign::unmarked(&code, span), None, name);
        }
        Variable::Steers if is_own_repository(eval, name, value) => {}
        Variable::Steers => eval.unresolved(UnresolvedKind::Environment, name, span),
        Variable::Settings => settings(eval, name, value),
        Variable::Writes if value.literal().is_none_or(|text| text.contains(['/', '.']) || name.ends_with("FILE")) => {
            let file = value.literal().map(|text| text.trim_start_matches("af_unix:").replace("%p", "1"));
            eval.file(file.map_or_else(|| value.clone(), |file| text_word(&file, span)), Access::Write, false);
        }
        Variable::WritesTree => unpack(eval, value),
        Variable::Reads => eval.file(value.clone(), Access::Read, false),
        Variable::Libraries => {
            let folders = value.literal().unwrap_or_default();
            for folder in folders.split(':').filter(|folder| !folder.is_empty()) {
                eval.file(text_word(folder, span), Access::List, false);
                for module in ["sitecustomize.py", "usercustomize.py"].iter().filter(|_| name == "PYTHONPATH") {
                    scripts::run_file(eval, &text_word(&format!("{folder}/{module}"), span), "python3", None);
                }
            }
        }
        Variable::SteersWhere => {
            let text = value.literal();
            if text.is_none_or(|text| steering.detail.split(' ').any(|sign| text.contains(sign))) {
                eval.unresolved(UnresolvedKind::Environment, name, span);
            }
        }
        Variable::Options => {
            let program = steering.detail;
            let Some(runs) = entries::runs(program) else { return };
            let words: Vec<Word> = match value.literal() {
                Some(text) => split(&text).iter().map(|piece| text_word(piece, span)).collect(),
                None => return eval.unresolved(UnresolvedKind::Environment, name, span),
            };
            let options = Options::read(&words, &runs.options, true);
            effects::options(eval, &options, &Place { base: program, via: &[], span, input: &Input::None });
            if program == "make" {
                places::make(eval, options.operands.iter().filter_map(|at| words.get(*at)));
            }
            if program == "tar" {
                let creates = [&[text_word("-c", span)], words.as_slice()].concat();
                crate::programs::operands::tar::run(eval, "tar", &creates, span);
            }
        }
        // What it is already.
        Variable::Host | Variable::Share if is_passed_on(eval, name, value) => {}
        Variable::Host => match value.literal() {
            None => eval.net(NetTarget::Unknown, span),
            Some(text) => {
                text.split([',', '|']).filter(|text| !matches!(*text, "" | "direct" | "off")).for_each(|text| {
                    if text.contains("://") {
                        eval.net(NetTarget::Url(text_word(text, span)), span);
                    } else if !text.starts_with('/') {
                        eval.net(host(text.split([':', '/']).next().unwrap_or_default(), span), span);
                    }
                })
            }
        },
        Variable::Share => net::shared(value).into_iter().for_each(|used| eval.net(used.target, used.span)),
        Variable::Writes => {}
    }
}

/// Words as `MAKEFLAGS` and its like hold them: blanks part, quotes keep together.
fn split(text: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quote = None;
    let mut depth = 0usize;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' if quote != Some('\'') => {
                if let (Some(last), Some(next)) = (out.last_mut(), chars.next()) {
                    last.push(next);
                }
            }
            '\'' | '"' if quote == Some(c) => quote = None,
            '\'' | '"' if quote.is_none() => quote = Some(c),
            c if c.is_whitespace() && quote.is_none() && depth == 0 => out.push(String::new()),
            _ => {
                depth = if c == '(' { depth + 1 } else { depth.saturating_sub(usize::from(c == ')')) };
                if let Some(last) = out.last_mut() {
                    last.push(c);
                }
            }
        }
    }
    out.retain(|word| !word.is_empty());
    out
}

/// Whether a value is empty, or this folder alone.
fn is_here(value: &[Part]) -> bool {
    value.iter().all(|part| matches!(part, Part::Text(text) if matches!(text.as_str(), "" | ".")))
}

/// Whether a variable of git's settings adds none that could make it run or contact something: an empty file, or settings one by one,
/// of which the name decides.
fn is_harmless_setting(name: &str, values: &[Vec<Vec<Part>>]) -> bool {
    let all = |holds: &dyn Fn(&str) -> bool| {
        values.iter().all(|fields| matches!(fields.concat().as_slice(), [Part::Text(text)] if holds(text)))
    };
    match name.strip_prefix("GIT_CONFIG_") {
        Some("COUNT") => all(&|text| text.bytes().all(|byte| byte.is_ascii_digit())),
        Some(rest) if rest.starts_with("VALUE_") => true,
        Some(rest) if rest.starts_with("KEY_") => all(&is_harmless_name),
        _ => all(&|text| text == "/dev/null" || text == "1"),
    }
}

/// Settings that say who somebody is, and how something looks.
fn is_harmless_name(name: &str) -> bool {
    const NAMES: [&str; 8] = [
        "commit.gpgsign",
        "tag.gpgsign",
        "init.defaultbranch",
        "safe.directory",
        "core.autocrlf",
        "core.quotepath",
        "pull.rebase",
        "merge.conflictstyle",
    ];
    let name = name.to_ascii_lowercase();
    let whose = ["user.", "author.", "committer.", "color.", "advice."].iter().any(|front| name.starts_with(front));
    whose || NAMES.contains(&name.as_str())
}

/// Whether a variable of git's names the repository that it would find by itself.
fn is_own_repository(eval: &Eval<'_>, name: &str, value: &Word) -> bool {
    let (top, Some(text)) = (eval.toplevel(), value.literal()) else { return false };
    let text = text.trim_start_matches("./").trim_end_matches('/');
    match name {
        "GIT_DIR" => text == ".git" || top.is_some_and(|top| text == format!("{top}/.git")),
        // Here, and not where a later `cd` leads.
        "GIT_WORK_TREE" => {
            let here = eval.lends && matches!(text, "." | "");
            top.is_some_and(|top| text == top || here && eval.cwd().is_some_and(|cwd| cwd == top))
        }
        _ => false,
    }
}

/// `DISPLAY=$DISPLAY`: nothing else is read there, and the line has not set it.
fn is_passed_on(eval: &Eval<'_>, name: &str, value: &Word) -> bool {
    let span = eval.span(eval.here);
    let mut read = eval.out.variables.iter().filter(|variable| variable.span == span).peekable();
    matches!(value.parts.as_slice(), [Part::Unknown(Source::Outside)])
        && read.peek().is_some()
        && read.all(|variable| variable.name == name)
}

/// Folders a `PATH` may name without changing what everyday commands mean: the system's, the home directory's, and those
/// behind `$PATH` itself.
fn is_safe_search_path(parts: &[Part], home: Option<&str>) -> bool {
    const SAFE: [&str; 9] = [
        "/bin",
        "/usr/bin",
        "/usr/local/bin",
        "/sbin",
        "/usr/sbin",
        "/usr/local/sbin",
        "/opt/homebrew/bin",
        "/usr/lib",
        "/usr/local",
    ];
    for part in parts {
        let Part::Text(text) = part else { return true };
        for folder in text.split(':').filter(|folder| !folder.is_empty()) {
            let at_home = home.is_some_and(|home| {
                folder.strip_prefix(home).is_some_and(|rest| rest.starts_with("/.") || rest.starts_with("/go/"))
            });
            let harmless = SAFE.iter().any(|harmless| {
                folder == *harmless || folder.strip_prefix(harmless).is_some_and(|rest| rest.starts_with('/'))
            });
            if folder.contains("..") || !(harmless || at_home) {
                return false;
            }
        }
    }
    true
}
