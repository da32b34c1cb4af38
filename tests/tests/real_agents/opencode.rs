//! OpenCode.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::{self, Agent, begin, end, looked_back, phase, verified};
use crate::mock::{Script, text, tool};
use crate::place::{Place, package, said};

const VERSION: &str = "1.18.33";

struct OpenCode;

impl Agent for OpenCode {
    fn name(&self) -> &'static str {
        "opencode"
    }

    fn prepare(&self, place: &Place, port: u16) {
        let own = place.home().join(".config/opencode");
        fs::create_dir_all(&own).unwrap();
        let server = place.server();
        let command: Vec<Value> =
            std::iter::once(server["command"].clone()).chain(server["args"].as_array().unwrap().clone()).collect();
        let limit = json!({ "context": 100_000, "output": 8000 });
        let settings = json!({ "$schema": "https://opencode.ai/config.json", "autoupdate": false, "share": "disabled",
            "model": "mock/mock-model", "small_model": "mock/mock-small",
            "provider": { "mock": { "npm": "@ai-sdk/openai-compatible", "name": "Mock",
                "options": { "baseURL": format!("http://127.0.0.1:{port}/v1"), "apiKey": "no-key" },
                "models": { "mock-model": { "name": "m", "tool_call": true, "limit": limit, "cost": { "input": 1, "output": 2 } },
                    "mock-small": { "name": "s", "limit": limit } } } },
            "mcp": { "echo": { "type": "local", "command": command, "enabled": true } } });
        fs::write(own.join("opencode.json"), settings.to_string()).unwrap();
        // As after a first start of its own: else it asks the registry.
        let dependencies = json!({ "@opencode-ai/plugin": VERSION });
        let modules = own.join("node_modules");
        if !modules.exists() {
            std::os::unix::fs::symlink(package("@opencode-ai/plugin", VERSION), modules).unwrap();
        }
        fs::write(own.join("package.json"), json!({ "dependencies": dependencies }).to_string()).unwrap();
        let lock = json!({ "lockfileVersion": 3, "packages": { "": { "dependencies": dependencies } } });
        fs::write(own.join("package-lock.json"), lock.to_string()).unwrap();
    }

    fn command(&self, place: &Place, _port: u16, prompt: &str) -> Command {
        let mut command = place.command(&package("opencode-ai", VERSION).join("opencode-linux-x64/bin/opencode"));
        command.args(["run", "--format", "json", "--print-logs", prompt]);
        for (name, folder) in
            [("XDG_DATA_HOME", ".local/share"), ("XDG_STATE_HOME", "xdg-state"), ("XDG_CACHE_HOME", "cache")]
        {
            command.env(name, place.home().join(folder));
        }
        for name in ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"] {
            command.env(format!("OPENCODE_DISABLE_{name}"), "1");
        }
        command
    }

    fn shell(&self, line: &str) -> Value {
        tool("bash", json!({ "command": line, "description": "x" }))
    }

    fn settings(&self, place: &Place) -> Vec<PathBuf> {
        vec![place.home().join(".config/opencode/plugin/writ.js")]
    }
}

