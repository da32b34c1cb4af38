//! A session whose client writes transcripts: its turns, its sub-agents, and what is verified of them.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::workplace::{SESSION, Workplace};

/// The model that answers.
pub const MODEL: &str = "claude-sonnet-4-5";

/// A session whose client writes transcripts.
pub struct Talk {
    pub place: Workplace,
}

impl Talk {
    pub fn new(name: &str, more: &Value) -> Self {
        Self::with_files(name, more, &[])
    }

    /// The same with files in the repository.
    pub fn with_files(name: &str, more: &Value, files: &[(&str, &str)]) -> Self {
        let place = Workplace::new(name);
        for (file, text) in files {
            fs::write(place.folder.join("repository").join(file), text).unwrap();
        }
        let mut policy = json!({"version": "1.0", "name": "turns", "attestationDir": "./proof/runs",
            "files": {"allow": ["src/**"]}});
        policy.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fs::write(place.folder.join("repository/.aflock"), policy.to_string()).unwrap();
        fs::write(place.folder.join("repository/.gitignore"), "none*\nproof/\n").unwrap();
        let talk = Self { place };
        talk.place.start();
        talk
    }

    pub fn main(&self) -> PathBuf {
        self.place.folder.join("repository/none.jsonl")
    }

    pub fn agent(&self, id: &str) -> PathBuf {
        self.main().with_extension("").join(format!("subagents/agent-{id}.jsonl"))
    }

    pub fn add(&self, path: PathBuf, line: &Value) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub fn event(&self, event: &str, members: &str) -> String {
        self.place.answer(&self.place.payload(event, members))
    }

    pub fn asks(&self, text: &str) {
        self.event("UserPromptSubmit", &format!(r#","prompt":"{text}""#));
        self.add(
            self.main(),
            &json!({"type": "user", "message": {"role": "user", "content": text}, "timestamp": "2026-01-18T10:30:00.000Z"}),
        );
    }

    pub fn says(&self, path: PathBuf, id: &str, block: &Value, tokens: u64) {
        let usage = json!({"input_tokens": tokens, "output_tokens": 2 * tokens, "cache_read_input_tokens": 3});
        let message = json!({"id": id, "model": MODEL, "role": "assistant", "content": [block], "usage": usage});
        self.add(path, &json!({"type": "assistant", "message": message}));
    }

    /// A call that writes a file, and its result.
    pub fn writes(&self, agent: Option<&str>, id: &str, file: &str) -> bool {
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

    /// A call that starts sub-agents of the type `research`, each of which writes a file and stops.
    pub fn spawns(&self, call: &str, agents: &[&str]) {
        let input = json!({"subagent_type": "research", "prompt": "go", "description": "d"});
        let spawn = format!(r#","tool_name":"Agent","tool_input":{input},"tool_use_id":"{call}""#);
        self.event("PreToolUse", &spawn);
        let block = json!({"type": "tool_use", "id": call, "name": "Agent", "input": input});
        self.says(self.main(), &format!("m-{call}"), &block, 10);
        for id in agents {
            let who = format!(r#","agent_id":"{id}","agent_type":"research""#);
            self.event("SubagentStart", &who);
            let order = json!({"type": "user", "isSidechain": true, "message": {"role": "user", "content": "go"}});
            self.add(self.agent(id), &order);
            assert!(self.writes(Some(id), &format!("call-{id}"), &format!("src/{id}.rs")));
            let transcript = self.agent(id);
            let stop = format!(r#"{who},"stop_hook_active":false,"agent_transcript_path":"{}""#, transcript.display());
            self.event("SubagentStop", &stop);
        }
        self.event("PostToolUse", &format!(r#"{spawn},"tool_response":{{"ok":true}}"#));
        let result = json!({"type": "tool_result", "tool_use_id": call, "content": "ok"});
        self.add(self.main(), &json!({"type": "user", "message": {"role": "user", "content": [result]}}));
    }

    pub fn stops(&self) {
        self.event("Stop", r#","stop_hook_active":false"#);
    }

    /// A whole turn.
    pub fn turn(&self, number: u64) {
        self.asks(&format!("prompt {number}"));
        assert!(self.writes(None, &format!("call-{number}"), &format!("src/{number}.rs")));
        self.says(self.main(), &format!("end-{number}"), &json!({"type": "text", "text": "Done."}), 1);
        self.stops();
    }

    pub fn kept(&self) -> PathBuf {
        self.place.session().join("attestations")
    }

    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.kept())
            .map(|entries| entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect())
            .unwrap_or_default();
        names.sort();
        names
    }

    /// What a statement says, without a look at its signature.
    pub fn statement(&self, name: &str) -> Value {
        let envelope: Value = serde_json::from_slice(&fs::read(self.kept().join(name)).unwrap()).unwrap();
        serde_json::from_slice(&STANDARD.decode(envelope["payload"].as_str().unwrap()).unwrap()).unwrap()
    }

    /// The code that `writ verify` ends with, and its report.
    pub fn verify(&self) -> (Option<i32>, Value) {
        let json = self.place.writ(&["verify", SESSION, "--format", "json"]);
        (json.status.code(), serde_json::from_slice(&json.stdout).unwrap())
    }

    pub fn passes(&self) {
        let (code, report) = self.verify();
        for name in ["turns", "session binding"] {
            assert_eq!(phase(&report, name)["outcome"], "passed", "{report:#}");
        }
        assert_eq!((code, &report["verified"]), (Some(0), &json!(true)), "{report:#}");
    }

    /// The phase fails, and with it the whole.
    pub fn fails(&self, name: &str, what: &str) {
        let (code, report) = self.verify();
        assert_eq!(phase(&report, name)["outcome"], "failed", "{what}: {report:#}");
        assert_eq!((code, &report["verified"]), (Some(3), &json!(false)), "{what}");
    }
}

pub fn phase(report: &Value, name: &str) -> Value {
    let phases = report["phases"].as_array().unwrap();
    phases.iter().find(|phase| phase["name"] == name).cloned().unwrap_or_default()
}

pub fn git(place: &Workplace, args: &[&str]) -> String {
    let done = Command::new("git").args(args).current_dir(place.folder.join("repository")).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

/// A session in whose first turn two sub-agents of a type were started, under a policy that binds their sessions so.
pub fn with_agents(name: &str, bound: &Value) -> Talk {
    let worker = json!({"version": "1.0", "name": "worker", "files": {"allow": ["src/**"]}});
    let more = json!({"sublayouts": [{"name": "research", "policy": worker, "attestationPrefix": "research-"}],
        "materialsFrom": {"sublayoutSessions": {"research": bound}}});
    let talk = Talk::new(name, &more);
    talk.asks("prompt 1");
    talk.spawns("spawn", &["a1", "b2"]);
    talk.stops();
    talk
}
