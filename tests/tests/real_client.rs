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

/// A client whose machine has zsh, and whose settings file somebody empties while it runs.
#[test]
fn the_shell_is_bash_and_loosened_settings_are_not_taken_over() {
    let client = client();
    let mut place = Place::new("real-client-settings");
    place.allowed = "Bash(echo *),Bash(sleep *)";
    let (bin, marker) = (place.root.join("bin"), place.root.join("zsh-ran"));
    fs::create_dir_all(&bin).unwrap();
    fs::write(bin.join("zsh"), format!("#!/bin/sh\ntouch '{}'\nexec bash \"$@\"\n", marker.display())).unwrap();
    fs::set_permissions(bin.join("zsh"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let bash = |line: &str| vec![tool("Bash", json!({ "command": line, "description": "x" }))];
    let turns = || vec![bash("echo one"), bash("sleep 6"), bash("echo three"), vec![text("Done.")]];

    let port = serve(vec![Script { word: "SHELL:", turns: turns() }]);
    let ran = place.run_client(&client, port, "SHELL: go", &[("PATH", &path)]);
    assert!(ran.status.success() && marker.exists(), "without a pin the client runs zsh");
    fs::remove_file(&marker).unwrap();

    place.writ(&["init", "--client-version", VERSION]);
    let settings = place.work.join(".claude/settings.json");
    let emptied = settings.clone();
    let other = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_secs(4));
        fs::write(emptied, "{}\n").unwrap();
    });
    let port = serve(vec![Script { word: "SHELL:", turns: turns() }]);
    let ran = place.run_client(&client, port, "SHELL: go", &[("PATH", &path)]);
    other.join().unwrap();
    assert!(ran.status.success() && !marker.exists(), "with the pin it runs bash");
    let rows: Value = serde_json::from_slice(&place.writ(&["session", "show", "--format", "json"]).stdout).unwrap();
    let rows = rows.as_array().unwrap();
    let blocked = rows.iter().position(|row| row["detail"]["blocked"].is_string());
    let blocked = blocked.unwrap_or_else(|| panic!("no blocked change in {rows:#?}"));
    let after = rows.iter().skip(blocked).any(|row| row["decision"] == "COMPLETED" && row["toolName"] == "Bash");
    assert!(after, "the hooks went on: {rows:#?}");
    fs::remove_dir_all(&place.root).unwrap();
}
