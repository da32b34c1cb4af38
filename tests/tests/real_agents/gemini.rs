//! Gemini CLI.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::{self, Agent, begin, end, looked_back, phase, verified};
use crate::mock::{Script, text, tool};
use crate::place::{Place, package, said};

struct Gemini;

impl Agent for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn prepare(&self, place: &Place, _port: u16) {
        let mut server = place.server();
        server["trust"] = json!(true);
        let settings = json!({
            "security": { "auth": { "selectedType": "gemini-api-key" } }, "model": { "name": "gemini-2.5-pro" },
            "general": { "disableAutoUpdate": true, "enableAutoUpdate": false },
            "privacy": { "usageStatisticsEnabled": false }, "telemetry": { "enabled": false },
            "mcpServers": { "echo": server },
        });
        fs::create_dir_all(place.home().join(".gemini")).unwrap();
        fs::write(place.home().join(".gemini/settings.json"), format!("{settings:#}\n")).unwrap();
    }

    fn command(&self, place: &Place, port: u16, prompt: &str) -> Command {
        let client = package("@google/gemini-cli", "0.61.0").join("@google/gemini-cli/bundle/gemini.js");
        let mut command = place.command("node".as_ref());
        command.arg(client).args([
            "--output-format",
            "stream-json",
            "--approval-mode",
            "yolo",
            "--skip-trust",
            "-p",
            prompt,
        ]);
        command.env("GEMINI_API_KEY", "no-key").env("GEMINI_TELEMETRY_ENABLED", "false").env("NO_BROWSER", "1");
        command.env("GOOGLE_GEMINI_BASE_URL", format!("http://127.0.0.1:{port}"));
        command
    }

    fn shell(&self, line: &str) -> Value {
        tool("run_shell_command", json!({ "command": line }))
    }

    fn settings(&self, place: &Place) -> Vec<PathBuf> {
        vec![place.home().join(".gemini/settings.json")]
    }
}

