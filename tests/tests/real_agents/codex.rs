//! Codex CLI.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::{self, Agent, begin, end, looked_back, phase, verified};
use crate::mock::{Script, custom, text, tool, tool_in};
use crate::place::{Place, package, said};

/// With this model.
struct Codex(&'static str);

/// Calls each tool by itself.
const DIRECT: Codex = Codex("gpt-5.5");
/// Calls tools from scripts.
const SCRIPTED: Codex = Codex("gpt-6-sol");
/// Has the tools that start other agents.
const MANY: Codex = Codex("gpt-5-codex");

fn program() -> PathBuf {
    let vendor = package("@openai/codex", "0.169.0").join("@openai/codex-linux-x64/vendor");
    let found = fs::read_dir(&vendor).unwrap().flatten().map(|target| target.path().join("bin/codex"));
    found.into_iter().find(|path| path.is_file()).expect("the client's package holds its binary")
}

impl Agent for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn prepare(&self, place: &Place, port: u16) {
        let server = place.server();
        let config = format!(
            "model = \"{}\"\nmodel_provider = \"mock\"\ncli_auth_credentials_store = \"file\"\ncheck_for_update_on_startup = false\n\n\
             [model_providers.mock]\nname = \"mock\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\nwire_api = \"responses\"\nenv_key = \"MOCK_KEY\"\n\
             request_max_retries = 0\nstream_max_retries = 0\n\n[analytics]\nenabled = false\n\n\
             [mcp_servers.echo]\ncommand = \"node\"\nargs = {}\ndefault_tools_approval_mode = \"approve\"\n",
            self.0, server["args"]
        );
        fs::create_dir_all(place.home().join(".codex")).unwrap();
        fs::write(place.home().join(".codex/config.toml"), config).unwrap();
        // Where `writ doctor` finds it.
        let link = place.at("bin/codex");
        if !link.exists() {
            std::os::unix::fs::symlink(program(), link).unwrap();
        }
    }

    fn command(&self, place: &Place, _port: u16, prompt: &str) -> Command {
        let mut command = place.command(&program());
        command
            .args(["exec", "--json", "--skip-git-repo-check", "-s", "danger-full-access", prompt])
            .env("MOCK_KEY", "no-key");
        command
    }

    fn shell(&self, line: &str) -> Value {
        tool("exec_command", json!({ "cmd": line }))
    }

    fn settings(&self, place: &Place) -> Vec<PathBuf> {
        ["hooks.json", "config.toml"].map(|name| place.home().join(".codex").join(name)).to_vec()
    }
}

fn patch(body: &str) -> Value {
    custom("apply_patch", &format!("*** Begin Patch\n{body}\n*** End Patch\n"))
}

#[test]
fn work_is_held_recorded_and_verified() {
    let place = Place::new("codex", "work");
    let main = vec![
        vec![DIRECT.shell("cat hello.txt")],
        vec![patch("*** Update File: hello.txt\n@@\n-hello world\n+hello writ")],
        vec![patch("*** Add File: .env\n+KEY=stolen")],
        vec![patch("*** Update File: hello.txt\n*** Move to: secrets/moved.txt\n@@\n-hello writ\n+hello moved")],
        vec![
            DIRECT
                .shell("apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: secrets/shell.txt\n+x\n*** End Patch\nEOF"),
        ],
        vec![DIRECT.shell("echo begin > ran.txt && cat secrets/\"key\".pem")],
        vec![tool("exec_command", json!({ "cmd": "echo out > .env", "workdir": place.work.join("secrets") }))],
        vec![DIRECT.shell("echo one >> said.txt"), DIRECT.shell("echo two >> said.txt")],
        vec![tool("no_such_tool", json!({ "a": 1 }))],
        vec![tool("exec_command", json!({ "nope": 1 }))],
        vec![tool_in("mcp__echo", "echo", json!({ "text": "hi" }))],
        vec![text("All done.")],
    ];
    let port = begin(&DIRECT, &place, vec![Script { word: "WORK:", turns: main }]);
    let (_, doctor) = place.writ(&["doctor"]);
    assert!(doctor.contains("`codex` would run all 10 hooks of Writ's, by its own word"), "{doctor}");
    let ran = place.run(DIRECT.command(&place, port, "WORK: do it"));
    let told = said(&ran);
    assert!(ran.status.success(), "{told}");

    assert_eq!(place.file("hello.txt").as_deref(), Some("hello writ\n"), "the allowed edit happened: {told}");
    for name in [".env", "secrets/.env", "secrets/moved.txt", "secrets/shell.txt", "ran.txt"] {
        assert_eq!(place.file(name), None, "{name}: {told}");
    }
    assert_eq!(place.echoed(), "hi\n", "{told}");
    for (decision, tool) in [
        ("COMPLETED", "Bash"),
        ("COMPLETED", "apply_patch"),
        ("DENIED", "apply_patch"),
        ("DENIED", "Bash"),
        ("HALLUCINATED", "no_such_tool"),
        ("COMPLETED", "mcp__echo__echo"),
    ] {
        assert!(place.has(decision, tool), "no row {decision} {tool} in {:#?}", place.rows());
    }
    let report = verified(&place);
    let coverage = phase(&report, "coverage");
    assert!(coverage["summary"].as_str().unwrap().contains("are on record"), "{report:#}");
    assert!(coverage["findings"].to_string().contains("cannot be seen here: "), "{report:#}");
    looked_back(&place, 0);
    end(&DIRECT, &place);
}

