//! What an agent that wants out would try against the record and against what binds it.

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use workplace::{SESSION, Workplace};

fn call(place: &Workplace, tool: &str, input: &str) -> String {
    let members = format!(r#","tool_name":"{tool}","tool_input":{input},"tool_use_id":"attack""#);
    place.answer(&place.payload("PreToolUse", &members))
}

fn denied(answer: &str) -> bool {
    answer.contains(r#""permissionDecision":"deny""#)
}

#[test]
fn a_stop_does_not_make_a_rewritten_history_whole() {
    let place = Workplace::new("rewritten");
    let stop = place.payload("Stop", r#","stop_hook_active":false"#);
    place.allowed("one");
    place.answer(&stop);
    let sealed = |name: &str| fs::read(place.session().join(name)).unwrap();
    let (ledger, notes) = (sealed("ledger.jsonl"), sealed("checkpoints"));
    place.allowed("two");
    place.answer(&stop);
    assert_eq!(place.approved(), ["one", "two"]);
    fs::write(place.session().join("ledger.jsonl"), ledger).unwrap();
    fs::write(place.session().join("checkpoints"), notes).unwrap();
    assert_eq!(place.writ(&["verify", SESSION]).status.code(), Some(3), "the head remembers the second checkpoint");
    let answer = place.answer(&stop);
    assert!(answer.contains("not the history that was sealed"), "{answer}");
    assert_eq!(place.writ(&["verify", SESSION]).status.code(), Some(3), "and a stop does not make it forget");
    fs::remove_dir_all(place.session()).unwrap();
    assert!(denied(&call(&place, "Read", r#"{"file_path":"/x"}"#)), "a sealed session cannot begin anew");
    assert_eq!(place.writ(&["verify", SESSION]).status.code(), Some(4));
}

#[test]
fn another_sessions_record_is_not_this_one() {
    let place = Workplace::new("swapped");
    place.start();
    place.allowed("one");
    let stop = place.payload("Stop", r#","stop_hook_active":false"#);
    place.answer(&stop);
    for event in [&place.payload("SessionStart", r#","source":"startup""#), &stop] {
        place.answer(&event.replace(&format!(r#""session_id":"{SESSION}""#), r#""session_id":"other""#));
    }
    assert!(place.writ(&["verify", "other"]).status.success());
    let folder = place.session().with_file_name("other");
    fs::remove_dir_all(place.session()).unwrap();
    fs::rename(folder, place.session()).unwrap();
    assert_eq!(place.writ(&["verify", SESSION]).status.code(), Some(3));
}

#[test]
fn second_names_of_the_policy_are_the_policy() {
    let place = Workplace::new("links");
    place.allowed("one");
    let repository = place.folder.join("repository");
    fs::hard_link(repository.join(".aflock"), repository.join("src/plain.rs")).unwrap();
    symlink(repository.join(".aflock"), repository.join("src/link.rs")).unwrap();
    for name in ["plain.rs", "link.rs"] {
        let input = format!(r#"{{"file_path":"{}/src/{name}","content":"x"}}"#, repository.display());
        assert!(denied(&call(&place, "Write", &input)), "{name}");
    }
}

#[test]
fn a_tool_on_a_server_may_not_touch_what_binds_it() {
    let place = Workplace::new("server");
    place.allowed("one");
    let at = |name: &str| place.folder.join(name).display().to_string();
    for path in [
        at("repository/.aflock"),
        ".aflock".to_owned(),
        at("state/keys/ledger.pem"),
        at("repository/.claude/settings.json"),
    ] {
        let input = format!(r#"{{"options":{{"path":"{path}"}},"content":"x"}}"#);
        assert!(denied(&call(&place, "mcp__fs__write_file", &input)), "{path}");
    }
    assert!(!denied(&call(&place, "mcp__fs__write_file", r#"{"path":"src/a.rs"}"#)));
}

/// Writ's own commands write where they are told to: to a policy that is what any program writes.
#[test]
fn what_writs_own_commands_write_is_written() {
    let place = Workplace::new("own-commands");
    let repository = place.folder.join("repository");
    fs::write(repository.join(".aflock"), r#"{"version":"1.0","name":"open"}"#).unwrap();
    place.start();
    let state = place.folder.join("state");
    let state = state.display();
    let asked = |line: &str| call(&place, "Bash", &serde_json::json!({ "command": line }).to_string());
    for line in [
        "writ export -o .claude/settings.json --force".to_owned(),
        "writ export -o.claude/settings.json".to_owned(),
        "writ --color never export --force --output=.aflock".to_owned(),
        format!("writ export -o{state}/keys/ledger.pem --force"),
        format!("writ export --force -o {state}/sessions/{SESSION}/ledger.jsonl"),
        "writ verify --vsa .claude/settings.json --vsa-key k".to_owned(),
        "writ verify --results .aflock --vsa-key k".to_owned(),
        "writ report -o .aflock".to_owned(),
        "writ lock -o .aflock".to_owned(),
        "writ build -o .claude".to_owned(),
        "writ pull example.org/a:1 -o .claude".to_owned(),
        "writ attestation export --to .claude".to_owned(),
        "writ agentfile new .aflock".to_owned(),
        "writ agentfile fmt .aflock".to_owned(),
        "writ demo --keep .claude".to_owned(),
        "writ man .claude".to_owned(),
        "writ consequences pages .claude".to_owned(),
        "writ copy example.org/a:1 .claude".to_owned(),
        "writ copy --concurrency 2 layout .aflock".to_owned(),
        "writ tag .claude v1".to_owned(),
        "writ sign .claude --key k".to_owned(),
    ] {
        let answer = asked(&line);
        // What a folder of that name would be given is not known by names: a human is asked.
        let held = denied(&answer) || answer.contains(r#""permissionDecision":"ask""#) && line.ends_with(".claude");
        assert!(held, "{line}: {answer}");
    }
    for line in [
        "writ export -o run.tar",
        "writ export",
        "writ verify run.tar --trust k.pem --format json",
        "writ report -o run.html",
        "writ attestation export --to proof",
        "writ agentfile lint Agentfile",
        "writ build -o out",
        "writ copy layout other.tar",
        "writ push layout example.org/a:1",
        "writ tag layout v1",
        "writ evaluate shell 'rm -r x'",
    ] {
        let answer = asked(line);
        assert!(!answer.contains("permissionDecision\":\"deny") && !answer.contains("\"ask\""), "{line}: {answer}");
    }
}

/// What a step takes in is read, and ends in its statement: a denied file cannot be one.
#[test]
fn a_steps_materials_and_products_are_read() {
    let place = Workplace::new("own-steps");
    place.start();
    let asked = |line: &str| call(&place, "Bash", &serde_json::json!({ "command": line }).to_string());
    fs::write(place.folder.join("repository/.env"), "TOKEN=x").unwrap();
    for line in [
        "writ step run qc -m .env -- true",
        "writ step run qc -m.env -- true",
        "writ step run qc --material=.env -- true",
        "writ step run -p .env qc -- true",
        "writ --color never step run qc --product .env -- true",
        "writ gate --require-attestation a --plan .env",
        "writ sign --key .env p",
    ] {
        assert!(denied(&asked(line)), "{line}: {}", asked(line));
    }
    let fine = asked("writ step run qc -m src/module.rs -- true");
    assert!(!denied(&fine), "{fine}");
}

#[test]
fn a_pipe_where_the_policy_should_be_denies() {
    let place = Workplace::new("pipe");
    let policy = place.folder.join("repository/.aflock");
    fs::remove_file(&policy).unwrap();
    assert!(Command::new("mkfifo").arg(&policy).status().unwrap().success());
    assert!(denied(&call(&place, "Read", r#"{"file_path":"/x"}"#)));
}

#[test]
fn what_the_agent_wrote_is_judged_when_it_runs() {
    let place = Workplace::new("authored");
    place.start();
    let script = place.folder.join("repository/src/run.sh");
    let run = r#"{"command":"bash src/run.sh"}"#;
    let wrote = |text: &str| {
        fs::write(&script, text).unwrap();
        let input = format!(r#"{{"file_path":"{}","content":"x"}}"#, script.display());
        let members = format!(r#","tool_name":"Write","tool_input":{input},"tool_response":{{}},"tool_use_id":"w""#);
        place.answer(&place.payload("PostToolUse", &members));
    };
    fs::write(&script, "cat .env\n").unwrap();
    assert!(!denied(&call(&place, "Bash", run)), "a script that the agent did not write is not looked into");
    wrote("cat .env\n");
    assert!(denied(&call(&place, "Bash", run)), "the agent wrote it");
    assert!(denied(&call(&place, "Bash", r#"{"command":"cp src/run.sh src/b && sh src/b"}"#)), "by another name");
    wrote("cat src/module.rs\n");
    assert!(!denied(&call(&place, "Bash", run)), "what it names now is allowed");
}

#[test]
fn notes_of_the_client_about_its_sub_agents_are_not_the_agents() {
    let place = Workplace::new("client-notes");
    fs::write(place.folder.join("repository/.aflock"), r#"{"version":"1.0","name":"open"}"#).unwrap();
    place.start();
    let folder = place.folder.join(".claude/projects/x/s/subagents");
    fs::create_dir_all(&folder).unwrap();
    let [note, own] = ["agent-a.meta.json", "other.md"].map(|name| folder.join(name).display().to_string());
    let bash = |line: String| call(&place, "Bash", &format!(r#"{{"command":"{line}"}}"#));
    let writes = |path: &str| call(&place, "Write", &format!(r#"{{"file_path":"{path}","content":"x"}}"#));
    for line in ["echo x > PATH", "rm PATH", "mv PATH src/x"] {
        assert!(denied(&bash(line.replace("PATH", &note))), "{line}");
        assert!(!denied(&bash(line.replace("PATH", &own))), "{line}");
    }
    assert!(denied(&writes(&note)) && !denied(&writes(&own)), "{} {}", writes(&note), writes(&own));
}

#[test]
fn what_an_agentfile_starts_is_judged_when_writ_starts_it() {
    let place = Workplace::new("started");
    place.start();
    let wrote = |file: &str, text: &str| {
        let file = place.folder.join("repository/src/x").join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        let input = format!(r#"{{"file_path":"{}","content":"x"}}"#, file.display());
        let members = format!(r#","tool_name":"Write","tool_input":{input},"tool_response":{{}},"tool_use_id":"w""#);
        place.answer(&place.payload("PostToolUse", &members));
    };
    let lines = [
        "writ tool list -f src/x/Agentfile",
        "writ tool describe s.t --file=src/x/Agentfile",
        "cd src/x && writ tool call s.t",
        "writ agentfile project src/out -f src/x/Agentfile",
        "writ lock src/x/Agentfile",
    ];
    let all = |wanted: bool, why: &str| {
        for line in lines {
            let input = format!(r#"{{"command":"{line}"}}"#);
            let answer = call(&place, "Bash", &input);
            let held = denied(&answer) || answer.contains(r#""permissionDecision":"ask""#);
            assert_eq!(held, wanted, "{line}: {why}: {answer}");
        }
    };
    wrote("Agentfile", "FROM scratch\n");
    all(false, "nothing is started");
    let server = |file: &str| format!(r#"{{"mcpServers":{{"s":{{"command":"cat","args":["{file}"]}}}}}}"#);
    wrote(".mcp.json", &server("module.rs"));
    all(false, "what it names is allowed");
    wrote(".mcp.json", &server("../../.env"));
    all(true, "a server");
    wrote(".mcp.json", &format!(r#"{{"mcpServers":{{}},"projects":{{"p":{}}}}}"#, server("../../.env")));
    all(true, "a server of a project");
    fs::remove_file(place.folder.join("repository/src/x/.mcp.json")).unwrap();
    for settings in [".gemini/settings.json", ".qwen/settings.json"] {
        wrote(settings, &server("../../.env"));
        all(true, settings);
        fs::remove_file(place.folder.join("repository/src/x").join(settings)).unwrap();
    }
    wrote(".codex/config.toml", "[mcp_servers.s]\ncommand = \"cat\"\nargs = [\"../../.env\"]\n");
    all(true, "Codex's");
    fs::remove_file(place.folder.join("repository/src/x/.codex/config.toml")).unwrap();
    all(false, "no server");
    wrote("tools/run", "#!/bin/sh\ncat ../../.env\n");
    all(true, "a program");
    fs::remove_file(place.folder.join("repository/src/x/tools/run")).unwrap();
    wrote(
        "tools/run.json",
        r#"{"tool_call_template":{"call_template_type":"cli","commands":[{"command":"cat ../../.env"}]}}"#,
    );
    all(true, "a template");
}

#[test]
fn a_token_is_nowhere_in_the_state() {
    let place = Workplace::new("token");
    let token = format!("ghp_{}", "aB3xY9".repeat(6));
    for line in
        [format!("{token} ls"), format!("cat ./{token}"), format!("curl -H 'Authorization: {token}' https://x.example")]
    {
        call(&place, "Bash", &format!(r#"{{"command":"{line}"}}"#));
    }
    let found = Command::new("grep").args(["-r", &token]).arg(place.folder.join("state")).output().unwrap();
    assert_eq!(found.status.code(), Some(1), "{}", String::from_utf8_lossy(&found.stdout));
}
