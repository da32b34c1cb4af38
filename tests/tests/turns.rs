//! Attestations of turns, end to end: made at each stop, bound to transcript and work tree, verified, and rejected once anything is changed.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use workplace::{SESSION, Workplace};

const MODEL: &str = "claude-sonnet-4-5";

/// A session whose client writes transcripts.
struct Talk {
    place: Workplace,
}

impl Talk {
    fn new(name: &str, more: &Value) -> Self {
        let place = Workplace::new(name);
        let mut policy = json!({"version": "1.0", "name": "turns", "attestationDir": "./proof/runs",
            "files": {"allow": ["src/**"]}});
        policy.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fs::write(place.folder.join("repository/.aflock"), policy.to_string()).unwrap();
        fs::write(place.folder.join("repository/.gitignore"), "none*\nproof/\n").unwrap();
        let talk = Self { place };
        talk.place.start();
        talk
    }

    fn main(&self) -> PathBuf {
        self.place.folder.join("repository/none.jsonl")
    }

    fn agent(&self, id: &str) -> PathBuf {
        self.main().with_extension("").join(format!("subagents/agent-{id}.jsonl"))
    }

    fn add(&self, path: PathBuf, line: &Value) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn event(&self, event: &str, members: &str) -> String {
        self.place.answer(&self.place.payload(event, members))
    }

