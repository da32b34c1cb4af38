//! An agent without an adapter of its own, connected by the format in `spec/clients/generic.md`.

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::io::Write;

use workplace::{SESSION, Workplace};

const POLICY: &str = r#"{"version":"1.0","name":"g","files":{"deny":["**/.env"]},
    "tools":{"deny":["Bash:curl *","dial"]},"domains":{"deny":["evil.example"]}}"#;

/// Exit code and standard output.
fn hook(place: &Workplace, payload: &str) -> (Option<i32>, String) {
    let mut child = place.command(&["hook", "--client", "generic"]).spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

fn event(place: &Workplace, event: &str, members: &str) -> String {
    let cwd = place.folder.join("repository");
    format!(r#"{{"event":"{event}","session":"other-agent","cwd":"{}"{members}}}"#, cwd.display())
}

fn answer(place: &Workplace, name: &str, members: &str) -> String {
    let (code, text) = hook(place, &event(place, name, members));
    assert_eq!(code, Some(0), "{text}");
    text
}

#[test]
fn a_call_is_judged_by_what_it_does_whatever_its_tool_is_called() {
    let place = Workplace::new("generic");
    fs::write(place.folder.join("repository/.aflock"), POLICY).unwrap();
    answer(&place, "session-start", "");
    for (id, tool, does, verdict) in [
        ("1", "terminal", r#"{"shell":{"command":"ls && curl https://a.example"}}"#, "deny"),
        ("2", "terminal", r#"{"shell":{"command":"ls -l"}}"#, "null"),
        ("3", "view", r#"{"read":{"paths":["src/a.rs","app/.env"]}}"#, "deny"),
        ("4", "view", r#"{"read":{"paths":["src/a.rs"]}}"#, "null"),
        ("5", "browse", r#"{"fetch":{"url":"https://evil.example/x"}}"#, "deny"),
        ("6", "dial", r#""web-search""#, "deny"),
        ("7", "put", r#"{"write":{"paths":[".aflock"]}}"#, "deny"),
    ] {
        let call = format!(r#","call":{{"id":"{id}","tool":"{tool}","input":{{}},"does":{does}}}"#);
        let text = answer(&place, "before-call", &call);
        let told =
            if verdict == "null" { r#"{"verdict":null"#.to_owned() } else { format!(r#""verdict":"{verdict}""#) };
        assert!(text.contains(&told), "{tool} {does}: {text}");
    }
    let canonical = r#","call":{"id":"8","tool":"Bash","input":{"command":"curl a.example"}}"#;
    assert!(answer(&place, "before-call", canonical).contains(r#""verdict":"deny""#));
    answer(&place, "after-call", r#","call":{"id":"2","tool":"terminal"},"response":"total 0""#);
    answer(&place, "stop", r#","text":"done""#);
    let verified = place.writ(&["verify", "other-agent"]);
    let report = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(report.contains("generic") || verified.status.success(), "{report}");
    let rows = place.writ(&["session", "show", "other-agent"]);
    assert!(String::from_utf8_lossy(&rows.stdout).contains("terminal"), "{}", String::from_utf8_lossy(&rows.stdout));
}

#[test]
fn what_is_not_of_the_format_is_denied_with_its_place() {
    let place = Workplace::new("generic-wrong");
    fs::write(place.folder.join("repository/.aflock"), POLICY).unwrap();
    for (members, told) in [
        (r#","call":{"id":"1","tool":"t","does":{"shell":{"comand":"ls"}}}"#, "comand"),
        (r#","call":{"id":"1","tool":"t","does":{"read":{"paths":[]}}}"#, "paths"),
        (r#","call":{"id":"1","tool":"t","does":{"fly":{}}}"#, "fly"),
        (r#","call":{"tool":"t"}"#, "id"),
        ("", "call"),
        (r#","cwd":"twice""#, "cwd"),
        (r#","cal":{}"#, "cal"),
    ] {
        let text = answer(&place, "before-call", members);
        assert!(text.contains(r#""verdict":"deny""#) && text.contains(told), "{members}: {text}");
    }
    let (code, text) =
        hook(&place, r#"{"event":"before-call","session":"s","cwd":"relative","call":{"id":"1","tool":"t"}}"#);
    assert!(code == Some(0) && text.contains("absolute"), "{text}");
}

#[test]
fn two_clients_work_side_by_side() {
    let place = Workplace::new("generic-beside");
    place.start();
    place.allowed("a");
    answer(&place, "before-call", r#","call":{"id":"a","tool":"put","does":{"write":{"paths":["src/module.rs"]}}}"#);
    place.allowed("b");
    assert_eq!(place.approved(), ["a", "b"]);
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    assert!(place.session().is_dir() && place.writ(&["verify", SESSION]).status.success());
}

/// A state folder that would be another one in each directory is none: what is governed is denied.
#[test]
fn a_relative_state_folder_is_refused() {
    let place = Workplace::new("generic-relative");
    fs::write(place.folder.join("repository/.aflock"), POLICY).unwrap();
    let call = r#","call":{"id":"1","tool":"view","does":{"read":{"paths":["src/a.rs"]}}}"#;
    let mut child = place.command(&["hook", "--client", "generic"]).env("WRIT_STATE_DIR", "state").spawn().unwrap();
    child.stdin.take().unwrap().write_all(event(&place, "before-call", call).as_bytes()).unwrap();
    let text = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert!(text.contains(r#""verdict":"deny""#) && text.contains("WRIT_STATE_DIR"), "{text}");
    assert!(!place.folder.join("repository/state").exists());
}

/// What is too long for a row is denied, and on record.
#[test]
fn members_that_are_too_long_are_denied_and_on_record() {
    let place = Workplace::new("generic-long");
    fs::write(place.folder.join("repository/.aflock"), POLICY).unwrap();
    answer(&place, "session-start", "");
    let rows = || {
        let text = fs::read_to_string(place.folder.join("state/sessions/other-agent/ledger.jsonl")).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let long = "x".repeat(70_000);
    let read = r#""does":{"read":{"paths":["src/a.rs"]}}"#;
    let deep = format!("{}/a.rs", "d/".repeat(1_900));
    let many = vec![format!("\"{deep}\""); 60].join(",");
    for (what, members, denied) in [
        ("id", format!(r#","call":{{"id":"{long}","tool":"view",{read}}}"#), false),
        ("agent", format!(r#","agent":{{"id":"{long}"}},"call":{{"id":"1","tool":"view",{read}}}"#), false),
        ("tool", format!(r#","call":{{"id":"2","tool":"{long}",{read}}}"#), true),
        ("paths", format!(r#","call":{{"id":"3","tool":"view","does":{{"read":{{"paths":[{many}]}}}}}}"#), true),
    ] {
        let before = rows().len();
        let text = answer(&place, "before-call", &members);
        assert_eq!(text.contains(r#""verdict":"deny""#), denied, "{what}: {text}");
        assert!(!text.contains("not on record"), "{what}: {text}");
        let rows = rows();
        assert_eq!(rows.len(), before + 1, "{what}");
        assert!(rows.last().unwrap().contains(if denied { "DENIED" } else { "APPROVED" }), "{what}");
    }
    let before = rows().len();
    answer(&place, "after-call", &format!(r#","call":{{"id":"{long}","tool":"view"}},"response":1"#));
    answer(&place, "session-end", &format!(r#","source":"{long}""#));
    assert_eq!(rows().len(), before + 2, "other events, too");
    let verified = place.writ(&["verify", "other-agent"]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}

/// What a client says a call does is part of what is approved, also where the input says nothing.
#[test]
fn an_approval_is_for_what_the_call_does() {
    let place = Workplace::new("generic-approval");
    let policy = r#"{"version":"1.0","name":"g","tools":{"requireApproval":["term"]}}"#;
    fs::write(place.folder.join("repository/.aflock"), policy).unwrap();
    answer(&place, "session-start", "");
    let mut names = Vec::new();
    for (id, call) in [
        ("1", r#""does":{"shell":{"command":"git push"}}"#),
        ("2", r#""does":{"shell":{"command":"rm -rf src"}}"#),
        ("3", r#""does":{"write":{"paths":["a"]}}"#),
        ("4", r#""does":{"write":{"paths":["b"]}}"#),
        ("5", r#""does":"other""#),
        ("6", r#""input":{"shell":{"command":"git push"}}"#),
        ("7", r#""input":{},"does":{"shell":{"command":"git push"}}"#),
    ] {
        let text = answer(&place, "before-call", &format!(r#","call":{{"id":"{id}","tool":"term",{call}}}"#));
        let name = text.split("writ approve ").nth(1).unwrap_or_else(|| panic!("{text}"));
        names.push(name.chars().take(12).collect::<String>());
    }
    assert_eq!(names.first(), names.last(), "the same call has the same name");
    names.pop();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 6, "{names:?}");
    answer(&place, "stop", "");
    let verified = place.writ(&["verify", "other-agent"]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}
