//! A session whose shell calls run in sandboxes, as the client runs them, with variables of its own.

use std::cell::Cell;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::workplace::{SESSION, Workplace};

pub struct Lab {
    pub place: Workplace,
    pub variables: Vec<(String, String)>,
    calls: Cell<u32>,
}

impl Lab {
    pub fn new(name: &str, policy: &Value, variables: &[(&str, &str)]) -> Self {
        let place = Workplace::new(name);
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let lab = Self { place, variables: variables.iter().map(own).collect(), calls: Cell::new(0) };
        fs::write(lab.repository().join(".aflock"), policy.to_string()).unwrap();
        lab.place.start();
        lab
    }

    /// The same, begun by an ordinary user, where the tests are root's and this is wanted; `before` is done first.
    pub fn of(name: &str, policy: &Value, user: bool, before: impl FnOnce(&Self)) -> Self {
        let place = Workplace::new(&format!("{name}-{}", if user { "user" } else { "own" }));
        let mut lab = Self { place, variables: Vec::new(), calls: Cell::new(0) };
        fs::write(lab.repository().join(".aflock"), policy.to_string()).unwrap();
        before(&lab);
        if user {
            lab.place.give();
        }
        lab.place.start();
        lab
    }

    pub fn repository(&self) -> PathBuf {
        self.place.folder.join("repository")
    }

    fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// `writ` with these arguments and the client's variables.
    pub fn writ(&self, args: &[&str]) -> Output {
        self.place.command(args).envs(self.variables()).stdin(Stdio::null()).output().unwrap()
    }

    /// The hook's answer to a line: the call's id, and what the client is told.
    pub fn ask(&self, line: &str) -> (String, Value) {
        self.calls.set(self.calls.get() + 1);
        let id = format!("call-{}", self.calls.get());
        let input = json!({ "command": line });
        let more = format!(r#","tool_name":"Bash","tool_use_id":"{id}","tool_input":{input}"#);
        let mut hook = self.place.command(&["hook"]);
        let mut hook = hook.envs(self.variables()).spawn().unwrap();
        hook.stdin.take().unwrap().write_all(self.place.payload("PreToolUse", &more).as_bytes()).unwrap();
        let answer: Value = serde_json::from_slice(&hook.wait_with_output().unwrap().stdout).unwrap();
        (id, answer["hookSpecificOutput"].clone())
    }

    /// A shell that runs what the hook answered, still to be started.
    pub fn shell(&self, line: &str) -> (String, Command) {
        let (id, answer) = self.ask(line);
        let line = answer["updatedInput"]["command"].as_str().unwrap_or_else(|| panic!("{line}: {answer}"));
        let mut shell = self.place.program(Path::new("/bin/bash"));
        shell.args(["-c", line]).current_dir(self.repository()).env_clear().stdin(Stdio::null());
        shell.env("PATH", std::env::var_os("PATH").unwrap());
        shell.env("HOME", &self.place.folder).env("WRIT_STATE_DIR", self.place.folder.join("state"));
        shell.envs(self.variables());
        (id, shell)
    }

    /// Runs a line: its exit code, and all that it said.
    pub fn run(&self, line: &str) -> (Option<i32>, String) {
        let (id, mut shell) = self.shell(line);
        let Output { status, stdout, stderr } = shell.output().unwrap();
        let event = if status.success() { "PostToolUse" } else { "PostToolUseFailure" };
        let input = r#","tool_input":{"command":"x"},"tool_response":"","error":"""#;
        self.place.answer(&self.place.payload(event, &format!(r#","tool_name":"Bash","tool_use_id":"{id}"{input}"#)));
        (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
    }

    /// The details of the rows of an event.
    pub fn rows(&self, event: &str) -> Vec<Value> {
        let ledger = fs::read_to_string(self.place.session().join("ledger.jsonl")).unwrap();
        let rows = ledger.lines().map(|row| serde_json::from_str::<Value>(row).unwrap()["detail"].clone());
        rows.filter(|detail| detail["event"] == event).collect()
    }

    /// The phase of the report.
    pub fn phase(&self, name: &str) -> Value {
        let report = self.writ(&["verify", SESSION, "--format", "json"]).stdout;
        let report: Value = serde_json::from_slice(&report).unwrap();
        report["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == name).cloned().unwrap_or_default()
    }

    /// Every file of the state and the repository whose bytes hold a text.
    pub fn files_with(&self, text: &str) -> Vec<PathBuf> {
        // What a call used meanwhile goes away behind it; what is gone holds no text.
        fn there<T>(found: io::Result<T>) -> Option<T> {
            match found {
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                other => Some(other.unwrap()),
            }
        }
        let mut found = Vec::new();
        let mut folders = vec![self.place.folder.clone()];
        while let Some(folder) = folders.pop() {
            for entry in there(fs::read_dir(folder)).into_iter().flatten().map(Result::unwrap) {
                let Some(kind) = there(entry.file_type()) else { continue };
                if kind.is_dir() {
                    folders.push(entry.path());
                } else if kind.is_file() {
                    let bytes = there(fs::read(entry.path())).unwrap_or_default();
                    if bytes.windows(text.len()).any(|part| part == text.as_bytes()) {
                        found.push(entry.path());
                    }
                }
            }
        }
        found
    }
}
