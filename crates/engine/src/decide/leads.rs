//! Where symlinks, and names of git's remotes, lead the words of a call that asks: what an approval of it is for, too.
//!
//! Looks wider than the survey, which knows what a call would touch: every text of the input, and every word of a line as seen from
//! each folder that its command may run in, is taken for a path. What leads nowhere else is no part of it, so that a word that is no path
//! changes nothing. Page: `spec/policy.md`, "Approvals".

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use writ_core::json::{self, Limits, Value};
use writ_core::{Digest, Timestamp, ToolCall, ToolKind};
use writ_policy::{Facts, Search, World, expand, fold, percent_decoded};
use writ_shell::{Dir, Env};

use super::file_system::FileSystem;

/// Most words that are looked at.
const MOST: usize = 4096;
/// How deep JSON inside a text is read.
const DEEPEST: usize = 4;
/// Signs of a shell's patterns.
const WILD: [char; 4] = ['*', '?', '[', '{'];
/// Longest path that a system takes, in bytes.
const PATH_MAX: usize = 4096;

/// SHA-256 of the canonical JSON of an object with each path as written that leads elsewhere, and where to, and each remote of git's that
/// the call contacts by name, with its URLs, with the settings that git reads for it; `None` where there is none.
pub fn leads<'a>(call: &ToolCall, home: Option<&str>, facts: impl Iterator<Item = &'a Facts>) -> Option<Digest> {
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    let mut told = |written: String, leads: String| {
        // What a process has open, and what the kernel makes anew for each, is another one's at the next look.
        let own = ["/proc/", "/dev/"].iter().any(|own| written.starts_with(own) || leads.starts_with(own));
        if written != leads && !own {
            all.insert(written, leads);
        }
    };
    for facts in facts {
        facts.leads().chain(facts.remotes()).for_each(|(written, leads)| told(written.to_owned(), leads.to_owned()));
    }
    let (world, mut left, mut entries) = (FileSystem::default(), MOST, MOST);
    let mut seen: HashSet<String> = HashSet::new();
    let mut word = |folder: &str, text: &str| {
        for path in places(text) {
            if path.is_empty() || path.len() > PATH_MAX || path.contains(['\0', '\n']) || left == 0 {
                continue;
            }
            let whole = match (path.strip_prefix('~'), home) {
                (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
                _ if path.starts_with('/') => path.into_owned(),
                _ => format!("{folder}/{path}"),
            };
            if !seen.insert(whole.clone()) {
                continue;
            }
            left -= 1;
            if !whole.contains(WILD) {
                told(fold(&whole), world.resolve(&whole).path);
                continue;
            }
            // What stands in front of a pattern's wildcards, and what they stand for now.
            let front = whole.split(WILD).next().unwrap_or_default();
            told(fold(front), world.resolve(front).path);
            match expand(&world, &whole, &mut entries) {
                Search::Done(found) => found.iter().for_each(|path| told(fold(path), world.resolve(path).path)),
                Search::TooLarge => left = 0,
            }
        }
    };
    if let ToolKind::Shell { command } = &call.kind {
        let env = Env { home: home.map(str::to_owned), cwd: Some(call.cwd.clone()), ..Env::default() };
        for command in writ_shell::analyze(command, &env).commands {
            for dir in &command.dirs {
                let Dir::Start(dir) = dir else { continue };
                let folder = if dir.starts_with('/') { dir.clone() } else { format!("{}/{dir}", call.cwd) };
                word(&call.cwd, &folder);
                command.words.iter().filter_map(writ_shell::Word::literal).for_each(|text| word(&folder, &text));
            }
        }
    }
    texts(&call.input, 0, &mut |text| word(&call.cwd, text));
    if left == 0 {
        // Where the others lead is not known: no word on such a call is for the next one.
        all.insert(String::new(), Timestamp::now().to_string());
    }
    (!all.is_empty()).then(|| Digest::of(json::to_canonical(&all).as_bytes()))
}

/// What in a word may be a path: all of it, what follows `=` or a letter of an option, and its parts between other signs, as in
/// `-v PATH:/x`, `a,b` and code; with `%xx` read, too.
fn places(text: &str) -> Vec<Cow<'_, str>> {
    let signs = |c: char| c.is_whitespace() || ",:;='\"`()<>|&".contains(c);
    let glued = text.strip_prefix('-').and_then(|rest| rest.get(1..));
    let value = text.split_once('=').map(|(_, value)| value);
    let mut out: Vec<Cow<'_, str>> = [Some(text), glued, value].into_iter().flatten().map(Cow::Borrowed).collect();
    out.extend(text.split(signs).filter(|part| !part.is_empty()).map(Cow::Borrowed));
    if let Some(read) = percent_decoded(text).filter(|_| text.contains('%')) {
        out.extend(read.split(signs).filter(|part| !part.is_empty()).map(|part| Cow::Owned(part.to_owned())));
    }
    out
}

/// Every text in a value, names of members and JSON inside a text included.
fn texts(value: &Value, depth: usize, take: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => {
            let inner = Some(text.trim()).filter(|text| text.starts_with(['{', '[']) && depth < DEEPEST);
            if let Some(inner) = inner.and_then(|text| json::parse_with(text.as_bytes(), Limits::FOREIGN).ok()) {
                texts(&inner, depth + 1, take);
            }
            // No path is longer, and what a file is to hold is none.
            if text.len() <= PATH_MAX {
                take(text);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, depth, take)),
        Value::Object(members) => members.iter().for_each(|(name, member)| {
            take(name);
            texts(member, depth, take);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
