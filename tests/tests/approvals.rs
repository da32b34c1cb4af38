//! Calls that wait are listed, and a human's word on them is taken from a human alone: no process below the client, no terminal that
//! it makes, no other user.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
mod terminal;
#[cfg(test)]
#[expect(dead_code, reason = "these sessions start in their own ways")]
mod workplace;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use terminal::{PATH, at_a_terminal};
use workplace::{SESSION, Workplace};

/// An ordinary user, who has no account.
const SECOND: &str = "12345";
const POLICY: &str = r#"{"version":"1.0","name":"ask","tools":{"requireApproval":["Bash:make*"]}}"#;

fn place(name: &str) -> Workplace {
    let place = Workplace::new(name);
    fs::write(place.folder.join("repository/.aflock"), POLICY).unwrap();
    place
}

fn bash(place: &Workplace, id: &str, line: &str) -> String {
    let members = format!(r#","tool_name":"Bash","tool_input":{{"command":"{line}"}},"tool_use_id":"{id}""#);
    place.answer(&place.payload("PreToolUse", &members))
}

fn is(answer: &str, verdict: &str) -> bool {
    answer.contains(&format!("\"permissionDecision\":\"{verdict}\""))
}

fn listed(place: &Workplace) -> Vec<Value> {
    let output = place.writ(&["approvals", "--format", "json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice::<Value>(&output.stdout).unwrap().as_array().unwrap().clone()
}

/// The name of the newest call that waits.
fn name(place: &Workplace) -> String {
    listed(place).last().unwrap()["id"].as_str().unwrap().to_owned()
}

fn approvals(place: &Workplace) -> Value {
    verified(place).unwrap()
}

/// The phase of approvals, once decisions come out the same; `None` where nobody gave a word.
fn verified(place: &Workplace) -> Option<Value> {
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    let output = place.writ(&["verify", SESSION, "--format", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = |name: &str| report["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == name).cloned();
    assert_eq!(found("decisions").unwrap()["outcome"], "passed", "{report}");
    found("approvals")
}

#[test]
fn what_waits_is_listed_and_answered_from_another_terminal() {
    let place = place("listed");
    assert!(is(&bash(&place, "1", "make all && cat src/notes"), "ask"));
    assert!(is(&bash(&place, "2", "make clean"), "ask"));
    let waiting = listed(&place);
    let [first, second] = waiting.as_slice() else { panic!("{waiting:?}") };
    assert_eq!((&first["tool"], &first["programs"]), (&"Bash".into(), &serde_json::json!(["make", "cat"])));
    assert_eq!(first["session"], SESSION);
    assert!(first["cwd"].as_str().unwrap().ends_with("/repository") && first["ageSeconds"].as_i64().unwrap() < 60);
    assert_eq!(first["rules"][0], "ask `Bash:make*`, /tools/requireApproval/0");
    let text = String::from_utf8(place.writ(&["approvals"]).stdout).unwrap();
    assert!(text.contains("says      make all && cat src/notes"), "{text}");
    assert!(text.contains("programs  make") && text.contains("s ago") && text.contains("session"), "{text}");
    // From anywhere: the call's name says which session it is of.
    let (id, other) = (first["id"].as_str().unwrap(), second["id"].as_str().unwrap());
    let (done, said) = at_a_terminal(&place, &["env", "-C", "/"], &format!("approve {id} --for 10m"), "");
    assert!(done && said.contains("as often as it is called"), "{said}");
    assert!(is(&bash(&place, "3", "make all && cat src/notes"), "allow"));
    assert!(is(&bash(&place, "4", "make all && cat src/notes"), "allow"));
    let (done, said) = at_a_terminal(&place, &[], &format!("deny {other} --for session"), "");
    assert!(done && said.contains("is denied, while the session lasts"), "{said}");
    assert!(is(&bash(&place, "5", "make clean"), "deny"));
    assert!(listed(&place).is_empty());
    let said = String::from_utf8(place.writ(&["approve", "--list"]).stdout).unwrap();
    assert!(said.contains("as often as called  until") && said.contains("denied  while the session lasts"), "{said}");
    assert!(at_a_terminal(&place, &[], &format!("approve --revoke {other}"), "").0);
    assert!(is(&bash(&place, "6", "make clean"), "ask"));
    let phase = approvals(&place);
    assert_eq!(phase["outcome"], "passed", "{phase}");
    assert!(phase["findings"][0].as_str().unwrap().contains("at a terminal older than the session"), "{phase}");
    for words in [&["approve", "ffff"][..], &["deny", "ffff"], &["approve", id, "--for", "10d"]] {
        assert!(!place.writ(words).status.success(), "{words:?}");
    }
}

#[test]
fn a_key_of_ones_own_signs() {
    let place = place("own-key");
    assert!(is(&bash(&place, "1", "make all"), "ask"));
    let key = place.folder.join("me.pem");
    let key = key.to_str().unwrap();
    assert!(place.writ(&["keys", "generate", key]).status.success());
    let words = format!("approve {} --key {key}", name(&place));
    let (done, said) = at_a_terminal(&place, &[], &words, "");
    assert!(!done && said.contains("writ keys trust"), "{said}");
    assert!(place.writ(&["keys", "trust", &format!("{key}.pub")]).status.success());
    assert!(at_a_terminal(&place, &[], &words, "").0);
    assert!(is(&bash(&place, "2", "make all"), "allow") && is(&bash(&place, "3", "make all"), "ask"));
    let phase = approvals(&place);
    assert!(phase["findings"][0].as_str().unwrap().contains("signed by the pinned key"), "{phase}");
}

/// Who writes the ledger can put the row of a word behind its use, or take rows away: neither makes it count again.
#[test]
fn a_word_that_was_used_does_not_come_back() {
    let place = place("used");
    assert!(is(&bash(&place, "1", "make all"), "ask"));
    assert!(at_a_terminal(&place, &[], &format!("approve {}", name(&place)), "").0);
    assert!(is(&bash(&place, "2", "make all"), "allow") && is(&bash(&place, "3", "make all"), "ask"));
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    let ledger = place.session().join("ledger.jsonl");
    let text = fs::read_to_string(&ledger).unwrap();
    let rows: Vec<&str> = text.lines().collect();
    let given = rows.iter().position(|row| row.contains(r#""event":"grant""#)).unwrap();
    let cut = rows.get(..=given).unwrap().join("\n");
    for (written, why) in [
        (format!("{text}{}\n", rows.get(given).unwrap()), "does not follow it"),
        (format!("{cut}\n"), "rows that a checkpoint covers are gone"),
    ] {
        fs::write(&ledger, &written).unwrap();
        assert!(!is(&bash(&place, "4", "make all"), "allow"), "{why}");
        let after = fs::read_to_string(&ledger).unwrap();
        assert!(after.get(written.len()..).unwrap().contains(why), "{why}: {after}");
    }
}

/// What a shell line says and does that a client runs, under the name that this client has.
fn below(place: &Workplace, client: &Path, line: &str) -> String {
    let mut command = Command::new(client);
    command.args(["-c", line]).current_dir(place.folder.join("repository")).env_clear();
    command.env("PATH", PATH).env("HOME", &place.folder).env("WRIT_STATE_DIR", place.folder.join("state"));
    let output = command.stdin(Stdio::null()).output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// Everything that an agent can start is below its client, or was not there before the session.
#[test]
fn nothing_below_the_client_approves() {
    let place = place("below");
    let client = place.folder.join("claude");
    symlink("/bin/bash", &client).unwrap();
    assert!(is(&bash(&place, "1", "make all"), "ask"));
    let name = name(&place);
    let writ = place.command(&[]);
    let writ = writ.get_program().to_str().unwrap();
    // Each in a shell that is called as the client is: it may make terminals, sessions and detached processes.
    for line in [
        format!("{writ} approve {name}"),
        format!("script -qefc '{writ} approve {name}' /dev/null"),
        format!("script -qefc 'setsid -w {writ} approve {name}' /dev/null"),
        format!("setsid -w script -qefc '{writ} approve {name}' /dev/null"),
        format!("setsid -f script -qefc '{writ} approve {name}' /dev/null; sleep 1"),
        format!("(nohup script -qefc '{writ} approve {name}' /dev/null &) ; sleep 1"),
        format!("script -qefc 'exec -a human {writ} approve {name}' /dev/null"),
        format!("echo | {writ} deny {name}"),
    ] {
        let text = below(&place, &client, &format!("{line}; true"));
        assert!(!text.contains("may run"), "{line}: {text}");
        assert!(is(&bash(&place, "again", "make all"), "ask"), "{line}: {text}");
    }
    // With the right passphrase typed by a program too.
    assert!(at_a_terminal(&place, &[], "keys approval", "correct horse\ncorrect horse\n").0);
    let (done, text) = at_a_terminal(&place, &["env", "CLAUDECODE=1"], &format!("approve {name}"), "correct horse\n");
    assert!(!done && text.contains("an agent's client runs this"), "{text}");
    let mut shell = Command::new(&client);
    shell.args(["-c", &format!("echo correct horse | script -qefc '{writ} approve {name}' /dev/null; true")]);
    shell.current_dir(place.folder.join("repository")).env_clear().env("PATH", PATH).env("HOME", &place.folder);
    shell.env("WRIT_STATE_DIR", place.folder.join("state"));
    assert!(!String::from_utf8_lossy(&shell.output().unwrap().stdout).contains("may run"));
    assert!(is(&bash(&place, "still", "make all"), "ask"));
}

/// A client whose name nobody knows, and that is older than its session: what it starts is below a process that the session was seen
/// to be of.
#[test]
fn nothing_below_a_client_of_any_name_approves() {
    below_a_client("any-name", r#","source":"startup""#);
}

/// So it is where the client's start could not be read, and left no row.
#[test]
fn nothing_below_a_client_approves_whose_start_could_not_be_read() {
    below_a_client("no-start", r#","source":"startup","agent_type":"cut in \ud83d""#);
}

fn below_a_client(name_of_place: &str, start: &str) {
    let place = place(name_of_place);
    let client = place.folder.join("agent");
    symlink("/bin/bash", &client).unwrap();
    let call = r#","tool_name":"Bash","tool_input":{"command":"make all"},"tool_use_id":"1""#;
    fs::write(place.folder.join("start"), place.payload("SessionStart", start)).unwrap();
    fs::write(place.folder.join("call"), place.payload("PreToolUse", call)).unwrap();
    let writ = place.command(&[]);
    let writ = writ.get_program().to_str().unwrap();
    let line = format!(
        "sleep 0.2; {writ} hook < ../start > /dev/null; {writ} hook < ../call; \
         id=$({writ} approvals --format json | sed -n 's/.*\"id\": \"\\(.*\\)\".*/\\1/p'); \
         script -qefc \"{writ} approve $id\" /dev/null; true"
    );
    let text = below(&place, &client, &line);
    assert!(is(&text, "ask") && text.contains("the client of this session runs this"), "{text}");
    let (done, said) = at_a_terminal(&place, &[], &format!("approve {}", name(&place)), "");
    assert!(done, "a human is beside it: {said}");
    assert!(is(&bash(&place, "2", "make all"), "allow"));
    approvals(&place);
}

/// Clients that an agent makes up do not push the real one out of the record, and where more run than are named, nobody can tell.
#[test]
fn clients_that_are_made_up_hide_none() {
    let place = place("made-up");
    let client = place.folder.join("agent");
    symlink("/bin/bash", &client).unwrap();
    let call = r#","tool_name":"Bash","tool_input":{"command":"make all"},"tool_use_id":"1""#;
    fs::write(place.folder.join("start"), place.payload("SessionStart", r#","source":"startup""#)).unwrap();
    fs::write(place.folder.join("resume"), place.payload("SessionStart", r#","source":"resume""#)).unwrap();
    fs::write(place.folder.join("call"), place.payload("PreToolUse", call)).unwrap();
    let writ = place.command(&[]);
    let writ = writ.get_program().to_str().unwrap();
    // Shells that end, and shells that go on.
    for (shell, others) in [("sh ../other", 6), ("sh ../lasting", 6)] {
        drop(fs::remove_dir_all(place.folder.join("state")));
        fs::write(place.folder.join("other"), format!("{writ} hook < ../resume\nexit 0\n")).unwrap();
        fs::write(place.folder.join("lasting"), format!("{writ} hook < ../resume\nsleep 6\n")).unwrap();
        let line = format!(
            "sleep 0.2; {writ} hook < ../start > /dev/null; for i in $(seq {others}); do {shell} > /dev/null & sleep 0.3; done; \
             {writ} hook < ../call; id=$({writ} approvals --format json | sed -n 's/.*\"id\": \"\\(.*\\)\".*/\\1/p'); \
             script -qefc \"{writ} approve $id\" /dev/null; true"
        );
        let text = below(&place, &client, &line);
        assert!(is(&text, "ask") && text.contains("the client of this session runs this"), "{shell}: {text}");
    }
    // More ran at once than are named: a terminal shows nothing.
    let (done, said) = at_a_terminal(&place, &[], &format!("approve {}", name(&place)), "");
    assert!(!done && said.contains("not every client of this session is on record"), "{said}");
    assert!(at_a_terminal(&place, &[], "keys approval", "correct horse\ncorrect horse\n").1.contains("cannot tell"));
    assert_eq!(verified(&place), None);
}

/// A session that an agent makes up does not make its own processes older than every session.
#[test]
fn a_decoy_session_sets_no_passphrase() {
    let place = place("decoy");
    place.start();
    assert!(is(&bash(&place, "1", "make all"), "ask"));
    let writ = place.command(&[]);
    let writ = writ.get_program().to_str().unwrap();
    let decoy = place.payload("SessionStart", r#","source":"startup""#).replace(SESSION, "decoy");
    fs::write(place.folder.join("decoy"), decoy).unwrap();
    let typed = "(sleep 1; echo correct horse; sleep 1; echo correct horse)";
    let line = format!(
        "sleep 0.3; {writ} hook < ../decoy > /dev/null; sleep 0.3; {typed} | script -qefc '{writ} keys approval' ../said > /dev/null"
    );
    let mut command = Command::new("setsid");
    command.args(["-f", "sh", "-c", &format!("{line}; touch ../over")]).current_dir(place.folder.join("repository"));
    command.env_clear().env("PATH", PATH).env("HOME", &place.folder);
    command.env("WRIT_STATE_DIR", place.folder.join("state")).stdin(Stdio::null()).status().unwrap();
    for _ in 0..100 {
        if place.folder.join("over").exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let said = fs::read_to_string(place.folder.join("said")).unwrap();
    assert!(said.contains("cannot tell that a human is here"), "{said}");
    assert!(!place.folder.join("state/keys/approval.json").exists());
    // The twin: this process is older than all of them. A passphrase that is wrong is on record.
    assert!(at_a_terminal(&place, &[], "keys approval", "correct horse\ncorrect horse\n").0);
    let (done, said) = at_a_terminal(&place, &[], &format!("approve {}", name(&place)), "wrong horse\n");
    assert!(!done && said.contains("not the approval passphrase"), "{said}");
    let ledger = fs::read_to_string(place.session().join("ledger.jsonl")).unwrap();
    assert!(ledger.contains(r#""event":"wrong-passphrase""#));
    assert_eq!(verified(&place), None);
}

/// What is put over a file of `/proc` is not believed.
#[test]
fn a_file_over_proc_shows_no_human() {
    let place = place("over-proc");
    let client = place.folder.join("claude");
    symlink("/bin/bash", &client).unwrap();
    assert!(is(&bash(&place, "1", "make all"), "ask"));
    let writ = place.command(&[]);
    let writ = writ.get_program().to_str().unwrap();
    let name = name(&place);
    let line = format!(
        "exec unshare -Urm sh -c 'mount --bind /proc/1/stat /proc/$$/stat && exec script -qefc \"{writ} approve {name}\" /dev/null'"
    );
    let text = below(&place, &client, &line);
    assert!(text.contains("cannot be looked at"), "{text}");
    assert!(is(&bash(&place, "2", "make all"), "ask"));
}

/// A yes that was said before the session took something in is none for what it took in.
#[test]
fn a_yes_does_not_cover_what_is_taken_in_later() {
    let place = Workplace::new("tainted");
    let repository = place.folder.join("repository");
    let policy = r#"{"version":"1.0","name":"ask","tools":{"requireApproval":["Bash:git push*"]},"dataFlow":
        {"classify":{"secret":["vault/**"],"public":["Bash:git push*"]},"flowRules":[{"deny":"secret->public"}]}}"#;
    fs::write(repository.join(".aflock"), policy).unwrap();
    fs::create_dir(repository.join("vault")).unwrap();
    place.start();
    let approve = || assert!(at_a_terminal(&place, &[], &format!("approve {} --for session", name(&place)), "").0);
    assert!(is(&bash(&place, "1", "git push"), "ask"));
    approve();
    assert!(is(&bash(&place, "2", "git push"), "allow"));
    assert!(!is(&bash(&place, "3", "./unknown.sh"), "deny"));
    assert!(is(&bash(&place, "4", "git push"), "ask"), "it may have read a secret");
    approve();
    assert!(is(&bash(&place, "5", "git push"), "allow"));
    assert_eq!(approvals(&place)["outcome"], "passed");
}

/// An approval is for the folder that is there, and not for another that a link leads to later.
#[test]
fn a_link_that_leads_elsewhere_asks_anew() {
    let place = place("linked");
    let repository = place.folder.join("repository");
    for name in ["a", "b"] {
        fs::create_dir(repository.join(name)).unwrap();
    }
    symlink("a", repository.join("link")).unwrap();
    let call = |id: &str| {
        let members = format!(r#","tool_name":"Bash","tool_input":{{"command":"make all"}},"tool_use_id":"{id}""#);
        let payload = place.payload("PreToolUse", &members);
        place.answer(&payload.replace(r#"/repository","permission"#, r#"/repository/link","permission"#))
    };
    assert!(is(&call("1"), "ask"));
    assert!(at_a_terminal(&place, &[], &format!("approve {}", name(&place)), "").0);
    fs::remove_file(repository.join("link")).unwrap();
    symlink("b", repository.join("link")).unwrap();
    assert!(is(&call("2"), "ask"), "it is another folder");
    fs::remove_file(repository.join("link")).unwrap();
    symlink("a", repository.join("link")).unwrap();
    assert!(is(&call("3"), "allow"));
}

/// An approval of a push is for where its remote leads, and not for another address that the name gets later.
#[test]
fn a_remote_that_leads_elsewhere_asks_anew() {
    let place = place("remote");
    let policy = r#"{"version":"1.0","name":"ask","tools":{"requireApproval":["Bash:git push*"]}}"#;
    fs::write(place.folder.join("repository/.aflock"), policy).unwrap();
    let git = place.folder.join("repository/.git");
    fs::create_dir_all(&git).unwrap();
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let leads = |url: &str| fs::write(git.join("config"), format!("[remote \"origin\"]\n\turl = {url}\n")).unwrap();
    leads("https://github.com/own/it");
    assert!(is(&bash(&place, "1", "git push"), "ask"));
    assert!(at_a_terminal(&place, &[], &format!("approve {}", name(&place)), "").0);
    leads("https://github.com/other/it");
    assert!(is(&bash(&place, "2", "git push"), "ask"), "it is another repository");
    leads("https://github.com/own/it");
    assert!(is(&bash(&place, "3", "git push"), "allow"));
}

/// An approval is for the file that a link leads to, and not for another that it leads to later, however it got there.
#[test]
fn an_approval_is_for_where_its_paths_lead() {
    let place = Workplace::new("leads");
    let repository = place.folder.join("repository");
    let policy = r#"{"version":"1.0","name":"ask","tools":{"requireApproval":["Write:infra/**","Bash:apply*"]}}"#;
    fs::write(repository.join(".aflock"), policy).unwrap();
    for (folder, leads) in [("w", "dev"), ("w2", "prod")] {
        fs::create_dir_all(repository.join("infra").join(leads)).unwrap();
        fs::create_dir(repository.join(folder)).unwrap();
        symlink(Path::new("../infra").join(leads), repository.join(folder).join("cur")).unwrap();
    }
    let call = |id: &str| {
        let input = r#""tool_name":"Write","tool_input":{"file_path":"w/cur/main.tf","content":"x"}"#;
        place.answer(&place.payload("PreToolUse", &format!(r#",{input},"tool_use_id":"{id}""#)))
    };
    let swap = |from: &str, to: &str| fs::rename(repository.join(from), repository.join(to)).unwrap();
    assert!(is(&call("1"), "ask"));
    assert!(at_a_terminal(&place, &[], &format!("approve {} --for 10m", name(&place)), "").0);
    assert!(is(&call("2"), "allow"));
    swap("w", "w.old");
    swap("w2", "w");
    assert!(is(&call("3"), "ask"), "it leads to another folder");
    swap("w", "w2");
    swap("w.old", "w");
    assert!(is(&call("4"), "allow"));
    // So it is of words of a line, though nobody knows what its program does with them.
    let lines = [
        "cd w && cd cur && apply",
        "apply w/cur/plan",
        "apply --file=w/cur/x > /dev/stderr",
        "apply -fw/cur/x",
        "apply -v ./w/cur:/x",
        "apply -f a.yaml,w/cur/x",
        "cd w/c?r && apply",
        "D=w/cur apply",
        "apply 'chdir(w/cur)'",
        "apply w%2Fcur",
    ];
    for (at, line) in lines.iter().enumerate() {
        assert!(is(&bash(&place, &format!("{at}-asked"), line), "ask"), "{line}");
        let asked = name(&place);
        assert!(at_a_terminal(&place, &[], &format!("approve {asked} --for 10m"), "").0);
        assert!(is(&bash(&place, &format!("{at}-let"), line), "allow"), "{line}");
        swap("w", "w.old");
        swap("w2", "w");
        assert!(is(&bash(&place, &format!("{at}-swapped"), line), "ask"), "{line}");
        assert!(at_a_terminal(&place, &[], &format!("approve --revoke {asked}"), "").0);
        swap("w", "w2");
        swap("w.old", "w");
    }
    assert_eq!(approvals(&place)["outcome"], "passed");
}

/// Another user has neither the record nor the key: not to approve, not to write the rows, not with a key of their own.
#[test]
fn a_second_user_approves_nothing() {
    if !Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n") {
        return;
    }
    let place = place("second");
    let own = place.folder.join("own");
    fs::create_dir(&own).unwrap();
    std::os::unix::fs::chown(&own, Some(12345), Some(12345)).unwrap();
    // They may write down what their terminal shows.
    fs::write(place.folder.join("terminal.log"), "").unwrap();
    std::os::unix::fs::chown(place.folder.join("terminal.log"), Some(12345), Some(12345)).unwrap();
    assert!(is(&bash(&place, "1", "make all"), "ask"));
    let name = name(&place);
    let user = ["setpriv", "--reuid", SECOND, "--regid", SECOND, "--clear-groups", "--"];
    let (done, text) = at_a_terminal(&place, &user, &format!("approve {name}"), "");
    assert!(!done && text.contains("Permission denied"), "{text}");
    let ledger = place.session().join("ledger.jsonl");
    let (ledger, key) = (ledger.to_str().unwrap(), place.folder.join("state/keys/ledger.pem"));
    for line in [format!("echo x >> {ledger}"), format!("cat {}", key.display()), format!("cat {ledger}")] {
        let status = Command::new(user[0]).args(&user[1..]).args(["sh", "-c", &line]).stderr(Stdio::null()).status();
        assert!(!status.unwrap().success(), "{line}");
    }
    // Their own Writ knows of no such call, and its key is no key here.
    let state = format!("WRIT_STATE_DIR={}", own.display());
    let (done, text) = at_a_terminal(&place, &[&user[..], &["env", &state]].concat(), &format!("approve {name}"), "");
    assert!(!done && text.contains("waiting calls of 0 sessions"), "{text}");
    assert!(is(&bash(&place, "2", "make all"), "ask"));
    assert!(at_a_terminal(&place, &[], &format!("approve {name}"), "").0, "the human can");
    assert!(is(&bash(&place, "3", "make all"), "allow"));
}
