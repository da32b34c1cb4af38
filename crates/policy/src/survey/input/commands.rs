//! Commands in the inputs of tools that are not known here: a shell line by any name, an argument vector, code with its language.

use writ_core::json::{Object, Value};
use writ_shell::{Env, UnresolvedKind, analyze};

use super::members::plain_name;
use crate::facts::{UnresolvedFact, kind_word};
use crate::survey::Survey;

/// Members whose text a tool hands to a shell.
const LINES: [&str; 18] = [
    "exec",
    "run",
    "program",
    "executable",
    "bashcommand",
    "terminalcommand",
    "command",
    "commands",
    "cmd",
    "cmds",
    "shellcommand",
    "commandline",
    "cmdline",
    "bash",
    "shellscript",
    "shell",
    "script",
    "argv",
];
/// Members whose text is typed, and words of the names of tools that type into a shell.
const TYPED: [&str; 5] = ["keys", "input", "text", "keystrokes", "data"];
const TERMINALS: [&str; 6] = ["terminal", "tmux", "pty", "console", "shell", "sendkeys"];
/// Members that go on where a program stops.
const ARGUMENTS: [&str; 3] = ["args", "arguments", "argv"];
/// Members that say where a command runs.
const FOLDERS: [&str; 4] = ["cwd", "workdir", "workingdirectory", "workingdir"];
/// Members that hold code.
const CODE: [&str; 4] = ["code", "script", "source", "snippet"];
/// Members that say in which language.
const LANGUAGES: [&str; 7] = ["language", "languageid", "lang", "interpreter", "kernel", "kernelname", "runtime"];

/// A line, and the members it was read from.
struct Line {
    text: String,
    members: Vec<String>,
}

impl Survey<'_> {
    /// Judges the commands among an object's members as shell lines, under the rules about Bash too. Gives the members it read.
    pub(super) fn commands(&mut self, members: &Object) -> Vec<String> {
        let folder = member(members, &FOLDERS).and_then(|(_, value)| value.as_str());
        let mut read = Vec::new();
        let names = self.facts.names().map(plain_name);
        let types = TERMINALS.iter().any(|word| names.iter().any(|name| name.contains(word)));
        let typed = members.iter().filter(|(name, _)| types && TYPED.contains(&plain_name(name).as_str()));
        let typed = typed.filter_map(|(name, value)| {
            Some(Line { text: value.as_str()?.to_owned(), members: vec![name.to_owned()] })
        });
        for line in lines(members).into_iter().chain(coded(members)).chain(typed) {
            if self.foreign_line(&line.text, folder) {
                read.extend(line.members);
            }
        }
        let runs = ["exec", "run", "eval", "shell", "terminal"];
        let own = plain_name(self.own_name());
        if let Some((name, _)) = member(members, &["code"]).filter(|_| runs.iter().any(|word| own.contains(word)))
            && !read.iter().any(|known| known == name)
        {
            let kind = kind_word(UnresolvedKind::Code).to_owned();
            self.facts.unresolved.push(UnresolvedFact { kind, what: name.to_owned(), span: None });
        }
        read
    }

    /// Judges a text as a shell line; `false` when bash would not take it for one.
    fn foreign_line(&mut self, text: &str, folder: Option<&str>) -> bool {
        let env = Env { home: self.setting.home.clone(), cwd: Some(self.call.cwd.clone()), ..Env::default() };
        if text.trim().is_empty() || analyze(text, &env).syntax_error.is_some() {
            return false;
        }
        let (texts, paths) = (self.facts.texts.len(), self.facts.paths.len());
        let (hosts, unresolved) = (self.facts.hosts.len(), self.facts.unresolved.len());
        self.facts.shell = true;
        match folder {
            Some(folder) => self.shell(&format!("cd {} && {text}", quoted(folder))),
            None => self.shell(text),
        }
        // The line is not what the call shows as its command, so its places mean nothing there.
        self.facts.texts.iter_mut().skip(texts).for_each(|fact| fact.span = None);
        self.facts.paths.iter_mut().skip(paths).for_each(|fact| fact.span = None);
        self.facts.hosts.iter_mut().skip(hosts).for_each(|fact| fact.span = None);
        self.facts.unresolved.iter_mut().skip(unresolved).for_each(|fact| fact.span = None);
        true
    }
}

/// The member of one of these names.
fn member<'a>(members: &'a Object, names: &[&str]) -> Option<(&'a str, &'a Value)> {
    members.iter().find(|(name, _)| names.contains(&plain_name(name).as_str()))
}

/// The shell lines among an object's members.
fn lines(members: &Object) -> Vec<Line> {
    let more = member(members, &ARGUMENTS).and_then(|(name, value)| Some((name, words(value)?)));
    let mut out = Vec::new();
    for (name, value) in members.iter() {
        let plain = plain_name(name);
        if !LINES.contains(&plain.as_str()) || (plain == "script" && member(members, &LANGUAGES).is_some()) {
            continue;
        }
        let own = |text: String| Line { text, members: vec![name.to_owned()] };
        match value {
            Value::String(text) => match &more {
                Some((other, words)) if *other != name => {
                    let text =
                        format!("{text} {}", words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
                    out.push(Line { text, members: vec![name.to_owned(), (*other).to_owned()] });
                }
                _ => out.push(own(text.clone())),
            },
            Value::Array(items) if plain.ends_with("mands") || plain.ends_with("cmds") => {
                out.extend(items.iter().filter_map(Value::as_str).map(|text| own(text.to_owned())));
            }
            Value::Array(_) => {
                let argv = words(value).unwrap_or_default();
                out.push(own(argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
        }
    }
    out
}

/// Code whose language is named, as the line that would run it.
fn coded(members: &Object) -> Option<Line> {
    let (_, language) = member(members, &LANGUAGES)?;
    let (name, code) = member(members, &CODE)?;
    let (language, code) = (plain_name(language.as_str()?), code.as_str()?);
    let text = match language.as_str() {
        "bash" | "sh" | "shell" | "zsh" | "dash" | "ksh" | "shellscript" | "console" | "terminal" => code.to_owned(),
        "python" | "python3" | "py" | "ipython" => format!("python3 -c {}", quoted(code)),
        "javascript" | "js" | "node" | "nodejs" | "typescript" | "ts" => format!("node -e {}", quoted(code)),
        "ruby" | "rb" => format!("ruby -e {}", quoted(code)),
        "perl" | "pl" => format!("perl -e {}", quoted(code)),
        "php" => format!("php -r {}", quoted(code)),
        _ => return None,
    };
    Some(Line { text, members: vec![name.to_owned()] })
}

fn words(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

/// A word as the shell gives it back unchanged.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | ',' | '+' | '@');
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
