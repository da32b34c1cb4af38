//! The real client's sub-agent under a policy of its own type, tighter than the main agent's: hooks alone, and in `writ run`.

mod client;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use client::mock::{Script, serve, text, tool};
use client::{Place, VERSION, client};

const WORKER: &str = "general-purpose";

fn write(work: &Path, name: &str) -> Vec<Value> {
    let file = work.join(name).to_string_lossy().into_owned();
    vec![tool("Write", json!({ "file_path": file, "content": "VALUE = 1\n" }))]
}

fn bash(line: &str) -> Vec<Value> {
    vec![tool("Bash", json!({ "command": line, "description": "x" }))]
}

fn scripts(work: &Path) -> Vec<Script> {
    let agent = json!({ "description": "sub", "prompt": "WORKER: write it", "subagent_type": WORKER, "run_in_background": false });
    let worker = vec![
        write(work, "src/worker.py"),
        write(work, "notes/worker.md"),
        bash("cat secrets/key.pem"),
        vec![text("Stopped twice.")],
    ];
    let main = vec![
        write(work, "src/main.py"),
        vec![tool("Agent", agent)],
        bash("cat secrets/key.pem"),
        vec![text("All done.")],
    ];
    vec![Script { word: "WORKER:", turns: worker }, Script { word: "WRIT:", turns: main }]
}

fn session(name: &str, confined: bool) {
    let client = client();
    let mut place = Place::new(name);
    (place.confined, place.allowed) = (confined, "Bash(*)");
    place.writ(&["init", "--client-version", VERSION]);
    let put = |name: &str, policy: Value| fs::write(place.work.join(name), policy.to_string()).unwrap();
    put("base.aflock", json!({"version": "1.0", "name": "base", "files": {"deny": ["**/.env"]}}));
    put("worker.aflock", json!({"version": "1.0", "name": "worker", "files": {"deny": ["src/**", "secrets/**"]}}));
    let child = json!({"name": WORKER, "policy": "./worker.aflock", "attestationPrefix": "worker-"});
    put(".aflock", json!({"version": "1.0", "name": "root", "extends": "./base.aflock", "sublayouts": [child]}));
    let port = serve(scripts(&place.work));
    let ran = place.run_client(&client, port, "WRIT: do the work", &[]);
    let said = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}");
    let there = |name: &str| place.work.join(name).exists();
    assert!(there("src/main.py") && there("notes/worker.md"), "both agents work: {said}");
    assert!(!there("src/worker.py"), "the sub-agent's own policy: {said}");
    assert!(said.contains("worker:/files/deny/0") && said.contains("worker:/files/deny/1"), "{said}");

    let rows: Value = serde_json::from_slice(&place.writ(&["session", "show", "--format", "json"]).stdout).unwrap();
    let calls = |agent: bool| {
        let calls = rows.as_array().unwrap().iter().filter(|row| row["detail"]["event"] == "tool-call");
        calls.filter(move |row| row["detail"]["agent"].is_object() == agent).collect::<Vec<_>>()
    };
    let denied = |calls: &[&Value]| calls.iter().filter(|row| row["decision"] == "DENIED").count();
    let (own, workers) = (calls(false), calls(true));
    assert_eq!((own.len(), denied(&own), workers.len(), denied(&workers)), (3, 0, 3, 2), "{rows:#}");
    for row in &workers {
        let layers = row["detail"]["layers"].as_array().unwrap();
        let names: Vec<&str> = layers.iter().map(|layer| layer["name"].as_str().unwrap()).collect();
        assert_eq!((names, &row["detail"]["attestationPrefix"]), (vec!["base", "worker"], &json!("worker-")));
        // The run's sandbox was made for the main agent: it holds nothing of the sub-agent's policy.
        assert!(
            !confined || row["detail"]["facts"]["held"].is_object() && layers[0]["facts"]["held"].is_object(),
            "{row:#}"
        );
        assert!(layers[1]["facts"]["held"].is_null(), "{row:#}");
    }
    assert!(own.iter().all(|row| row["detail"]["layers"].as_array().unwrap().len() == 1));
    let report: Value = serde_json::from_slice(&place.writ(&["verify", "--format", "json"]).stdout).unwrap();
    assert_eq!(report["verified"], true, "{report:#}");
    fs::remove_dir_all(&place.root).unwrap();
}

#[test]
fn a_sub_agent_is_stopped_by_its_own_tighter_policy() {
    session("real-layers", false);
}

#[test]
fn a_sub_agent_in_a_run_is_stopped_by_its_own_tighter_policy() {
    session("real-layers-run", true);
}
