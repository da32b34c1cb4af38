//! What stops read of the client's transcripts: that it joins, that it is there, and that no stop fails for what it finds.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde_json::Value;
use workplace::{SESSION, Workplace};

const STOP: &str = r#","stop_hook_active":false"#;

fn transcript(place: &Workplace) -> PathBuf {
    place.folder.join("repository/none.jsonl")
}

fn line(text: &str) -> String {
    format!("{{\"type\":\"note\",\"text\":\"{text}\"}}\n")
}

/// A call that no hook saw and that the client refused.
fn unhooked(id: &str) -> String {
    let call = format!(r#"{{"type":"tool_use","id":"{id}","name":"Zap","input":{{}}}}"#);
    let none = "<tool_use_error>Error: No such tool available: Zap</tool_use_error>";
    let result = format!(r#"{{"type":"tool_result","tool_use_id":"{id}","is_error":true,"content":"{none}"}}"#);
    let said = |role: &str, block: &str| {
        format!("{{\"type\":\"{role}\",\"message\":{{\"role\":\"{role}\",\"content\":[{block}]}}}}\n")
    };
    said("assistant", &call) + &said("user", &result)
}

fn stop(place: &Workplace) -> String {
    place.answer(&place.payload("Stop", STOP))
}

/// The code that `writ verify` ends with, its last line, and its report.
fn verify(place: &Workplace) -> (Option<i32>, String, Value) {
    let told = place.writ(&["verify", SESSION]);
    let text = String::from_utf8(told.stdout).unwrap();
    let json = place.writ(&["verify", SESSION, "--format", "json"]);
    let report = serde_json::from_slice(&json.stdout).unwrap();
    (told.status.code(), text.trim_end().lines().last().unwrap_or_default().to_owned(), report)
}

fn phase(report: &Value, name: &str) -> Value {
    let phases = report["phases"].as_array().unwrap();
    phases.iter().find(|phase| phase["name"] == name).cloned().unwrap_or_default()
}

fn rows(place: &Workplace) -> Vec<Value> {
    let text = fs::read_to_string(place.session().join("ledger.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What the last stop's row says of transcripts.
fn read(place: &Workplace) -> Value {
    rows(place).last().unwrap()["detail"]["transcripts"].clone()
}

#[test]
fn a_place_that_was_moved_on_is_noticed() {
    for (name, forward, why) in [("gap", true, "read by no stop"), ("twice", false, "read twice")] {
        let place = Workplace::new(&format!("stops-{name}"));
        place.start();
        place.allowed("a");
        let told = r#"{"type":"tool_use","id":"a","name":"Write","input":{}}"#;
        let first = format!("{{\"type\":\"assistant\",\"message\":{{\"content\":[{told}]}}}}\n");
        let (second, third) = (line("second"), line("third"));
        fs::write(transcript(&place), format!("{first}{second}")).unwrap();
        stop(&place);
        let (code, last, report) = verify(&place);
        assert_eq!(
            (code, last.as_str(), &phase(&report, "coverage")["outcome"]),
            (Some(0), "verified", &"passed".into())
        );
        // Whoever may write there says that more, or less, was read.
        let at = if forward { first.len() + second.len() + third.len() } else { first.len() };
        let text = format!("{first}{second}{third}");
        fs::write(transcript(&place), &text).unwrap();
        let tail = writ_core::Digest::of(&text.as_bytes()[..at]);
        let cursor = place.session().join("transcripts.json");
        let mut kept: Value = serde_json::from_slice(&fs::read(&cursor).unwrap()).unwrap();
        kept["files"]["main"] = serde_json::json!({"end": at, "tail": tail.to_string()});
        fs::write(&cursor, kept.to_string()).unwrap();
        fs::write(transcript(&place), text + &line("fourth")).unwrap();
        stop(&place);
        let (_, _, report) = verify(&place);
        let found = phase(&report, "coverage");
        assert_eq!((&found["outcome"], place.approved()), (&"absent".into(), vec!["a".to_owned()]), "{found}");
        let finding = found["findings"][0].as_str().unwrap();
        assert!(finding.starts_with("main: bytes") && finding.contains(why) && finding.contains("row "), "{finding}");
    }
}

#[test]
fn a_transcript_that_is_gone_or_shorter_is_an_exception() {
    let place = Workplace::new("stops-gone");
    let agents = place.folder.join("repository/none/subagents");
    fs::create_dir_all(&agents).unwrap();
    let agent = agents.join("agent-a.jsonl");
    place.start();
    fs::write(transcript(&place), line("first")).unwrap();
    fs::write(&agent, line("agent")).unwrap();
    stop(&place);
    let whole = verify(&place);
    assert_eq!((whole.0, whole.1.as_str()), (Some(0), "verified"));
    let keep = fs::read(transcript(&place)).unwrap();
    let spoilt = |what: &str| {
        let (code, last, report) = verify(&place);
        assert!(code == Some(3) && last.starts_with("verified, except: 1 of 2 transcripts"), "{what}: {code:?} {last}");
        let finding = phase(&report, "transcripts")["findings"][0].as_str().unwrap().to_owned();
        assert!(finding.contains("row ") && finding.contains(what), "{finding}");
    };
    fs::write(transcript(&place), "").unwrap();
    spoilt("it has 0 now");
    fs::remove_file(transcript(&place)).unwrap();
    spoilt("it is gone");
    fs::write(transcript(&place), &keep).unwrap();
    assert_eq!(verify(&place).1, "verified");
    fs::remove_file(&agent).unwrap();
    spoilt("a: row");
}

#[test]
fn long_and_odd_names_of_subagents_hold_up_no_stop() {
    let place = Workplace::new("stops-names");
    let agents = place.folder.join("repository/none/subagents");
    fs::create_dir_all(&agents).unwrap();
    place.start();
    fs::write(transcript(&place), line("first")).unwrap();
    for number in 0..64 {
        let name = format!("agent-{}{number:03}.jsonl", "\u{1}".repeat(200));
        fs::write(agents.join(name), line("agent")).unwrap();
    }
    // No text in any encoding, and two that only differ there.
    for byte in [b"\xfe", b"\xff"] {
        let name = [b"agent-x", &byte[..], b".jsonl"].concat();
        fs::write(agents.join(OsStr::from_bytes(&name)), unhooked(&format!("c{}", byte[0]))).unwrap();
    }
    let mut names = Vec::new();
    for _ in 0..8 {
        let told = stop(&place);
        assert!(!told.contains("cannot"), "{told}");
        let said = read(&place);
        names.extend(said["read"].as_array().unwrap().iter().map(|one| one["file"].as_str().unwrap().to_owned()));
    }
    names.sort();
    assert_eq!(names.len(), 67, "each was read once");
    assert!(names.contains(&"x/fe".to_owned()) && names.contains(&"x/ff".to_owned()), "{names:?}");
    let found = rows(&place).iter().filter(|row| row["decision"] == "HALLUCINATED").count();
    assert_eq!(found, 2, "their calls have rows");
    let (code, last, _) = verify(&place);
    assert_eq!((code, last.as_str()), (Some(0), "verified"));
}

#[test]
fn a_place_that_is_no_file_is_as_good_as_none() {
    for what in ["folder", "full", "pipe", "link", "garbage"] {
        let place = Workplace::new(&format!("stops-{what}"));
        place.start();
        fs::write(transcript(&place), line("first")).unwrap();
        stop(&place);
        let cursor = place.session().join("transcripts.json");
        fs::remove_file(&cursor).unwrap();
        match what {
            "folder" => fs::create_dir(&cursor).unwrap(),
            "full" => fs::create_dir_all(cursor.join("below")).unwrap(),
            "link" => std::os::unix::fs::symlink("/dev/zero", &cursor).unwrap(),
            "garbage" => fs::write(&cursor, "{").unwrap(),
            _ => assert!(std::process::Command::new("mkfifo").arg(&cursor).status().unwrap().success()),
        }
        fs::write(transcript(&place), line("first") + &line("second")).unwrap();
        let told = stop(&place);
        assert!(!told.contains("cannot"), "{what}: {told}");
        assert_eq!(read(&place)["read"][0]["from"], 0, "{what}: it is read again");
        assert!(cursor.symlink_metadata().unwrap().is_file(), "{what}: replaced");
        let (code, last, _) = verify(&place);
        assert_eq!((code, last.as_str()), (Some(0), "verified"), "{what}");
    }
}

#[test]
fn more_subagents_than_are_read_hide_nothing_of_the_others() {
    let place = Workplace::new("stops-many");
    let agents = place.folder.join("repository/none/subagents");
    fs::create_dir_all(&agents).unwrap();
    place.start();
    fs::write(transcript(&place), unhooked("c1")).unwrap();
    for number in 0..10_003 {
        fs::write(agents.join(format!("agent-{number:05}.jsonl")), "").unwrap();
    }
    stop(&place);
    let said = read(&place);
    assert_eq!((&said["unread"], &said["read"][0]["file"]), (&3.into(), &"main".into()), "{said}");
    assert!(rows(&place).iter().any(|row| row["decision"] == "HALLUCINATED" && row["callId"] == "c1"));
    let (code, last, _) = verify(&place);
    assert!(code == Some(3) && last.starts_with("NOT VERIFIED"), "{last}");
}
