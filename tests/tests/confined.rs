//! `"enforce": "calls"`: the hook has Writ run the line, the kernel holds it, and the record says so.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};
use workplace::{SESSION, Workplace};

struct Lab {
    place: Workplace,
    calls: std::cell::Cell<u32>,
}

impl Lab {
    fn new(name: &str, policy: &Value) -> Self {
        let place = Workplace::new(name);
        let lab = Self { place, calls: std::cell::Cell::new(0) };
        fs::write(lab.repository().join(".aflock"), policy.to_string()).unwrap();
        fs::write(lab.repository().join(".env"), "KEY=secret\n").unwrap();
        lab.place.start();
        lab
    }

    fn repository(&self) -> PathBuf {
        self.place.folder.join("repository")
    }

    /// The hook's answer to a line: the call's id, and what the client is told.
    fn ask(&self, line: &str) -> (String, Value) {
        self.calls.set(self.calls.get() + 1);
        let id = format!("call-{}", self.calls.get());
        let input = json!({ "command": line });
        let more = format!(r#","tool_name":"Bash","tool_use_id":"{id}","tool_input":{input}"#);
        let answer: Value = serde_json::from_str(&self.place.answer(&self.place.payload("PreToolUse", &more))).unwrap();
        (id, answer["hookSpecificOutput"].clone())
    }

    /// Runs what the answer says as the client does: the output, and the folder the shell ended in.
    fn run(&self, line: &str) -> (Output, String) {
        let (id, answer) = self.ask(line);
        let line = answer["updatedInput"]["command"].as_str().unwrap_or_else(|| panic!("{line}: {answer}"));
        let folder = self.place.folder.join("folder");
        let quoted = line.replace('\'', "'\"'\"'");
        let script = format!("true && eval '{quoted}' && pwd -P >| {}", folder.display());
        let mut shell = Command::new("/bin/bash");
        shell.args(["-c", &script]).current_dir(self.repository()).env_clear();
        shell.env("PATH", std::env::var_os("PATH").unwrap());
        shell.env("HOME", &self.place.folder).env("WRIT_STATE_DIR", self.place.folder.join("state"));
        let output = shell.output().unwrap();
        let event = if output.status.success() { "PostToolUse" } else { "PostToolUseFailure" };
        let input = r#","tool_input":{"command":"x"},"tool_response":"","error":"""#;
        self.place.answer(&self.place.payload(event, &format!(r#","tool_name":"Bash","tool_use_id":"{id}"{input}"#)));
        (output, fs::read_to_string(folder).unwrap_or_default().trim().to_owned())
    }

    fn said(&self, line: &str) -> String {
        let (output, _) = self.run(line);
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }

    fn rows(&self) -> Vec<Value> {
        let ledger = fs::read_to_string(self.place.session().join("ledger.jsonl")).unwrap();
        ledger.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The phase of the report.
    fn phase(&self, name: &str) -> Value {
        let report = self.place.writ(&["verify", SESSION, "--format", "json"]).stdout;
        let report: Value = serde_json::from_slice(&report).unwrap();
        report["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == name).cloned().unwrap_or_default()
    }
}

fn policy() -> Value {
    json!({"version": "1.0", "name": "confined", "enforce": "calls",
           "files": {"deny": ["**/.env"], "readOnly": ["kept/**"]}, "domains": {"allow": ["allowed.example"]}})
}

#[test]
fn a_line_runs_as_without_writ_and_is_held() {
    let lab = Lab::new("confined", &policy());
    fs::create_dir_all(lab.repository().join("kept")).unwrap();
    let (output, folder) = lab.run("echo \"it's $((1 + 1))\"; cd src && touch made; echo error >&2");
    assert_eq!(
        (output.status.code(), output.stdout, output.stderr),
        (Some(0), b"it's 2\n".to_vec(), b"error\n".to_vec())
    );
    assert_eq!(PathBuf::from(folder), lab.repository().join("src").canonicalize().unwrap());
    assert!(lab.repository().join("src/made").is_file());
    assert_eq!(lab.run("exit 7").0.status.code(), Some(7));
    assert_eq!(lab.run("kill -9 $$").0.status.code(), Some(137));
    // What no reading of the line could know needs no question, and gains nothing.
    let said = lab.said("f=.$(echo vne | rev); cat $f; cp $f copy; ls copy");
    assert!(said.contains("Permission denied") && !said.contains("secret"), "{said}");
    assert!(said.contains("writ: denied to open `.env` (/files/deny/0)"), "{said}");
    // What no rule names is told where the line failed; what nobody asked for is not.
    let said = lab.said("echo x > /usr/outside");
    assert!(said.contains("writ: denied to change `/usr/outside` (outside of what its sandbox gives"), "{said}");
    assert!(!lab.said("echo x > /usr/outside; true").contains("writ:"));
    assert_eq!(lab.said("ls; cat kept/none; true").matches("writ:").count(), 0);
    lab.run("d=$(echo tpek | rev); echo x > $d/file; g=.$(echo kcolfa | rev); echo {} > $g; rm -f $g");
    assert!(!lab.repository().join("kept/file").exists());
    assert_eq!(fs::read_to_string(lab.repository().join(".aflock")).unwrap(), policy().to_string());
    let said = lab.said("h=$(echo elpmaxe.desufer | rev); curl -sS -m 5 https://$h");
    assert!(said.contains("writ: "), "the proxy's refusal in words: {said}");
    assert!(!lab.said("echo > /tmp/writ-confined-test; ls /tmp").contains("Permission"));
    let phase = lab.phase("sandbox");
    assert_eq!((&phase["outcome"], &phase["standing"]), (&json!("passed"), &json!("enforced")), "{phase}");
    let summary = phase["summary"].as_str().unwrap();
    assert!(summary.contains("attacks held") && summary.contains("files refused"), "{phase}");
    assert_eq!(lab.phase("decisions")["outcome"], "passed", "{}", lab.phase("decisions"));
    let tested = lab.rows().into_iter().filter(|row| row["detail"]["event"] == "sandbox-tested").collect::<Vec<_>>();
    let [tested] = tested.as_slice() else { panic!("once a session: {tested:?}") };
    let held = tested["detail"]["held"].as_array().unwrap();
    assert!(held.len() > 40 && tested["detail"]["escaped"] == json!([]), "{tested}");
    assert_eq!(tested["detail"]["level"], "full", "{tested}");
}

/// A self-test that cannot run, and one that got out, let nothing run.
#[test]
fn what_cannot_be_tested_runs_nothing() {
    let lab = Lab::new("confined-untested", &policy());
    let kept = lab.place.folder.join("state/sandbox.json");
    // There is nowhere to lay out what it attacks.
    let more = r#","tool_name":"Bash","tool_use_id":"call-0","tool_input":{"command":"echo one"}"#;
    let mut hook = lab.place.command(&["hook"]);
    let mut hook = hook.env("TMPDIR", "/nowhere").spawn().unwrap();
    hook.stdin.take().unwrap().write_all(lab.place.payload("PreToolUse", more).as_bytes()).unwrap();
    let answer = String::from_utf8(hook.wait_with_output().unwrap().stdout).unwrap();
    assert!(answer.contains("its self-test could not be run") && answer.contains("\"deny\""), "{answer}");
    assert_eq!(lab.phase("decisions")["outcome"], "passed", "{}", lab.phase("decisions"));
    // It is tried again, and once more when the machine is another.
    assert!(lab.ask("echo two").1["updatedInput"].is_object());
    let mut features: Value = serde_json::from_str(&fs::read_to_string(&kept).unwrap()).unwrap();
    features["overlay"] = json!(!features["overlay"].as_bool().unwrap());
    fs::write(&kept, features.to_string()).unwrap();
    assert!(lab.ask("echo three").1["updatedInput"].is_object());
    let tested = lab.rows().into_iter().filter(|row| row["detail"]["event"] == "sandbox-tested").count();
    assert_eq!(tested, 3);
    assert_eq!(lab.phase("decisions")["outcome"], "passed", "{}", lab.phase("decisions"));
}

/// What is written in the home beside the work is there for the next call, and not outside.
#[test]
fn the_home_keeps_what_it_had() {
    let lab = Lab::new("confined-home", &policy());
    let home = &lab.place.folder;
    fs::write(home.join(".settings"), "old\n").unwrap();
    fs::create_dir_all(home.join(".aws")).unwrap();
    fs::write(home.join(".aws/credentials"), "secret\n").unwrap();
    let said = lab.said("mkdir -p ~/.npm/x && echo new > ~/.npm/x/y && echo more >> ~/.settings && cat ~/.settings");
    assert_eq!(said, "old\nmore\n");
    assert_eq!(lab.said("cat ~/.npm/x/y ~/.settings; rm ~/.settings"), "new\nold\nmore\n");
    assert!(!lab.said("cat ~/.aws/credentials; ls ~/.settings").contains("secret"));
    assert_eq!(fs::read_to_string(home.join(".settings")).unwrap(), "old\n");
    assert!(!home.join(".npm").exists());
    let layers = || {
        fs::read_dir(lab.place.session())
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("layer-"))
            .count()
    };
    assert_eq!(layers(), 1);
    lab.place.answer(&lab.place.payload("SessionEnd", r#","reason":"other""#));
    assert_eq!((layers(), lab.place.session().join("tmp").exists()), (0, false));
    assert_eq!(lab.phase("sandbox")["outcome"], "passed");
}

#[test]
fn nothing_runs_that_was_not_granted() {
    let lab = Lab::new("confined-grants", &policy());
    let (id, _) = lab.ask("echo one");
    let exec = |call: &str, line: &str| {
        let output = lab.place.writ(&["exec", "--session", SESSION, "--call", call, "--", line]);
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(exec(&id, "echo two"), (Some(126), String::new()));
    assert_eq!(exec("call-99", "echo one"), (Some(126), String::new()));
    assert_eq!(exec(&id, "echo one"), (Some(0), "one\n".to_owned()));
    let (denied, answer) = lab.ask("cat .env");
    assert_eq!((answer["permissionDecision"].as_str(), answer.get("updatedInput")), (Some("deny"), None));
    assert_eq!(exec(&denied, "cat .env"), (Some(126), String::new()));
    // An order that was changed after the grant is none.
    let (id, _) = lab.ask("echo three");
    for order in fs::read_dir(lab.place.session().join("sandboxes")).unwrap() {
        let path = order.unwrap().path();
        let text = fs::read_to_string(&path).unwrap().replace("\"masked\":[", "\"masked\":[\"/nowhere\",");
        fs::write(path, text).unwrap();
    }
    assert_eq!(exec(&id, "echo three"), (Some(126), String::new()));
}

#[test]
fn a_call_that_ran_outside_is_found() {
    let lab = Lab::new("confined-outside", &policy());
    let (id, _) = lab.ask("echo one");
    let result = r#","tool_input":{"command":"echo one"},"tool_response":"one""#;
    let ran = format!(r#","tool_name":"Bash","tool_use_id":"{id}"{result}"#);
    lab.place.answer(&lab.place.payload("PostToolUse", &ran));
    let phase = lab.phase("sandbox");
    assert_eq!(phase["outcome"], "failed", "{phase}");
    assert!(phase["findings"][0].as_str().unwrap().contains("not in the sandbox"), "{phase}");
}

/// What this machine allows is kept in Writ's state; a weaker machine is one that says so there.
#[test]
fn a_machine_too_weak_for_the_policy_runs_nothing() {
    let mut policy = policy();
    policy["enforce"] = json!({"calls": true, "atLeast": "namespaces"});
    let lab = Lab::new("confined-weak", &policy);
    let (_, answer) = lab.ask("echo one");
    assert!(answer["updatedInput"].is_object(), "{answer}");
    let kept = lab.place.folder.join("state/sandbox.json");
    let mut features: Value = serde_json::from_str(&fs::read_to_string(&kept).unwrap()).unwrap();
    features["mounts"] = json!(false);
    fs::write(&kept, features.to_string()).unwrap();
    let (_, answer) = lab.ask("echo two");
    assert_eq!(answer["permissionDecision"], "deny", "{answer}");
    assert!(answer["permissionDecisionReason"].as_str().unwrap().contains("at least `namespaces`"), "{answer}");
    let doctor = lab.place.writ(&["doctor"]);
    let said = String::from_utf8(doctor.stdout).unwrap();
    let found = said.lines().find(|line| line.contains("hold calls at level `landlock`")).unwrap_or(&said);
    assert!(!doctor.status.success() && found.contains("needs a mount in a user namespace"), "{said}");
    assert_eq!(lab.phase("decisions")["outcome"], "passed", "{}", lab.phase("decisions"));
}

#[test]
fn a_policy_that_only_advises_asks_as_before() {
    let mut policy = policy();
    policy.as_object_mut().unwrap().remove("enforce");
    let lab = Lab::new("confined-not", &policy);
    let (_, answer) = lab.ask("f=.$(echo vne | rev); cat $f");
    assert_eq!(answer["permissionDecision"], "ask", "{answer}");
    let (_, answer) = lab.ask("echo one");
    assert!(answer.get("updatedInput").is_none(), "{answer}");
    assert_eq!(lab.phase("sandbox"), Value::Null);
}

/// Where the policy names its files, the folder that the line starts in is no more than they are, and a line cannot choose another.
#[test]
fn what_is_not_named_is_not_there() {
    let policy = json!({"version": "1.0", "name": "named", "enforce": "calls", "files": {"allow": ["src/**"]}});
    let lab = Lab::new("confined-named", &policy);
    fs::write(lab.repository().join("root.txt"), "outside\n").unwrap();
    fs::write(lab.repository().join("src/in.txt"), "inside\n").unwrap();
    let said = lab.said("eval \"$(echo 'txt.ni/crs tac ;txt.toor tac' | rev)\"; echo x > src/made; ls");
    assert!(said.contains("inside") && !said.contains("outside"), "{said}");
    assert!(lab.repository().join("src/made").is_file(), "{said}");
}

/// A call in the background has its result before its run ends.
#[test]
fn a_result_may_come_before_the_end_of_its_run() {
    let lab = Lab::new("confined-background", &policy());
    let (id, _) = lab.ask("echo one");
    let result = r#","tool_input":{"command":"echo one"},"tool_response":"started""#;
    lab.place
        .answer(&lab.place.payload("PostToolUse", &format!(r#","tool_name":"Bash","tool_use_id":"{id}"{result}"#)));
    let ran = lab.place.writ(&["exec", "--session", SESSION, "--call", &id, "--", "echo one"]);
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), "one\n");
    assert_eq!(lab.phase("sandbox")["outcome"], "passed", "{}", lab.phase("sandbox"));
}

/// What is too deep to be looked at may hold what is denied: the call does not run. Without rules about files there is nothing to miss.
#[test]
fn folders_without_end_are_not_passed_over() {
    let deep = |lab: &Lab| fs::create_dir_all(lab.repository().join("d/".repeat(140))).unwrap();
    let lab = Lab::new("confined-deep", &policy());
    deep(&lab);
    let (_, answer) = lab.ask("echo one");
    assert_eq!(answer["permissionDecision"], "deny", "{answer}");
    assert!(answer["permissionDecisionReason"].as_str().unwrap().contains("folders deep"), "{answer}");
    let lab = Lab::new("confined-deep-free", &json!({"version": "1.0", "name": "free", "enforce": "calls"}));
    deep(&lab);
    assert_eq!(lab.said("echo one"), "one\n");
}
