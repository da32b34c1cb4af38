//! Hooks that a notary answers: the same decisions on the same record, and nothing lost when it is killed.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
mod workplace;

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use workplace::{SESSION, Workplace};

/// A notary that is killed, at the latest, when the test ends.
struct Notary(Child);

impl Notary {
    fn run(place: &Workplace, args: &[&str]) -> Self {
        let words = [&["notary", "run"], args].concat();
        let mut child = place.command(&words).stdin(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("notary answers"), "{line}");
        Self(child)
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Notary {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn text(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&[output.stdout.clone(), output.stderr.clone()].concat()).into_owned()
}

/// The rows without what differs from run to run.
fn rows(place: &Workplace) -> Vec<String> {
    let ledger = fs::read_to_string(place.session().join("ledger.jsonl")).unwrap();
    let ledger = ledger.replace(&place.folder.display().to_string(), "");
    let told = |row: &str| {
        let value: serde_json::Value = serde_json::from_str(row).unwrap();
        let event = value["detail"]["event"].as_str().unwrap_or_default().to_owned();
        format!("{} {} {} {} {}", value["sequence"], value["callId"], value["decision"], value["denialReason"], event)
    };
    ledger.lines().map(told).collect()
}

fn day(place: &Workplace) -> Vec<String> {
    place.start();
    let mut answers = vec![place.answer(&place.write_call("one", "src/module.rs"))];
    answers.push(place.answer(&place.write_call("two", ".env")));
    answers.push(place.answer(&place.payload(
        "PreToolUse",
        r#","tool_name":"Bash","tool_use_id":"three","tool_input":{"command":"cat ~/.env; rm -rf ~"}"#,
    )));
    answers.push(place.answer(r#"{"session_id":"workplace","hook_event_name":"PreToolUse""#));
    answers.push(place.answer(&place.payload("Stop", r#","stop_hook_active":false"#)));
    let folder = place.folder.display().to_string();
    answers.into_iter().map(|answer| answer.replace(&folder, "")).collect()
}

/// The twin of every other test of decisions: with the notary each answer and each row is the same as without.
#[test]
fn what_a_notary_answers_is_what_the_hook_would_have() {
    let alone = Workplace::new("notary-without");
    let with = Workplace::new("notary-with");
    let notary = Notary::run(&with, &[]);
    assert_eq!(day(&alone), day(&with));
    assert_eq!(rows(&alone), rows(&with));
    let status = with.writ(&["notary", "status", "--format", "json"]);
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["answered"], 6, "{status}");
    let verified = with.writ(&["verify", SESSION]);
    assert!(verified.status.success(), "{}", text(&verified));
    let none = alone.writ(&["notary", "status"]);
    assert_eq!(none.status.code(), Some(3), "{}", text(&none));
    drop(notary);
}

#[test]
fn one_notary_has_a_state_folder_and_a_killed_one_leaves_it_free() {
    let place = Workplace::new("notary-one");
    let first = Notary::run(&place, &[]);
    let second = place.writ(&["notary", "run"]);
    assert!(!second.status.success() && text(&second).contains("running already"), "{}", text(&second));
    first.kill();
    // The name is still there, and nobody answers: the hook decides by itself.
    assert!(place.folder.join("state/notary.sock").exists());
    place.start();
    place.allowed("alone");
    let next = Notary::run(&place, &[]);
    place.allowed("answered");
    let stopped = place.writ(&["notary", "stop"]);
    assert!(stopped.status.success(), "{}", text(&stopped));
    drop(next);
    place.allowed("alone-again");
    assert_eq!(place.approved(), ["alone", "answered", "alone-again"]);
}

/// Whoever takes the notary's place and hangs up, or says nothing that a notary says, decides nothing: calls are denied, stops go on.
#[test]
fn an_answer_that_does_not_come_denies() {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;
    let place = Workplace::new("notary-broken");
    place.start();
    for said in [b"".as_slice(), b"x", b"a\0\0\0\xffno", b"a\xff\xff\xff\xff"] {
        let path = place.folder.join("state/notary.sock");
        drop(fs::remove_file(&path));
        let listener = UnixListener::bind(&path).unwrap();
        let serving = thread::spawn(move || {
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().unwrap();
                let mut question = [0; 4096];
                let _read = stream.read(&mut question).unwrap();
                drop(stream.write_all(said));
            }
        });
        let denied = place.answer(&place.write_call("denied", "src/module.rs"));
        assert!(denied.contains(r#""permissionDecision":"deny""#) && denied.contains("notary"), "{denied}");
        let stopped = place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
        assert!(!stopped.contains(r#""decision":"block""#), "{stopped}");
        serving.join().unwrap();
    }
    assert!(place.approved().is_empty());
}

/// Calls of four hooks at a time, while the notary is killed and run again: a call that was let through has its row, once.
#[test]
fn no_answered_call_is_lost_to_kills_of_the_notary() {
    let kills: u64 = env::var("WRIT_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(60);
    let place = Workplace::new("notary-killed");
    place.start();
    let over = AtomicBool::new(false);
    let (mut allowed, mut refused) = (Vec::new(), 0);
    thread::scope(|scope| {
        let hooks: Vec<_> = (0..4)
            .map(|hook| {
                let (place, over) = (&place, &over);
                scope.spawn(move || {
                    let (mut allowed, mut refused) = (Vec::new(), 0_u64);
                    for call in 0_u64.. {
                        if over.load(Ordering::Relaxed) {
                            break;
                        }
                        let id = format!("{hook}-{call}");
                        let answer = place.answer(&place.write_call(&id, "src/module.rs"));
                        if answer.contains("deny") {
                            assert!(answer.contains("the notary, which may have recorded"), "{answer}");
                            refused += 1;
                        } else {
                            allowed.push(id);
                        }
                    }
                    (allowed, refused)
                })
            })
            .collect();
        let mut moment = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..kills {
            let notary = Notary::run(&place, &[]);
            moment = moment.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            thread::sleep(Duration::from_micros((moment >> 33) % 40_000));
            notary.kill();
        }
        over.store(true, Ordering::Relaxed);
        for hook in hooks {
            let (some, no) = hook.join().unwrap();
            allowed.extend(some);
            refused += no;
        }
    });
    let rows = place.approved();
    let once: BTreeSet<&String> = rows.iter().collect();
    assert_eq!(once.len(), rows.len(), "a call has two rows");
    let lost: Vec<&String> = allowed.iter().filter(|id| !once.contains(id)).collect();
    assert!(lost.is_empty(), "{lost:?}");
    eprintln!("{kills} kills: {} calls let through, {refused} refused", allowed.len());
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    let verified = place.writ(&["verify", SESSION]);
    assert!(verified.status.success(), "{}", text(&verified));
}
