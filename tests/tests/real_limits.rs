//! The real Claude Code client, whose session is stopped by its spend limit in the middle of its work.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
mod client;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use client::mock::{Script, serve, text, tool};
use client::{Place, VERSION, binary, client};

fn echo(word: &str) -> Value {
    tool("Bash", json!({ "command": format!("echo {word} >> said.txt"), "description": "say" }))
}

fn ask_another() -> Value {
    tool(
        "Agent",
        json!({ "description": "sub", "prompt": "WORKER: do it", "subagent_type": "general-purpose", "run_in_background": false }),
    )
}

fn rows(place: &Place) -> Vec<Value> {
    let shown = place.writ(&["session", "show", "--format", "json"]);
    serde_json::from_slice::<Value>(&shown.stdout).unwrap().as_array().unwrap().clone()
}

/// The client's own totals, and its session's id.
fn told(place: &Place) -> (Value, String) {
    let projects = fs::read_dir(place.root.join("config/projects")).unwrap();
    let files = projects.flat_map(|project| fs::read_dir(project.unwrap().path()).unwrap());
    let mains =
        files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let mains: Vec<PathBuf> = mains.collect();
    let [main] = mains.as_slice() else { panic!("{mains:?}") };
    let lines = fs::read_to_string(main).unwrap();
    let mut lines = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let last = lines.rfind(|line| line["type"] == "cost-state").unwrap();
    (last, main.file_stem().unwrap().to_string_lossy().into_owned())
}

