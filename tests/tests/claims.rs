//! Claims through the hook: who enforces them, what explains a lost write, what people and scripts are told, and what fails open.

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use workplace::Workplace;

/// A workplace whose repository has one commit, with a policy that enforces claims of all agents.
struct Claims {
    place: Workplace,
    root: PathBuf,
}

impl Claims {
    fn new(name: &str, policy: &Value) -> Self {
        let place = Workplace::new(name);
        let root = place.folder.join("repository").canonicalize().unwrap();
        let own = Self { place, root };
        fs::write(own.root.join(".aflock"), policy.to_string()).unwrap();
        fs::write(own.root.join("a.py"), "a = 1\n").unwrap();
        own.git(&["add", "."]);
        own.git(&["commit", "--quiet", "-m", "first"]);
        own
    }

    fn git(&self, arguments: &[&str]) {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(arguments).current_dir(&self.root);
        assert!(command.status().unwrap().success(), "git {arguments:?}");
    }

    fn event(&self, event: &str, agent: &str, more: &Value) -> Value {
        let mut payload = json!({
            "session_id": "s", "transcript_path": self.place.folder.join("t/s.jsonl"), "cwd": self.root,
            "hook_event_name": event, "agent_id": agent, "agent_type": "writer",
        });
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        payload
    }

    fn send(&self, event: &str, agent: &str, more: &Value) -> Value {
        serde_json::from_str(&self.place.answer(&self.event(event, agent, more).to_string())).unwrap()
    }

    /// A stop with a DONE that names `files`, by an agent with these lines as its transcript.
    fn stop(&self, agent: &str, files: &str, lines: &[Value]) -> Value {
        let path = self.transcript(&format!("s/subagents/agent-{agent}.jsonl"), lines);
        self.send("SubagentStop", agent, &done(files, Some(&path)))
    }

    fn transcript(&self, name: &str, lines: &[Value]) -> PathBuf {
        let path = self.place.folder.join("t").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        path
    }

    /// A reported write of `a.py` that never landed.
    fn lost(&self) -> Vec<Value> {
        self.call(
            "Write",
            &json!({"file_path": self.root.join("a.py"), "content": "new\n"}),
            "2099-01-01T00:00:00.000Z",
        )
    }

    fn call(&self, tool: &str, input: &Value, at: &str) -> Vec<Value> {
        let used = json!([{"type": "tool_use", "id": "t1", "name": tool, "input": input}]);
        let result = json!([{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]);
        let line = |kind: &str, content: Value| json!({"type": kind, "cwd": self.root, "timestamp": at, "message": {"content": content}});
        vec![line("assistant", used), line("user", result)]
    }
}

fn done(files: &str, transcript: Option<&Path>) -> Value {
    json!({
        "last_assistant_message": format!("Status: DONE\nFiles changed: {files}"), "stop_hook_active": false,
        "agent_transcript_path": transcript,
    })
}

fn enforcing() -> Value {
    json!({"version": "1.0", "name": "claims", "claims": {"enforce": true, "agents": ["all", "main"]}})
}

fn blocked(answer: &Value) -> bool {
    answer["decision"] == "block"
}

#[test]
fn the_sessions_policy_enforces_wherever_the_agent_works() {
    let claims = Claims::new("claims-policy", &enforcing());
    // The work tree is at a commit without the policy.
    claims.git(&["rm", "--quiet", "--cached", ".aflock"]);
    claims.git(&["commit", "--quiet", "-m", "without"]);
    claims.git(&["worktree", "add", "--quiet", "-b", "wt", "../wt", "HEAD"]);
    claims.git(&["checkout", "--quiet", "--force", "HEAD~1"]);
    claims.send("SessionStart", "", &json!({"source": "startup"}));
    let there = json!({"cwd": claims.root.join("../wt").canonicalize().unwrap()});
    claims.send("SubagentStart", "one", &there);
    let mut stop = done("ghost.py", None);
    stop.as_object_mut().unwrap().extend(there.as_object().unwrap().clone());
    assert!(blocked(&claims.send("SubagentStop", "one", &stop)));
    // Nor does a file that was weakened since count.
    fs::write(claims.root.join(".aflock"), r#"{"version":"1.0","name":"claims"}"#).unwrap();
    claims.send("SubagentStart", "two", &json!({}));
    let answer = claims.stop("two", "ghost.py", &[]);
    assert_eq!(answer["decision"], "block", "{answer}");
}

#[test]
fn what_explains_a_lost_write_is_asked_first() {
    let hook = |command: &str| {
        let attachment = json!({"type": "hook_success", "command": command, "stdout": ""});
        Some(json!({"type": "attachment", "attachment": attachment}))
    };
    let edited = Some(json!({"type": "attachment", "attachment": {"type": "edited_text_file", "filename": "a.py"}}));
    let cases = [
        ("alone", None, None, true),
        ("formatter", hook("prettier --write ."), None, false),
        ("writ", hook("/usr/bin/writ hook"), None, true),
        ("editor", edited, None, false),
        ("other", None, Some("2099-01-01T00:00:00.000Z"), false),
        ("earlier", None, Some("2001-01-01T00:00:00.000Z"), true),
    ];
    for (name, noted, others, lie) in cases {
        let claims = Claims::new(&format!("claims-{name}"), &enforcing());
        let cwd = json!(claims.root);
        let noted = noted.map(|mut noted| {
            noted.as_object_mut().unwrap().insert("cwd".to_owned(), cwd);
            noted
        });
        let checkout = |at: &str| claims.call("Bash", &json!({"command": "git checkout -- ."}), at);
        claims.transcript("s/subagents/agent-somebody.jsonl", &others.map(checkout).unwrap_or_default());
        claims.send("SubagentStart", name, &json!({}));
        let own: Vec<Value> = claims.lost().into_iter().chain(noted).collect();
        let answer = claims.stop(name, "a.py", &own);
        assert_eq!(blocked(&answer), lie, "{name}: {answer}");
    }
    // What was written is in a commit on a branch that somebody left.
    let claims = Claims::new("claims-branch", &enforcing());
    claims.send("SubagentStart", "branch", &json!({}));
    claims.git(&["checkout", "--quiet", "-b", "topic"]);
    fs::write(claims.root.join("a.py"), "new\n").unwrap();
    claims.git(&["commit", "--quiet", "-a", "-m", "work"]);
    claims.git(&["checkout", "--quiet", "-"]);
    assert!(!blocked(&claims.stop("branch", "a.py", &claims.lost())));
}

#[test]
fn people_and_scripts_are_told() {
    let claims = Claims::new("claims-told", &enforcing());
    claims.send("SubagentStart", "one", &json!({}));
    let answer = claims.stop("one", "ghost.py", &[]);
    let message = answer["systemMessage"].as_str().unwrap();
    assert!(message.contains("MISMATCH: ghost.py") && message.contains("BLOCKED false DONE"), "{message}");
    let told = claims.place.writ(&["claims"]);
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    assert_eq!(told.status.code(), Some(3), "{text}");
    let said = ["one (writer) said DONE", "ghost.py missing", "neither on disk nor among", "[BLOCK_FALSE_DONE]"];
    assert!(said.iter().all(|part| text.contains(part)), "{text}");
    fs::write(claims.root.join("ghost.py"), "x").unwrap();
    let answer = claims.stop("one", "ghost.py, JIRA-123, documentation", &[]);
    assert!(!blocked(&answer) && answer["systemMessage"].as_str().unwrap().contains("-> OK"), "{answer}");
    assert_eq!(claims.place.writ(&["claims"]).status.code(), Some(0), "the last word counts");
    for command in ["status", "doctor"] {
        let text = String::from_utf8(claims.place.writ(&[command]).stdout).unwrap();
        assert!(text.contains("enforced for every subagent and the main agent (policy)"), "{text}");
    }
}

#[test]
fn a_stop_whose_answer_is_lost_is_no_refusal() {
    let claims = Claims::new("claims-open", &enforcing());
    claims.send("SubagentStart", "one", &json!({}));
    let stop = claims.event("SubagentStop", "one", &done("ghost.py", None));
    let call = json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "c"});
    let call = claims.event("PreToolUse", "one", &call);
    for (payload, code) in [(&stop, 0), (&call, 2)] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut child = claims.place.command(&["hook"]).stdout(Stdio::from(full)).spawn().unwrap();
        child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{payload}");
    }
    let torn = stop.to_string().replace("\"session_id\"", "\"session\"");
    assert!(!claims.place.answer(&torn).contains("block"), "nor is one that cannot be read");
}

