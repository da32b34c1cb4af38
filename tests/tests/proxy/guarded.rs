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
    // What a line leaves behind takes nothing away of what it said.
    let left = json!({ "command": "seq 1 3; setsid sleep 3 & exit 3" });
    let left = result(&mut client, "bash", left).unwrap();
    let said = (&left["exitCode"], &left["stdout"], &left["truncated"]);
    assert_eq!(said, (&json!(3), &json!("1\n2\n3\n"), &json!(true)));
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

/// What Writ ran it says itself; what the agent says is signed as the agent's word, and as none of Writ's own types.
/// A warning stands beside what a call gave, in its place it would have the agent make the call again.
#[test]
fn what_is_said_beside_a_call_takes_nothing_of_its_result() {
    let place = Place::new(
        "guarded-near",
        &json!({ "version": "1.0", "name": "p", "limits": { "maxToolCalls": { "value": 5 } } }),
    );
    let mut client = place.start(&["mcp", "serve", "--guarded"]);
    client.begin();
    for at in 0..5 {
        let ran = result(&mut client, "bash", json!({ "command": format!("echo {at}") })).unwrap();
        assert_eq!(ran["stdout"], format!("{at}\n"));
        let note = ran["note"].as_str().unwrap_or_default();
        assert_eq!(note.contains("4 of 5 tool calls are used"), at == 3, "{at}: {note}");
    }
    let why = result(&mut client, "bash", json!({ "command": "echo 5" })).unwrap_err();
    assert!(why.contains("/limits/maxToolCalls"), "{why}");
}

#[test]
fn steps_are_attested_and_the_agents_word_is_called_its_own() {
    let policy = json!({ "version": "1.0", "name": "p", "tools": { "deny": ["Bash:curl *"] }, "files": { "deny": ["secrets/**"] },
        "requiredAttestations": ["build", "review"] });
    let place = Place::new("guarded-steps", &policy);
    let mut client = place.start(&["mcp", "serve", "--guarded"]);
    client.begin();
    let build =
        |command: &str| json!({ "name": "build", "command": command, "materials": ["src"], "products": ["out.txt"] });
    let made = result(&mut client, "attest_step", build("cp src/a.txt out.txt")).unwrap();
    assert_eq!((&made["attested"]["standing"], &made["ran"]["exitCode"]), (&json!("observed"), &json!(0)), "{made}");
    for (command, why) in [("curl https://a.example", "/tools/deny/0"), ("rm out.txt", "out.txt")] {
        let refused = result(&mut client, "attest_step", build(command)).unwrap_err();
        assert!(refused.contains(why), "{command}: {refused}");
    }
    let review = |kind: &str, name: &str| {
        json!({ "name": name, "predicateType": kind, "products": ["src/a.txt"],
            "predicate": { "verdict": "fine", "note": "token ghp_0123456789abcdefghijklmnopqrstuvwxyzAB" } })
    };
    let own = "https://github.com/writ-dev/writ/spec/claims/v1";
    for (kind, name, why) in [
        ("https://in-toto.io/attestation/link/v0.3", "build", "a type of what Writ sees itself"),
        ("https://agentflow.dev/attestation/turn/v0.1", "review", "a type of what Writ sees itself"),
        ("HTTPS://AgentFlow.dev/attestation/turn/v0.2", "review", "a type of what Writ sees itself"),
        (own, "review", "a type of what Writ sees itself"),
        ("HTTPS://GitHub.com/writ-dev/writ/x", "review", "a type of what Writ sees itself"),
        ("https://slsa.dev/provenance/v1", "build", "a builder's word"),
        ("review", "review", "an absolute URI"),
        ("https://example.com/review/v1", "other", "it names build, review"),
        ("https://example.com/review/v1", "turn-1", "no name of a step"),
    ] {
        let refused = result(&mut client, "sign_attestation", review(kind, name)).unwrap_err();
        assert!(refused.contains(why), "{kind} {name}: {refused}");
    }
    let missing = place.said(&["verify"]);
    assert!(missing.contains("`review`: no statement"), "{missing}");
    // A digest tells of a file: what the agent may not read, no statement is about.
    for place in ["secrets/key", "secrets", "."] {
        let mut step = build("cp src/a.txt out.txt");
        step["materials"] = json!([place]);
        assert!(result(&mut client, "attest_step", step).unwrap_err().contains("/files/deny/0"), "{place}");
        let mut said = review("https://example.com/review/v1", "review");
        said["products"] = json!([place]);
        assert!(result(&mut client, "sign_attestation", said).unwrap_err().contains("/files/deny/0"), "{place}");
    }
    // What the command puts in a product's place is judged again: a program may do what its line does not tell.
    let swap =
        "import os; os.path.lexists('out.txt') and os.remove('out.txt'); os.symlink('secr' + 'ets/key', 'out.txt')";
    fs::write(place.repository().join("src/swap.py"), swap).unwrap();
    let refused = result(&mut client, "attest_step", build("python3 src/swap.py")).unwrap_err();
    assert!(refused.contains("/files/deny/0"), "{refused}");
    assert!(place.repository().join("out.txt").is_symlink(), "it ran");
    fs::remove_file(place.repository().join("out.txt")).unwrap();
    // The agent's word makes no step good that Writ saw fail.
    result(&mut client, "attest_step", build("cp src/a.txt out.txt; exit 7")).unwrap();
    result(&mut client, "sign_attestation", review("https://example.com/review/v1", "build")).unwrap();
    let failed = place.said(&["verify"]);
    assert!(failed.contains("`build`: the step of row") && failed.contains("ended with 7"), "{failed}");
    let said = result(&mut client, "sign_attestation", review("https://example.com/review/v1", "review")).unwrap();
    assert_eq!(said["attested"]["standing"], "reported by the agent", "{said}");
    result(&mut client, "attest_step", build("cp src/a.txt out.txt")).unwrap();
    assert_eq!(client.end(), Some(0));
    let report = place.said(&["verify"]);
    assert!(report.contains("1 of them the agent's own word") && report.contains("`review`"), "{report}");
    // Of this client no transcript is read, which the report says.
    assert!(place.writ(&["verify", "--allow-absent"]).status.success(), "{report}");
    let mut grep = std::process::Command::new("grep");
    let mut leaked = leaked_in(grep.args(["-rl", "ghp_0123"]).arg(place.repository().parent().unwrap()));
    leaked.retain(|path| path.contains("statements"));
    assert!(leaked.is_empty(), "{leaked:?}");
}