/// What is typed into a shell that runs is in the rollout and was asked about by nobody: verification says so.
#[test]
fn what_no_hook_saw_is_found() {
    let place = Place::new("codex", "typed");
    let main = vec![
        vec![tool("exec_command", json!({ "cmd": "bash --norc", "tty": true, "yield_time_ms": 300 }))],
        vec![tool("write_stdin", json!({ "session_id": 1, "chars": "" }))],
        vec![tool("write_stdin", json!({ "session_id": 1, "chars": "echo typed\n" }))],
        vec![text("Done.")],
    ];
    let port = begin(&DIRECT, &place, vec![Script { word: "TYPED:", turns: main }]);
    let ran = place.run(DIRECT.command(&place, port, "TYPED: go"));
    assert!(ran.status.success(), "{}", said(&ran));
    let report = place.json(&["verify", "--format", "json"]);
    assert_eq!(report["verified"], false, "{report:#}");
    assert_eq!(report["coverage"]["unobserved"], json!(["write_stdin call_typed_2_0"]), "{report:#}");
    fs::remove_dir_all(&place.root).unwrap();
}

#[test]
fn calls_from_a_script_are_held_too() {
    let place = Place::new("codex", "script");
    let script = "const run = async (f) => { try { text(JSON.stringify(await f())); } catch (e) { text('threw ' + e); } };\n\
        await run(() => tools.exec_command({cmd: 'echo one > one.txt'}));\n\
        await run(() => tools.exec_command({cmd: 'cat secrets/key.pem > two.txt'}));\n\
        await run(() => tools.apply_patch('*** Begin Patch\\n*** Add File: .env\\n+x\\n*** End Patch\\n'));\n\
        await run(() => tools.mcp__echo__echo({text: 'hi'}));";
    let main = vec![vec![custom("exec", script)], vec![text("Done.")]];
    let port = begin(&SCRIPTED, &place, vec![Script { word: "SCRIPT:", turns: main }]);
    let ran = place.run(SCRIPTED.command(&place, port, "SCRIPT: go"));
    let told = said(&ran);
    assert!(ran.status.success(), "{told}");
    assert_eq!(place.file("one.txt").as_deref(), Some("one\n"), "{told}");
    assert_eq!((place.file("two.txt"), place.file(".env")), (None, None), "{told}");
    assert_eq!(place.echoed(), "hi\n", "{told}");
    let report = place.json(&["verify", "--format", "json"]);
    assert_eq!(report["coverage"]["unobserved"], json!([]), "{report:#}");
    // Denied calls of a script leave no line, so the rollout is not whole.
    let summary = phase(&report, "coverage")["summary"].as_str().unwrap();
    assert!(summary.contains("it lacks 2 calls that are on record"), "{report:#}");
    fs::remove_dir_all(&place.root).unwrap();
}

#[test]
fn a_sub_agent_is_held_as_its_parent_is() {
    let place = Place::new("codex", "agent");
    let worker = vec![
        vec![MANY.shell("echo 'VALUE = 1' > feature.py")],
        vec![MANY.shell("echo KEY > .env")],
        vec![text("Written.")],
    ];
    let main = vec![
        vec![tool_in("multi_agent_v1", "spawn_agent", json!({ "message": "WORKER: write it" }))],
        vec![tool_in("multi_agent_v1", "wait_agent", json!({ "targets": ["AGENT"], "timeout_ms": 20_000 }))],
        vec![tool_in("multi_agent_v1", "close_agent", json!({ "target": "AGENT" }))],
        vec![text("Done.")],
    ];
    let scripts = vec![Script { word: "WORKER:", turns: worker }, Script { word: "MANY:", turns: main }];
    let port = begin(&MANY, &place, scripts);
    let ran = place.run(MANY.command(&place, port, "MANY: go"));
    let told = said(&ran);
    assert!(ran.status.success(), "{told}");
    assert_eq!(place.file("feature.py").as_deref(), Some("VALUE = 1\n"), "{told}");
    assert_eq!(place.file(".env"), None, "{told}");
    let theirs = |row: &Value| row["detail"]["agent"]["id"].is_string() && row["toolName"] == "Bash";
    assert!(place.rows().iter().any(theirs), "{:#?}", place.rows());
    verified(&place);
    fs::remove_dir_all(&place.root).unwrap();
}

#[test]
fn the_administrators_hooks_hold() {
    common::the_administrators_hooks_hold(&DIRECT);
}

#[test]
fn a_hook_that_dies_denies() {
    common::a_hook_that_dies_denies(&DIRECT);
}

#[test]
fn a_hook_that_hangs_denies() {
    common::a_hook_that_hangs_denies(&DIRECT);
}
