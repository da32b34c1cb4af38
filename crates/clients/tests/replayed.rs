//! Sessions that the real client recorded, counted again: what its messages say comes to what it says itself in all.
//!
//! The transcripts are copies of such sessions without what was said in them.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use writ_clients::claude_code::ClaudeCode;
use writ_clients::meter::Meter;
use writ_clients::usage::plain_model;
use writ_core::json::{self, Limits, Value};

/// A session's copy in a folder of its own, with its lines changed.
fn copy(name: &str, change: impl Fn(&str) -> Option<String>) -> (tempfile::TempDir, PathBuf) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replayed");
    let folder = tempfile::tempdir().unwrap();
    let lines = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        text.lines().filter_map(&change).map(|line| line + "\n").collect::<String>()
    };
    let main = folder.path().join(format!("{name}.jsonl"));
    fs::write(&main, lines(&from.join(format!("{name}.jsonl")))).unwrap();
    let beside = from.join(name).join("subagents");
    for entry in fs::read_dir(&beside).into_iter().flatten().map(Result::unwrap) {
        let to = folder.path().join(name).join("subagents");
        fs::create_dir_all(&to).unwrap();
        fs::write(to.join(entry.file_name()), lines(&entry.path())).unwrap();
    }
    (folder, main)
}

/// Tokens read, from caches, into them, and written, by model.
type Totals = BTreeMap<String, [u64; 4]>;

fn counted(main: &Path) -> Totals {
    let mut meter = Meter::default();
    meter.read(&ClaudeCode, main).unwrap();
    totals(&meter)
}

fn totals(meter: &Meter) -> Totals {
    assert_eq!(meter.unread(), 0);
    let mut totals = Totals::new();
    for (rate, tokens) in meter.agents().values().flat_map(|agent| &agent.used) {
        let sum = totals.entry(plain_model(&rate.model).to_owned()).or_default();
        let more = [tokens.input, tokens.cache_read, tokens.cache_write + tokens.cache_write_hour, tokens.output];
        sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
    totals
}

/// What the client says itself.
fn stated(main: &Path) -> Totals {
    let text = fs::read_to_string(main).unwrap();
    let mut lines = text.lines().map(|line| json::parse_with(line.as_bytes(), Limits::FOREIGN).unwrap());
    let is_sum = |line: &Value| line.get("type").and_then(Value::as_str) == Some("cost-state");
    let last = lines.rfind(is_sum).unwrap();
    let names = ["inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens"];
    let of = |usage: &Value| names.map(|name| usage.get(name).and_then(Value::as_u64).unwrap());
    let models = last.get("modelUsage").and_then(Value::as_object).unwrap();
    models.iter().map(|(model, usage)| (plain_model(model).to_owned(), of(usage))).collect()
}

#[test]
fn messages_come_to_what_the_client_says_itself() {
    for (name, agents) in [("denied_write", 1), ("happy_edit", 1), ("subagent_true_done", 2)] {
        let (_folder, main) = copy(name, |line| Some(line.to_owned()));
        let stated = stated(&main);
        assert!(stated.values().flatten().sum::<u64>() > 0, "{name}");
        assert_eq!(counted(&main), stated, "{name}");
        // The messages alone: without the client's own sum they come to the same.
        let (_folder, alone) = copy(name, |line| (!line.contains("\"cost-state\"")).then(|| line.to_owned()));
        assert_eq!(counted(&alone), stated, "{name}");
        // A transcript that was written twice, as a client's copy of a conversation is, counts nothing twice.
        let (_folder, twice) = copy(name, |line| Some(format!("{line}\n{line}")));
        assert_eq!(counted(&twice), stated, "{name}");
        let mut meter = Meter::default();
        meter.read(&ClaudeCode, &main).unwrap();
        assert_eq!(meter.agents().len(), agents, "{name}");
    }
}

/// Lines that come one by one, each read at once, come to the same, wherever a reading ends.
#[test]
fn a_lagging_transcript_is_caught_up_with() {
    for name in ["denied_write", "happy_edit", "subagent_true_done"] {
        let (folder, main) = copy(name, |line| Some(line.to_owned()));
        let whole = fs::read(&main).unwrap();
        let expected = stated(&main);
        let late = folder.path().join("late.jsonl");
        if folder.path().join(name).exists() {
            fs::rename(folder.path().join(name), folder.path().join("late")).unwrap();
        }
        fs::write(&late, "").unwrap();
        let mut meter = Meter::default();
        for end in (0..whole.len()).step_by(97).chain([whole.len()]) {
            fs::write(&late, &whole[..end]).unwrap();
            meter.read(&ClaudeCode, &late).unwrap();
            meter = Meter::from_bytes(&meter.to_bytes()).unwrap();
        }
        assert_eq!(totals(&meter), expected, "{name}");
    }
}