/// A denial that nobody can read is no denial: closed, read-only or nowhere, the exit code says it instead. Twin: what allows says
/// nothing, and nothing is lost with it.
#[test]
fn an_answer_that_goes_nowhere_denies_by_its_exit_code() {
    let policy = json!({"version": "1.0", "name": "nowhere", "files": {"deny": ["**/.env"]}});
    let claims = Claims::new("claims-nowhere", &policy);
    claims.send("SessionStart", "", &json!({"source": "startup"}));
    let call = |file: &str| {
        let input = json!({"file_path": claims.root.join(file), "content": "x"});
        claims
            .event("PreToolUse", "", &json!({"tool_name": "Write", "tool_input": input, "tool_use_id": "t"}))
            .to_string()
    };
    let stop = claims.event("Stop", "", &json!({"stop_hook_active": false})).to_string();
    let writ = claims.place.command(&["hook"]);
    for (payload, to, code) in [
        (call(".env"), ">&-", 2),
        (call(".env"), "1</dev/null", 2),
        (call(".env"), ">/dev/null", 2),
        (call("src/a.py"), ">/dev/null", 0),
        (stop, ">&-", 0),
    ] {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &format!("exec \"$0\" hook {to}")]).arg(writ.get_program());
        shell.current_dir(&claims.root).stdin(Stdio::piped()).stderr(Stdio::null());
        shell.envs(writ.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut child = shell.spawn().unwrap();
        child.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{to}: {payload}");
    }
}

/// What every row repeats does not grow with the agents: their counts lie in a file that the rows name.
#[test]
fn twenty_agents_leave_the_state_as_small_as_one() {
    let mut policy = enforcing();
    policy["claims"]["sessionCeiling"] = json!(100);
    let claims = Claims::new("claims-many", &policy);
    let agents: Vec<String> = (0..20).map(|number| format!("agent-{number:02}-{}", "x".repeat(60))).collect();
    for agent in &agents {
        claims.send("SubagentStart", agent, &json!({}));
    }
    for agent in &agents {
        let answer = claims.stop(agent, "ghost.py", &[]);
        assert!(blocked(&answer), "{agent}: {answer}");
    }
    let again = claims.stop(&agents[0], "ghost.py", &[]);
    assert!(!blocked(&again), "sent back once already: {again}");
    let rows = fs::read_to_string(claims.place.folder.join("state/sessions/s/ledger.jsonl")).unwrap();
    let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    for row in &rows {
        let size = row["detail"]["state"].to_string().len();
        assert!(size <= 1024, "{size} bytes: {row}");
    }
    assert_eq!(rows.last().unwrap()["detail"]["state"]["blocks"]["total"], 20);
    let report = claims.place.writ(&["verify", "s", "--format", "json"]);
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let decisions = report["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "decisions").unwrap();
    assert_eq!(decisions["outcome"], "passed", "{report}");
}
