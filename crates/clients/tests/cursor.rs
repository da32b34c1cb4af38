//! Transcripts read at each stop: only what is new, nothing twice, and what was rewritten is noticed.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use writ_clients::claude_code::ClaudeCode;
use writ_clients::cursor::{Cursor, News, Stretch, news};
use writ_core::{Digest, Outcome, json};

fn call(id: &str) -> String {
    format!(r#"{{"message":{{"content":[{{"type":"tool_use","id":"{id}","name":"Ghost","input":{{}}}}]}}}}"#) + "\n"
}

fn refused(id: &str) -> String {
    let said = "<tool_use_error>Error: No such tool available: Ghost</tool_use_error>";
    format!(
        r#"{{"message":{{"content":[{{"type":"tool_result","tool_use_id":"{id}","is_error":true,"content":"{said}"}}]}}}}"#
    ) + "\n"
}

struct Lab {
    folder: tempfile::TempDir,
    cursor: Cursor,
}

impl Lab {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), cursor: Cursor::default() }
    }

    fn main(&self) -> PathBuf {
        self.folder.path().join("s.jsonl")
    }

    fn subagent(&self, id: &str) -> PathBuf {
        self.folder.path().join(format!("s/subagents/agent-{id}.jsonl"))
    }

    fn add(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::File::options().append(true).create(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Reads what is new, with a cursor that was kept and read again.
    fn news(&mut self) -> News {
        let kept = json::to_canonical(&self.cursor);
        let found = news(&ClaudeCode, &self.main(), json::from_slice(kept.as_bytes()).unwrap());
        self.cursor = found.cursor.clone();
        found
    }
}

fn ended(news: &News) -> Vec<&str> {
    news.ended.iter().map(|(call, _)| call.call_id.as_str()).collect()
}

#[test]
fn each_stop_reads_only_what_is_new() {
    let mut lab = Lab::new();
    let (first, second) = (call("a") + &refused("a"), call("b") + &refused("b"));
    Lab::add(&lab.main(), &first);
    let found = lab.news();
    assert_eq!((ended(&found), found.ended[0].1), (vec!["a"], Outcome::NoSuchTool));
    let digest = Digest::of(first.as_bytes());
    let to = first.len() as u64;
    assert_eq!(found.stretches, [Stretch { file: "main".to_owned(), from: 0, to, digest, rewritten: false }]);
    assert!(lab.news().stretches.is_empty());
    Lab::add(&lab.main(), &second);
    Lab::add(&lab.subagent("x"), &(call("c") + &refused("c")));
    let found = lab.news();
    assert_eq!(ended(&found), ["b", "c"]);
    assert_eq!((found.stretches[0].from, found.stretches[0].digest), (to, Digest::of(second.as_bytes())));
    assert_eq!((found.stretches[1].file.as_str(), found.stretches[1].from), ("x", 0));
}

#[test]
fn a_result_that_comes_later_ends_its_call() {
    let mut lab = Lab::new();
    Lab::add(&lab.main(), &(call("a") + &call("b") + &refused("b")));
    assert_eq!(ended(&lab.news()), ["b"]);
    let late = refused("a");
    let (half, rest) = late.split_at(20);
    Lab::add(&lab.main(), half);
    let found = lab.news();
    assert!(found.ended.is_empty() && found.stretches.is_empty());
    Lab::add(&lab.main(), rest);
    assert_eq!(ended(&lab.news()), ["a"]);
}

#[test]
fn what_was_rewritten_is_noticed_and_read_again() {
    for change in ["shorter", "other", "longer"] {
        let mut lab = Lab::new();
        let first = call("a") + &refused("a");
        Lab::add(&lab.main(), &first);
        lab.news();
        let other = call("z") + &refused("z");
        match change {
            "shorter" => fs::write(lab.main(), call("z")).unwrap(),
            "other" => fs::write(lab.main(), &other).unwrap(),
            _ => fs::write(lab.main(), other.clone() + &first).unwrap(),
        }
        let found = lab.news();
        assert!(found.stretches[0].rewritten && found.stretches[0].from == 0, "{change}");
        assert_eq!(ended(&found).contains(&"z"), change != "shorter", "{change}");
        Lab::add(&lab.main(), &refused("z"));
        assert!(!lab.news().stretches[0].rewritten, "{change}");
    }
}

#[test]
fn a_cursor_of_another_session_is_not_believed() {
    let mut lab = Lab::new();
    Lab::add(&lab.main(), &(call("a") + &refused("a")));
    lab.news();
    let other = Lab::new();
    Lab::add(&other.main(), &(call("b") + &refused("b")));
    let found = news(&ClaudeCode, &other.main(), lab.cursor);
    assert_eq!((ended(&found), found.stretches[0].from, found.stretches[0].rewritten), (vec!["b"], 0, false));
}

#[test]
fn many_subagents_are_read_bit_by_bit() {
    let mut lab = Lab::new();
    Lab::add(&lab.main(), &call("m"));
    for agent in 0..100 {
        Lab::add(&lab.subagent(&format!("{agent:03}")), &(call(&format!("c{agent}")) + &refused(&format!("c{agent}"))));
    }
    let (first, second) = (lab.news(), lab.news());
    assert_eq!((first.stretches.len(), second.stretches.len()), (64, 37));
    assert_eq!(first.ended.len() + second.ended.len(), 100);
    assert!(lab.news().stretches.is_empty());
}

#[test]
fn calls_that_never_end_do_not_pile_up() {
    let mut lab = Lab::new();
    for part in 0..5 {
        let calls: String = (0..1000).map(|number| call(&format!("c{part}-{number}"))).collect();
        Lab::add(&lab.main(), &calls);
        lab.news();
    }
    assert!(json::to_canonical(&lab.cursor).len() < 512 << 10);
    Lab::add(&lab.main(), &refused("c4-999"));
    assert_eq!(ended(&lab.news()), ["c4-999"]);
}
