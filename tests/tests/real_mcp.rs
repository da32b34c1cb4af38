//! The real Claude Code client with `writ mcp serve` as its MCP server, against a scripted Messages API on 127.0.0.1.

mod client;

use std::fs;

use serde_json::{Value, json};

use client::mock::{Script, serve, text, tool};
use client::{Place, VERSION, binary, client};

const TOOL: &str = "mcp__writ__recourse_evaluate_shell";

/// What went over one of the server's pipes.
fn messages(place: &Place, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(place.root.join(name)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[test]
fn the_client_finds_the_tools_and_gets_an_attested_report() {
    let client = client();
    let mut place = Place::new("real-mcp");
    place.writ(&["init", "--client-version", VERSION]);
    let turns = vec![
        vec![tool(TOOL, json!({ "command": "touch made" }))],
        vec![tool("mcp__writ__recourse_supported_resources", json!({ "filter": "aws_s3_bucket" }))],
        vec![text("All done.")],
    ];
    let port = serve(vec![Script { word: "WRIT:", turns }]);
    let line = format!(
        "tee '{0}/to.jsonl' | '{1}' mcp serve --attest | tee '{0}/from.jsonl'",
        place.root.display(),
        binary().display()
    );
    let state = place.root.join("state");
    let env = json!({ "WRIT_STATE_DIR": state });
    place.servers = json!({ "writ": { "command": "sh", "args": ["-c", line], "env": env } });
    place.allowed = "mcp__writ";
    let ran = place.run_client(&client, port, "WRIT: ask first", &[]);
    let said = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}");

    let (to, from) = (messages(&place, "to.jsonl"), messages(&place, "from.jsonl"));
    assert_eq!(to.first().unwrap()["method"], "server/discover", "the client probes first: {to:#?}");
    let probed = from.iter().find(|answer| answer["id"] == to[0]["id"]).unwrap();
    assert!(probed["result"]["supportedVersions"].as_array().is_some_and(|all| !all.is_empty()), "{probed:#}");
    assert!(from.iter().all(|answer| answer["error"].is_null()), "{from:#?}");

    let asked = to.iter().find(|call| call["params"]["name"] == "recourse_evaluate_shell").expect("the call arrived");
    let answer = from.iter().find(|answer| answer["id"] == asked["id"]).unwrap();
    let report = &answer["result"]["structuredContent"];
    assert_eq!(report["schemaVersion"], "recourse.consequence.v1", "{answer:#}");
    assert_eq!(report["attestation"]["output"]["riskAssessment"], report["riskAssessment"]);
    assert!(said.contains("recourse.consequence.v1"), "the model saw the report: {said}");
    assert!(said.contains("/.well-known/attestations/"), "and its attestation: {said}");
    assert!(!place.work.join("made").exists(), "nothing was run");

    let rows: Value = serde_json::from_slice(&place.writ(&["session", "show", "--format", "json"]).stdout).unwrap();
    let asked = rows.as_array().unwrap().iter().filter(|row| row["decision"] == "COMPLETED" && row["toolName"] == TOOL);
    assert_eq!(asked.count(), 1, "that it asked is on record: {rows:#}");
    fs::remove_dir_all(&place.root).unwrap();
}

#[test]
fn what_writ_is_asked_about_is_no_action() {
    let client = client();
    let mut place = Place::new("real-mcp-asks");
    place.writ(&["init", "--client-version", VERSION]);
    let question = json!({ "command": "rm -rf secrets" });
    let env = json!({ "WRIT_STATE_DIR": place.root.join("state") });
    let serves = |program: &str, args: Value| json!({ "command": program, "args": args, "env": env });
    let servers = json!({
        "writ": serves(&binary().to_string_lossy(), json!(["mcp", "serve"])),
        // The same program, as far as the call shows: nothing says what stands behind the shell line.
        "writ_too": serves("sh", json!(["-c", format!("exec '{}' mcp serve", binary().display())])),
    });
    fs::write(place.root.join("config/.claude.json"), json!({ "mcpServers": servers }).to_string()).unwrap();
    place.servers = Value::Null;
    place.allowed = "mcp__writ,mcp__writ_too";
    let other = TOOL.replace("__writ__", "__writ_too__");
    let turns = vec![vec![tool(TOOL, question.clone())], vec![tool(&other, question)], vec![text("All done.")]];
    let port = serve(vec![Script { word: "WRIT:", turns }]);
    let ran = place.run_client(&client, port, "WRIT: ask first", &[]);
    assert!(ran.status.success(), "{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));

    let rows: Value = serde_json::from_slice(&place.writ(&["session", "show", "--format", "json"]).stdout).unwrap();
    let decided = |tool: &str| -> Vec<&str> {
        let of = rows.as_array().unwrap().iter().filter(|row| row["toolName"] == tool);
        of.filter_map(|row| row["decision"].as_str()).collect()
    };
    assert!(decided(TOOL).contains(&"COMPLETED"), "{rows:#}");
    assert_eq!(decided(&other), ["DENIED"], "{rows:#}");
    assert!(place.work.join("secrets/key.pem").exists());
    fs::remove_dir_all(&place.root).unwrap();
}
