//! Where symlinks lead the words of a call that asks: what an approval of it is for, too.
//!
//! Looks wider than the survey, which knows what a call would touch: every text of the input, and every word of a line as seen from
//! each folder that its command may run in, is taken for a path. What leads nowhere else is no part of it, so that a word that is no path
//! changes nothing. Page: `spec/policy.md`, "Approvals".

use std::collections::BTreeMap;

use writ_core::json::{self, Value};
use writ_core::{Digest, Timestamp, ToolCall, ToolKind};
use writ_policy::{Facts, World, fold};
use writ_shell::{Dir, Env};

use super::file_system::FileSystem;

/// Most words that are looked at.
const MOST: usize = 4096;
/// Longest path that a system takes, in bytes.
const PATH_MAX: usize = 4096;

/// SHA-256 of the canonical JSON of an object with each path as written that leads elsewhere, and where to; `None` where there is none.
pub fn leads<'a>(call: &ToolCall, home: Option<&str>, facts: impl Iterator<Item = &'a Facts>) -> Option<Digest> {
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    let mut told = |written: String, leads: String| {
        // What a process has open, and what the kernel makes anew for each, is another one's at the next look.
        let own = ["/proc/", "/dev/"].iter().any(|own| written.starts_with(own) || leads.starts_with(own));
        if written != leads && !own {
            all.insert(written, leads);
        }
    };
    facts.flat_map(Facts::leads).for_each(|(written, leads)| told(written.to_owned(), leads.to_owned()));
    let (world, mut left) = (FileSystem::default(), MOST);
    let mut word = |folder: &str, text: &str| {
        // `--option=PATH`, `-oPATH`, and what stands in front of a pattern's wildcards.
        let value = text.split_once('=').map(|(_, value)| value);
        let glued = text.strip_prefix('-').and_then(|rest| rest.get(1..));
        for path in [Some(text), value, glued].into_iter().flatten() {
            let path = path.split(['*', '?', '[', '{']).next().unwrap_or_default();
            if path.is_empty() || path.len() > PATH_MAX || path.contains(['\0', '\n']) || left == 0 {
                continue;
            }
            left -= 1;
            let whole = match (path.strip_prefix('~'), home) {
                (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
                _ if path.starts_with('/') => path.to_owned(),
                _ => format!("{folder}/{path}"),
            };
            told(fold(&whole), world.resolve(&whole).path);
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
    texts(&call.input, &mut |text| word(&call.cwd, text));
    if left == 0 {
        // Where the others lead is not known: no word on such a call is for the next one.
        all.insert(String::new(), Timestamp::now().to_string());
    }
    (!all.is_empty()).then(|| Digest::of(json::to_canonical(&all).as_bytes()))
}

/// Every text in a value.
fn texts(value: &Value, take: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => take(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, take)),
        Value::Object(members) => members.iter().for_each(|(_, member)| texts(member, take)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
