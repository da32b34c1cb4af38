//! Qwen Code.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::{self, Agent, begin, end, looked_back, phase, verified};
use crate::mock::{Script, text, tool};
use crate::place::{Place, package, said};

struct Qwen;

impl Agent for Qwen {
    fn name(&self) -> &'static str {
        "qwen"
    }

    fn prepare(&self, place: &Place, _port: u16) {
        let settings = json!({
            "security": { "auth": { "selectedType": "openai" } }, "model": { "name": "mock-model" },
            "general": { "disableAutoUpdate": true, "enableAutoUpdate": false },
            "privacy": { "usageStatisticsEnabled": false }, "telemetry": { "enabled": false },
            "mcpServers": { "echo": place.server() },
        });
        fs::create_dir_all(place.home().join(".qwen")).unwrap();
        fs::write(place.home().join(".qwen/settings.json"), format!("{settings:#}\n")).unwrap();
    }

    fn command(&self, place: &Place, port: u16, prompt: &str) -> Command {
        let client = package("@qwen-code/qwen-code", "0.24.4").join("@qwen-code/qwen-code/cli-entry.js");
        let mut command = place.command("node".as_ref());
        command.arg(client).args([
            "--output-format",
            "stream-json",
            "--approval-mode",
            "yolo",
            "--auth-type",
            "openai",
        ]);
        command.arg(prompt).env("OPENAI_API_KEY", "no-key").env("OPENAI_MODEL", "mock-model");
        command.env("OPENAI_BASE_URL", format!("http://127.0.0.1:{port}/v1"));
        command
    }

    fn shell(&self, line: &str) -> Value {
        tool("run_shell_command", json!({ "command": line, "is_background": false }))
    }

    fn settings(&self, place: &Place) -> Vec<PathBuf> {
        vec![place.home().join(".qwen/settings.json")]
    }
}

#[test]
fn work_is_held_recorded_and_verified() {
    let place = Place::new("qwen", "work");
    let at = |name: &str| place.work.join(name).to_string_lossy().into_owned();
    let main = vec![
        vec![tool("read_file", json!({ "file_path": at("hello.txt") }))],
        vec![tool("edit", json!({ "file_path": at("hello.txt"), "old_string": "world", "new_string": "writ" }))],
        vec![tool("write_file", json!({ "file_path": at(".env"), "content": "KEY=stolen\n" }))],
        vec![Qwen.shell("echo begin > ran.txt && cat secrets/\"key\".pem")],
        vec![Qwen.shell("echo one >> said.txt"), Qwen.shell("echo two >> said.txt")],
        vec![tool("no_such_tool", json!({ "a": 1 }))],
        vec![tool("run_shell_command", json!({ "nope": 1 }))],
        vec![tool("tool_call", json!({ "name": "mcp__echo__echo", "arguments": { "text": "hi" } }))],
        vec![tool(
            "agent",
            json!({ "description": "sub", "prompt": "WORKER: write it", "subagent_type": "general-purpose" }),
        )],
        vec![text("All done.")],
    ];
    let worker = vec![
        vec![tool("write_file", json!({ "file_path": at("feature.py"), "content": "VALUE = 1\n" }))],
        vec![Qwen.shell("echo KEY > .env")],
        vec![text("Written.")],
    ];
    let scripts = vec![Script { word: "WORKER:", turns: worker }, Script { word: "WORK:", turns: main }];
    let port = begin(&Qwen, &place, scripts);
    let ran = place.run(Qwen.command(&place, port, "WORK: do it"));
    let told = said(&ran);
    assert!(ran.status.success(), "{told}");

    assert_eq!(place.file("hello.txt").as_deref(), Some("hello writ\n"), "the allowed edit happened: {told}");
    assert_eq!(place.file(".env"), None, "the denied writes did not");
    assert_eq!(place.file("ran.txt"), None, "no part of the compound command ran");
    assert_eq!(place.file("feature.py").as_deref(), Some("VALUE = 1\n"), "the subagent's write happened: {told}");
    assert_eq!(place.echoed(), "hi\n");
    for (decision, tool) in [
        ("COMPLETED", "read_file"),
        ("COMPLETED", "edit"),
        ("DENIED", "write_file"),
        ("DENIED", "run_shell_command"),
        ("COMPLETED", "run_shell_command"),
        ("HALLUCINATED", "no_such_tool"),
        ("COMPLETED", "mcp__echo__echo"),
        ("COMPLETED", "agent"),
        ("COMPLETED", "write_file"),
    ] {
        assert!(place.has(decision, tool), "no row {decision} {tool} in {:#?}", place.rows());
    }
    let theirs = |row: &Value| row["detail"]["agent"]["id"].is_string() && row["toolName"] == "write_file";
    assert!(place.rows().iter().any(theirs), "the subagent's call names it");

    let report = verified(&place);
    assert!(phase(&report, "coverage")["summary"].as_str().unwrap().contains("are on record"), "{report:#}");
    // A sub-agent's transcript says of a call that a hook denied no more than that it failed.
    looked_back(&place, 1);
    end(&Qwen, &place);
}

#[test]
fn the_administrators_hooks_hold() {
    common::the_administrators_hooks_hold(&Qwen);
}

#[test]
fn a_hook_that_dies_denies() {
    common::a_hook_that_dies_denies(&Qwen);
}

#[test]
fn a_hook_that_hangs_denies() {
    common::a_hook_that_hangs_denies(&Qwen);
}