#[test]
fn work_is_held_recorded_and_verified() {
    let place = Place::new("gemini", "work");
    let at = |name: &str| place.work.join(name).to_string_lossy().into_owned();
    let edit = json!({ "file_path": at("hello.txt"), "instruction": "x", "old_string": "world", "new_string": "writ" });
    let main = vec![
        vec![tool("read_file", json!({ "file_path": "hello.txt" }))],
        vec![tool("replace", edit)],
        vec![tool("write_file", json!({ "file_path": at("secrets/new.txt"), "content": "KEY=stolen\n" }))],
        vec![Gemini.shell("echo begin > ran.txt && cat secrets/\"key\".pem")],
        // Equal calls at once are two calls.
        vec![Gemini.shell("echo one >> said.txt"), Gemini.shell("echo one >> said.txt")],
        vec![tool("no_such_tool", json!({ "a": 1 }))],
        vec![tool("write_file", json!({ "nope": 1 }))],
        vec![tool("mcp_echo_echo", json!({ "text": "hi" }))],
        vec![tool("invoke_agent", json!({ "agent_name": "generalist", "prompt": "WORKER: write it" }))],
        vec![text("All done.")],
    ];
    let worker = vec![
        vec![tool("write_file", json!({ "file_path": at("feature.py"), "content": "VALUE = 1\n" }))],
        vec![Gemini.shell("echo KEY > .env")],
        vec![tool("complete_task", json!({ "response": "Written.", "result": { "response": "Written." } }))],
    ];
    let scripts = vec![Script { word: "WORKER:", turns: worker }, Script { word: "WORK:", turns: main }];
    let port = begin(&Gemini, &place, scripts);
    let ran = place.run(Gemini.command(&place, port, "WORK: do it"));
    let told = said(&ran);
    assert!(ran.status.success(), "{told}");

    assert_eq!(place.file("hello.txt").as_deref(), Some("hello writ\n"), "the allowed edit happened: {told}");
    for name in [".env", "secrets/new.txt", "ran.txt"] {
        assert_eq!(place.file(name), None, "{name}: {told}");
    }
    assert_eq!(place.file("said.txt").as_deref(), Some("one\none\n"), "{told}");
    assert_eq!(place.file("feature.py").as_deref(), Some("VALUE = 1\n"), "the subagent's write happened: {told}");
    assert_eq!(place.echoed(), "hi\n");
    for (decision, tool) in [
        ("COMPLETED", "read_file"),
        ("COMPLETED", "replace"),
        ("DENIED", "write_file"),
        ("DENIED", "run_shell_command"),
        ("COMPLETED", "run_shell_command"),
        ("HALLUCINATED", "no_such_tool"),
        ("COMPLETED", "mcp_echo_echo"),
        ("COMPLETED", "write_file"),
    ] {
        assert!(place.has(decision, tool), "no row {decision} {tool} in {:#?}", place.rows());
    }
    let ids = |decision: &str| {
        let rows = place.rows();
        let shell = rows.iter().filter(|row| row["decision"] == decision && row["toolName"] == "run_shell_command");
        let mut ids: Vec<String> = shell.map(|row| row["callId"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        ids.dedup();
        ids
    };
    assert_eq!(ids("COMPLETED").len(), 2, "equal calls have ids of their own: {:#?}", place.rows());
    assert_eq!(ids("COMPLETED"), ids("APPROVED"));

    let report = verified(&place);
    let coverage = phase(&report, "coverage");
    assert!(coverage["summary"].as_str().unwrap().contains("are on record"), "{report:#}");
    assert!(coverage["findings"].to_string().contains("cannot be seen here: "), "{report:#}");
    looked_back(&place, 0);
    end(&Gemini, &place);
}

/// A clock that is ahead.
const LATER: &str = "const Now = Date;
const ahead = Number(process.env.AHEAD);
globalThis.Date = class extends Now {
  constructor(...told) { told.length ? super(...told) : super(Now.now() + ahead); }
  static now() { return Now.now() + ahead; }
};
";

/// What its turns are held to.
const BOUND: &str = r#""limits":{"maxTokensIn":1000000,"maxTurns":9},
"materialsFrom":{"session":{"constraints":{"requireContiguousTurns":true}}}"#;

/// The client goes on in a new chat file, which begins with all that was.
#[test]
fn a_resumed_session_is_verified() {
    for (name, ahead) in [("resumed", "120000"), ("resumed-soon", "0")] {
        let place = Place::new("gemini", name);
        let policy = fs::read_to_string(place.work.join(".aflock")).unwrap();
        let bound = policy.replacen('{', &format!("{{{BOUND},"), 1);
        fs::write(place.work.join(".aflock"), bound).unwrap();
        let write = |name: &str| vec![Gemini.shell(&format!("echo {name} > {name}.txt"))];
        let first = vec![write("one"), vec![text("Done.")]];
        // What was said before counts.
        let second = [first.clone(), vec![write("two"), vec![text("Done.")]]].concat();
        let scripts = vec![Script { word: "SECOND:", turns: second }, Script { word: "FIRST:", turns: first }];
        let port = begin(&Gemini, &place, scripts);
        let ran = place.run(Gemini.command(&place, port, "FIRST: do it"));
        assert!(ran.status.success(), "{}", said(&ran));
        let mut again = Gemini.command(&place, port, "SECOND: go on");
        again.args(["--resume", "latest"]);
        // Files are named by the minute.
        let later = place.at("later.js");
        fs::write(&later, LATER).unwrap();
        again.env("NODE_OPTIONS", format!("--require {}", later.display())).env("AHEAD", ahead);
        let ran = place.run(again);
        assert!(ran.status.success(), "{}", said(&ran));
        assert_eq!(place.file("one.txt").zip(place.file("two.txt")), Some(("one\n".to_owned(), "two\n".to_owned())));

        let report = verified(&place);
        assert_eq!(phase(&report, "coverage")["outcome"], "passed", "{report:#}");
        let (done, told) = place.writ(&["verify"]);
        assert!(done && told.trim_end().ends_with("\nverified"), "{told}");
        end(&Gemini, &place);
    }
}

#[test]
fn the_administrators_hooks_hold() {
    common::the_administrators_hooks_hold(&Gemini);
}

#[test]
fn a_hook_that_dies_denies() {
    common::a_hook_that_dies_denies(&Gemini);
}

#[test]
fn a_hook_that_hangs_denies() {
    common::a_hook_that_hangs_denies(&Gemini);
}
