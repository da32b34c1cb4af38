//! `"enforce": "calls"`: the hook has Writ run the line, the kernel holds it, and the record says so.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

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

    /// What the answer says, as the client runs it.
    fn script(&self, line: &str) -> Command {
        let (_, answer) = self.ask(line);
        self.shell(line, &answer)
    }

    fn shell(&self, line: &str, answer: &Value) -> Command {
        let line = answer["updatedInput"]["command"].as_str().unwrap_or_else(|| panic!("{line}: {answer}"));
        let folder = self.place.folder.join("folder");
        let quoted = line.replace('\'', "'\"'\"'");
        let script = format!("true && eval '{quoted}' && pwd -P >| {}", folder.display());
        let mut shell = Command::new("/bin/bash");
        shell.args(["-c", &script]).current_dir(self.repository()).env_clear();
        shell.env("PATH", std::env::var_os("PATH").unwrap());
        shell.env("HOME", &self.place.folder).env("WRIT_STATE_DIR", self.place.folder.join("state"));
        shell
    }

    /// Runs it: the output, and the folder the shell ended in.
    fn run(&self, line: &str) -> (Output, String) {
        let (id, answer) = self.ask(line);
        let folder = self.place.folder.join("folder");
        let output = self.shell(line, &answer).output().unwrap();
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
    // Nor does what takes in a denied file with others: the kernel leaves it out.
    let said = lab.said("grep -rn secret . ; cp -r . /tmp/copy; find . -name .env -exec cat {} + ; echo end");
    assert!(said.contains("end") && !said.contains("KEY=secret"), "{said}");
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

/// What a rule denies in the home is not shown by its layer, and a tree beyond the policy's folder is judged as ever.
#[test]
fn a_layer_shows_nothing_that_is_denied() {
    let mut policy = policy();
    let name = "confined-denied-home";
    let home = format!("{}/{name}-{}", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    policy["files"]["deny"] = json!(["**/.env", format!("{home}/outer/**")]);
    let lab = Lab::new(name, &policy);
    assert_eq!(lab.place.folder, PathBuf::from(&home));
    let outer = lab.place.folder.join("outer");
    fs::create_dir_all(&outer).unwrap();
    fs::write(outer.join("private"), "CANARY\n").unwrap();
    fs::write(lab.place.folder.join(".env"), "CANARY\n").unwrap();
    let said = lab.said("o=$(echo retuo | rev); cat ../$o/private; ls ../$o");
    assert!(!said.contains("CANARY"), "{said}");
    let (_, answer) = lab.ask("grep -r CANARY ..");
    assert_eq!(answer["permissionDecision"], "deny", "a tree above the policy's folder: {answer}");
}

/// A rule whose plain beginning lies above the policy's folder is looked for beside it; one that names what may lie anywhere is asked about.
#[test]
fn what_lies_beside_the_folder_is_held_or_asked_about() {
    let name = "confined-beside";
    let home = format!("{}/{name}-{}", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    let mut policy = policy();
    policy["files"]["deny"] = json!(["**/.env", format!("{home}/x-*/private/**"), format!("{home}/x-*/key")]);
    let lab = Lab::new(name, &policy);
    fs::create_dir_all(lab.place.folder.join("x-one/private")).unwrap();
    for file in ["x-one/private/file", "x-one/key", "x-one/open"] {
        fs::write(lab.place.folder.join(file), format!("CANARY {file}\n")).unwrap();
    }
    // A rule that takes something there lets nothing beside it be written.
    let plan = lab.place.writ(&["sandbox", "plan", "--format", "json"]).stdout;
    let plan: Value = serde_json::from_slice(&plan).unwrap();
    assert!(!plan["confinement"]["writable"].to_string().contains("x-one"), "{plan}");
    let said = lab.said("o=$(echo eno-x | rev); cat ../$o/private/file ../$o/key ../$o/open; ls ../$o/private");
    assert!(
        said.contains("CANARY x-one/open") && !said.contains("private/file\n") && !said.contains("x-one/key\n"),
        "{said}"
    );
    let name = "confined-anywhere";
    let home = format!("{}/{name}-{}", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    policy["files"]["deny"] = json!(["**/.env", format!("{home}/**/private/**")]);
    let lab = Lab::new(name, &policy);
    let (_, answer) = lab.ask("o=$(echo eno | rev); cat ../$o/file");
    assert_eq!(answer["permissionDecision"], "ask", "{answer}");
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
    // Only in a network of the session's own is nobody else on loopback.
    assert_eq!(lab.ask("curl http://127.0.0.1:8000/").1["permissionDecision"], "deny");
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
    // In a home of the session's own, too, what is written beside it fails instead of being lost.
    let said = lab.said("d=$(echo tsid | rev); echo x > ~/.n$d && echo a cache; echo x > n$d; mkdir $d");
    assert!(said.matches("Read-only file system").count() == 2 && said.contains("a cache"), "{said}");
    assert!(said.contains("writ: denied to change `dist` (/files/allow)"), "{said}");
    assert!(!lab.repository().join("dist").exists() && !lab.repository().join("ndist").exists());
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

/// Numbers of the processes outside whose command lines are exactly this.
fn processes(line: &str) -> Vec<u32> {
    let line = format!("{}\0", line.replace(' ', "\0"));
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    let same = |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|found| found == line.as_bytes());
    entries.filter_map(number).filter(same).collect()
}

fn gone(line: &str) -> bool {
    let start = Instant::now();
    while !processes(line).is_empty() {
        if start.elapsed() > Duration::from_secs(5) {
            return false;
        }
        sleep(Duration::from_millis(5));
    }
    true
}

/// A line that nobody else runs.
fn waiting(number: u32) -> String {
    format!("sleep {}.{number}", 1_000_000 + std::process::id())
}

fn end(lab: &Lab) {
    lab.place.answer(&lab.place.payload("SessionEnd", r#","reason":"other""#));
}

/// The rows of an event.
fn rows(lab: &Lab, event: &str) -> Vec<Value> {
    let ledger = fs::read_to_string(lab.place.session().join("ledger.jsonl")).unwrap();
    let rows = ledger.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.filter(|row| row["detail"]["event"] == event).collect()
}

/// As without Writ: what ends the shell's group ends what the line started in it.
#[test]
fn a_signal_to_the_shells_group_reaches_what_the_line_started() {
    let lab = Lab::new("confined-signal", &policy());
    let line = waiting(3);
    let mut shell = lab.script(&format!("{line}; true"));
    let mut shell = shell.process_group(0).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    while processes(&line).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(10), "it did not start");
        sleep(Duration::from_millis(5));
    }
    let group = format!("-{}", shell.id());
    assert!(Command::new("kill").args(["-TERM", "--", &group]).status().unwrap().success());
    shell.wait().unwrap();
    assert!(gone(&line), "it outlived its call");
    end(&lab);
    assert_eq!(lab.phase("sandbox")["outcome"], "passed", "{}", lab.phase("sandbox"));
}

#[test]
fn the_next_call_finds_what_one_left_running_and_cannot_look_into_it() {
    let lab = Lab::new("confined-left", &policy());
    let line = waiting(1);
    // Its descriptors, its environment and its folder are what another plan may not have.
    let (output, folder) =
        lab.run(&format!("CANARY=canary {line} 7<.aflock >/dev/null 2>&1 & echo $! > src/pid; cd src"));
    assert!(output.status.success() && folder.ends_with("/src"), "{output:?} {folder}");
    // The shell that became it may not have yet.
    let found = (0..1000).any(|_| {
        processes(&line).len() == 1 || {
            sleep(Duration::from_millis(5));
            false
        }
    });
    assert!(found, "{:?}", processes(&line));
    let said = lab.said("kill -0 $(cat src/pid) && ps ax -o pid,args");
    assert!(said.contains(&line), "{said}");
    let said = lab.said(
        "for p in $(cat src/pid) 1; do cat /proc/$p/environ /proc/$p/maps; head -c1 /proc/$p/mem; cat /proc/$p/fd/7; \
         ls /proc/$p/root/ /proc/$p/cwd/; readlink /proc/$p/exe /proc/$p/ns/*; done 2>&1 | grep -v 'ermission denied'",
    );
    assert_eq!(said, "", "what another call's process has");
    lab.said("kill $(cat src/pid)");
    assert!(gone(&line));
    let line = waiting(2);
    lab.run(&format!("{line} >/dev/null 2>&1 & exit 3"));
    assert_eq!(processes(&line).len(), 1);
    end(&lab);
    assert!(gone(&line), "it outlived its session");
    assert_eq!(lab.phase("sandbox")["outcome"], "passed", "{}", lab.phase("sandbox"));
}

#[test]
fn a_server_of_one_call_is_reached_by_the_next_and_by_nobody_outside() {
    let lab = Lab::new("confined-server", &policy());
    let port = 20_000 + std::process::id() % 10_000;
    let server = format!("git daemon --reuseaddr --export-all --base-path=. --listen=127.0.0.1 --port={port}");
    lab.run(&format!("{server} >/dev/null 2>&1 & sleep 0.5"));
    let said = lab.said(&format!("git ls-remote git://127.0.0.1:{port}/ && echo reached"));
    assert!(said.contains("reached"), "{said}");
    assert!(std::net::TcpStream::connect(("127.0.0.1", u16::try_from(port).unwrap())).is_err());
    end(&lab);
}

#[test]
fn connections_are_of_the_call_that_made_them() {
    let lab = Lab::new("confined-connections", &policy());
    let asks = "h=$(echo elpmaxe.desufer | rev); curl -sS -m 5 http://$h/";
    lab.run(&format!("(sleep 0.6; {asks}) >/dev/null 2>&1 &"));
    lab.said(&format!("{asks}; sleep 1"));
    end(&lab);
    let calls: Vec<Value> = rows(&lab, "connection").into_iter().map(|row| row["callId"].clone()).collect();
    assert_eq!(calls, ["call-2", "call-1"]);
    let refused: Vec<Value> = rows(&lab, "confined").into_iter().map(|row| row["detail"]["refused"].clone()).collect();
    assert_eq!(refused, [0, 1], "what came after its end is not the call's row's");
}

#[test]
fn calls_at_once_share_one_keeper_and_a_killed_one_ends_alone() {
    let lab = Lab::new("confined-killed", &policy());
    let (one, two) = (waiting(1), waiting(2));
    std::thread::scope(|scope| {
        let scripts = [&one, &two].map(|line| lab.script(&format!("setsid {line} & {line}")));
        let mut shells: Vec<_> = scripts.into_iter().map(|mut shell| shell.spawn().unwrap()).collect();
        let start = Instant::now();
        while (processes(&one).len(), processes(&two).len()) != (2, 2) {
            assert!(start.elapsed() < Duration::from_secs(10), "they did not start");
            sleep(Duration::from_millis(5));
        }
        assert_eq!(fs::read_dir(lab.place.session().join("keepers")).unwrap().count(), 1);
        // The client kills the shell and what came from it.
        let shell = shells.remove(0);
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", shell.id())).unwrap();
        for pid in children.split_whitespace() {
            Command::new("kill").args(["-9", pid]).status().unwrap();
        }
        assert!(gone(&one), "what came from a killed call");
        assert_eq!(processes(&two).len(), 2);
        scope.spawn(move || shell.wait_with_output());
        end(&lab);
        assert_eq!(processes(&two).len(), 2, "a call that runs is not ended by another's end");
        for pid in processes(&two) {
            Command::new("kill").arg(pid.to_string()).status().unwrap();
        }
        shells.into_iter().for_each(|shell| drop(shell.wait_with_output()));
    });
    assert!(gone(&two));
}

#[test]
fn nothing_goes_on_without_its_keeper_or_under_another_policy() {
    let lab = Lab::new("confined-keeper", &policy());
    let line = waiting(1);
    lab.run(&format!("{line} >/dev/null 2>&1 &"));
    let state = lab.place.folder.join("state").to_string_lossy().into_owned();
    let keeper = || {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let mut all: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        let has = |pid: &u32, name: &str, part: &str| {
            let text = fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
            String::from_utf8_lossy(&text).contains(part)
        };
        all.retain(|pid| has(pid, "cmdline", "\0keep\0") && has(pid, "environ", &state));
        all.sort_unstable();
        all
    };
    // The process that holds the namespaces has forgotten the caller's variables, and so does one that makes something ready and ends.
    let start = Instant::now();
    while keeper().len() != 1 && start.elapsed() < Duration::from_secs(5) {
        sleep(Duration::from_millis(2));
    }
    assert_eq!(keeper().len(), 1);
    Command::new("kill").args(["-9", &keeper()[0].to_string()]).status().unwrap();
    assert!(gone(&line));
    assert_eq!(lab.said("echo next"), "next\n");
    let line = waiting(2);
    lab.run(&format!("{line} >/dev/null 2>&1 &"));
    let mut stricter = policy();
    stricter["files"]["deny"] = json!(["**/.env", "**/*.key"]);
    fs::write(lab.repository().join(".aflock"), stricter.to_string()).unwrap();
    let said = lab.said("ps ax -o args");
    assert!(!said.contains(&line), "{said}");
    assert!(gone(&line), "it goes on under a policy that is gone");
    end(&lab);
}

/// Where names of other processes are seen, they are still closed.
#[test]
fn what_is_left_is_closed_where_proc_is_the_hosts() {
    let lab = Lab::new("confined-weaker", &policy());
    let kept = lab.place.folder.join("state/sandbox.json");
    lab.said("true");
    // As on a machine where `/proc` cannot be mounted fresh.
    let mut features: Value = serde_json::from_str(&fs::read_to_string(&kept).unwrap()).unwrap();
    features["freshProc"] = json!(false);
    fs::write(&kept, features.to_string()).unwrap();
    end(&lab);
    let line = waiting(1);
    lab.run(&format!("{line} >/dev/null 2>&1 &"));
    let outside = processes(&line)[0];
    let said = lab.said(&format!("cat /proc/{outside}/environ /proc/{outside}/maps; ls /proc/{outside}/root/"));
    assert_eq!(said.matches("Permission denied").count(), 3, "{said}");
    assert_eq!(rows(&lab, "confined").last().unwrap()["detail"]["level"], "namespaces");
    end(&lab);
    assert!(gone(&line));
}
