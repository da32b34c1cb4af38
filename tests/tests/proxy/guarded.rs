//! The tools of `writ mcp serve --guarded` that Writ runs itself, and those about the session.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::place::{Client, Place};

/// A tool's result; an error's text instead where it is one.
fn result(client: &mut Client, tool: &str, arguments: Value) -> Result<Value, String> {
    let answer = client.call(tool, arguments);
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    if result["isError"] == true { Err(text) } else { Ok(result["structuredContent"].clone()) }
}

#[test]
fn what_writ_runs_itself_obeys_the_policy_and_is_on_record() {
    let place = Place::new(
        "guarded",
        &json!({ "version": "1.0", "name": "p", "files": { "deny": ["secrets/**"], "readOnly": ["src/a.txt"] },
            "tools": { "deny": ["Bash:curl *"], "requireApproval": ["Bash:git push *"] } }),
    );
    symlink("secrets/key", place.repository().join("link")).unwrap();
    let mut client = place.start(&["mcp", "serve", "--guarded"]);
    client.begin();
    let tools = client.tools();
    for tool in ["bash", "read_file", "write_file", "get_policy", "get_token", "recourse_evaluate_shell"] {
        assert!(tools.iter().any(|other| other == tool), "{tools:?}");
    }
    let ran = result(&mut client, "bash", json!({ "command": "cat src/a.txt; echo oops >&2; exit 3" })).unwrap();
    assert_eq!((&ran["exitCode"], &ran["stdout"], &ran["stderr"]), (&json!(3), &json!("in src\n"), &json!("oops\n")));
    let slow =
        result(&mut client, "bash", json!({ "command": "sleep 60 & sleep 60", "timeout_seconds": 0.3 })).unwrap();
    assert!(slow["timedOut"] == true && slow["exitCode"].is_null(), "{slow}");
    let much = result(&mut client, "bash", json!({ "command": "yes | head -c 3000000" })).unwrap();
    assert!(much["truncated"] == true && much["stdout"].as_str().unwrap().len() == 1 << 20);
    for (tool, arguments, rule) in [
        ("bash", json!({ "command": "cat secrets/key" }), "/files/deny/0"),
        ("bash", json!({ "command": "true; curl https://a.example" }), "/tools/deny/0"),
        ("read_file", json!({ "path": "secrets/key" }), "/files/deny/0"),
        ("read_file", json!({ "path": "link" }), "/files/deny/0"),
        ("write_file", json!({ "path": "src/a.txt", "content": "x" }), "/files/readOnly/0"),
        ("write_file", json!({ "path": ".aflock", "content": "{}" }), "writ:self-protection"),
    ] {
        let why = result(&mut client, tool, arguments).unwrap_err();
        assert!(why.contains(rule), "{tool}: {why}");
    }
    assert_eq!(result(&mut client, "read_file", json!({ "path": "src/a.txt" })).unwrap()["content"], "in src\n");
    let new = json!({ "path": "src/new.txt", "content": "n\u{e9}w" });
    assert_eq!(result(&mut client, "write_file", new).unwrap()["bytes"], 4);
    assert_eq!(fs::read_to_string(place.repository().join("src/new.txt")).unwrap(), "n\u{e9}w");
    assert!(result(&mut client, "read_file", json!({ "path": "/dev/zero" })).is_err());

    let push = json!({ "tool": "Bash", "input": { "command": "git push origin" } });
    assert_eq!(result(&mut client, "check_tool", push.clone()).unwrap()["decision"], "ask");
    let asked = result(&mut client, "request_approval", push).unwrap();
    assert_eq!(asked["status"], "waiting", "{asked}");
    let why = asked["detail"].as_str().unwrap();
    let call = why.split("writ approve ").nth(1).unwrap().split('`').next().unwrap();
    let session = why.split("--session ").nth(1).unwrap().split('`').next().unwrap();
    place.human(&format!("approve {call} --session {session}"));
    let pushed = result(&mut client, "bash", json!({ "command": "git push origin" })).unwrap();
    assert_ne!(pushed["exitCode"], 0, "there is nowhere to push to, but it ran: {pushed}");
    assert!(result(&mut client, "bash", json!({ "command": "git push origin" })).is_err(), "once");

    assert_eq!(result(&mut client, "get_policy", json!({})).unwrap()["policy"]["name"], "p");
    assert_eq!(result(&mut client, "get_token", json!({})).unwrap()["available"], false);
    let identity = result(&mut client, "get_identity", json!({})).unwrap();
    assert_eq!((&identity["available"], &identity["agents"][0]["agent"]), (&json!(true), &json!("main")), "{identity}");
    assert!(identity["agents"][0]["spiffe"].as_str().unwrap().starts_with("spiffe://writ.local/agent/unknown/0/"));
    let session = result(&mut client, "get_session", json!({})).unwrap();
    assert_eq!((&session["denied"], &session["recorded"]), (&json!(6), &json!(true)), "{session}");
    assert_eq!(client.end(), Some(0));
    assert!(place.writ(&["verify"]).status.success(), "{}", place.said(&["verify"]));
}

/// With `enforce: calls` the line runs in its sandbox: what no rule can see from outside is refused by the kernel.
#[test]
fn a_line_is_confined_where_the_policy_wants_that() {
    let place = Place::new(
        "guarded-confined",
        &json!({ "version": "1.0", "name": "p", "enforce": "calls", "files": { "deny": ["secrets/**"] } }),
    );
    fs::write(place.repository().join("src/peek.sh"), "cat $(printf 'secr%s/key' ets)\n").unwrap();
    let mut client = place.start(&["mcp", "serve", "--guarded"]);
    client.begin();
    let ran = result(&mut client, "bash", json!({ "command": "echo in; sh src/peek.sh" })).unwrap();
    assert!(ran["stdout"] == "in\n" && ran["exitCode"] != 0, "{ran}");
    assert_eq!(client.end(), Some(0));
    let report = place.said(&["verify"]);
    assert!(report.contains("sandbox") && report.contains("[enforced]"), "{report}");
}
