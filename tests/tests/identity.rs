//! Who an agent is: what is seen of it and what is told, what a policy asks of it, how a sub-agent's chains to its parent's, and what a
//! verifier finds when any of it is changed.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "these sessions start in their own ways")]
mod workplace;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use workplace::{SESSION, Workplace};

const OPUS: &str = "claude-opus-4-5-20251101";

fn place(name: &str, identity: &Value, more: &Value) -> Workplace {
    let place = Workplace::new(name);
    let mut policy = json!({"version": "1.0", "name": "who", "identity": identity});
    policy.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    fs::write(place.folder.join("repository/.aflock"), policy.to_string()).unwrap();
    place
}

/// What the client writes down of a message that makes a call.
fn says(file: &std::path::Path, model: &str, call: &str) {
    let line = json!({"type": "assistant", "message": {"id": format!("m-{call}"), "model": model,
        "content": [{"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "ls"}}],
        "usage": {"input_tokens": 1, "output_tokens": 1}}});
    let text = fs::read_to_string(file).unwrap_or_default();
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, format!("{text}{line}\n")).unwrap();
}

fn transcript(place: &Workplace) -> std::path::PathBuf {
    place.folder.join("repository/none.jsonl")
}

fn call(place: &Workplace, id: &str, line: &str, more: &str) -> String {
    let members = format!(r#","tool_name":"Bash","tool_input":{{"command":"{line}"}},"tool_use_id":"{id}"{more}"#);
    place.answer(&place.payload("PreToolUse", &members))
}

fn is(answer: &str, verdict: &str) -> bool {
    answer.contains(&format!("\"permissionDecision\":\"{verdict}\""))
}

fn phase(place: &Workplace, name: &str) -> Value {
    let output = place.writ(&["verify", SESSION, "--format", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = report["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == name);
    found.unwrap_or_else(|| panic!("{name}: {report}")).clone()
}

fn identities(place: &Workplace) -> Vec<Value> {
    let output = place.writ(&["identity", SESSION, "--format", "json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice::<Value>(&output.stdout).unwrap().as_array().unwrap().clone()
}

fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned()
}

#[test]
fn an_identity_is_made_of_what_is_seen_and_told() {
    let place = place("parts", &json!({"allowedModels": ["claude-*"]}), &json!({"tools": {"deny": ["WebFetch"]}}));
    place.start();
    says(&transcript(&place), OPUS, "1");
    assert!(!is(&call(&place, "1", "ls", ""), "deny"));
    let [one] = identities(&place).try_into().unwrap();
    assert_eq!((&one["agent"], &one["parts"]["model"]), (&json!("main"), &json!(OPUS)));
    assert_eq!(one["parts"]["environment"]["host"], host());
    let tools: Vec<&str> = one["parts"]["tools"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(tools, ["Bash", "Edit", "Read", "Search", "Task", "WebSearch", "Write"]);
    assert_eq!(
        (&one["standing"]["model"], &one["standing"]["environment.uid"]),
        (&json!("reported"), &json!("observed"))
    );
    let policy = fs::read(place.folder.join("repository/.aflock")).unwrap();
    let sha = |bytes: &[u8]| {
        let file = place.folder.join("hashed");
        fs::write(&file, bytes).unwrap();
        let output = Command::new("sha256sum").arg(file).output().unwrap();
        format!("sha256:{}", String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap())
    };
    assert_eq!(one["parts"]["policyDigest"], sha(&policy));
    // With its members sorted nothing in it needs another form: this is its canonical JSON.
    let mut parts = one["parts"].clone();
    parts.sort_all_objects();
    assert_eq!(one["hash"], sha(parts.to_string().as_bytes()), "R21");
    let hex = one["hash"].as_str().unwrap().trim_start_matches("sha256:");
    assert_eq!(one["spiffe"], format!("spiffe://writ.local/agent/claude-opus/4.5/{}", &hex[..16]));
    let text = place.writ(&["identity", "--explain", "--trust-domain", "example.org"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.contains("spiffe://example.org/") && text.contains("  reported") && text.contains("hashed   {"),
        "{text}"
    );
    assert_eq!(phase(&place, "identity")["outcome"], "passed");
    assert_eq!(phase(&place, "decisions")["outcome"], "passed");
}

#[test]
fn only_allowed_models_make_calls() {
    let place = place("models", &json!({"allowedModels": ["claude-opus-4-5*"]}), &json!({}));
    says(&transcript(&place), OPUS, "1");
    assert!(!is(&call(&place, "1", "ls", ""), "deny"));
    says(&transcript(&place), "claude-haiku-4-5", "2");
    let told = call(&place, "2", "ls", "");
    assert!(is(&told, "deny") && told.contains("its model is `claude-haiku-4-5`"), "{told}");
    says(&transcript(&place), OPUS, "3");
    assert!(!is(&call(&place, "3", "ls", ""), "deny"), "whoever made the call counts");
    let told = call(&place, "not-told", "ls", "");
    assert!(is(&told, "ask") && told.contains("is not known"), "{told}");
    says(&transcript(&place), OPUS, "x\",\"model\":\"y");
    assert!(is(&call(&place, "x", "ls", ""), "ask"), "an id is the whole id");
    assert_eq!(phase(&place, "decisions")["outcome"], "passed");
    assert_eq!(phase(&place, "identity")["outcome"], "passed");
}

#[test]
fn what_is_only_told_does_not_count_where_the_policy_wants_it_observed() {
    let observed = json!({"allowedModels": ["*"], "standing": "observed"});
    let place = place("observed", &observed, &json!({}));
    says(&transcript(&place), OPUS, "1");
    let told = call(&place, "1", "ls", "");
    assert!(is(&told, "deny") && told.contains("only reported"), "{told}");
    assert_eq!(phase(&place, "decisions")["outcome"], "passed");
}

#[test]
fn a_policy_runs_only_in_its_environments() {
    let mut here = place(
        "here",
        &json!({"allowedEnvironments": [format!("host:{}", host()), "container:none/*"], "standing": "observed"}),
        &json!({}),
    );
    // Root, who names the machine, only reports its name.
    here.give();
    assert!(!is(&call(&here, "1", "ls", ""), "deny"));
    assert_eq!(phase(&here, "decisions")["outcome"], "passed");
    let elsewhere = place(
        "elsewhere",
        &json!({"allowedEnvironments": ["container:ghcr.io/org/*", "user:nobody-here"]}),
        &json!({}),
    );
    let told = call(&elsewhere, "1", "ls", "");
    assert!(is(&told, "deny") && told.contains("/identity/allowedEnvironments") && told.contains(&host()), "{told}");
    assert_eq!(phase(&elsewhere, "decisions")["outcome"], "passed");
}

#[test]
fn tools_that_must_not_be_there_are_denied_and_those_that_must_are_missed() {
    let denied = place("denied", &json!({"deniedTools": ["Bash:rm -rf *"]}), &json!({}));
    let told = call(&denied, "1", "rm -rf src", "");
    assert!(is(&told, "deny") && told.contains("/identity/deniedTools/0"), "{told}");
    assert!(!is(&call(&denied, "2", "ls", ""), "deny"));
    let missed = place("missed", &json!({"requiredTools": ["Read"]}), &json!({"tools": {"allow": ["Bash"]}}));
    let told = call(&missed, "1", "ls", "");
    assert!(is(&told, "deny") && told.contains("/identity/requiredTools/0"), "{told}");
    let there = place("there", &json!({"requiredTools": ["Read"]}), &json!({"tools": {"allow": ["Bash", "Read"]}}));
    assert!(is(&call(&there, "1", "ls", ""), "allow"));
    for place in [&denied, &missed, &there] {
        assert_eq!(phase(place, "decisions")["outcome"], "passed");
    }
}

#[test]
fn a_sub_agents_identity_chains_to_its_parents() {
    let child = json!({"version": "1.0", "name": "child", "tools": {"allow": ["Bash"]}});
    let more = json!({"sublayouts": [{"name": "worker", "policy": child}]});
    let place = place("chain", &json!({"allowedModels": ["claude-*"]}), &more);
    says(&transcript(&place), OPUS, "1");
    call(&place, "1", "ls", "");
    says(&place.folder.join("repository/none/subagents/agent-a1.jsonl"), "claude-haiku-4-5", "2");
    assert!(!is(&call(&place, "2", "ls", r#","agent_id":"a1","agent_type":"worker""#), "deny"));
    let [main, sub] = identities(&place).try_into().unwrap();
    assert_eq!((&sub["agent"], &sub["type"]), (&json!("a1"), &json!("worker")));
    assert_eq!(sub["parts"]["parentIdentity"], main["hash"]);
    assert_eq!((&sub["parts"]["model"], &sub["parts"]["tools"]), (&json!("claude-haiku-4-5"), &json!(["Bash"])));
    assert_ne!(sub["parts"]["policyDigest"], main["parts"]["policyDigest"]);
    assert_eq!(phase(&place, "identity")["outcome"], "passed");
    assert_eq!(phase(&place, "decisions")["outcome"], "passed");
}

#[test]
fn parts_that_are_changed_or_gone_are_found() {
    let place = place("changed", &json!({"allowedModels": ["claude-*"]}), &json!({}));
    says(&transcript(&place), OPUS, "1");
    call(&place, "1", "ls", "");
    let folder = place.session().join("identities");
    let file = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let good = fs::read_to_string(&file).unwrap();
    fs::write(&file, good.replace(OPUS, "claude-other")).unwrap();
    assert_eq!(phase(&place, "identity")["outcome"], "failed");
    assert!(!place.writ(&["identity", SESSION]).status.success());
    fs::remove_file(&file).unwrap();
    assert_eq!(phase(&place, "identity")["outcome"], "failed");
    fs::write(&file, good).unwrap();
    assert_eq!(phase(&place, "identity")["outcome"], "passed");
}

/// In a user namespace of its own an agent is root, names the machine and mounts what it likes: what the kernel tells there is its own word.
#[test]
fn what_an_agent_makes_in_its_own_namespaces_is_not_observed() {
    let asks = json!({"allowedEnvironments": ["host:build-7"], "standing": "observed"});
    let place = place("namespaces", &asks, &json!({}));
    place.start();
    assert!(is(&call(&place, "1", "ls", ""), "deny"), "the twin: it is another machine");
    let payload = place.payload("PreToolUse", r#","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"2""#);
    fs::write(place.folder.join("call"), payload).unwrap();
    let writ = place.command(&[]);
    let line = format!("hostname build-7 && {} hook < ../call", writ.get_program().display());
    let mut inside = Command::new("unshare");
    inside.args(["--user", "--map-root-user", "--mount", "--uts", "sh", "-c", &line]);
    inside.current_dir(place.folder.join("repository"));
    inside.envs(writ.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = inside.output().unwrap();
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(is(&answer, "deny"), "{answer} {}", String::from_utf8_lossy(&output.stderr));
    let shown = identities(&place);
    assert_eq!(shown[0]["parts"]["environment"]["host"], "build-7", "{shown:?}");
    assert_eq!(shown[0]["standing"]["environment.host"], "reported");
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    assert_eq!(phase(&place, "identity")["outcome"], "passed");
    assert_eq!(phase(&place, "decisions")["outcome"], "passed");
}

/// An agent that a sub-agent started has that one as its parent, by its client's note and the row of the call.
#[test]
fn a_nested_agents_identity_chains_through_the_one_that_started_it() {
    let deep = json!({"name": "deep", "policy": {"version": "1.0", "name": "deep", "tools": {"deny": ["WebFetch"]}}});
    let child = json!({"version": "1.0", "name": "child", "tools": {"deny": ["Write"]}, "sublayouts": [deep]});
    let more = json!({"sublayouts": [{"name": "worker", "policy": child}]});
    let place = place("nested", &json!({"allowedModels": ["claude-*"]}), &more);
    says(&transcript(&place), OPUS, "1");
    call(&place, "1", "ls", "");
    let beside = |agent: &str| place.folder.join(format!("repository/none/subagents/agent-{agent}.jsonl"));
    let start = |id: &str, kind: &str, agent: &str| {
        let input = json!({"subagent_type": kind, "prompt": "x", "description": "x"});
        let members = format!(r#","tool_name":"Agent","tool_input":{input},"tool_use_id":"{id}"{agent}"#);
        place.answer(&place.payload("PreToolUse", &members))
    };
    let note = |agent: &str, kind: &str, call: &str, depth: u64| {
        let note = json!({"agentType": kind, "toolUseId": call, "spawnDepth": depth});
        fs::write(beside(agent).with_extension("meta.json"), note.to_string()).unwrap();
    };
    says(&transcript(&place), OPUS, "t1");
    assert!(!is(&start("t1", "worker", ""), "deny"));
    says(&beside("a1"), OPUS, "t2");
    note("a1", "worker", "t1", 1);
    let worker = r#","agent_id":"a1","agent_type":"worker""#;
    let told = start("t2", "deep", worker);
    assert!(!is(&told, "deny"), "{told}");
    says(&beside("b1"), OPUS, "3");
    note("b1", "deep", "t2", 2);
    assert!(!is(&call(&place, "3", "ls", r#","agent_id":"b1","agent_type":"deep""#), "deny"));
    let all = identities(&place);
    let of = |agent: &str| all.iter().find(|one| one["agent"] == agent).unwrap().clone();
    let (main, worker, deep) = (of("main"), of("a1"), of("b1"));
    assert_eq!(worker["parts"]["parentIdentity"], main["hash"]);
    assert_eq!(deep["parts"]["parentIdentity"], worker["hash"]);
    assert_eq!(
        (&worker["standing"]["parentIdentity"], &deep["standing"]["parentIdentity"]),
        (&json!("observed"), &json!("reported"))
    );
    let tools = |one: &Value| one["parts"]["tools"].as_array().unwrap().clone();
    assert!(tools(&main).contains(&json!("Write")) && !tools(&worker).contains(&json!("Write")));
    assert!(!tools(&deep).contains(&json!("Write")) && !tools(&deep).contains(&json!("WebFetch")));
    assert_eq!(phase(&place, "identity")["outcome"], "passed", "{}", phase(&place, "identity"));
    assert_eq!(phase(&place, "decisions")["outcome"], "passed");
    // A note that names a call which nobody made leads to the main agent, and says that it is no more than told.
    says(&beside("c1"), OPUS, "4");
    note("c1", "deep", "none", 2);
    call(&place, "4", "ls", r#","agent_id":"c1","agent_type":"deep""#);
    let all = identities(&place);
    let lost = all.iter().find(|one| one["agent"] == "c1").unwrap();
    assert_eq!(
        (&lost["parts"]["parentIdentity"], &lost["standing"]["parentIdentity"]),
        (&main["hash"], &json!("reported"))
    );
    assert_eq!(phase(&place, "identity")["outcome"], "passed");
}

/// An engine that speaks Docker's API over a Unix socket says what the container was made from, once, when the client starts.
#[test]
fn an_engine_tells_the_image_of_a_container() {
    let place = place("image", &json!({"allowedEnvironments": ["container:ghcr.io/org/*"]}), &json!({}));
    let id = "3f9a1c02".repeat(8);
    let containers = place.folder.join(format!("containers/{id}"));
    fs::create_dir_all(&containers).unwrap();
    fs::write(containers.join("hostname"), "made\n").unwrap();
    let socket = place.folder.join("engine.sock");
    let script = r#"
import http.server, json, os, socketserver, sys
class Engine(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        open(sys.argv[3], 'a').write(self.path + '\n')
        found = self.path == '/containers/%s/json' % sys.argv[2]
        body = json.dumps({'Id': sys.argv[2], 'Image': 'sha256:' + sys.argv[2], 'Config': {'Image': 'ghcr.io/org/agent:1'}} if found else {'message': 'no such container'}).encode()
        self.send_response(200 if found else 404)
        self.send_header('Content-Type', 'application/json'); self.send_header('Content-Length', str(len(body)))
        self.end_headers(); self.wfile.write(body)
    def address_string(self): return ''
    def log_message(self, *words): pass
class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer): daemon_threads = True
server = Server(sys.argv[1], Engine)
print('ready', flush=True)
server.serve_forever()
"#;
    let asked = place.folder.join("asked");
    let mut engine = Command::new("python3");
    let mut engine =
        engine.args(["-c", script]).args([&socket]).arg(&id).arg(&asked).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(engine.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    // In a mount namespace whose `/etc/hostname` is the container's, as an engine mounts it.
    let inside = |payload: String| {
        let hook = place.command(&["hook"]);
        let line = format!(
            "mount --bind {}/hostname /etc/hostname && exec {} hook",
            containers.display(),
            hook.get_program().to_string_lossy()
        );
        let mut command = Command::new("unshare");
        command.args(["-Urm", "sh", "-c", &line]).current_dir(place.folder.join("repository"));
        command.env_clear().env("PATH", "/usr/bin:/bin").env("DOCKER_HOST", format!("unix://{}", socket.display()));
        command.envs(hook.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), payload.as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    };
    let members = r#","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"1""#;
    inside(place.payload("SessionStart", r#","source":"startup""#));
    let answer = inside(place.payload("PreToolUse", members));
    assert!(!is(&answer, "deny"), "{answer}");
    engine.kill().unwrap();
    engine.wait().unwrap();
    assert_eq!(fs::read_to_string(&asked).unwrap(), format!("/containers/{id}/json\n"), "once");
    let answer = inside(place.payload("PreToolUse", &members.replace("\"1\"", "\"2\"")));
    assert!(!is(&answer, "deny"), "what was told at the start counts: {answer}");
    let [main] = identities(&place).try_into().unwrap();
    let environment = &main["parts"]["environment"];
    assert_eq!(environment["image"], "ghcr.io/org/agent:1", "{main}");
    assert_eq!(environment["imageDigest"], format!("sha256:{id}"));
    assert_eq!(main["standing"]["environment.image"], "reported", "who may mount may have mounted that");
    // Outside of it the image is not its own.
    assert!(is(&call(&place, "3", "ls", ""), "deny"));
    assert_eq!(phase(&place, "identity")["outcome"], "passed");
    assert_eq!(phase(&place, "decisions")["outcome"], "passed");
}
