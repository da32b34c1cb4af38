//! Which policy governs when its file changes, whose word lets a call run, and what the client may not take over.

#[cfg(test)]
mod terminal;
#[cfg(test)]
#[expect(dead_code, reason = "these sessions start in their own ways")]
mod workplace;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use terminal::{PATH, at_a_terminal};
use workplace::{SESSION, Workplace};

const APPROVALS: &str = r#"{"version":"1.0","name":"ask","tools":{"requireApproval":["Bash:make*"]}}"#;

fn repository(place: &Workplace) -> PathBuf {
    place.folder.join("repository")
}

fn policy(place: &Workplace, text: &str) {
    fs::write(repository(place).join(".aflock"), text).unwrap();
}

fn write(place: &Workplace, session: &str, id: &str, file: &str) -> String {
    place.answer(
        &place
            .write_call(id, file)
            .replace(&format!("\"session_id\":\"{SESSION}\""), &format!("\"session_id\":\"{session}\"")),
    )
}

fn bash(place: &Workplace, id: &str, line: &str, more: &str) -> String {
    let members = format!(r#","tool_name":"Bash","tool_input":{{"command":"{line}"}},"tool_use_id":"{id}"{more}"#);
    place.answer(&place.payload("PreToolUse", &members))
}

fn is(answer: &str, verdict: &str) -> bool {
    answer.contains(&format!("\"permissionDecision\":\"{verdict}\""))
}

fn silent(answer: &str) -> bool {
    !answer.contains("permissionDecision")
}

fn said(place: &Workplace, args: &[&str]) -> (Option<i32>, String) {
    let output = place.command(args).env("PATH", PATH).stdin(Stdio::null()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

fn verified(place: &Workplace, session: &str) {
    let folder = place.session().with_file_name(session).join("ledger.jsonl");
    let (_, text) = said(place, &["verify", session, "--format", "json"]);
    let decisions = text.split("\"name\": \"decisions\"").nth(1).unwrap_or_else(|| panic!("{text}"));
    assert!(
        decisions.trim_start_matches([',', '\n', ' ']).starts_with("\"outcome\": \"passed\""),
        "{text} {}",
        folder.display()
    );
}

#[test]
fn a_policy_that_is_gone_goes_on_governing() {
    let place = Workplace::new("gone");
    place.allowed("one");
    let (file, text) =
        (repository(&place).join(".aflock"), fs::read_to_string(repository(&place).join(".aflock")).unwrap());
    fs::remove_file(&file).unwrap();
    let told = write(&place, SESSION, "two", "src/a.rs");
    assert!(!is(&told, "deny") && told.contains("systemMessage") && told.contains("goes on governing"), "{told}");
    let again = write(&place, SESSION, "three", "src/a.rs");
    assert!(!is(&again, "deny") && !again.contains("systemMessage"), "told once: {again}");
    assert!(is(&write(&place, SESSION, "four", ".env"), "deny"), "and it still denies");
    for command in ["status", "doctor"] {
        let (_, text) = said(&place, &[command]);
        assert!(text.contains("goes on governing"), "{command}: {text}");
    }
    verified(&place, SESSION);
    assert!(said(&place, &["verify", SESSION]).1.contains("accepted copy went on governing"));
    fs::write(&file, text).unwrap();
    assert!(silent(&write(&place, SESSION, "five", "src/a.rs")));
    assert!(!said(&place, &["status"]).1.contains("goes on governing"));
    verified(&place, SESSION);
}

#[test]
fn a_changed_policy_can_only_tighten() {
    let place = Workplace::new("changed");
    place.allowed("one");
    policy(&place, r#"{"version":"1.0","name":"loose"}"#);
    assert!(is(&write(&place, SESSION, "two", ".env"), "deny"), "what was accepted still denies");
    assert!(!is(&write(&place, SESSION, "three", "src/a.rs"), "deny"));
    policy(&place, r#"{"version":"1.0","name":"tight","files":{"deny":["src/secret.rs"]}}"#);
    let denied = write(&place, SESSION, "four", "src/secret.rs");
    assert!(is(&denied, "deny") && denied.contains("changed-policy:/files/deny/0"), "{denied}");
    assert!(!is(&write(&place, SESSION, "five", "src/a.rs"), "deny"));
    policy(&place, "{ broken");
    let told = write(&place, SESSION, "six", "src/secret.rs");
    assert!(!is(&told, "deny") && told.contains("not valid"), "an invalid file changes nothing: {told}");
    verified(&place, SESSION);
}

#[test]
fn a_new_session_waits_for_a_human_where_another_ended_under_a_changed_policy() {
    let place = Workplace::new("unsettled");
    let accepted = fs::read_to_string(repository(&place).join(".aflock")).unwrap();
    place.allowed("one");
    policy(&place, r#"{"version":"1.0","name":"loose"}"#);
    write(&place, SESSION, "two", "src/a.rs");
    let start = place.payload("SessionStart", r#","source":"startup""#).replace(SESSION, "second");
    let told = place.answer(&start);
    assert!(told.contains("writ policy accept"), "{told}");
    assert!(is(&write(&place, "second", "three", "src/a.rs"), "ask"));
    assert!(is(&write(&place, "second", "four", ".env"), "deny"));
    verified(&place, "second");
    policy(&place, &accepted);
    assert!(!is(&write(&place, "third", "five", "src/a.rs"), "ask"), "the accepted policy begins a session at once");
    policy(&place, r#"{"version":"1.0","name":"loose"}"#);
    let (done, text) = at_a_terminal(&place, &[], "policy accept second", "");
    assert!(done, "{text}");
    assert!(silent(&write(&place, "second", "six", "docs/a.md")), "a human took the new policy over");
    assert!(silent(&write(&place, "fourth", "seven", "docs/a.md")), "and sessions begin under it");
    verified(&place, "second");
}

#[test]
fn a_new_session_does_not_begin_without_the_policy_that_vanished() {
    let place = Workplace::new("vanished");
    place.allowed("one");
    fs::remove_file(repository(&place).join(".aflock")).unwrap();
    write(&place, SESSION, "two", "src/a.rs");
    assert!(is(&write(&place, "second", "three", "src/a.rs"), "ask"));
    assert!(is(&write(&place, "second", "four", ".env"), "deny"));
    verified(&place, "second");
    let (done, text) = at_a_terminal(&place, &[], "policy accept second --none", "");
    assert!(done, "{text}");
    assert!(silent(&write(&place, "third", "five", ".env")), "a human let the repository go without a policy");
}

#[test]
fn a_policy_that_was_changed_between_sessions_is_the_users_own_affair() {
    let place = Workplace::new("between");
    place.allowed("one");
    place.answer(&place.payload("SessionEnd", r#","reason":"other""#));
    policy(&place, r#"{"version":"1.0","name":"next"}"#);
    assert!(silent(&write(&place, "second", "two", "docs/a.md")));
}

#[test]
fn an_approval_is_for_one_action() {
    let place = Workplace::new("approvals");
    policy(&place, APPROVALS);
    let name = |answer: &str| answer.split("writ approve ").nth(1).unwrap().chars().take(12).collect::<String>();
    let asked = bash(&place, "one", "make all", "");
    assert!(is(&asked, "ask"), "{asked}");
    let (done, text) = at_a_terminal(&place, &[], &format!("approve {}", name(&asked)), "");
    assert!(done, "{text}");
    let agent = r#","agent_id":"a1","agent_type":"worker""#;
    assert!(is(&bash(&place, "two", "make all", agent), "ask"), "another agent's is another action");
    let elsewhere =
        place.payload("PreToolUse", r#","tool_name":"Bash","tool_input":{"command":"make all"},"tool_use_id":"three""#);
    let elsewhere = elsewhere.replace("/repository\",\"permission", "/repository/src\",\"permission");
    let elsewhere = place.answer(&elsewhere);
    assert!(is(&elsewhere, "ask"), "another folder's is another action");
    assert!(is(&bash(&place, "four", "make al", ""), "ask"), "another input's is another action");
    assert!(is(&bash(&place, "five", "make all", ""), "allow"), "this is the one");
    assert!(is(&bash(&place, "six", "make all", ""), "ask"), "once");
    let (_, listed) = said(&place, &["approve"]);
    let alike: Vec<&str> = listed
        .lines()
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(alike.len(), 4, "{listed}");
    assert!(
        alike.iter().enumerate().all(|(at, name)| !alike[..at].contains(name)),
        "each has a name of its own: {listed}"
    );
    assert!(alike.contains(&name(&elsewhere).as_str()), "the one that asked was told its own: {listed}");
    let (done, text) = at_a_terminal(&place, &[], &format!("approve {}", alike[3]), "");
    assert!(done, "{text}");
    policy(&place, &APPROVALS.replace("\"ask\"", "\"other\""));
    assert!(at_a_terminal(&place, &[], "policy accept", "").0);
    assert!(is(&bash(&place, "seven", "make all", ""), "ask"), "another policy's is another action");
    assert_eq!(place.approved(), ["five"]);
    verified(&place, SESSION);
}

#[test]
fn a_process_that_left_the_clients_tree_does_not_approve() {
    let place = Workplace::new("detached");
    policy(&place, APPROVALS);
    let asked = bash(&place, "one", "make all", "");
    let name: String = asked.split("writ approve ").nth(1).unwrap().chars().take(12).collect();
    let words = format!("approve {name}");
    let (_, text) = at_a_terminal(&place, &["setsid", "-f"], &words, "");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let text = text + &fs::read_to_string(place.folder.join("terminal.log")).unwrap_or_default();
    assert!(text.contains("cannot tell that a human is here"), "{text}");
    assert!(is(&bash(&place, "two", "make all", ""), "ask"));
    let namespace = Command::new("unshare").args(["-pf", "--mount-proc", "true"]).status();
    if namespace.is_ok_and(|status| status.success()) {
        let (done, text) = at_a_terminal(&place, &["unshare", "-pf", "--mount-proc"], &words, "");
        assert!(!done, "{text}");
        assert!(is(&bash(&place, "three", "make all", ""), "ask"));
    }
    assert!(at_a_terminal(&place, &[], &words, "").0, "a terminal that was there before");
    assert!(is(&bash(&place, "four", "make all", ""), "allow"));
}

#[test]
fn a_passphrase_shows_a_human_wherever_they_are() {
    let place = Workplace::new("passphrase");
    policy(&place, APPROVALS);
    let asked = bash(&place, "one", "make all", "");
    let name: String = asked.split("writ approve ").nth(1).unwrap().chars().take(12).collect();
    let (done, text) = at_a_terminal(&place, &[], "keys approval", "correct horse\ncorrect horse\n");
    assert!(done && !text.contains("correct horse"), "{text}");
    let words = format!("approve {name}");
    assert!(!at_a_terminal(&place, &[], &words, "wrong horse\n").0);
    assert!(!at_a_terminal(&place, &[], "keys approval", "wrong horse\nanother one\nanother one\n").0);
    assert!(is(&bash(&place, "two", "make all", ""), "ask"));
    let (_, _) = at_a_terminal(&place, &["setsid", "-w"], &words, "correct horse\n");
    assert!(is(&bash(&place, "three", "make all", ""), "allow"), "the secret is what counts");
}

#[test]
fn settings_that_loosen_the_hooks_are_not_taken_over() {
    let place = Workplace::new("settings");
    assert_eq!(said(&place, &["init"]).0, Some(0));
    let settings = repository(&place).join(".claude/settings.json");
    let good = fs::read_to_string(&settings).unwrap();
    assert!(good.contains("\"CLAUDE_CODE_SHELL\": \"bash\""), "{good}");
    place.allowed("one");
    let change = |path: &str| {
        let file = repository(&place).join(path);
        place.answer(
            &place
                .payload("ConfigChange", &format!(r#","source":"project_settings","file_path":"{}""#, file.display())),
        )
    };
    let with = |from: &str, to: &str| {
        let text = good.replace(from, to);
        assert_ne!(text, good, "{from}");
        fs::write(&settings, text).unwrap();
        change(".claude/settings.json")
    };
    for (from, to) in [
        ("\"PreToolUse\"", "\"Notification\""),
        ("\"timeout\": 30", "\"timeout\": 1"),
        ("\"onFailure\": \"block\"", "\"onFailure\": \"continue\""),
        ("\"matcher\": \"*\"", "\"matcher\": \"Read\""),
        ("{\n  \"hooks\"", "{\n  \"disableAllHooks\": true,\n  \"hooks\""),
        ("\"CLAUDE_CODE_SHELL\": \"bash\"", "\"CLAUDE_CODE_SHELL\": \"/bin/zsh\""),
        ("\"CLAUDE_CODE_SHELL\": \"bash\"", "\"CLAUDE_CODE_SHELL\": \"bash\", \"WRIT_STATE_DIR\": \"/tmp/x\""),
        ("\"CLAUDE_CODE_SHELL\": \"bash\"", "\"A\": \"b\""),
        ("\"command\": \"", "\"command\": \"/elsewhere"),
        ("{", "{{"),
    ] {
        let answer = with(from, to);
        assert!(answer.contains("\"decision\":\"block\""), "{from} → {to}: {answer}");
    }
    fs::remove_file(&settings).unwrap();
    assert!(change(".claude/settings.json").contains("\"decision\":\"block\""));
    assert!(
        !with("{\n  \"hooks\"", "{\n  \"model\": \"opus\",\n  \"hooks\"").contains("block"),
        "other settings are the user's own"
    );
    fs::write(&settings, &good).unwrap();
    let local = repository(&place).join(".claude/settings.local.json");
    fs::write(&local, r#"{"disableAllHooks":true}"#).unwrap();
    assert!(change(".claude/settings.local.json").contains("\"decision\":\"block\""));
    fs::write(&local, r#"{"model":"opus"}"#).unwrap();
    assert!(!change(".claude/settings.local.json").contains("block"));
    let rows = fs::read_to_string(place.session().join("ledger.jsonl")).unwrap();
    assert!(rows.contains("\"blocked\":"), "and it is on record");
    verified(&place, SESSION);
}

#[test]
fn what_the_client_reads_again_is_not_written() {
    let place = Workplace::new("reloaded");
    place.allowed("one");
    policy(&place, r#"{"version":"1.0","name":"x"}"#);
    let home = place.folder.display().to_string();
    let write = |path: &str| {
        let input = format!(
            r#","tool_name":"Write","tool_input":{{"file_path":"{home}/{path}","content":"x"}},"tool_use_id":"w""#
        );
        place.answer(&place.payload("PreToolUse", &input).replace(SESSION, "second"))
    };
    for path in [
        ".claude/shell-snapshots/snapshot-bash-1.sh",
        ".claude/session-env/x/hook-0.sh",
        ".claude/projects/p/x.jsonl",
        ".claude/projects/p/x/subagents/agent-1.jsonl",
        ".claude/settings.local.json",
        ".claude.json",
        ".claude/plugins/x/hooks/hooks.json",
        "repository/.claude/hooks/lint.sh",
    ] {
        assert!(is(&write(path), "deny"), "{path}");
    }
    for path in [".claude/projects/p/memory/MEMORY.md", ".claude/CLAUDE.md", "repository/.claude/commands/x.md"] {
        assert!(silent(&write(path)), "{path}");
    }
}

#[test]
fn a_line_that_zsh_reads_differently_asks_where_zsh_runs() {
    let place = Workplace::new("zsh");
    policy(&place, r#"{"version":"1.0","name":"x"}"#);
    let bin = place.folder.join("bin");
    fs::create_dir_all(&bin).unwrap();
    fs::write(bin.join("zsh"), "#!/bin/sh\n").unwrap();
    let answer = |line: &str, env: &[(&str, &str)]| {
        let members = format!(r#","tool_name":"Bash","tool_input":{{"command":"{line}"}},"tool_use_id":"z""#);
        let mut command = place.command(&["hook"]);
        command.env("PATH", format!("{}:{PATH}", bin.display())).envs(env.iter().copied());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), place.payload("PreToolUse", &members).as_bytes())
            .unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    };
    let odd = "repeat 1 ls";
    assert!(answer(odd, &[]).contains("writ:other-shell"));
    assert!(answer(odd, &[("SHELL", "/usr/bin/fish")]).contains("writ:other-shell"));
    assert!(silent(&answer("ls src", &[])), "a plain line is a plain line");
    assert!(silent(&answer(odd, &[("SHELL", "/bin/bash")])));
    assert!(silent(&answer(odd, &[("CLAUDE_CODE_SHELL", "bash")])));
    assert!(answer(odd, &[("CLAUDE_CODE_SHELL", "/nowhere/bash")]).contains("writ:other-shell"));
    verified(&place, SESSION);
}

/// A session whose folder is named through a symlink is held by the same patterns, also where a program goes through a whole tree.
#[test]
fn a_folder_behind_a_symlink_is_governed_as_itself() {
    let place = Workplace::new("linked-root");
    policy(&place, r#"{"version":"1.0","name":"x","files":{"allow":["**"],"deny":["secrets/**"]}}"#);
    fs::create_dir_all(repository(&place).join("secrets")).unwrap();
    fs::create_dir_all(repository(&place).join("src")).unwrap();
    fs::write(repository(&place).join("secrets/k"), "x").unwrap();
    std::os::unix::fs::symlink("repository", place.folder.join("link")).unwrap();
    let answer = |id: &str, line: &str, folder: &str| {
        let members = format!(r#","tool_name":"Bash","tool_input":{{"command":"{line}"}},"tool_use_id":"{id}""#);
        let payload = place.payload("PreToolUse", &members);
        place.answer(&payload.replace(r#"/repository","permission"#, &format!(r#"/{folder}","permission"#)))
    };
    for (at, folder) in ["link", "link/src", "repository"].into_iter().enumerate() {
        let up = if folder.ends_with("src") { ".." } else { "." };
        for (number, line) in
            ["cat UP/secrets/k", "grep -r x UP/secrets", "tar cf - UP", "cp -r UP /tmp/q"].iter().enumerate()
        {
            let line = line.replace("UP", up);
            assert!(is(&answer(&format!("{at}-{number}"), &line, folder), "deny"), "{folder}: {line}");
        }
        assert!(!is(&answer(&format!("{at}-free"), &format!("cat {up}/src/module.rs"), folder), "deny"), "{folder}");
    }
}

#[test]
fn a_relative_root_hangs_off_the_callers_folder() {
    let place = Workplace::new("root");
    let input = r#"{"file_path":"secrets/a"}"#;
    policy(&place, r#"{"version":"1.0","name":"x","files":{"deny":["secrets/**"]}}"#);
    for root in [".", "./", "../repository", "src/.."] {
        let args = ["decide", "-p", ".aflock", "--root", root, "--tool", "Read", "--input", input];
        assert_eq!(said(&place, &args).0, Some(3), "{root}");
    }
    let args =
        ["decide", "-p", ".aflock", "--root", "src", "--tool", "Read", "--input", r#"{"file_path":"../secrets/a"}"#];
    assert_eq!(said(&place, &args).0, Some(0), "another root is another folder");
}

#[test]
fn a_policy_that_names_functionaries_is_trusted_when_one_signed_it() {
    let place = Workplace::new("functionaries");
    for key in ["one.pem", "two.pem"] {
        assert_eq!(said(&place, &["keys", "generate", key]).0, Some(0));
        assert_eq!(said(&place, &["keys", "trust", &format!("{key}.pub")]).0, Some(0));
    }
    let (_, listed) = said(&place, &["keys", "trust", "one.pem.pub"]);
    let id = listed.split_whitespace().find(|word| word.starts_with("sha256:")).unwrap().to_owned();
    let text =
        format!(r#"{{"version":"1.0","name":"f","functionaries":[{{"type":"publickey","publickeyid":"{id}"}}]}}"#);
    policy(&place, &text);
    for (key, signed) in [("two.pem", "no-functionary"), ("one.pem", "trusted")] {
        assert_eq!(said(&place, &["policy", "sign", ".aflock", "--key", key]).0, Some(0));
        let (_, shown) = said(&place, &["policy", "check", ".aflock.signed", "--format", "json"]);
        assert!(shown.contains(&format!("\"signed\": \"{signed}\"")), "{key}: {shown}");
    }
    assert_eq!(said(&place, &["keys", "require-signed", "on"]).0, Some(0));
    assert_eq!(said(&place, &["policy", "check", ".aflock.signed"]).0, Some(0));
    assert_eq!(said(&place, &["policy", "sign", ".aflock", "--key", "two.pem"]).0, Some(0));
    assert_eq!(said(&place, &["policy", "check", ".aflock.signed"]).0, Some(3));
}

#[test]
fn an_expired_policy_is_told_everywhere() {
    let place = Workplace::new("expired");
    policy(&place, r#"{"version":"1.0","name":"old","expires":"2020-01-01T00:00:00Z"}"#);
    for command in [&["policy", "check"][..], &["status"], &["doctor"]] {
        assert!(said(&place, command).1.contains("expired"), "{command:?}");
    }
    let told = place.answer(&place.payload("SessionStart", r#","source":"startup""#));
    assert!(told.contains("systemMessage") && told.contains("expired"), "{told}");
    policy(&place, r#"{"version":"1.0","name":"new","expires":"2999-01-01T00:00:00Z"}"#);
    for command in [&["policy", "check"][..], &["status"]] {
        assert!(!said(&place, command).1.contains("expired:"), "{command:?}");
    }
}

#[test]
fn policy_check_answers_json_whatever_it_finds() {
    let place = Workplace::new("check-json");
    fs::create_dir_all(repository(&place).join("folder")).unwrap();
    for (name, text) in [
        ("bad", "{\"version\":\"1.0\",\"nam\":\"x\"}"),
        ("broken", "{"),
        ("file", r#"{"version":"1.0","name":"x","extends":"./none.aflock"}"#),
    ] {
        fs::write(repository(&place).join(name), text).unwrap();
    }
    for (name, code, rule) in [
        ("bad", 4, "unknown-field"),
        ("broken", 4, "json"),
        ("file", 4, "missing-file"),
        ("none", 1, "unreadable"),
        ("folder", 1, "unreadable"),
    ] {
        let output = place.writ(&["policy", "check", name, "--format", "json"]);
        let value: serde_json::Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((output.status.code(), &value["valid"]), (Some(code), &serde_json::Value::Bool(false)), "{name}");
        let problems = value["problems"].as_array().unwrap();
        assert!(problems.iter().any(|problem| problem["rule"] == rule), "{name}: {value}");
    }
    let (code, text) = said(&place, &["policy", "check", ".aflock", "--format", "json"]);
    assert!(code == Some(0) && text.contains("\"valid\": true"), "{text}");
    let (_, text) = said(&place, &["policy", "check", "bad"]);
    assert!(text.lines().any(|line| line.trim_start().starts_with("help:")), "{text}");
}

#[test]
fn init_writes_nothing_where_something_is_wrong() {
    let place = Workplace::new("init");
    let settings = repository(&place).join(".claude/settings.json");
    policy(&place, "{ broken");
    assert_eq!(said(&place, &["init"]).0, Some(4));
    assert!(!settings.exists());
    fs::remove_file(repository(&place).join(".aflock")).unwrap();
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    fs::write(&settings, "{ // no JSON\n}").unwrap();
    assert_eq!(said(&place, &["init"]).0, Some(4));
    assert!(!repository(&place).join(".aflock").exists(), "no policy without hooks");
    fs::write(&settings, "{}").unwrap();
    assert_eq!(said(&place, &["init"]).0, Some(0));
}

/// A program under another name is found out by the client above it, where the line that runs it says nothing.
#[test]
fn what_binds_an_agent_is_not_changed_below_its_client() {
    let place = Workplace::new("govern-below");
    let at = |name: &str| place.folder.join(name);
    fs::copy(place.command(&[]).get_program(), at("w")).unwrap();
    fs::copy("/bin/sh", at("claude")).unwrap();
    assert_eq!(said(&place, &["init"]).0, Some(0));
    place.writ(&["keys", "generate", at("k.pem").to_str().unwrap()]);
    let lines = ["init --undo", "keys trust ../k.pem.pub", "keys require-signed on", "keys rotate"];
    for shell in [at("claude").display().to_string(), "/bin/sh".to_owned()] {
        for line in lines {
            let mut command = Command::new(&shell);
            command.args(["-c", &format!("../w {line}; exit $?")]).current_dir(at("repository")).env_clear();
            let writ = place.command(&[]);
            command.envs(writ.get_envs().filter_map(|(name, value)| Some((name, value?))));
            let output = command.output().unwrap();
            let told = String::from_utf8_lossy(&output.stderr).contains("an agent's client runs this");
            assert_eq!(told, shell != "/bin/sh", "{shell} {line}: {output:?}");
        }
    }
}
