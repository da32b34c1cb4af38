//! Coverage: what the client's own transcript says of calls, against the rows.

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::io::Write;

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
        let log = place.folder.join(".copilot/session-state/s");
        fs::create_dir_all(&log).unwrap();
        let hook = |members: &str| {
            let cwd = place.folder.join("repository");
            let payload = format!(r#"{{"sessionId":"s","timestamp":1,"cwd":"{}"{members}}}"#, cwd.display());
            let mut child = place.command(&["hook", "--client", "copilot"]).spawn().unwrap();
            child.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
            assert!(child.wait_with_output().unwrap().status.success());
        };
        hook(r#","source":"new""#);
        let args = r#","toolName":"view","toolArgs":{"path":"src"}"#;
        hook(args);
        hook(&format!(r#"{args},"toolResult":{{"resultType":"success"}}"#));
        let lines = [
            r#"{"type":"tool.execution_start","id":"1","data":{"toolCallId":"a","toolName":"view","arguments":{"path":"src"}}}"#.to_owned(),
            r#"{"type":"tool.execution_complete","id":"2","data":{"toolCallId":"a","success":true}}"#.to_owned(),
            r#"{"type":"tool.execution_start","id":"3","data":{"toolCallId":"b","toolName":"bash","arguments":{}}}"#.to_owned(),
            format!(r#"{{"type":"tool.execution_complete","id":"4","data":{{"toolCallId":"b","success":{success}{error}}}}}"#),
        ];
        hook(r#","reason":"complete""#);
        // The client writes its log late.
        fs::write(log.join("events.jsonl"), lines.join("\n") + "\n").unwrap();
        let output = place.writ(&["verify", "--format", "json"]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let phases = report["phases"].as_array().unwrap();
        let coverage = phases.iter().find(|phase| phase["name"] == "coverage").unwrap();
        let passed = coverage["outcome"] == "passed";
        assert_eq!((passed, output.status.code() == Some(0)), (code == 0, code == 0), "{success}{error}: {report}");
        let said = coverage["summary"].as_str().unwrap();
        assert_eq!(said.contains("1 that the client refused before it asked"), code == 0, "{said}");
    }
}
