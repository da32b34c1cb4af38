//! Coverage: what the client's own transcript says of calls, against the rows.

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use workplace::Workplace;

/// What a client refused before it asked a hook never began; what it let through without asking did.
#[test]
fn a_call_that_the_client_refused_itself_is_no_unobserved_one() {
    for (success, error, code) in [
        (
            "false",
            r#","error":{"message":"Expected property name","code":"failure"},"toolTelemetry":{"properties":{"wasSyntaxError":"true"}}"#,
            0,
        ),
        ("false", r#","error":{"message":"no such file","code":"failure"}"#, 1),
        ("true", "", 1),
    ] {
        let place = Workplace::new(&format!("refused-itself-{success}-{code}"));
        let log = called_once(&place);
        let lines = [
            CALLED.to_owned(),
            r#"{"type":"tool.execution_start","id":"3","data":{"toolCallId":"b","toolName":"bash","arguments":{}}}"#
                .to_owned(),
            format!(
                r#"{{"type":"tool.execution_complete","id":"4","data":{{"toolCallId":"b","success":{success}{error}}}}}"#
            ),
        ];
        // The client writes its log while the hook runs, and the rest behind it.
        let (begun, file) = (format!("{CALLED}\n"), log.clone());
        let client = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            fs::write(file, begun).unwrap();
        });
        hook(&place, r#","reason":"complete""#);
        client.join().unwrap();
        fs::write(log, lines.join("\n") + "\n").unwrap();
        let output = place.writ(&["verify", "--format", "json"]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let coverage = phase(&report, "coverage").unwrap();
        let passed = coverage["outcome"] == "passed";
        assert_eq!((passed, output.status.code() == Some(0)), (code == 0, code == 0), "{success}{error}: {report}");
        let said = coverage["summary"].as_str().unwrap();
        assert_eq!(said.contains("1 that the client refused before it asked"), code == 0, "{said}");
        assert!(phase(&report, "transcripts").is_none(), "{report}");
    }
}

/// Another user's notary keeps the record, and was not there when the hook denied: the call is on the hook's own record.
#[test]
fn a_call_that_a_hook_denied_without_a_row_here_is_an_exception() {
    let began = r#"{"type":"tool.execution_start","id":"3","data":{"toolCallId":"b","toolName":"bash","arguments":{"command":"ls"}}}"#;
    for (message, kind, status) in
        [("Denied by preToolUse hook: no notary", "denied", "verified"), ("no such file", "failure", "broken")]
    {
        let place = Workplace::new(&format!("denied-elsewhere-{kind}"));
        let log = called_once(&place);
        let ended = format!(
            r#"{{"type":"tool.execution_complete","id":"4","data":{{"toolCallId":"b","success":false,"error":{{"message":"{message}","code":"{kind}"}}}}}}"#
        );
        fs::write(log, format!("{CALLED}\n{began}\n{ended}\n")).unwrap();
        hook(&place, r#","reason":"complete""#);
        let output = place.writ(&["verify", "--format", "json"]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let coverage = phase(&report, "coverage").unwrap();
        assert_eq!((output.status.code(), &report["status"]), (Some(3), &Value::from(status)), "{report}");
        let is_absent = coverage["outcome"] == "absent";
        assert_eq!(is_absent, status == "verified", "{report}");
        let denials = phase(&report, "denials").map(|phase| phase["summary"].as_str().unwrap());
        assert_eq!(denials.is_some_and(|said| said.starts_with("1 of 2 calls were denied")), is_absent, "{report}");
    }
}

/// A call that the last event of a session tells of comes before its end.
#[test]
fn a_call_that_is_found_at_the_end_breaks_no_record() {
    let place = Workplace::new("found-at-the-end");
    let log = called_once(&place);
    let refused = r#"{"type":"tool.execution_start","id":"3","data":{"toolCallId":"b","toolName":"bash","arguments":{}}}
{"type":"tool.execution_complete","id":"4","data":{"toolCallId":"b","success":false,"error":{"message":"no"},"toolTelemetry":{"properties":{"wasSyntaxError":"true"}}}}"#;
    fs::write(log, format!("{CALLED}\n{refused}\n")).unwrap();
    hook(&place, r#","reason":"complete""#);
    let output = place.writ(&["verify", "--format", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(phase(&report, "coverage").unwrap()["summary"], "all 2 calls of the transcript are on record");
    assert_eq!(output.status.code(), Some(0), "{report}");
}

/// Some models number their calls anew in each message.
#[test]
fn ids_that_come_again_are_calls_of_their_own() {
    for (extra, holds) in [("", true), ("read_file", true), ("web_fetch", false)] {
        let place = Workplace::new(&format!("ids-again-{extra}"));
        let folder = place.folder.join(".qwen/projects/p/chats");
        fs::create_dir_all(&folder).unwrap();
        let (path, cwd) = (folder.join("q.jsonl"), place.folder.join("repository"));
        let tell = |event: &str, members: &str| {
            let payload = format!(
                r#"{{"session_id":"q","transcript_path":"{}","cwd":"{}","hook_event_name":"{event}","timestamp":"2026-11-22T02:08:33.403Z"{members}}}"#,
                path.display(),
                cwd.display()
            );
            let mut child = place.command(&["hook", "--client", "qwen"]).spawn().unwrap();
            child.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
            String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
        };
        tell("SessionStart", r#","source":"startup""#);
        let calls = [
            ("read_file", r#"{"file_path":"src/a.rs"}"#, true),
            ("run_shell_command", r#"{"command":"ls"}"#, true),
            ("run_shell_command", r#"{"command":"cat .env"}"#, false),
        ];
        let mut lines = String::new();
        let told = |tool: &str, input: &str, said: &str| {
            format!(
                "{{\"type\":\"assistant\",\"message\":{{\"role\":\"model\",\"parts\":[{{\"functionCall\":{{\"id\":\"call_0\",\"name\":\"{tool}\",\"args\":{input}}}}}]}}}}\n\
                 {{\"type\":\"tool_result\",\"message\":{{\"role\":\"user\",\"parts\":[{{\"functionResponse\":{{\"id\":\"call_0\",\"name\":\"{tool}\",\"response\":{said}}}}}]}}}}\n"
            )
        };
        for (tool, input, runs) in calls {
            let members =
                format!(r#","tool_name":"{tool}","tool_input":{input},"tool_use_id":"t","tool_call_id":"call_0""#);
            let said = tell("PreToolUse", &members);
            assert_eq!(!said.contains("deny"), runs, "{said}");
            if runs {
                tell("PostToolUse", &format!(r#"{members},"tool_response":{{"output":"x"}}"#));
                lines.push_str(&told(tool, input, r#"{"output":"x"}"#));
            } else {
                lines.push_str(&told(tool, input, r#"{"error":"denied"}"#));
            }
        }
        if !extra.is_empty() {
            lines.push_str(&told(extra, r#"{"file_path":"src/a.rs"}"#, r#"{"output":"x"}"#));
        }
        fs::write(&path, lines).unwrap();
        tell("Stop", "");
        let output = place.writ(&["verify", "--format", "json"]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let coverage = phase(&report, "coverage").unwrap();
        assert_eq!(coverage["outcome"] == "passed", holds, "{extra}: {coverage:#}");
    }
}

/// Whoever writes to it after the session could have taken anything out.
#[test]
fn a_transcript_that_no_stop_read_is_an_exception() {
    let place = Workplace::new("unbound");
    let log = called_once(&place);
    hook(&place, r#","reason":"complete""#);
    fs::write(log, format!("{CALLED}\n")).unwrap();
    let output = place.writ(&["verify", "--format", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(phase(&report, "coverage").unwrap()["outcome"], "passed", "{report}");
    let said = phase(&report, "transcripts").unwrap()["summary"].as_str().unwrap();
    assert!(said.starts_with("no stop read the transcript"), "{report}");
    assert_eq!(output.status.code(), Some(3), "{report}");

    // A bundle's manifest tells of it, to both verifiers.
    let (bundle, key) = (place.folder.join("s.tar"), place.session_of("s").join("ledger.pub"));
    let (bundle, key) = (bundle.to_str().unwrap(), key.to_str().unwrap());
    assert!(place.writ(&["export", "s", "-o", bundle]).status.success());
    let output = place.writ(&["verify", bundle, "--trust", key]);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stdout));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../verifiers/python/bundle.py");
    let other = Command::new("/usr/bin/python3").args([script, bundle, "--trust", key]).output().unwrap();
    let said = String::from_utf8_lossy(&other.stdout);
    assert!(other.status.code() == Some(3) && said.contains("no stop read the transcript"), "{said}");
}

/// What the client's log says of the call in [`called_once`].
const CALLED: &str = r#"{"type":"tool.execution_start","id":"1","data":{"toolCallId":"a","toolName":"view","arguments":{"path":"src"}}}
{"type":"tool.execution_complete","id":"2","data":{"toolCallId":"a","success":true}}"#;

/// A session of Copilot's with one call; returns where its log will be.
fn called_once(place: &Workplace) -> PathBuf {
    let folder = place.folder.join(".copilot/session-state/s");
    fs::create_dir_all(&folder).unwrap();
    hook(place, r#","source":"new""#);
    let args = r#","toolName":"view","toolArgs":{"path":"src"}"#;
    hook(place, args);
    hook(place, &format!(r#"{args},"toolResult":{{"resultType":"success"}}"#));
    folder.join("events.jsonl")
}

fn hook(place: &Workplace, members: &str) {
    let cwd = place.folder.join("repository");
    let payload = format!(r#"{{"sessionId":"s","timestamp":1,"cwd":"{}"{members}}}"#, cwd.display());
    let mut child = place.command(&["hook", "--client", "copilot"]).spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
}

fn phase<'a>(report: &'a Value, name: &str) -> Option<&'a Value> {
    report["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == name)
}
