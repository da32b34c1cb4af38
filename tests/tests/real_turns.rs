//! The real Claude Code client under a policy that wants its turns attested: what its own transcript says is what statements are bound to.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

mod client;

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use client::mock::{Script, serve, text, tool};
use client::{Place, VERSION, client};

fn echo(word: &str) -> Vec<Value> {
    vec![tool("Bash", json!({ "command": format!("echo {word} >> said.txt"), "description": "say" }))]
}

fn report(place: &Place) -> Value {
    serde_json::from_slice(&place.writ(&["verify", "--format", "json"]).stdout).unwrap()
}

fn phase(report: &Value, name: &str) -> Value {
    let phases = report["phases"].as_array().unwrap();
    phases.iter().find(|phase| phase["name"] == name).cloned().unwrap_or_default()
}

#[test]
fn each_turn_of_the_real_client_and_of_its_sub_agent_is_attested_and_bound_to_what_it_wrote() {
    let client = client();
    let mut place = Place::new("real-turns");
    place.allowed = "Bash(echo *)";
    place.writ(&["init", "--client-version", VERSION]);
    let worker = json!({"version": "1.0", "name": "worker"});
    let policy = json!({"version": "1.0", "name": "turns", "attestationDir": "./proof",
        "materialsFrom": {"session": {"constraints": {"requireContiguousTurns": true}},
            "sublayoutSessions": {"general-purpose": {"spawnedAtTurn": 1}}},
        "sublayouts": [{"name": "general-purpose", "policy": worker, "attestationPrefix": "worker-"}]});
    fs::write(place.work.join(".aflock"), policy.to_string()).unwrap();
    let agent = tool(
        "Agent",
        json!({ "description": "sub", "prompt": "WORKER: do it", "subagent_type": "general-purpose", "run_in_background": false }),
    );
    let scripts = || {
        vec![
            Script { word: "WORKER:", turns: vec![echo("worker"), vec![text("Done.")]] },
            Script {
                word: "TURNS:",
                turns: vec![echo("one"), vec![agent.clone()], echo("two"), vec![text("All done.")]],
            },
        ]
    };
    let ran = place.run_client(&client, serve(scripts()), "TURNS: do the work", &[]);
    let said = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}");
    let shown = report(&place);
    for name in ["turns", "session binding", "materials", "sublayouts"] {
        assert_eq!(phase(&shown, name)["outcome"], "passed", "{name}: {shown:#}");
    }
    assert_eq!(shown["verified"], true, "{shown:#}");
    let id = shown["session"].as_str().unwrap().to_owned();
    let statement = |name: &str| -> Value {
        let bytes = fs::read(place.work.join("proof").join(&id).join(name)).unwrap();
        let envelope: Value = serde_json::from_slice(&bytes).unwrap();
        serde_json::from_slice(&BASE64.decode(envelope["payload"].as_str().unwrap()).unwrap()).unwrap()
    };
    let (main, sub) = (statement("turn-1.json"), statement("worker-turn-1.json"));
    assert_eq!(main["predicate"]["tools"].as_array().unwrap().len(), 3, "{main:#}");
    assert_eq!(main["predicate"]["tools"][1]["agent"], "general-purpose", "{main:#}");
    assert_eq!(sub["predicate"]["agent"]["type"], "general-purpose", "{sub:#}");
    for (one, name) in [(&main, "main"), (&sub, "sub")] {
        assert!(one["predicate"]["metrics"]["tokensIn"].as_u64().unwrap() > 0, "{name}: {one:#}");
        assert!(one["predicate"]["sessionBinding"]["merkleRoot"].is_string(), "{name}: {one:#}");
        assert!(one["subject"][1]["digest"].is_object(), "{name}: the work tree: {one:#}");
    }
    let used = &shown["sublayouts"][0]["used"];
    assert_eq!(used["tokensIn"], sub["predicate"]["cumulative"]["tokensIn"], "{shown:#}");
    // The conversation goes on: its second turn follows the first.
    place.arguments = vec!["--resume".to_owned(), id.clone()];
    let ran = place.run_client(&client, serve(scripts()), "TURNS: once more", &[]);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let shown = report(&place);
    for name in ["turns", "session binding"] {
        assert_eq!(phase(&shown, name)["outcome"], "passed", "{name}: {shown:#}");
    }
    let second = statement("turn-2.json");
    assert_eq!(
        (&second["predicate"]["turn"], &second["predicate"]["sessionBinding"]["turnIndex"]),
        (&json!(2), &json!(1))
    );
    fs::remove_dir_all(&place.root).unwrap();
}
