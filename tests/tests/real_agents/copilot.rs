//! Copilot CLI.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::{self, Agent, begin, end, looked_back, phase, verified};
use crate::mock::{Script, text, tool};
use crate::place::{Place, package, said};

struct Copilot;

fn program() -> PathBuf {
    let scope = package("@github/copilot", "1.0.102").join("@github");
    let found = fs::read_dir(scope).unwrap().flatten().map(|package| package.path().join("copilot"));
    found.into_iter().find(|path| path.is_file()).expect("the client's package holds its binary")
}

impl Agent for Copilot {
    fn name(&self) -> &'static str {
        "copilot"
    }

    fn prepare(&self, place: &Place, _port: u16) {
        let own = place.home().join(".copilot");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("settings.json"), json!({ "autoUpdate": false }).to_string()).unwrap();
        let mut server = place.server();
        (server["type"], server["tools"]) = (json!("local"), json!(["*"]));
        fs::write(own.join("mcp-config.json"), json!({ "mcpServers": { "echo": server } }).to_string()).unwrap();
    }

    fn command(&self, place: &Place, port: u16, prompt: &str) -> Command {
        let mut command = place.command(&program());
        command.args(["--output-format", "json", "--no-auto-update", "--allow-all", "-p", prompt]);
        command.arg("--log-dir").arg(place.at("logs"));
        command
            .env("COPILOT_OFFLINE", "true")
            .env("COPILOT_PROVIDER_API_KEY", "no-key")
            .env("COPILOT_MODEL", "gpt-4.1");
        command
            .env("COPILOT_PROVIDER_BASE_URL", format!("http://127.0.0.1:{port}/v1"))
            .env("COPILOT_AUTO_UPDATE", "false");
        command
    }

    fn shell(&self, line: &str) -> Value {
        tool("bash", json!({ "command": line, "description": "x" }))
    }

    fn settings(&self, place: &Place) -> Vec<PathBuf> {
        vec![place.home().join(".copilot/hooks/writ.json")]
    }
}

#[test]
fn work_is_held_recorded_and_verified() {
    let place = Place::new("copilot", "work");
    let at = |name: &str| place.work.join(name).to_string_lossy().into_owned();
    let main = vec![
        vec![tool("view", json!({ "path": at("hello.txt") }))],
        vec![tool("edit", json!({ "path": at("hello.txt"), "old_str": "world", "new_str": "writ" }))],
        vec![tool("create", json!({ "path": at(".env"), "file_text": "KEY=stolen\n" }))],
        vec![Copilot.shell("echo begin > ran.txt && cat secrets/\"key\".pem")],
        vec![Copilot.shell("echo one >> said.txt"), Copilot.shell("echo one >> said.txt")],
        vec![tool("no_such_tool", json!({ "a": 1 }))],
        vec![tool("echo-echo", json!({ "text": "hi" }))],
        vec![tool(
            "task",
            json!({ "agent_type": "general-purpose", "description": "d", "name": "worker", "prompt": "WORKER: write it", "mode": "sync" }),
        )],
        vec![text("All done.")],
    ];
    let worker = vec![
        vec![tool("create", json!({ "path": at("feature.py"), "file_text": "VALUE = 1\n" }))],
        vec![Copilot.shell("echo KEY > .env")],
        vec![text("Written.")],
    ];
    let scripts = vec![Script { word: "WORKER:", turns: worker }, Script { word: "WORK:", turns: main }];
    let port = begin(&Copilot, &place, scripts);
    let ran = place.run(Copilot.command(&place, port, "WORK: do it"));
    let told = said(&ran);
    assert!(ran.status.success(), "{told}");

    assert_eq!(place.file("hello.txt").as_deref(), Some("hello writ\n"), "the allowed edit happened: {told}");
    assert_eq!((place.file(".env"), place.file("ran.txt")), (None, None), "{told}");
    assert_eq!(place.file("said.txt").as_deref(), Some("one\none\n"), "{told}");
    assert_eq!(place.file("feature.py").as_deref(), Some("VALUE = 1\n"), "the subagent's write happened: {told}");
    assert_eq!(place.echoed(), "hi\n");
    for (decision, tool) in [
        ("COMPLETED", "view"),
        ("COMPLETED", "edit"),
        ("DENIED", "create"),
        ("DENIED", "bash"),
        ("COMPLETED", "bash"),
        ("FAILED", "no_such_tool"),
        ("COMPLETED", "echo-echo"),
        ("COMPLETED", "task"),
        ("COMPLETED", "create"),
    ] {
        assert!(place.has(decision, tool), "no row {decision} {tool} in {:#?}", place.rows());
    }
    let theirs = |row: &Value| row["detail"]["agent"]["type"] == "general-purpose" && row["toolName"] == "create";
    assert!(place.rows().iter().any(theirs), "the subagent's call names it");
    let report = verified(&place);
    assert!(phase(&report, "coverage")["summary"].as_str().unwrap().contains("are on record"), "{report:#}");
    looked_back(&place, 0);
    end(&Copilot, &place);
}

#[test]
fn the_administrators_hooks_hold() {
    common::the_administrators_hooks_hold(&Copilot);
}

#[test]
fn a_hook_that_dies_denies() {
    common::a_hook_that_dies_denies(&Copilot);
}

#[test]
fn a_hook_that_hangs_denies() {
    common::a_hook_that_hangs_denies(&Copilot);
}
