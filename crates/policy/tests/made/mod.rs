//! A small disk for tests: files by path, with their text.

use std::collections::{BTreeMap, BTreeSet};

use writ_core::json::{self, Limits, Object, Value};
use writ_core::{Timestamp, ToolCall, Verdict};
use writ_policy::{Entry, Layer, Policy, Protected, Resolved, Setting, Tally, World, fold, judge, survey};

const ROOT: &str = "/w";

/// Folders with what is in them, and texts.
pub struct Disk {
    folders: BTreeMap<String, BTreeSet<String>>,
    texts: BTreeMap<String, String>,
}

impl Disk {
    pub fn of(files: &[(&str, &str)]) -> Self {
        let mut out = Self { folders: BTreeMap::new(), texts: BTreeMap::new() };
        for (path, text) in files {
            out.texts.insert((*path).to_owned(), (*text).to_owned());
            let mut here = *path;
            while let Some((folder, name)) = here.rsplit_once('/') {
                let names = out.folders.entry(folder.to_owned()).or_default();
                if !names.insert(name.to_owned()) {
                    break;
                }
                here = folder;
            }
        }
        out
    }
}

impl World for Disk {
    fn resolve(&self, path: &str) -> Resolved {
        let path = fold(path);
        Resolved { is_dir: self.folders.contains_key(path.trim_end_matches('/')), path }
    }

    fn list(&self, dir: &str) -> Option<Vec<Entry>> {
        let dir = fold(dir);
        let dir = dir.trim_end_matches('/');
        let entry = |name: &String| Entry {
            is_dir: self.folders.contains_key(&format!("{dir}/{name}")),
            is_link: false,
            name: name.clone(),
        };
        Some(self.folders.get(dir)?.iter().map(entry).collect())
    }

    fn read(&self, path: &str, from: u64, most: usize) -> Option<Vec<u8>> {
        let text = self.texts.get(path)?.as_bytes();
        Some(text.iter().skip(usize::try_from(from).ok()?).take(most).copied().collect())
    }
}

fn setting() -> Setting {
    let protected = |path: &str, secret| Protected { path: path.to_owned(), what: "it".to_owned(), secret };
    Setting {
        now: Timestamp::from_millis(0),
        home: Some("/h".to_owned()),
        protected: vec![
            protected("/w/.aflock", false),
            protected("/h/.writ/keys", true),
            protected("/h/.writ", false),
            protected("/w/.claude/settings.json", false),
        ],
    }
}

/// Decides live, and again from the record, which must agree.
fn verdict(policy: &str, disk: &Disk, tool: &str, input: Value) -> Verdict {
    let policy = Policy::parse(policy.as_bytes(), ROOT).unwrap();
    let call = ToolCall::new(tool, input, ROOT);
    let facts = survey(&policy, &call, &setting(), disk);
    let live = judge(&[Layer::own(&policy, &facts)], &setting(), Tally::default());
    let recorded = json::to_canonical(&facts);
    let again =
        judge(&[Layer::own(&policy, &json::from_slice(recorded.as_bytes()).unwrap())], &setting(), Tally::default());
    assert_eq!(live.verdict, again.verdict, "{call:?}");
    live.verdict
}

/// The verdict on a shell line.
pub fn decided(policy: &str, disk: &Disk, line: &str) -> Verdict {
    let mut input = Object::new();
    input.push("command", Value::from(line));
    verdict(policy, disk, "Bash", Value::from(input))
}

/// The verdict on a search by the client's own tool.
pub fn grep(policy: &str, disk: &Disk, input: &str) -> Verdict {
    verdict(policy, disk, "Grep", json::parse_with(input.as_bytes(), Limits::FOREIGN).unwrap())
}