    fn asks(&self, text: &str) {
        self.event("UserPromptSubmit", &format!(r#","prompt":"{text}""#));
        self.add(
            self.main(),
            &json!({"type": "user", "message": {"role": "user", "content": text}, "timestamp": "2026-01-18T10:30:00.000Z"}),
        );
    }

    fn says(&self, path: PathBuf, id: &str, block: &Value, tokens: u64) {
        let usage = json!({"input_tokens": tokens, "output_tokens": 2 * tokens, "cache_read_input_tokens": 3});
        let message = json!({"id": id, "model": MODEL, "role": "assistant", "content": [block], "usage": usage});
        self.add(path, &json!({"type": "assistant", "message": message}));
    }

    /// A call that writes a file, and its result.
    fn writes(&self, agent: Option<&str>, id: &str, file: &str) -> bool {
        let path = agent.map_or_else(|| self.main(), |agent| self.agent(agent));
        let input = json!({"file_path": self.place.folder.join("repository").join(file), "content": "text"});
        let who = agent.map(|agent| format!(r#","agent_id":"{agent}","agent_type":"research""#)).unwrap_or_default();
        let members = format!(r#","tool_name":"Write","tool_input":{input},"tool_use_id":"{id}"{who}"#);
        let allowed = !self.event("PreToolUse", &members).contains("deny");
        if allowed {
            fs::write(self.place.folder.join("repository").join(file), "text").unwrap();
            self.event("PostToolUse", &format!(r#"{members},"tool_response":{{"ok":true}}"#));
        }
        self.says(
            path.clone(),
            &format!("m-{id}"),
            &json!({"type": "tool_use", "id": id, "name": "Write", "input": input}),
            10,
        );
        let why = if allowed { "ok" } else { "denied by the hook: PreToolUse" };
        let result = json!({"type": "tool_result", "tool_use_id": id, "is_error": !allowed, "content": why});
        self.add(path, &json!({"type": "user", "message": {"role": "user", "content": [result]}}));
        allowed
    }

    fn stops(&self) {
        self.event("Stop", r#","stop_hook_active":false"#);
    }

    /// A whole turn.
    fn turn(&self, number: u64) {
        self.asks(&format!("prompt {number}"));
        assert!(self.writes(None, &format!("call-{number}"), &format!("src/{number}.rs")));
        self.says(self.main(), &format!("end-{number}"), &json!({"type": "text", "text": "Done."}), 1);
        self.stops();
    }

    fn kept(&self) -> PathBuf {
        self.place.session().join("attestations")
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.kept())
            .map(|entries| entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect())
            .unwrap_or_default();
        names.sort();
        names
    }

    /// What a statement says, without a look at its signature.
    fn statement(&self, name: &str) -> Value {
        let envelope: Value = serde_json::from_slice(&fs::read(self.kept().join(name)).unwrap()).unwrap();
        serde_json::from_slice(&STANDARD.decode(envelope["payload"].as_str().unwrap()).unwrap()).unwrap()
    }

    /// The code that `writ verify` ends with, and its report.
    fn verify(&self) -> (Option<i32>, Value) {
        let json = self.place.writ(&["verify", SESSION, "--format", "json"]);
        (json.status.code(), serde_json::from_slice(&json.stdout).unwrap())
    }

    fn passes(&self) {
        let (code, report) = self.verify();
        for name in ["turns", "session binding"] {
            assert_eq!(phase(&report, name)["outcome"], "passed", "{report:#}");
        }
        assert_eq!((code, &report["verified"]), (Some(0), &json!(true)), "{report:#}");
    }

    /// The phase fails, and with it the whole.
    fn fails(&self, name: &str, what: &str) {
        let (code, report) = self.verify();
        assert_eq!(phase(&report, name)["outcome"], "failed", "{what}: {report:#}");
        assert_eq!((code, &report["verified"]), (Some(3), &json!(false)), "{what}");
    }
}

fn phase(report: &Value, name: &str) -> Value {
    let phases = report["phases"].as_array().unwrap();
    phases.iter().find(|phase| phase["name"] == name).cloned().unwrap_or_default()
}

fn git(place: &Workplace, args: &[&str]) -> String {
    let done = Command::new("git").args(args).current_dir(place.folder.join("repository")).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

#[test]
fn each_turn_leaves_a_statement_that_says_what_happened() {
    let talk = Talk::new("turns-made", &json!({}));
    talk.turn(1);
    talk.asks("prompt 2");
    assert!(!talk.writes(None, "no", "elsewhere.rs"));
    talk.says(talk.main(), "end-2", &json!({"type": "text", "text": "Done."}), 1);
    talk.stops();
    assert_eq!(talk.names(), ["turn-1.json", "turn-2.json"]);
    let (one, two) = (talk.statement("turn-1.json"), talk.statement("turn-2.json"));
    assert_eq!(one["predicateType"], "https://agentflow.dev/attestation/turn/v0.1");
    assert_eq!(one["subject"][0]["name"], format!("agentflow:run:{SESSION}"));
    let said = &one["predicate"];
    assert_eq!((&said["turn"], &said["runId"], &said["model"]), (&json!(1), &json!(SESSION), &json!(MODEL)));
    assert_eq!((&said["metrics"]["tokensIn"], &said["metrics"]["tokensOut"]), (&json!(17), &json!(22)), "{said:#}");
    assert_eq!((&said["metrics"]["cacheRead"], &said["metrics"]["cacheWrite"]), (&json!(6), &json!(0)));
    assert_eq!(said["tools"], json!([{"name": "Write", "path": "src/1.rs", "allowed": true}]));
    assert_eq!(said["files"]["written"], json!(["src/1.rs"]));
    let (said, before) = (&two["predicate"], &one["predicate"]);
    assert_eq!(said["tools"], json!([{"name": "Write", "path": "elsewhere.rs", "allowed": false}]));
    assert_eq!(said["files"]["written"], json!([]));
    assert_eq!(said["cumulative"]["tokensIn"], 34);
    assert_eq!((&said["cumulative"]["turns"], &said["cumulative"]["toolCalls"]), (&json!(2), &json!(1)));
    assert_eq!((&said["sessionBinding"]["turnIndex"], &said["sessionBinding"]["treeSize"]), (&json!(1), &json!(2)));
    assert_eq!(said["sessionBinding"]["merkleProof"].as_array().unwrap().len(), 1);
    assert_eq!(said["sessionBinding"]["merkleProof"][0], before["sessionBinding"]["merkleRoot"], "a tree of one leaf");
    // The state of the code, as git would have it.
    let tree = two["subject"][1].clone();
    git(&talk.place, &["add", "-A"]);
    assert_eq!(
        (&tree["name"], &tree["digest"]["sha1"]),
        (&json!("git:treehash"), &json!(git(&talk.place, &["write-tree"])))
    );
    let copy = talk.place.folder.join(format!("repository/proof/runs/{SESSION}/turn-2.json"));
    assert_eq!(fs::read(copy).unwrap(), fs::read(talk.kept().join("turn-2.json")).unwrap());
    talk.passes();
    // The agent puts nothing beside them.
    assert!(!talk.writes(None, "forged", &format!("proof/runs/{SESSION}/turn-3.json")));
}

#[test]
fn whatever_is_changed_is_rejected() {
    let talk = Talk::new(
        "turns-changed",
        &json!({"materialsFrom": {"session": {"constraints": {"requireContiguousTurns": true}}}}),
    );
    (1..=4).for_each(|number| talk.turn(number));
    talk.passes();
    let path = |name: &str| talk.kept().join(name);
    let all: Vec<(String, Vec<u8>)> =
        talk.names().into_iter().map(|name| (name.clone(), fs::read(path(&name)).unwrap())).collect();
    for (at, (name, bytes)) in all.iter().enumerate() {
        for step in 0..6 {
            let mut other = bytes.clone();
            let place = (step * bytes.len() / 6 + at * 7) % bytes.len();
            other[place] ^= 1;
            fs::write(path(name), &other).unwrap();
            talk.fails("turns", &format!("byte {place} of {name}"));
        }
        fs::remove_file(path(name)).unwrap();
        talk.fails("turns", &format!("{name} removed"));
        let (next, others) = &all[(at + 1) % all.len()];
        fs::write(path(name), others).unwrap();
        talk.fails("turns", &format!("{next} in the place of {name}"));
        fs::write(path(name), bytes).unwrap();
    }
    fs::write(path("turn-5.json"), &all[3].1).unwrap();
    talk.fails("turns", "one that no row names");
    fs::remove_file(path("turn-5.json")).unwrap();
    let other = Talk::new("turns-replayed", &json!({}));
    other.turn(1);
    fs::write(path("turn-1.json"), fs::read(other.kept().join("turn-1.json")).unwrap()).unwrap();
    talk.fails("turns", "another session's");
    fs::write(path("turn-1.json"), &all[0].1).unwrap();
    talk.passes();
    // A transcript that was rewritten accuses nobody, and is not passed over.
    let text = fs::read_to_string(talk.main()).unwrap();
    fs::write(talk.main(), text.replacen("prompt 2", "prompt 7", 1)).unwrap();
    let (code, report) = talk.verify();
    let found = phase(&report, "session binding");
    assert_eq!(
        (code, &found["outcome"], &report["verified"]),
        (Some(3), &json!("absent"), &json!(false)),
        "{report:#}"
    );
    fs::write(talk.main(), &text).unwrap();
    talk.passes();
}

#[test]
fn what_is_told_late_and_what_a_crash_left_open_is_said() {
    let talk = Talk::new("turns-late", &json!({}));
    talk.turn(1);
    // The last message of turn 1 comes after its stop; turn 2 has no stop.
    talk.says(talk.main(), "late-1", &json!({"type": "text", "text": "late"}), 5);
    talk.asks("prompt 2");
    assert!(talk.writes(None, "call-2", "src/2.rs"));
    talk.turn(3);
    assert_eq!(talk.names(), ["turn-1.json", "turn-2.json", "turn-3.json"]);
    let (two, three) = (talk.statement("turn-2.json"), talk.statement("turn-3.json"));
    let (two, three) = (&two["predicate"], &three["predicate"]);
    assert_eq!((&two["late"], &three["late"]), (&json!(true), &Value::Null));
    assert_eq!((&two["toldLate"]["tokensIn"], &two["toldLate"]["tokensOut"]), (&json!(8), &json!(10)), "{two:#}");
    assert_eq!(two["tools"][0]["path"], "src/2.rs");
    assert_eq!(three["tools"], json!([{"name": "Write", "path": "src/3.rs", "allowed": true}]));
    talk.passes();
    // It goes on without a prompt.
    assert!(talk.writes(None, "call-4", "src/4.rs"));
    talk.stops();
    assert_eq!(talk.names().last().unwrap(), "turn-3.json");
    let part = talk.statement("turn-3-part-2.json");
    assert_eq!((&part["predicate"]["turn"], &part["predicate"]["part"]), (&json!(3), &json!(2)));
    talk.passes();
    // Without what is kept between two readings everything comes out the same.
    fs::remove_dir_all(talk.place.session().join("turns")).unwrap();
    talk.turn(4);
    assert_eq!(talk.statement("turn-4.json")["predicate"]["sessionBinding"]["turnIndex"], 3);
    talk.passes();
}

/// A session in whose first turn two sub-agents of a type were started, under a policy that binds their sessions so.
fn with_agents(name: &str, bound: &Value) -> Talk {
    let worker = json!({"version": "1.0", "name": "worker", "files": {"allow": ["src/**"]}});
    let more = json!({"sublayouts": [{"name": "research", "policy": worker, "attestationPrefix": "research-"}],
        "materialsFrom": {"sublayoutSessions": {"research": bound}}});
    let talk = Talk::new(name, &more);
    talk.asks("prompt 1");
    let spawn = r#","tool_name":"Agent","tool_input":{"subagent_type":"research","prompt":"go","description":"d"},"tool_use_id":"spawn""#;
    talk.event("PreToolUse", spawn);
    talk.says(
        talk.main(),
        "m-spawn",
        &json!({"type": "tool_use", "id": "spawn", "name": "Agent", "input": {"subagent_type": "research", "prompt": "go", "description": "d"}}),
        10,
    );
    for id in ["a1", "b2"] {
        let who = format!(r#","agent_id":"{id}","agent_type":"research""#);
        talk.event("SubagentStart", &who);
        talk.add(
            talk.agent(id),
            &json!({"type": "user", "isSidechain": true, "message": {"role": "user", "content": "go"}}),
        );
        assert!(talk.writes(Some(id), &format!("call-{id}"), &format!("src/{id}.rs")));
        let transcript = talk.agent(id);
        talk.event(
            "SubagentStop",
            &format!(r#"{who},"stop_hook_active":false,"agent_transcript_path":"{}""#, transcript.display()),
        );
    }
    talk.event("PostToolUse", &format!(r#"{spawn},"tool_response":{{"ok":true}}"#));
    talk.add(
        talk.main(),
        &json!({"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "spawn", "content": "ok"}]}}),
    );
    talk.stops();
    talk
}

#[test]
fn sub_agents_have_statements_of_their_own() {
    let talk = with_agents("turns-agents", &json!({"spawnedAtTurn": 1}));
    assert_eq!(talk.names(), ["research-b2-turn-1.json", "research-turn-1.json", "turn-1.json"]);
    let sub = talk.statement("research-turn-1.json");
    assert_eq!(
        (&sub["predicate"]["agent"]["id"], &sub["predicate"]["agent"]["type"]),
        (&json!("a1"), &json!("research"))
    );
    assert_eq!(sub["predicate"]["files"]["written"], json!(["src/a1.rs"]));
    assert_eq!(talk.statement("turn-1.json")["predicate"]["tools"][0]["agent"], "research");
    talk.passes();
    let (_, report) = talk.verify();
    assert_eq!(phase(&report, "materials")["outcome"], "passed", "{report:#}");
    // Another turn, a turn that is none, another root.
    for (name, bound) in
        [("turn", json!({"spawnedAtTurn": 2})), ("root", json!({"spawnedAtTurn": 1, "merkleRoot": "0".repeat(64)}))]
    {
        let (code, report) = with_agents(&format!("turns-agents-{name}"), &bound).verify();
        assert_eq!(
            (code, phase(&report, "materials")["outcome"].as_str()),
            (Some(3), Some("failed")),
            "{name}: {report:#}"
        );
    }
}

#[test]
fn what_a_policy_binds_to_is_looked_at() {
    let talk = Talk::new("turns-materials", &json!({}));
    talk.turn(1);
    talk.turn(2);
    let root = talk.statement("turn-2.json")["predicate"]["sessionBinding"]["merkleRoot"].clone();
    let of = |materials: Value| {
        let place = Workplace::new("turns-materials-more");
        drop(place);
        let talk = Talk::new(&format!("turns-m{}", materials.to_string().len()), &json!({"materialsFrom": materials}));
        talk.turn(1);
        talk.turn(2);
        let (_, report) = talk.verify();
        phase(&report, "materials")
    };
    let transcript = talk.main();
    let found = of(json!({"session": {"path": transcript, "merkleRoot": root}}));
    assert_eq!(found["outcome"], "passed", "{found:#}");
    let found = of(json!({"session": {"path": transcript, "merkleRoot": "0".repeat(64)}, "git": {"branch": "none"}}));
    assert_eq!((&found["outcome"], found["findings"].as_array().unwrap().len()), (&json!("failed"), 2), "{found:#}");
    let digest = writ_core::Digest::of(b"text").hex();
    let found = of(json!({"artifacts": [{"name": "out", "uri": "file://./src/1.rs", "digest": {"sha256": digest}}]}));
    assert_eq!(found["outcome"], "passed", "{found:#}");
    let found = of(json!({"artifacts": [{"name": "out", "uri": "file://./src/1.rs", "digest": {"sha256": root}}]}));
    assert_eq!(found["outcome"], "failed", "{found:#}");
    let found =
        of(json!({"artifacts": [{"name": "out!", "uri": "https://x.example/1", "digest": {"sha256": digest}}]}));
    assert_eq!(found["outcome"], "absent", "{found:#}");
    let found = of(json!({"git": {"treeHash": "a".repeat(40)}}));
    assert_eq!(found["outcome"], "failed", "{found:#}");
}