/// `writ` with these words at a terminal of its own.
fn human(place: &Place, words: &str) -> String {
    let writ = place.command(&binary());
    let mut script = Command::new("script");
    script.args(["-qec", &format!("{} {words}", binary().display()), "/dev/null"]).current_dir(&place.work).env_clear();
    script.envs(writ.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = script.stdin(Stdio::null()).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_spend_limit_stops_a_session_in_the_middle_and_a_human_lets_it_go_on() {
    let client = client();
    let mut place = Place::new("real-limits");
    place.allowed = "Bash(echo *)";
    place.writ(&["init", "--client-version", VERSION]);
    // A message costs $0.0006: the tenth, of which two are a subagent's, is one too many. The client writes down what a subagent said
    // last a little later than it says it: one message less than there are is still near the limit.
    let policy = json!({"version": "1.0", "name": "spend", "limits": {"maxSpendUSD": 0.006, "maxToolCalls": 100}});
    fs::write(place.work.join(".aflock"), policy.to_string()).unwrap();
    let mut main = vec![vec![echo("one")], vec![ask_another()]];
    main.extend(["two", "three", "four", "five", "six", "seven", "eight"].map(|word| vec![echo(word)]));
    main.push(vec![text("All done.")]);
    let worker = vec![vec![echo("worker")], vec![text("Done.")]];
    let scripts =
        || vec![Script { word: "WORKER:", turns: worker.clone() }, Script { word: "SPEND:", turns: main.clone() }];
    let said = || fs::read_to_string(place.work.join("said.txt")).unwrap_or_default();

    let ran = place.run_client(&client, serve(scripts()), "SPEND: do the work", &[]);
    let output = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert_eq!(said(), "one\nworker\ntwo\nthree\nfour\nfive\nsix\n", "{output}");
    assert!(output.contains("writ limits raise maxSpendUSD"), "a person is told how to go on: {output}");
    let (total, id) = told(&place);
    assert_eq!(
        total["modelUsage"]["claude-sonnet-4-5"]["inputTokens"], 1000,
        "no message came after the limit: {total}"
    );
    let ended: Vec<Value> = rows(&place).into_iter().filter(|row| row["detail"]["event"] == "turn-ended").collect();
    assert_eq!(ended.len(), 1, "{ended:#?}");

    // The next prompt of the same conversation reaches no model.
    place.arguments = vec!["--resume".to_owned(), id];
    let ran = place.run_client(&client, serve(scripts()), "go on", &[]);
    let output = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(output.contains("/limits/maxSpendUSD"), "{output}");
    assert_eq!(told(&place).0["modelUsage"]["claude-sonnet-4-5"]["inputTokens"], 1000);
    assert!(rows(&place).iter().any(|row| row["detail"]["event"] == "prompt-refused"));

    let raised = human(&place, "limits raise maxSpendUSD 1");
    assert!(raised.contains("$1.00 instead of $0.006"), "{raised}");
    let ran = place.run_client(&client, serve(scripts()), "go on", &[]);
    let output = String::from_utf8_lossy(&ran.stdout).into_owned();
    let (total, _) = told(&place);
    let used = &total["modelUsage"]["claude-sonnet-4-5"];
    assert!(used["inputTokens"].as_u64().unwrap() > 1000, "{output}");

    // What was counted is what the client says itself.
    let shown: Value = serde_json::from_slice(&place.writ(&["limits", "show", "--format", "json"]).stdout).unwrap();
    let agents = shown["agents"].as_array().unwrap();
    let sum = |name: &str| agents.iter().filter_map(|agent| agent["tokens"][name].as_u64()).sum::<u64>();
    assert_eq!(
        (json!(sum("input")), json!(sum("output"))),
        (used["inputTokens"].clone(), used["outputTokens"].clone())
    );
    let spent = shown["limits"][0]["used"].as_u64().unwrap();
    assert_eq!(spent, (total["totalCostUSD"].as_f64().unwrap() * 1e6).round() as u64, "{shown:#} {total:#}");
    let worker = agents.iter().find(|agent| agent["type"] == "general-purpose").unwrap();
    assert_eq!(worker["tokens"]["input"], 200, "{shown:#}");
    assert!(worker["call"].as_str().unwrap().starts_with("toolu_SPEND_1"), "{shown:#}");

    let report: Value = serde_json::from_slice(&place.writ(&["verify", "--format", "json"]).stdout).unwrap();
    assert_eq!(report["verified"], true, "{report:#}");
    fs::remove_dir_all(&place.root).unwrap();
}

#[test]
fn a_sub_agent_is_stopped_by_its_own_tighter_limits_and_the_main_agent_goes_on() {
    let client = client();
    for (name, limits, said) in [
        ("calls", json!({"maxToolCalls": {"value": 2, "enforcement": "fail-fast"}}), "one\na\nb\ntwo\n"),
        // A message costs $0.0006: its sixth uses up what the five before have left.
        ("spend", json!({"maxSpendUSD": 0.0036}), "one\na\nb\nc\nd\ne\ntwo\n"),
    ] {
        let mut place = Place::new(&format!("real-own-{name}"));
        place.allowed = "Bash(echo *)";
        place.writ(&["init", "--client-version", VERSION]);
        let worker = json!({"version": "1.0", "name": "worker", "limits": limits});
        let policy = json!({"version": "1.0", "name": "own", "limits": {"maxToolCalls": {"value": 100, "enforcement": "fail-fast"}, "maxSpendUSD": 5},
            "sublayouts": [{"name": "general-purpose", "policy": worker}]});
        fs::write(place.work.join(".aflock"), policy.to_string()).unwrap();
        let main = vec![vec![echo("one")], vec![ask_another()], vec![echo("two")], vec![text("All done.")]];
        let mut worker: Vec<Vec<Value>> = ["a", "b", "c", "d", "e", "f", "g"].map(|word| vec![echo(word)]).into();
        worker.push(vec![text("Done.")]);
        let scripts = vec![Script { word: "WORKER:", turns: worker }, Script { word: "OWN:", turns: main }];
        let ran = place.run_client(&client, serve(scripts), "OWN: do the work", &[]);
        let output = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert_eq!(fs::read_to_string(place.work.join("said.txt")).unwrap_or_default(), said, "{name} {output}");
        let report: Value = serde_json::from_slice(&place.writ(&["verify", "--format", "json"]).stdout).unwrap();
        assert_eq!(report["verified"], true, "{name} {report:#}");
        let phase = report["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "limits").unwrap();
        assert!(phase["summary"].as_str().unwrap().contains("`general-purpose`: "), "{phase:#}");
        fs::remove_dir_all(&place.root).unwrap();
    }
}
