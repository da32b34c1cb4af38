//! Which row belongs to which call: a grant is for one run, and that run comes before the call's result.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
#[path = "workplace/lab.rs"]
mod lab;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use lab::Lab;
use serde_json::{Value, json};
use workplace::SESSION;

fn policy() -> Value {
    json!({"version": "1.0", "name": "rows", "enforce": "calls", "files": {"deny": ["**/.env"]}})
}

fn lab(name: &str) -> Lab {
    Lab::new(name, &policy(), &[])
}

/// A call of a line with more in its input.
fn ask(lab: &Lab, id: &str, input: &Value) {
    let more = format!(r#","tool_name":"Bash","tool_use_id":"{id}","tool_input":{input}"#);
    let answer: Value = serde_json::from_str(&lab.place.answer(&lab.place.payload("PreToolUse", &more))).unwrap();
    assert!(answer["hookSpecificOutput"]["updatedInput"].is_object(), "{answer}");
}

fn tell(lab: &Lab, id: &str, event: &str, more: &str) {
    let more = format!(r#","tool_name":"Bash","tool_use_id":"{id}","tool_input":{{"command":"echo one"}}{more}"#);
    lab.place.answer(&lab.place.payload(event, &more));
}

fn exec(lab: &Lab, id: &str) -> (Option<i32>, String) {
    let output = lab.writ(&["exec", "--session", SESSION, "--call", id, "--", "echo one"]);
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

const ONE: &str = r#","tool_response":"one""#;

#[test]
fn what_ran_outside_is_found_whatever_is_run_afterwards() {
    let lab = lab("rows-afterwards");
    ask(&lab, "call-a", &json!({"command": "echo one"}));
    tell(&lab, "call-a", "PostToolUse", ONE);
    let (code, said) = exec(&lab, "call-a");
    assert!(code == Some(126) && said.contains("call `call-a` is over"), "{said}");
    let phase = lab.phase("sandbox");
    assert_eq!(phase["outcome"], "failed", "{phase}");
    assert!(phase["findings"][0].as_str().unwrap().contains("not in the sandbox"), "{phase}");
}

#[test]
fn a_grant_is_for_one_run() {
    let lab = lab("rows-once");
    ask(&lab, "call-a", &json!({"command": "echo one"}));
    assert_eq!(exec(&lab, "call-a"), (Some(0), "one\n".to_owned()));
    let (code, said) = exec(&lab, "call-a");
    assert!(code == Some(126) && said.contains("is over"), "{said}");
    tell(&lab, "call-a", "PostToolUse", ONE);
    assert_eq!(lab.phase("sandbox")["outcome"], "passed", "{}", lab.phase("sandbox"));
}

/// A call in the background has its result before its run ends, and may have it before its run begins.
#[test]
fn a_result_may_come_before_a_run_in_the_background() {
    let lab = lab("rows-background");
    ask(&lab, "call-a", &json!({"command": "echo one", "run_in_background": true}));
    tell(&lab, "call-a", "PostToolUse", ONE);
    assert_eq!(exec(&lab, "call-a"), (Some(0), "one\n".to_owned()));
    assert_eq!(lab.phase("sandbox")["outcome"], "passed", "{}", lab.phase("sandbox"));
    let (code, said) = exec(&lab, "call-a");
    assert!(code == Some(126) && said.contains("is over"), "{said}");
}

/// A line that is moved to the background has its result while it runs.
/// Whoever starts late finds nobody who would end what it leaves running.
#[test]
fn nothing_runs_once_its_session_is_over() {
    let lab = lab("rows-over");
    ask(&lab, "call-a", &json!({"command": "echo one"}));
    lab.place.answer(&lab.place.payload("SessionEnd", r#","reason":"other""#));
    let (code, said) = exec(&lab, "call-a");
    assert!(code == Some(126) && said.contains("call `call-a` is over"), "{said}");
}

#[test]
fn a_result_may_come_while_it_runs() {
    let lab = lab("rows-moved");
    let (id, mut shell) = lab.shell("sleep 0.8; echo one");
    let running = shell.stdout(std::process::Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    tell(&lab, &id, "PostToolUse", ONE);
    assert_eq!(String::from_utf8(running.wait_with_output().unwrap().stdout).unwrap(), "one\n");
    assert_eq!(lab.phase("sandbox")["outcome"], "passed", "{}", lab.phase("sandbox"));
}

#[test]
fn a_failed_line_has_to_have_run_in_its_sandbox_too() {
    let lab = lab("rows-failed");
    ask(&lab, "call-a", &json!({"command": "echo one"}));
    tell(&lab, "call-a", "PostToolUseFailure", r#","error":"Exit code 3\nbad","is_interrupt":false"#);
    let phase = lab.phase("sandbox");
    assert_eq!(phase["outcome"], "failed", "{phase}");
    assert!(phase["findings"][0].as_str().unwrap().contains("not in the sandbox"), "{phase}");
    // What was killed, or refused by Writ itself, may not have run: that is said, and passes for nothing.
    for (number, error) in
        ["Exit code 137", "Exit code 126\\nerror: no", "the user interrupted it"].into_iter().enumerate()
    {
        let lab = Lab::new(&format!("rows-failed-{number}"), &policy(), &[]);
        ask(&lab, "call-a", &json!({"command": "echo one"}));
        tell(&lab, "call-a", "PostToolUseFailure", &format!(r#","error":"{error}","is_interrupt":false"#));
        let phase = lab.phase("sandbox");
        assert_eq!(phase["outcome"], "absent", "{error}: {phase}");
        assert!(phase["summary"].as_str().unwrap().contains("of 1 nothing is known"), "{phase}");
    }
}

/// Where a self-test stood nothing is left, and what the kernel worked in for a call stays only for a while: until nobody has called for half
/// a minute.
#[test]
fn nothing_piles_up_in_a_session() {
    let lab = lab("rows-piles");
    let (_, said) = lab.run("sleep 300 >/dev/null 2>&1 & echo x > ~/.kept; echo $!");
    for _ in 0..24 {
        assert_eq!(lab.run("cat ~/.kept"), (Some(0), "x\n".to_owned()));
    }
    let session = lab.place.session();
    let names = |folder: &str| -> Vec<String> {
        let entries = fs::read_dir(session.join(folder)).unwrap().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    let works = || names("layer-").into_iter().filter(|name| name.starts_with("work-")).count();
    assert!(works() > 24, "{:?}", names("layer-"));
    let begun = Instant::now();
    // That of what goes on running stays, and one that is ready for the next call.
    while works() != 2 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", names("layer-"));
        sleep(Duration::from_millis(200));
    }
    assert!(!names("tmp").iter().any(|name| name.starts_with("writ-self-test-")), "{:?}", names("tmp"));
    // What was left running still has its layer: it can be written through.
    let still = lab.run(&format!("kill -0 {} && echo there", said.trim()));
    assert_eq!(still, (Some(0), "there\n".to_owned()));
    lab.place.answer(&lab.place.payload("SessionEnd", r#","reason":"other""#));
}