/// The files that `grep` finds.
fn leaked_in(grep: &mut std::process::Command) -> Vec<String> {
    let output = grep.output().unwrap();
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// A notary that is killed, at the latest, when the test ends.
struct Notary(std::process::Child);

impl Notary {
    fn run(place: &Place) -> Self {
        let mut command = place.command(&crate::place::binary());
        let mut child = command.args(["notary", "run"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.as_mut().unwrap()), &mut line).unwrap();
        assert!(line.contains("notary answers"), "{line}");
        Self(child)
    }
}

impl Drop for Notary {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// What Writ runs for an agent is decided and signed by the notary, as hooks are: a policy that wants its custody is open, and nothing is
/// signed by another key in between.
#[test]
fn the_notary_decides_what_writ_runs() {
    let policy =
        json!({ "version": "1.0", "name": "p", "custody": "process-memory", "files": { "deny": ["secrets/**"] } });
    let place = Place::new("guarded-notary", &policy);
    let mut client = place.start(&["mcp", "serve", "--guarded"]);
    client.begin();
    let line = json!({ "command": "cat src/a.txt" });
    let closed = result(&mut client, "bash", line.clone()).unwrap_err();
    assert!(closed.contains("/custody"), "{closed}");
    assert_eq!(client.end(), Some(0));
    let notary = Notary::run(&place);
    let mut client = place.start(&["mcp", "serve", "--guarded"]);
    client.begin();
    assert_eq!(result(&mut client, "bash", line).unwrap()["stdout"], "in src\n");
    let denied = result(&mut client, "read_file", json!({ "path": "secrets/key" })).unwrap_err();
    assert!(denied.contains("/files/deny/0"), "{denied}");
    assert_eq!(result(&mut client, "get_token", json!({})).unwrap()["available"], true);
    let step = json!({ "name": "s", "command": "true" });
    let made = result(&mut client, "attest_step", step).unwrap();
    assert_eq!(made["attested"]["standing"], "reported by the process that ran it", "{made}");
    assert_eq!(client.end(), Some(0));
    let report = place.said(&["verify", "--allow-absent"]);
    assert!(report.contains("`process-memory`") && !report.contains("custody broke"), "{report}");
    assert!(!report.contains("other processes") && report.contains("3 decisions"), "{report}");
    assert!(place.writ(&["verify", "--allow-absent"]).status.success(), "{report}");
    drop(notary);
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
