//! What commands print, held against the schemas that the binary carries by a validator that is not Writ's.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Map, Value, json};

use crate::venv;
use crate::workplace::Workplace;

const VALIDATOR: &str = "jsonschema==4.25.1";
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Everything that was printed in a place, and for which commands.
pub struct Outputs {
    pub place: Workplace,
    list: Vec<Value>,
    documents: Vec<Value>,
}

impl Outputs {
    pub fn new(place: Workplace) -> Self {
        let list = place.writ(&["schema", "--format", "json"]);
        let list = serde_json::from_slice::<Value>(&list.stdout).unwrap().as_array().unwrap().clone();
        Self { place, list, documents: Vec::new() }
    }

    pub fn repository(&self) -> PathBuf {
        self.place.folder.join("repository")
    }

    /// The path of something in the place, as a word.
    pub fn file(&self, name: &str) -> String {
        self.place.folder.join(name).to_str().unwrap().to_owned()
    }

    pub fn run(&self, words: &[&str], input: &str) -> Output {
        let mut child = self.place.command(words).env("PATH", PATH).spawn().unwrap();
        // Who does not read is no failure.
        drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
        child.wait_with_output().unwrap()
    }

    /// What a command says that has to end well.
    pub fn good(&self, words: &[&str]) -> String {
        let output = self.run(words, "");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// One document, of a command that ends with this code.
    pub fn json(&mut self, words: &[&str], code: i32) -> Value {
        let words = [words, &["--format", "json"]].concat();
        self.always(&words, "", code)
    }

    /// The same, of a command that prints nothing else anyway.
    pub fn always(&mut self, words: &[&str], input: &str, code: i32) -> Value {
        let output = self.run(words, input);
        let told = || format!("{words:?}: {output:?}");
        assert_eq!(output.status.code(), Some(code), "{}", told());
        let document: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", told()));
        self.add(words, &document);
        document
    }

    /// One document a line.
    pub fn lines(&mut self, words: &[&str], input: &str, code: i32) -> Vec<Value> {
        let output = self.run(words, input);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(!lines.is_empty(), "{words:?} prints nothing");
        lines.iter().for_each(|line| self.add(words, line));
        lines
    }

    fn add(&mut self, words: &[&str], document: &Value) {
        let (mut found, mut most) = (String::new(), 0);
        for schema in &self.list {
            for command in schema["commands"].as_array().unwrap() {
                let command: Vec<&str> = command.as_str().unwrap().split(' ').collect();
                if words.starts_with(&command) && command.len() > most {
                    (found, most) = (schema["name"].as_str().unwrap().to_owned(), command.len());
                }
            }
        }
        assert!(most > 0, "no schema is for {words:?}");
        self.documents.push(json!({"schema": found, "words": words.join(" "), "document": document}));
    }

    /// The names in `writ schema`'s list.
    pub fn names(&self) -> BTreeSet<String> {
        self.list.iter().map(|schema| schema["name"].as_str().unwrap().to_owned()).collect()
    }

    fn schema(&self, name: &str) -> Value {
        serde_json::from_str(&self.good(&["schema", name])).unwrap()
    }

    /// Holds every document against its schema; the schemas have to be these, and each has to refuse what it should.
    pub fn check(&self, expected: &[&str]) {
        let seen: BTreeSet<&str> = self.documents.iter().map(|one| one["schema"].as_str().unwrap()).collect();
        assert_eq!(seen, expected.iter().copied().collect());
        let schemas: Map<String, Value> = seen.into_iter().map(|name| (name.to_owned(), self.schema(name))).collect();
        validate(&json!({"schemas": schemas, "documents": self.documents}));
    }
}

/// Asks the validator. Gives its last word.
pub fn validate(given: &Value) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemas/validate.py");
    let mut asked = Command::new(venv::programs(&[VALIDATOR]).join("python"));
    let mut child = asked.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(given.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    said
}

/// Writes a file of the place.
pub fn put(out: &Outputs, name: &str, text: &str) -> String {
    let path = out.place.folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A commit of all that is in the repository.
pub fn commit(out: &Outputs) {
    for words in [&["add", "."][..], &["-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "-m", "x"]] {
        assert!(Command::new("git").args(words).current_dir(out.repository()).status().unwrap().success());
    }
}

/// Writes the repository's policy.
pub fn policy(out: &Outputs, policy: &Value) {
    put(out, "repository/.aflock", &policy.to_string());
}

/// Has the session's turn end.
pub fn stop(place: &Workplace) {
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
}
