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

/// What `writ` says to these words at a terminal.
fn human(place: &Workplace, words: &str) -> String {
    let writ = place.command(&[]);
    let mut script = Command::new("script");
    script.args(["-qec", &format!("{} {words}", writ.get_program().display()), "/dev/null"]);
    script.current_dir(place.folder.join("repository")).env_clear().env("PATH", "/usr/bin:/bin");
    script.envs(writ.get_envs().filter_map(|(name, value)| Some((name, value?))));
    String::from_utf8_lossy(&script.stdin(Stdio::null()).output().unwrap().stdout).into_owned()
}

#[test]
fn another_policy_takes_nothing_back_of_what_a_type_used() {
    let limits = json!({"maxToolCalls": {"value": 2, "enforcement": "fail-fast"}, "maxTurns": {"value": 1}});
    let place = place("own-accept", &limits, &Value::Null);
    let explores = |id: &str| !denied(&call(&place, id, Some(("a1", "Explore"))));
    let said = human(&place, &format!("limits raise maxTurns 3 --session {SESSION}"));
    assert!(said.contains("has no maxTurns; `--agent Explore` has one"), "{said}");
    assert!(!denied(&task(&place, "t1", "Explore", None)) && explores("one"));
    let file = place.folder.join("repository/.aflock");
    let mut policy: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let accept = |policy: &Value| {
        fs::write(&file, policy.to_string()).unwrap();
        let said = human(&place, &format!("policy accept {SESSION}"));
        assert!(said.contains("now runs under"), "{said}");
    };
    policy["tools"] = json!({"deny": ["Bash:nix"]});
    accept(&policy);
    assert!(explores("two") && !explores("three"), "one call was made before");
    assert!(denied(&task(&place, "t2", "Explore", None)), "and one task given");
    assert_eq!(phase(&place, "decisions")["outcome"], "passed", "{:#}", phase(&place, "decisions"));
    assert!(phase(&place, "limits").to_string().contains("`Explore`: 2 of 2 tool calls (reached)"));
    // Its count is its type's, whatever its layer is called and wherever it stands.
    let explore = policy["sublayouts"][0].clone();
    let other = json!({"name": "Plan", "policy": explore["policy"]});
    policy["sublayouts"] = json!([other, explore]);
    policy["sublayouts"][1]["policy"]["name"] = json!("renamed");
    accept(&policy);
    assert!(!explores("moved") && !denied(&call(&place, "plan", Some(("b1", "Plan")))));
    assert_eq!(phase(&place, "decisions")["outcome"], "passed", "{:#}", phase(&place, "decisions"));
    // Where nothing limits it any more, nothing is kept.
    policy["sublayouts"] = json!([]);
    accept(&policy);
    assert!(explores("four"));
    assert_eq!(phase(&place, "decisions")["outcome"], "passed", "{:#}", phase(&place, "decisions"));
}

