//! The real Claude Code client, under hooks that `writ init` installed, against a scripted Messages API on 127.0.0.1.

mod client;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use client::mock::{Script, serve, text, tool};
use client::{Place, VERSION, client};

/// What the model does: one list of content blocks a turn.
fn main_script(work: &Path) -> Vec<Vec<Value>> {
    let at = |name: &str| work.join(name).to_string_lossy().into_owned();
    vec![
        vec![tool("Read", json!({ "file_path": at("hello.txt") }))],
        vec![tool("Edit", json!({ "file_path": at("hello.txt"), "old_string": "world", "new_string": "writ" }))],
        vec![tool("Write", json!({ "file_path": at(".env"), "content": "KEY=stolen\n" }))],
        vec![tool(
            "Bash",
            json!({ "command": "echo begin > ran.txt && cat secrets/\"key\".pem", "description": "sneak" }),
        )],
        vec![
            tool("Bash", json!({ "command": "echo one", "description": "one" })),
            tool("Bash", json!({ "command": "echo two", "description": "two" })),
        ],
        vec![tool("NoSuchTool", json!({ "a": 1 }))],
        vec![tool(
            "Agent",
            json!({ "description": "sub", "prompt": "WORKER: write it", "subagent_type": "general-purpose", "run_in_background": false }),
        )],
        vec![tool("mcp__echo__echo", json!({ "text": "hi" }))],
        vec![text("All done.")],
    ]
}

fn worker_script(work: &Path) -> Vec<Vec<Value>> {
    let file = work.join("feature.py").to_string_lossy().into_owned();
    vec![vec![tool("Write", json!({ "file_path": file, "content": "VALUE = 1\n" }))], vec![text("Written.")]]
}

#[test]
fn a_session_under_policy_is_enforced_recorded_and_verified() {
    let client = client();
    let place = Place::new("real-client");
    place.writ(&["init", "--client-version", VERSION]);
    let port = serve(vec![
        Script { word: "WORKER:", turns: worker_script(&place.work) },
        Script { word: "WRIT:", turns: main_script(&place.work) },
    ]);
    let ran = place.run_client(&client, port, "WRIT: do the work", &[]);
    let said = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}");

    let read = |name: &str| fs::read_to_string(place.work.join(name)).ok();
    assert_eq!(read("hello.txt").as_deref(), Some("hello writ\n"), "the allowed edit happened: {said}");
    assert_eq!(read(".env"), None, "the denied write did not");
    assert_eq!(read("ran.txt"), None, "no part of the compound command ran");
    assert_eq!(read("feature.py").as_deref(), Some("VALUE = 1\n"), "the subagent's write happened");

    let rows: Value = serde_json::from_slice(&place.writ(&["session", "show", "--format", "json"]).stdout).unwrap();
    let rows = rows.as_array().unwrap();
    let has =
        |decision: &str, tool: &str| rows.iter().any(|row| row["decision"] == decision && row["toolName"] == tool);
    for (decision, tool) in [
        ("COMPLETED", "Edit"),
        ("DENIED", "Write"),
        ("DENIED", "Bash"),
        ("COMPLETED", "Bash"),
        ("HALLUCINATED", "NoSuchTool"),
        ("COMPLETED", "Agent"),
        ("COMPLETED", "Write"),
        ("COMPLETED", "mcp__echo__echo"),
    ] {
        assert!(has(decision, tool), "no row {decision} {tool} in {rows:#?}");
    }
    let denied = rows.iter().filter(|row| row["decision"] == "DENIED");
    assert!(
        denied.clone().all(|row| row["denialReason"].as_str().is_some_and(|why| why.starts_with("/files/deny/"))),
        "{rows:#?}"
    );
    assert!(
        rows.iter().any(|row| row["detail"]["agent"]["id"].is_string() && row["toolName"] == "Write"),
        "the subagent's call names it"
    );

    let report: Value = serde_json::from_slice(&place.writ(&["verify", "--format", "json"]).stdout).unwrap();
    assert_eq!(report["verified"], true, "{report:#}");
    assert_eq!(report["coverage"]["unobserved"], json!([]), "{report:#}");
    assert!(report["phases"].as_array().unwrap().iter().all(|phase| phase["outcome"] == "passed"), "{report:#}");

    place.writ(&["init", "--undo"]);
    assert!(!place.work.join(".claude/settings.json").exists(), "undo takes the settings file away again");
    fs::remove_dir_all(&place.root).unwrap();
}
