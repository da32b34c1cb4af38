//! Clients that are held as their documents say: what `writ init` writes is run as they run it, on what they are said to tell.

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use workplace::Workplace;

const POLICY: &str = r#"{"version":"1.0","name":"c","files":{"deny":["**/.env"],"readOnly":["locked/**"]},
    "tools":{"deny":["Bash:rm *","mcp__github__delete"]}}"#;

/// A client with its hooks installed.
struct Cited {
    client: &'static str,
    file: PathBuf,
    place: Workplace,
}

fn cited(client: &'static str, file: &str) -> Cited {
    let place = Workplace::new(&format!("cited-{client}"));
    let repository = place.folder.join("repository");
    ["locked", ".config"].iter().for_each(|folder| fs::create_dir_all(repository.join(folder)).unwrap());
    fs::write(repository.join(".aflock"), POLICY).unwrap();
    let cited = Cited { client, file: repository.join(file), place };
    let said = cited.writ(&["init", "--client", client, "--project"]);
    assert!(said.contains("was not tried with the real client"), "{said}");
    cited.tell("sessionStart", "SessionStart");
    cited
}

impl Cited {
    fn repository(&self) -> PathBuf {
        self.place.folder.join("repository")
    }

    fn writ(&self, args: &[&str]) -> String {
        let output = self.place.writ(args);
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    /// The shell line that the client's settings have for an event.
    fn line(&self, event: &str) -> String {
        let file: Value = serde_json::from_slice(&fs::read(&self.file).unwrap()).unwrap();
        let entry = &file["hooks"][event][0];
        let entry = entry["hooks"].get(0).unwrap_or(entry);
        entry["command"].as_str().unwrap().to_owned()
    }

    /// What the line leaves: its exit code and output.
    fn run(&self, line: &str, payload: &Value) -> (i32, String) {
        let environment = self.place.command(&[]);
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", line]).current_dir(self.repository()).env_clear().env("PATH", "/usr/bin:/bin");
        shell.envs(environment.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        // A program that is not there takes nothing.
        child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).ok();
        let output = child.wait_with_output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    }

    fn payload(&self, event: &str, tool: &str, input: &Value) -> Value {
        let cwd = self.repository();
        match self.client {
            "crush" => json!({"event": event, "session_id": "s", "cwd": cwd, "tool_name": tool, "tool_input": input}),
            "cursor" => json!({"hook_event_name": event, "conversation_id": "s", "workspace_roots": [cwd],
                "generation_id": "g", "cursor_version": "2.4", "tool_name": tool, "tool_input": input}),
            _ => json!({"hook_event_name": event, "session_id": "s", "cwd": cwd, "transcript_path": "",
                "permission_mode": "off", "tool_name": tool, "tool_input": input}),
        }
    }

    fn answer(&self, event: &str, payload: &Value) -> String {
        let (code, out) = self.run(&self.line(event), payload);
        assert_eq!(code, 0, "{out}");
        out.trim().to_owned()
    }

    /// Tells of a beginning or an end, where the client tells that.
    fn tell(&self, cursors: &str, droids: &str) {
        let event = match self.client {
            "cursor" => cursors,
            "droid" => droids,
            _ => return,
        };
        let mut payload = self.payload(event, "", &Value::Null);
        let members = payload.as_object_mut().unwrap();
        ["tool_name", "tool_input"].iter().for_each(|name| drop(members.remove(*name)));
        self.answer(event, &payload);
    }

    /// Each call and whether it is denied, and what the line says where Writ is gone.
    fn check(&self, event: &str, yes: &str, no: &str, cases: &[(&str, Value, bool)]) {
        for (tool, input, denied) in cases {
            let payload = self.payload(event, tool, input);
            let answer = self.answer(event, &payload);
            assert_eq!(answer.contains(no), *denied, "{tool} {input}: {answer}");
            assert!(*denied || answer == yes, "{tool} {input}: {answer}");
            let line = self.line(event);
            let gone = line.replacen(line.split(" hook ").next().unwrap(), "/nowhere/writ", 1);
            assert_eq!(self.run(&gone, &payload).0, 2, "{tool}");
        }
        // What cannot be read is denied, too.
        let mut half = self.payload(event, "x", &json!({}));
        half.as_object_mut().unwrap().remove("tool_input");
        assert!(self.answer(event, &half).contains(no), "half a payload");
        self.tell("stop", "Stop");
        let report = self.writ(&["verify", "--format", "json"]);
        let report: Value = serde_json::from_str(&report).unwrap();
        let phase = |name: &str| report["phases"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap();
        assert_eq!(phase("decisions")["outcome"], "passed", "{report}");
        assert_eq!(phase("coverage")["outcome"], "absent", "{report}");
        // Who tells of no beginning is not known from it.
        let begins = self.client != "crush";
        assert_eq!((&report["status"], &report["verified"]), (&json!("verified"), &json!(begins)), "{report}");
        let doctor = self.writ(&["doctor"]);
        assert!(doctor.contains("was not tried with the real client"), "{doctor}");
        self.writ(&["init", "--client", self.client, "--project", "--undo"]);
        assert!(!self.file.exists() || !fs::read_to_string(&self.file).unwrap().contains("writ"));
    }
}

/// Folders that were made for a settings file go with it; one that was there stays.
#[test]
fn undo_leaves_no_folder_behind() {
    let place = Workplace::new("cited-undo");
    let config = place.folder.join(".config");
    for (given, left) in [(false, None), (true, Some(config.clone()))] {
        if given {
            fs::create_dir_all(&config).unwrap();
        }
        assert!(place.writ(&["init", "--client", "crush", "--user"]).status.success());
        assert!(config.join("crush").is_dir());
        // A second installation does not forget what the first one made.
        assert!(place.writ(&["init", "--client", "crush", "--user"]).status.success());
        assert!(place.writ(&["init", "--client", "crush", "--user", "--undo"]).status.success());
        assert_eq!(config.exists().then(|| config.clone()), left);
        assert!(!config.join("crush").exists());
    }
}

#[test]
fn droid() {
    let cited = cited("droid", ".factory/settings.json");
    let patch =
        |path: &str| json!({ "input": format!("*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch") });
    cited.check(
        "PreToolUse",
        "{}",
        r#""permissionDecision":"deny""#,
        &[
            ("Execute", json!({"command": "ls", "riskLevel": "low"}), false),
            ("Execute", json!({"command": "rm a"}), true),
            ("Execute", json!({"command": "cat .env"}), true),
            ("Read", json!({"file_path": "a.rs"}), false),
            ("Read", json!({"file_path": ".env"}), true),
            ("Create", json!({"file_path": "src/a.rs", "content": "x"}), false),
            ("Create", json!({"file_path": "locked/a", "content": "x"}), true),
            ("Edit", json!({"file_path": "locked/a", "old_str": "x", "new_str": "y"}), true),
            ("ApplyPatch", patch("src/a.rs"), false),
            ("ApplyPatch", patch("locked/a"), true),
            ("ApplyPatch", json!({"input": "no patch"}), true),
            ("Create", json!({"file_path": ".factory/hooks.json", "content": "{}"}), true),
            ("Create", json!({"file_path": "~/.factory/settings.json", "content": "{}"}), true),
            ("Glob", json!({"patterns": ["*.rs"], "folder": "src"}), false),
            ("Script", json!({"code": "tools.Execute({command: 'ls'})"}), true),
            ("github___create", json!({"title": "x"}), false),
            ("github___delete", json!({"id": 1}), true),
            ("TodoWrite", json!({"todos": "x"}), false),
            ("Execute", json!({"line": "ls"}), true),
        ],
    );
}

#[test]
fn crush() {
    let cited = cited("crush", "crush.json");
    cited.check(
        "PreToolUse",
        "{}",
        r#""decision":"deny""#,
        &[
            ("bash", json!({"command": "ls"}), false),
            ("bash", json!({"command": "cat a", "working_dir": "locked"}), false),
            ("bash", json!({"command": "echo x > a", "working_dir": "locked"}), true),
            ("bash", json!({"command": "cat .env"}), true),
            ("view", json!({"file_path": "a.rs"}), false),
            ("view", json!({"file_path": ".env"}), true),
            ("write", json!({"file_path": "crush.json", "content": "{}"}), true),
            ("write", json!({"file_path": ".crush.json", "content": "{}"}), true),
            ("multiedit", json!({"file_path": "locked/a", "edits": []}), true),
            ("ls", json!({"path": "$HOME"}), true),
            ("ls", json!({"path": "src"}), false),
            ("agent", json!({"prompt": "read it all"}), true),
            ("agentic_fetch", json!({"prompt": "x"}), true),
            ("download", json!({"url": "https://a.example/x", "file_path": "locked/a"}), true),
            ("mcp_github_delete", json!({}), true),
            ("mcp_github_create", json!({}), false),
            ("todos", json!({}), false),
        ],
    );
}

#[test]
fn cursor() {
    let cited = cited("cursor", ".cursor/hooks.json");
    let yes = r#"{"permission":"allow","continue":true}"#;
    // A second question about the same call, by an event of its own.
    let asked = |event: &str, members: Value| {
        let mut payload = cited.payload(event, "", &Value::Null);
        let object = payload.as_object_mut().unwrap();
        ["tool_name", "tool_input"].iter().for_each(|name| drop(object.remove(*name)));
        object.extend(members.as_object().unwrap().clone());
        cited.answer(event, &payload)
    };
    assert_eq!(asked("beforeShellExecution", json!({"command": "ls"})), yes);
    assert!(asked("beforeShellExecution", json!({"command": "rm a"})).contains(r#""permission":"deny""#));
    assert!(asked("beforeReadFile", json!({"file_path": ".env", "content": "KEY"})).contains(r#""permission":"deny""#));
    assert!(
        asked("beforeMCPExecution", json!({"tool_name": "delete", "tool_input": "{}", "command": "npx github"}))
            .contains(r#""permission":"deny""#)
    );
    assert_eq!(asked("beforeSubmitPrompt", json!({"prompt": "do it"})), yes);
    cited.check(
        "preToolUse",
        yes,
        r#""permission":"deny""#,
        &[
            ("Shell", json!({"command": "ls"}), false),
            ("Shell", json!({"command": "echo x > a", "working_directory": "locked"}), true),
            ("Shell", json!({"command": "rm a"}), true),
            ("Read", json!({"file_path": "a.rs"}), false),
            ("Read", json!({"path": ".env"}), true),
            ("Write", json!({"file_path": "src/a.rs", "content": "x"}), false),
            ("Delete", json!({"path": "locked/a"}), true),
            ("StrReplace", json!({"path": "locked/a", "old_string": "x", "new_string": "y"}), true),
            ("ApplyPatch", json!({"patch": "*** Begin Patch\n*** Delete File: locked/a\n*** End Patch\n"}), true),
            ("Write", json!({"file_path": ".cursor/hooks.json", "content": "{}"}), true),
            ("MCP:create", json!({}), false),
            ("MCP:delete", json!({}), true),
            ("TodoWrite", json!({}), false),
        ],
    );
}
