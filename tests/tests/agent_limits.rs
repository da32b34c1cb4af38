//! Limits of a sub-agent's own policy, through the hook as a client calls it: what its type used is counted apart, and toward the session.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "these sessions need less of it")]
mod workplace;

use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use serde_json::{Value, json};
use workplace::{SESSION, Workplace};

/// A place whose sub-agents of type `Explore` have `own` limits, by their policy and beside it.
fn place(name: &str, own: &Value, beside: &Value) -> Workplace {
    let place = Workplace::new(name);
    let mut child = json!({"name": "Explore", "policy": {"version": "1.0", "name": "explorer", "limits": own}});
    if beside.is_object() {
        child["limits"] = beside.clone();
    }
    let limits = json!({"maxToolCalls": {"value": 100, "enforcement": "fail-fast"}});
    let policy = json!({"version": "1.0", "name": "root", "limits": limits, "sublayouts": [child]});
    fs::write(place.folder.join("repository/.aflock"), policy.to_string()).unwrap();
    place.start();
    place
}

fn call(place: &Workplace, id: &str, agent: Option<(&str, &str)>) -> String {
    let agent = agent.map_or_else(String::new, |(id, kind)| format!(r#","agent_id":"{id}","agent_type":"{kind}""#));
    let members = format!(r#","tool_name":"Bash","tool_input":{{"command":"true"}},"tool_use_id":"{id}"{agent}"#);
    place.answer(&place.payload("PreToolUse", &members))
}

fn denied(answer: &str) -> bool {
    answer.contains("\"permissionDecision\":\"deny\"")
}

fn report(place: &Workplace) -> Value {
    let shown = place.command(&["verify", SESSION, "--format", "json"]).stdin(Stdio::null()).output().unwrap();
    serde_json::from_slice(&shown.stdout).unwrap()
}

fn phase(place: &Workplace, name: &str) -> Value {
    let report = report(place);
    report["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == name).cloned().unwrap_or_default()
}

#[test]
fn exactly_so_many_calls_of_one_type_run_whoever_asks_at_once() {
    let place = place("own-calls", &json!({"maxToolCalls": {"value": 7, "enforcement": "fail-fast"}}), &Value::Null);
    let ran = AtomicU32::new(0);
    thread::scope(|scope| {
        for worker in 0..4 {
            let (place, ran) = (&place, &ran);
            scope.spawn(move || {
                let agent = format!("a{worker}");
                for number in 0..4 {
                    let answer = call(place, &format!("c{worker}-{number}"), Some((&agent, "Explore")));
                    ran.fetch_add(u32::from(!denied(&answer)), Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!(ran.load(Ordering::SeqCst), 7);
    let answer = call(&place, "late", Some(("a9", "Explore")));
    assert!(answer.contains("explorer:/limits/maxToolCalls") && answer.contains("--agent Explore"), "{answer}");
    assert!(!denied(&call(&place, "other", Some(("b1", "Plan")))), "another type is not held by it");
    assert!(!denied(&call(&place, "main", None)));
    assert!(denied(&call(&place, "untold", Some(("c1", "")))), "who may be one is held by it");
    assert_eq!(phase(&place, "decisions")["outcome"], "passed", "{:#}", phase(&place, "decisions"));
    let limits = phase(&place, "limits");
    assert!(limits["summary"].as_str().unwrap().contains("`Explore`: 7 of 7 tool calls (reached)"), "{limits:#}");
    let shown = place.command(&["limits", "show", SESSION]).stdin(Stdio::null()).output().unwrap();
    assert!(String::from_utf8_lossy(&shown.stdout).contains("`Explore`: 7 of 7 tool calls"), "{shown:?}");
}

#[test]
fn a_human_raises_what_one_type_may_use() {
    let place = place("own-raise", &json!({}), &json!({"maxToolCalls": {"value": 1, "enforcement": "fail-fast"}}));
    assert!(!denied(&call(&place, "one", Some(("a1", "Explore")))));
    assert!(denied(&call(&place, "two", Some(("a1", "Explore")))));
    let raise = |words: &str| {
        let writ = place.command(&[]);
        let mut script = Command::new("script");
        script.args([
            "-qec",
            &format!("{} limits raise {words} --session {SESSION}", writ.get_program().display()),
            "/dev/null",
        ]);
        script.current_dir(place.folder.join("repository")).env_clear().env("PATH", "/usr/bin:/bin");
        script.envs(writ.get_envs().filter_map(|(name, value)| Some((name, value?))));
        String::from_utf8_lossy(&script.stdin(Stdio::null()).output().unwrap().stdout).into_owned()
    };
    let none = raise("maxToolCalls 3 --agent Plan");
    assert!(none.contains("has no maxToolCalls"), "{none}");
    let raised = raise("maxToolCalls 2 --agent Explore");
    assert!(raised.contains("2 tool calls instead of 1 tool call"), "{raised}");
    assert!(!denied(&call(&place, "three", Some(("a1", "Explore")))));
    assert!(denied(&call(&place, "four", Some(("a2", "Explore")))));
    assert_eq!(phase(&place, "decisions")["outcome"], "passed", "{:#}", phase(&place, "decisions"));
}

#[test]
fn a_post_hoc_limit_of_one_type_is_held_against_the_end() {
    let place = place("own-after", &json!({"maxToolCalls": {"value": 1, "enforcement": "post-hoc"}}), &Value::Null);
    for number in 0..2 {
        assert!(!denied(&call(&place, &format!("c{number}"), Some(("a1", "Explore")))));
    }
    let limits = phase(&place, "limits");
    assert_eq!(limits["outcome"], "failed", "{limits:#}");
    assert!(limits["summary"].as_str().unwrap().contains("`Explore`: 2 of 1 tool call"), "{limits:#}");
}