#[test]
fn a_human_raises_what_one_type_may_use() {
    let place = place("own-raise", &json!({}), &json!({"maxToolCalls": {"value": 1, "enforcement": "fail-fast"}}));
    assert!(!denied(&call(&place, "one", Some(("a1", "Explore")))));
    assert!(denied(&call(&place, "two", Some(("a1", "Explore")))));
    let raise = |words: &str| human(&place, &format!("limits raise {words} --session {SESSION}"));
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

/// A task that an agent gives a sub-agent of a type.
fn task(place: &Workplace, id: &str, kind: &str, agent: Option<(&str, &str)>) -> String {
    let agent = agent.map_or_else(String::new, |(id, kind)| format!(r#","agent_id":"{id}","agent_type":"{kind}""#));
    let input = json!({"subagent_type": kind, "prompt": "look", "description": "look"});
    let members = format!(r#","tool_name":"Agent","tool_input":{input},"tool_use_id":"{id}"{agent}"#);
    place.answer(&place.payload("PreToolUse", &members))
}

#[test]
fn a_type_is_given_exactly_so_many_tasks() {
    for (name, own, beside) in [
        ("own-turns", json!({"maxTurns": {"value": 3}}), Value::Null),
        ("own-turns-beside", json!({}), json!({"maxTurns": {"value": 3}})),
    ] {
        let place = place(name, &own, &beside);
        let given = AtomicU32::new(0);
        thread::scope(|scope| {
            for worker in 0..16 {
                let (place, given) = (&place, &given);
                scope.spawn(move || {
                    let answer = task(place, &format!("t{worker}"), "Explore", None);
                    given.fetch_add(u32::from(!denied(&answer)), Ordering::SeqCst);
                });
            }
        });
        assert_eq!(given.load(Ordering::SeqCst), 3);
        let answer = task(&place, "late", "Explore", None);
        assert!(answer.contains("explorer:/limits/maxTurns") && answer.contains("--agent Explore"), "{answer}");
        assert!(!denied(&task(&place, "plan", "Plan", None)), "another type is not held by it");
        assert!(denied(&task(&place, "any", "", None)), "who may be one is held by it");
        assert!(!denied(&call(&place, "goes-on", Some(("a1", "Explore")))), "its last turn goes on");
        assert_eq!(phase(&place, "decisions")["outcome"], "passed", "{:#}", phase(&place, "decisions"));
        let limits = phase(&place, "limits");
        assert!(limits["summary"].as_str().unwrap().contains("`Explore`: 3 of 3 turns (reached)"), "{limits:#}");
        let check = place.command(&["policy", "check"]).stdin(Stdio::null()).output().unwrap();
        assert!(!String::from_utf8_lossy(&check.stdout).contains("maxTurns: not enforced yet"), "{check:?}");
    }
}

#[test]
fn tasks_of_a_post_hoc_limit_are_held_against_the_end() {
    let place = place("own-turns-after", &json!({"maxTurns": 1}), &Value::Null);
    for number in 0..2 {
        assert!(!denied(&task(&place, &format!("t{number}"), "Explore", None)));
    }
    let limits = phase(&place, "limits");
    assert_eq!(limits["outcome"], "failed", "{limits:#}");
    assert!(limits["summary"].as_str().unwrap().contains("`Explore`: 2 of 1 turn"), "{limits:#}");
}

#[test]
fn a_sub_agent_gives_no_task_to_one_that_is_held_by_less() {
    let place = Workplace::new("own-nested");
    let deep = json!({"name": "Deep", "policy": {"version": "1.0", "name": "deep"}});
    let explorer = json!({"version": "1.0", "name": "explorer", "tools": {"deny": ["Write"]}, "sublayouts": [deep]});
    let policy = json!({"version": "1.0", "name": "root", "sublayouts": [{"name": "Explore", "policy": explorer}]});
    fs::write(place.folder.join("repository/.aflock"), policy.to_string()).unwrap();
    place.start();
    let explore = Some(("a1", "Explore"));
    let answer = task(&place, "t1", "general-purpose", explore);
    assert!(denied(&answer) && answer.contains("writ:sub-agent"), "{answer}");
    assert!(denied(&task(&place, "t2", "", explore)), "whose type is not told may be held by none");
    assert!(!denied(&task(&place, "t3", "Explore", explore)));
    assert!(!denied(&task(&place, "t4", "Deep", explore)), "its policy's own sublayouts are held by both");
    assert!(denied(&task(&place, "t5", "Explore", Some(("d1", "Deep")))));
    assert!(!denied(&task(&place, "t6", "general-purpose", None)), "the main agent may");
    assert!(!denied(&task(&place, "t7", "general-purpose", Some(("p1", "Plan")))), "nothing holds a `Plan`");
    assert_eq!(phase(&place, "decisions")["outcome"], "passed", "{:#}", phase(&place, "decisions"));
}

#[test]
fn agents_of_a_type_are_told_once_that_its_limit_is_near() {
    let own = json!({"maxToolCalls": {"value": 5, "enforcement": "fail-fast"}, "maxTurns": {"value": 5}});
    let place = place("own-near", &own, &Value::Null);
    let batch = |id: &str, agent: Option<(&str, &str)>| {
        let agent = agent.map_or_else(String::new, |(id, kind)| format!(r#","agent_id":"{id}","agent_type":"{kind}""#));
        let call =
            json!([{"tool_name": "Bash", "tool_input": {"command": "true"}, "tool_use_id": id, "tool_response": ""}]);
        place.answer(&place.payload("PostToolBatch", &format!(r#","tool_calls":{call}{agent}"#)))
    };
    let explore = Some(("a1", "Explore"));
    for number in 0..3 {
        let id = format!("c{number}");
        assert!(!denied(&call(&place, &id, explore)));
        assert!(!batch(&id, explore).contains("are used"), "three of five is not near");
    }
    assert!(!denied(&call(&place, "c3", explore)));
    assert!(!batch("m", None).contains("are used"), "the main agent is told of its own");
    assert!(!batch("p", Some(("b1", "Plan"))).contains("are used"));
    let told = batch("c3", explore);
    assert!(told.contains("sub-agents of type `Explore`: 4 of 5 tool calls are used (maxToolCalls)"), "{told}");
    assert!(told.contains("then they are refused"), "{told}");
    assert!(!batch("c3", explore).contains("are used"), "once");
    for number in 0..4 {
        assert!(!denied(&task(&place, &format!("t{number}"), "Explore", None)));
    }
    let told = batch("t3", None);
    assert!(told.contains("sub-agents of type `Explore`: 4 of 5 turns are used (maxTurns)"), "{told}");
    let decisions = phase(&place, "decisions");
    assert_eq!(decisions["outcome"], "passed", "{decisions:#}");
}

/// A call that waits for a human's word counts; once they gave it, what runs of it counts in its place, and both where both ran.
#[test]
fn a_call_that_was_approved_counts_once() {
    let place = Workplace::new("own-approved");
    let most = |calls: u64| json!({"maxToolCalls": {"value": calls, "enforcement": "fail-fast"}});
    let child = json!({"name": "Explore", "policy": {"version": "1.0", "name": "explorer", "limits": most(2)}});
    let policy = json!({"version": "1.0", "name": "root", "limits": most(3), "sublayouts": [child],
        "tools": {"requireApproval": ["Bash:true"]}});
    fs::write(place.folder.join("repository/.aflock"), policy.to_string()).unwrap();
    place.start();
    let explore = |id: &str| call(&place, id, Some(("a1", "Explore")));
    let asks = |answer: &str| answer.contains("\"permissionDecision\":\"ask\"");
    let runs = |answer: &str| answer.contains("\"permissionDecision\":\"allow\"");
    let say = |word: &str| {
        let waiting = place.command(&["approvals", "--format", "json"]).stdin(Stdio::null()).output().unwrap();
        let waiting: Value = serde_json::from_slice(&waiting.stdout).unwrap();
        let said = human(&place, &format!("{word} {}", waiting[0]["id"].as_str().unwrap()));
        assert!(said.contains("may run once") || said.contains("is denied"), "{said}");
    };
    let calls = |who: &str| {
        let shown = place.command(&["limits", "show", SESSION]).stdin(Stdio::null()).output().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        let line =
            shown.lines().find(|line| line.contains("tool calls") && line.contains("`Explore`") == (who == "Explore"));
        line.unwrap().to_owned()
    };
    assert!(asks(&explore("one")));
    say("approve");
    assert!(calls("main").contains("0 of 3") && calls("Explore").contains("0 of 2"), "{}", calls("main"));
    assert!(runs(&explore("two")));
    assert!(calls("main").contains("1 of 3") && calls("Explore").contains("1 of 2"), "{}", calls("main"));
    assert!(asks(&explore("three")));
    assert!(denied(&explore("four")), "one that waits counts");
    assert!(denied(&explore("three")), "a second hook that is asked about it");
    say("approve");
    // The client's own user said yes as well.
    let result = r#","tool_name":"Bash","tool_input":{"command":"true"},"tool_use_id":"three","tool_response":{},"agent_id":"a1","agent_type":"Explore""#;
    place.answer(&place.payload("PostToolUse", result));
    assert!(calls("main").contains("2 of 3") && calls("Explore").contains("2 of 2"), "{}", calls("main"));
    assert!(denied(&explore("five")));
    assert!(asks(&call(&place, "six", None)));
    say("deny");
    assert!(calls("main").contains("2 of 3"), "{}", calls("main"));
    let decisions = phase(&place, "decisions");
    assert_eq!(decisions["outcome"], "passed", "{decisions:#}");
}
