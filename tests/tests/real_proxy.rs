//! The real Claude Code client with a server behind `writ mcp proxy`, against a scripted Messages API on 127.0.0.1.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

mod client;

use std::fs;

use serde_json::{Value, json};

use client::mock::{Script, serve, text, tool};
use client::{Place, VERSION, binary, client};

const TOOL: &str = "mcp__echo__echo";

/// The servers' definition with the proxy between.
fn through(place: &Place) -> Value {
    let log = place.root.join("server.jsonl");
    let line = format!("tee -a '{}' | node '{}'", log.display(), place.root.join("mcp.js").display());
    let args = json!(["mcp", "proxy", "--name", "echo", "--", "sh", "-c", line]);
    let env = json!({ "WRIT_STATE_DIR": place.root.join("state") });
    json!({ "echo": { "command": binary(), "args": args, "env": env } })
}

fn run(place: &mut Place, turns: Vec<Vec<Value>>) -> String {
    place.servers = through(place);
    place.allowed = "mcp__echo";
    let port = serve(vec![Script { word: "WRIT:", turns }]);
    let ran = place.run_client(&client(), port, "WRIT: echo", &[]);
    let said = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}");
    said
}

/// Decision and call id of each row about the tool, of the newest session.
fn rows(place: &Place) -> Vec<(String, String)> {
    let rows: Value = serde_json::from_slice(&place.writ(&["session", "show", "--format", "json"]).stdout).unwrap();
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let rows = rows.as_array().unwrap().iter().filter(|row| row["toolName"] == TOOL);
    rows.map(|row| (text(row, "decision"), text(row, "callId"))).collect()
}

#[test]
fn a_call_that_the_hook_decided_has_one_row_and_its_result_one() {
    let mut place = Place::new("real-proxy-hooks");
    place.writ(&["init", "--client-version", VERSION]);
    let turns = vec![
        vec![tool(TOOL, json!({ "text": "through both" }))],
        vec![tool(TOOL, json!({ "text": "secrets/key.pem" }))],
        vec![text("All done.")],
    ];
    let said = run(&mut place, turns);
    assert!(said.contains("through both"), "the model got the result: {said}");
    let rows = rows(&place);
    let decisions: Vec<&str> = rows.iter().map(|(decision, _)| decision.as_str()).collect();
    assert_eq!(decisions, ["APPROVED", "COMPLETED", "DENIED"], "{rows:?}");
    let sessions = String::from_utf8(place.writ(&["session", "list"]).stdout).unwrap();
    assert_eq!(sessions.lines().count(), 1, "one session: {sessions}");
    let calls = fs::read_to_string(place.root.join("server.jsonl")).unwrap();
    assert_eq!(calls.lines().filter(|line| line.contains("tools/call")).count(), 1);
    place.writ(&["verify"]);
    fs::remove_dir_all(&place.root).unwrap();
}

#[test]
fn without_hooks_the_proxy_decides() {
    let mut place = Place::new("real-proxy");
    let policy = json!({ "version": "1.0", "name": "p", "files": { "deny": ["secrets/**"] } });
    fs::write(place.work.join(".aflock"), policy.to_string()).unwrap();
    let turns = vec![
        vec![tool(TOOL, json!({ "text": "let through" }))],
        vec![tool(TOOL, json!({ "text": "secrets/key.pem" }))],
        vec![text("All done.")],
    ];
    let said = run(&mut place, turns);
    assert!(said.contains("let through") && said.contains("/files/deny/0"), "the model was told why: {said}");
    let decisions: Vec<String> = rows(&place).into_iter().map(|(decision, _)| decision).collect();
    assert_eq!(decisions, ["APPROVED", "COMPLETED", "DENIED"]);
    place.writ(&["verify"]);
    fs::remove_dir_all(&place.root).unwrap();
}
