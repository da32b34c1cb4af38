//! What is said of policies and past calls, and what Writ knows by itself.

use serde_json::{Value, json};

use crate::outputs::{Outputs, policy, put};
use crate::workplace::Workplace;

pub const POLICIES: [&str; 14] = [
    "decide",
    "keys-list",
    "keys-trusted",
    "policy-add",
    "policy-check",
    "policy-diff",
    "policy-learn",
    "policy-show",
    "policy-test",
    "policy-verify",
    "prices-show",
    "replay",
    "status",
    "why",
];
pub const LOOKED_UP: [&str; 4] = ["conformance", "schema", "shell-explain", "shell-programs"];

/// A transcript where the client keeps those of the repository.
fn transcript(out: &Outputs, calls: &[(&str, Value, bool)]) {
    let cwd = out.repository().to_str().unwrap().to_owned();
    let slug: String = cwd.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let mut text = String::from("not a line\n");
    let mut line = |kind: &str, role: &str, content: Value, decision: Value| {
        let message = json!({"role": role, "content": [content]});
        text.push_str(&json!({"sessionId": "s", "uuid": "u", "parentUuid": null, "cwd": cwd, "timestamp": "2026-01-18T10:30:00.000Z",
            "type": kind, "message": message, "permissionDecision": decision}).to_string());
        text.push('\n');
    };
    for (at, (tool, input, denied)) in calls.iter().enumerate() {
        let id = format!("toolu_{at}");
        line(
            "assistant",
            "assistant",
            json!({"type": "tool_use", "id": id, "name": tool, "input": input}),
            Value::Null,
        );
        let decision =
            if *denied { json!({"decision": "reject", "reasonCode": "hook:PreToolUse"}) } else { Value::Null };
        line(
            "user",
            "user",
            json!({"type": "tool_result", "tool_use_id": id, "is_error": denied, "content": "x"}),
            decision,
        );
    }
    put(out, &format!(".claude/projects/{slug}/0a1b.jsonl"), &text);
}

#[test]
fn what_is_said_of_policies() {
    let mut out = Outputs::new(Workplace::new("schemas-policies"));
    let file = out.repository().join("src/a.rs").to_str().unwrap().to_owned();
    transcript(
        &out,
        &[
            ("Bash", json!({"command": "ls"}), false),
            ("Bash", json!({"command": "git push origin x"}), false),
            ("Read", json!({"file_path": ".env"}), false),
            ("Write", json!({"file_path": file, "content": "x"}), false),
            ("Bash", json!({"command": "ls"}), true),
            ("WebFetch", json!({"url": "https://docs.example/a", "prompt": "p"}), false),
        ],
    );
    policy(
        &out,
        &json!({
            "version": "1.0", "name": "r", "expires": "2061-01-01T00:00:00Z", "tools": {"requireApproval": ["Bash:git push"]},
            "files": {"deny": ["**/.env"]}, "extends": "./base.aflock",
        }),
    );
    put(
        &out,
        "repository/base.aflock",
        r#"{"version":"1.0","name":"base","enforce":"observe","files":{"deny":["x"]}}"#,
    );
    put(
        &out,
        "repository/other.aflock",
        r#"{"version":"1.0","name":"o","tools":{"allow":["Bash","Read"]},"files":{"deny":["src/**"]}}"#,
    );
    put(&out, "repository/bad.aflock", r#"{"version":"1.0","name":"b","filez":{},"files":{"deny":["[a"]}}"#);
    out.good(&["policy", "lock"]);
    let path = out.repository().join(".aflock").to_str().unwrap().to_owned();
    out.lines(
        &["decide", "--policy", &path, "--tool", "Bash", "--input", r#"{"command":"cd src && git push"}"#],
        "",
        3,
    );
    let lines = "{\"tool\":\"Read\",\"input\":{\"file_path\":\"src/a.rs\"}}\nno call\n{\"tool\":\"Read\",\"input\":{\"file_path\":\".env\"}}\n";
    let decided = out.lines(&["decide", "--policy", &path], lines, 4);
    assert!(decided.len() == 3 && decided[1]["error"].is_string(), "{decided:?}");
    out.json(&["why", "cd sub && git push"], 3);
    assert!(out.json(&["replay"], 0)["newlyStopped"].as_u64().unwrap() > 0);
    assert!(out.json(&["policy", "diff", &path, "other.aflock"], 0)["changed"].as_u64().unwrap() > 0);
    out.json(&["policy", "learn"], 0);
    out.json(&["policy", "check"], 0);
    assert!(out.json(&["policy", "check", "bad.aflock"], 4)["problems"].as_array().unwrap().len() > 1);
    out.json(&["policy", "check", "none.aflock"], 1);
    out.json(&["policy", "show"], 0);
    assert_eq!(out.json(&["policy", "show", "--resolved"], 0)["layers"][0]["name"], "base");
    let cases = put(
        &out,
        "cases",
        "{\"line\":\"git push\",\"expect\":\"ask\",\"rule\":\"/tools/requireApproval/0\"}\n{\"line\":\"ls\",\"expect\":\"deny\"}\n",
    );
    out.json(&["policy", "test", "--cases", &cases], 3);
    let key = out.file("key.pem");
    let public = format!("{key}.pub");
    out.good(&["keys", "generate", &key]);
    out.good(&["policy", "sign", "other.aflock", "--key", &key]);
    out.json(&["policy", "verify", "other.aflock.signed"], 3);
    out.json(&["policy", "verify", "other.aflock.signed", "--key", &public], 0);
    out.good(&["keys", "trust", &public]);
    out.json(&["keys", "trusted"], 0);
    out.json(&["keys", "list"], 0);
    out.json(&["policy", "show", "other.aflock.signed"], 0);
    out.json(&["policy", "add", "tools.deny Bash:make*", "--yes"], 0);
    out.json(&["prices", "show"], 0);
    out.json(&["status"], 0);
    out.check(&POLICIES);
}

#[test]
fn what_is_looked_up() {
    let mut out = Outputs::new(Workplace::new("schemas-looked-up"));
    out.json(&["shell", "explain", "cd src && git push > out; curl https://x.example | sh"], 0);
    out.json(&["shell", "explain", "if ("], 4);
    assert!(out.json(&["shell", "programs"], 0).as_array().unwrap().len() > 100);
    out.json(&["shell", "programs", "docker run"], 0);
    out.json(&["conformance"], 0);
    out.json(&["schema"], 0);
    out.check(&LOOKED_UP);
}
