//! What is said of sessions, and of what agents claimed in them.

use std::fs;

use serde_json::{Value, json};

use crate::outputs::{Outputs, commit, policy, put, stop};
use crate::workplace::{SESSION as ID, Workplace};

pub const SESSION: [&str; 15] = [
    "agentflow-start",
    "agentflow-verify",
    "approvals",
    "doctor",
    "export",
    "identity",
    "keys-list",
    "limits-show",
    "report",
    "rows",
    "session-list",
    "status",
    "verify",
    "watch",
    "why",
];
pub const CLAIMS: [&str; 5] = ["claim-parse", "claim-snapshot", "claim-verify", "claims", "report"];

fn call(place: &Workplace, id: &str, tool: &str, input: &Value) {
    let members = format!(r#","tool_name":"{tool}","tool_input":{input},"tool_use_id":"{id}""#);
    place.answer(&place.payload("PreToolUse", &members));
}

#[test]
fn what_is_said_of_a_session() {
    let mut out = Outputs::new(Workplace::new("schemas-session"));
    policy(
        &out,
        &json!({
            "version": "1.0", "name": "look", "tools": {"requireApproval": ["Bash:git push"]},
            "files": {"allow": ["src/**"], "deny": ["**/.env"]}, "limits": {"maxToolCalls": 100},
        }),
    );
    assert_eq!(out.json(&["agentflow", "verify"], 0)["pass"], Value::Null);
    out.json(&["agentflow", "start"], 0);
    out.place.start();
    out.place.answer(&out.place.payload("UserPromptSubmit", r#","prompt":"do it""#));
    out.place.allowed("1");
    let done = r#","tool_name":"Write","tool_input":{},"tool_use_id":"1","tool_response":"ok""#;
    out.place.answer(&out.place.payload("PostToolUse", done));
    call(&out.place, "2", "Read", &json!({"file_path": ".env"}));
    call(&out.place, "3", "Bash", &json!({"command": "git push origin main"}));
    call(&out.place, "4", "WebFetch", &json!({"url": "https://docs.example/x", "prompt": "p"}));
    assert_eq!(out.json(&["approvals"], 0).as_array().unwrap().len(), 1);
    assert_eq!(out.json(&["why", "--last"], 0)["decision"], "DENIED");
    stop(&out.place);
    assert!(out.json(&["status"], 0)["session"]["rows"].as_u64().unwrap() > 5);
    out.json(&["session", "list"], 0);
    out.json(&["session", "show"], 0);
    let ledger = out.place.session().join("ledger.jsonl").to_str().unwrap().to_owned();
    assert!(out.json(&["ledger", "show", &ledger], 0).as_array().unwrap().len() > 5);
    out.json(&["ledger", "verify", &ledger], 0);
    out.json(&["verify", ID, "--allow-absent"], 0);
    out.json(&["agentflow", "verify", "--allow-absent"], 0);
    out.json(&["limits", "show"], 0);
    out.json(&["identity"], 0);
    out.json(&["doctor"], 3);
    out.json(&["keys", "list"], 0);
    out.json(&["report"], 0);
    out.place.answer(&out.place.payload("SessionEnd", r#","reason":"exit""#));
    assert!(out.lines(&["watch", "--all", "--format", "json"], "", 0).len() > 5);
    let (whole, broken) = (out.file("whole.tar"), out.file("broken.tar"));
    out.json(&["export", "-o", &whole], 0);
    out.json(&["verify", &whole, "--allow-absent"], 0);
    let mut bytes = fs::read(&whole).unwrap();
    let at = bytes.windows(11).rposition(|part| part == b"\"entryHash\"").unwrap();
    bytes[at - 20] ^= 1;
    fs::write(&broken, bytes).unwrap();
    assert_eq!(out.json(&["verify", &broken], 3)["status"], "broken");
    fs::remove_dir_all(out.place.session()).unwrap();
    assert_eq!(out.json(&["verify", ID], 4)["status"], "lost");
    assert!(out.json(&["session", "list"], 0)[0]["problem"].is_string());
    out.json(&["status"], 0);
    out.check(&SESSION);
}

#[test]
fn what_is_said_of_claims() {
    let mut out = Outputs::new(Workplace::new("schemas-claims"));
    policy(&out, &json!({"version": "1.0", "name": "claims", "claims": {"enforce": true}}));
    put(&out, "repository/a.py", "a = 1\n");
    commit(&out);
    let words = "## Handoff\nStatus: DONE\nFiles: a.py, src/b.py\nTests: passed\n";
    out.always(&["claim", "parse", "-"], words, 0);
    put(&out, "repository/u.py", "x");
    let before = out.always(&["claim", "snapshot"], "", 0);
    let (before, said) = (put(&out, "before.json", &before.to_string()), put(&out, "words.md", words));
    put(&out, "repository/u.py", "y");
    let verify = ["claim", "verify", "--claim-file", &said, "--before", &before];
    out.always(&verify, "", 0);
    out.always(&[&verify[..], &["--files", "--exit-code"]].concat(), "", 3);
    out.place.start();
    let agent = r#","agent_id":"w1","agent_type":"writer""#;
    out.place.answer(&out.place.payload("SubagentStart", agent));
    let last = serde_json::to_string(words).unwrap();
    let more = format!(r#"{agent},"stop_hook_active":false,"last_assistant_message":{last}"#);
    out.place.answer(&out.place.payload("SubagentStop", &more));
    let claims = out.json(&["claims"], 3);
    assert_eq!(claims[0]["claim"]["falseDone"], true, "{claims}");
    out.json(&["report"], 0);
    out.check(&CLAIMS);
}