#[test]
fn work_is_held_and_recorded() {
    let place = Place::new("opencode", "work");
    let at = |name: &str| place.work.join(name).to_string_lossy().into_owned();
    let main = vec![
        vec![tool("read", json!({ "filePath": at("hello.txt") }))],
        vec![tool("edit", json!({ "filePath": at("hello.txt"), "oldString": "world", "newString": "writ" }))],
        vec![tool("write", json!({ "filePath": at(".env"), "content": "KEY=stolen\n" }))],
        vec![OpenCode.shell("echo begin > ran.txt && cat secrets/\"key\".pem")],
        vec![OpenCode.shell("echo one >> said.txt")],
        vec![tool("echo_echo", json!({ "text": "hi" }))],
        vec![tool("task", json!({ "description": "d", "prompt": "WORKER: write it", "subagent_type": "general" }))],
        vec![text("All done.")],
    ];
    let worker = vec![
        vec![tool("write", json!({ "filePath": at("feature.py"), "content": "VALUE = 1\n" }))],
        vec![OpenCode.shell("echo KEY > .env")],
        vec![text("Written.")],
    ];
    let scripts = vec![Script { word: "WORKER:", turns: worker }, Script { word: "WORK:", turns: main }];
    let port = begin(&OpenCode, &place, scripts);
    let ran = place.run(OpenCode.command(&place, port, "WORK: do it"));
    let told = said(&ran);
    assert!(ran.status.success(), "{told}");

    assert_eq!(place.file("hello.txt").as_deref(), Some("hello writ\n"), "the allowed edit happened: {told}");
    assert_eq!((place.file(".env"), place.file("ran.txt")), (None, None), "{told}");
    assert_eq!(place.file("said.txt").as_deref(), Some("one\n"), "{told}");
    assert_eq!(place.file("feature.py").as_deref(), Some("VALUE = 1\n"), "the subagent's write happened: {told}");
    assert_eq!(place.echoed(), "hi\n");
    for (decision, tool) in [
        ("COMPLETED", "read"),
        ("COMPLETED", "edit"),
        ("DENIED", "write"),
        ("DENIED", "bash"),
        ("COMPLETED", "bash"),
        ("COMPLETED", "echo_echo"),
        ("COMPLETED", "task"),
        ("COMPLETED", "write"),
    ] {
        assert!(place.has(decision, tool), "no row {decision} {tool} in {:#?}", place.rows());
    }
    let theirs = |row: &Value| row["detail"]["agent"]["id"].is_string() && row["toolName"] == "write";
    assert!(place.rows().iter().any(theirs), "the subagent's call names it");
    // What its database holds is drawn off: every call is on record, the sub-agent's too.
    let report = verified(&place);
    let coverage = phase(&report, "coverage");
    assert_eq!(coverage["outcome"], "passed", "{report:#}");
    assert!(coverage["summary"].as_str().unwrap().contains("all 9 calls"), "{report:#}");
    looked_back(&place, 0);
    end(&OpenCode, &place);
}

/// Tokens and the model are read out of the database: a limit is reached in the middle of a session, and a model that may not is told.
#[test]
fn what_was_used_is_counted() {
    let place = Place::new("opencode", "used");
    let turns = (0..6).map(|turn| vec![OpenCode.shell(&format!("echo {turn} >> said.txt"))]);
    let turns = turns.chain([vec![text("Done.")]]).collect();
    let port = begin(&OpenCode, &place, vec![Script { word: "USED:", turns }]);
    let policy = json!({ "version": "1.0", "name": "used", "limits": { "maxTokensIn": { "value": 250, "enforcement": "fail-fast" } } });
    fs::write(place.work.join(".aflock"), policy.to_string()).unwrap();
    let ran = place.run(OpenCode.command(&place, port, "USED: go"));
    let lines = place.file("said.txt").unwrap_or_default();
    assert!((1..5).contains(&lines.lines().count()), "{lines}: {}", said(&ran));
    let denied = place.rows().into_iter().find(|row| row["decision"] == "DENIED" && row["toolName"] == "bash").unwrap();
    assert!(denied["detail"]["rules"].to_string().contains("/limits/maxTokensIn"), "{denied:#}");
    let report = place.json(&["verify", "--format", "json"]);
    assert_eq!(
        (&report["verified"], &phase(&report, "limits")["outcome"]),
        (&json!(true), &json!("passed")),
        "{report:#}"
    );
    fs::remove_dir_all(&place.root).unwrap();
}

/// Calls that were made while the plugin was left out are found in the database.
#[test]
fn what_no_hook_saw_is_found() {
    let place = Place::new("opencode", "pure");
    let once = || [vec![OpenCode.shell("echo one >> said.txt")], vec![text("Done.")]];
    let turns = once().into_iter().chain(once()).collect();
    let port = begin(&OpenCode, &place, vec![Script { word: "PURE:", turns }]);
    assert!(place.run(OpenCode.command(&place, port, "PURE: go")).status.success());
    verified(&place);
    let mut pure = OpenCode.command(&place, port, "PURE: again");
    pure.args(["--continue", "--pure"]);
    let ran = place.run(pure);
    assert_eq!(place.file("said.txt").as_deref(), Some("one\none\n"), "{}", said(&ran));
    let report = place.json(&["verify", "--format", "json"]);
    assert_eq!(report["verified"], false, "{report:#}");
    assert!(report["coverage"]["unobserved"].to_string().contains("bash"), "{report:#}");
    fs::remove_dir_all(&place.root).unwrap();
}

#[test]
fn a_hook_that_dies_denies() {
    common::a_hook_that_dies_denies(&OpenCode);
}

#[test]
fn a_hook_that_hangs_denies() {
    common::a_hook_that_hangs_denies(&OpenCode);
}
