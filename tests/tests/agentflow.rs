//! Runs of a workflow: begun under a policy, verified as a whole, checked before a push.

#[cfg(test)]
#[expect(dead_code, reason = "these sessions start in their own ways")]
mod workplace;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use workplace::{SESSION, Workplace};

fn policy(place: &Workplace, text: &str) -> PathBuf {
    let file = place.folder.join("repository/.aflock");
    fs::write(&file, text).unwrap();
    file
}

const PLAIN: &str =
    r#"{"version":"1.0","name":"x","files":{"deny":["**/.env"]},"limits":{"maxToolCalls":{"value":9}}}"#;

/// A whole session with a call, by its id.
fn session(place: &Workplace, id: &str) {
    let payload = |event: &str, members: &str| {
        place.payload(event, members).replace(&format!("\"{SESSION}\""), &format!("\"{id}\""))
    };
    place.answer(&payload("SessionStart", r#","source":"startup""#));
    place.answer(&payload("UserPromptSubmit", r#","prompt":"write""#));
    place.answer(&payload("PreToolUse", r#","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"one""#));
    place.answer(&payload("Stop", r#","stop_hook_active":false"#));
}

fn said(place: &Workplace, args: &[&str]) -> (i32, String) {
    let output = place.writ(args);
    (output.status.code().unwrap(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

fn verify(place: &Workplace, args: &[&str]) -> (i32, String) {
    said(place, &[&["agentflow", "verify"], args].concat())
}

fn start(place: &Workplace) -> String {
    let (code, id) = said(place, &["agentflow", "start", "--format", "id"]);
    assert_eq!(code, 0, "{id}");
    id.trim().to_owned()
}

#[test]
fn a_run_is_all_of_its_sessions_under_its_policy() {
    let place = Workplace::new("agentflow");
    policy(&place, PLAIN);
    assert_eq!(verify(&place, &[]).0, 0, "no agent has worked here");
    session(&place, "before");
    let (code, text) = said(&place, &["agentflow", "start", "--policy", ".aflock"]);
    assert!(code == 0 && text.contains("maxToolCalls 9 tool calls (fail-fast)") && text.contains("sessions"), "{text}");
    let run = start(&place);
    let (code, text) = verify(&place, &["--run-id", &run]);
    assert!(code == 3 && text.contains("no session of this run"), "{text}");
    session(&place, "one");
    session(&place, "two");
    let (code, text) = verify(&place, &["--run-id", &run, "--policy", ".aflock"]);
    assert!(
        code == 0 && text.contains("session one  verified") && text.contains("PASS") && !text.contains("before"),
        "{text}"
    );
    // The environment names it too; without a name it is the last one.
    let mut command = place.command(&["agentflow", "verify", "--format", "json"]);
    let output = command.env("CURRENT_RUN", &run).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["pass"], report["sessions"].as_array().unwrap().len()), (&Value::Bool(true), 2));
    assert_eq!(verify(&place, &[]).0, 0);
    assert_eq!(verify(&place, &["--run-id", "before"]).0, 0, "a session's id is that session");
    assert_eq!(verify(&place, &["--run-id", "nobody"]).0, 1);
    // One that is broken fails the whole; so does one that is gone.
    let ledger = place.folder.join("state/sessions/one/ledger.jsonl");
    let text = fs::read_to_string(&ledger).unwrap();
    fs::write(&ledger, text.replacen("APPROVED", "DENIED", 1)).unwrap();
    let (code, told) = verify(&place, &["--run-id", &run]);
    assert!(
        code == 3 && told.contains("session one  NOT VERIFIED: broken") && told.contains("session two  verified"),
        "{told}"
    );
    fs::remove_dir_all(place.folder.join("state/sessions/one")).unwrap();
    let (code, told) = verify(&place, &["--run-id", &run]);
    assert!(code == 3 && told.contains("the record of session one is gone"), "{told}");
    assert_eq!(verify(&place, &["--run-id", "two"]).0, 0);
}

#[test]
fn another_policy_than_the_runs_fails() {
    let place = Workplace::new("agentflow-policy");
    let file = policy(&place, PLAIN);
    let run = start(&place);
    session(&place, "one");
    fs::write(place.folder.join("repository/other.aflock"), PLAIN.replace("\"x\"", "\"y\"")).unwrap();
    let (code, text) = verify(&place, &["--run-id", &run, "--policy", "other.aflock"]);
    assert!(code == 3 && text.contains("is not the policy that the run began under"), "{text}");
    assert!(text.contains("another policy governed it"), "{text}");
    fs::remove_file(file).unwrap();
    assert_eq!(verify(&place, &["--run-id", &run]).0, 0, "a run has its policy's digest");
}

/// What the policy leads to is part of it.
#[test]
fn a_layer_that_changed_since_the_run_began_fails() {
    let place = Workplace::new("agentflow-layer");
    policy(&place, r#"{"version":"1.0","name":"x","extends":"./parent.aflock"}"#);
    let parent = place.folder.join("repository/parent.aflock");
    fs::write(&parent, r#"{"version":"1.0","name":"p","tools":{"deny":["Bash:rm *"]}}"#).unwrap();
    let run = start(&place);
    session(&place, "one");
    assert_eq!(verify(&place, &["--run-id", &run]).0, 0);
    fs::write(&parent, r#"{"version":"1.0","name":"p"}"#).unwrap();
    session(&place, "two");
    let (code, text) = verify(&place, &["--run-id", &run]);
    assert!(code == 3 && text.contains("another policy governed it"), "{text}");
}

/// Where its files lie is no part of a policy: a session in a linked work tree, or reached through a symlink, has the same.
#[test]
fn a_layer_is_the_same_by_every_path() {
    let place = Workplace::new("agentflow-paths");
    policy(&place, r#"{"version":"1.0","name":"x","extends":"./parent.aflock"}"#);
    let repository = place.folder.join("repository");
    fs::write(repository.join("parent.aflock"), r#"{"version":"1.0","name":"p"}"#).unwrap();
    let git = |args: &[&str]| {
        let own = ["-c", "user.name=x", "-c", "user.email=x@x.example"];
        let output = Command::new("git").args(own).args(args).current_dir(&repository).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    if !repository.join(".git/HEAD").exists() {
        git(&["init", "--quiet"]);
    }
    git(&["add", "-A"]);
    git(&["commit", "--quiet", "--no-verify", "-m", "policy"]);
    git(&["worktree", "add", "--quiet", "../linked"]);
    symlink("repository", place.folder.join("link")).unwrap();
    let run = start(&place);
    for (id, folder) in [("one", "linked"), ("two", "link"), ("three", "repository")] {
        for (event, members) in [
            ("SessionStart", r#","source":"startup""#),
            ("UserPromptSubmit", r#","prompt":"go""#),
            ("PreToolUse", r#","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"one""#),
            ("Stop", r#","stop_hook_active":false"#),
        ] {
            let payload = place.payload(event, members).replace(&format!("\"{SESSION}\""), &format!("\"{id}\""));
            place.answer(&payload.replace("/repository\",\"permission", &format!("/{folder}\",\"permission")));
        }
    }
    let (code, text) = verify(&place, &["--run-id", &run]);
    assert!(code == 0 && text.matches('✓').count() >= 3, "{text}");
}

/// A session of before that only ends while the run goes on is none of its work.
#[test]
fn what_only_ends_is_no_part_of_a_run() {
    let place = Workplace::new("agentflow-ends");
    policy(&place, r#"{"version":"1.0","name":"old"}"#);
    session(&place, "old");
    policy(&place, PLAIN);
    let run = start(&place);
    session(&place, "one");
    let end = place.payload("SessionEnd", r#","reason":"other""#);
    place.answer(&end.replace(&format!("\"{SESSION}\""), "\"old\""));
    let (code, text) = verify(&place, &["--run-id", &run]);
    assert!(!text.contains("another policy governed it") && code == 0, "{text}");
}

/// What is on record and does not speak for everything fails unless that is allowed.
#[test]
fn exceptions_fail_unless_they_are_allowed() {
    let place = Workplace::new("agentflow-absent");
    policy(&place, &PLAIN.replace("\"limits\"", r#""evaluators":{"ai":[{"name":"q","prompt":"PASS if"}]},"limits""#));
    let run = start(&place);
    session(&place, "one");
    let (code, text) = verify(&place, &["--run-id", &run]);
    assert!(code == 3 && text.contains("were not asked"), "{text}");
    assert_eq!(verify(&place, &["--run-id", &run, "--allow-absent"]).0, 0);
}

#[test]
fn git_verifies_before_a_push() {
    let place = Workplace::new("agentflow-push");
    policy(&place, PLAIN);
    let repository = place.folder.join("repository");
    let hook = repository.join(".git/hooks/pre-push");
    let init = |args: &[&str]| {
        let mut command = place.command(&[&["init", "--client-version", "2.1.329"], args].concat());
        let output = command.env("PATH", "/usr/bin:/bin").output().unwrap();
        (output.status.code().unwrap(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\nexit 0\n").unwrap();
    let (code, text) = init(&["--pre-push"]);
    assert!(code == 1 && text.contains("another's hook") && text.contains("agentflow verify || exit 1"), "{text}");
    fs::remove_file(&hook).unwrap();
    let (code, text) = init(&["--pre-push"]);
    assert!(code == 0 && hook.exists(), "{text}");
    assert_eq!(init(&["--pre-push"]).0, 0, "once more changes nothing");
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@x.example"]).args(args).current_dir(&repository);
        command.env("HOME", &place.folder).env("WRIT_STATE_DIR", place.folder.join("state")).env_remove("CURRENT_RUN");
        command.output().unwrap()
    };
    assert!(git(&["init", "--quiet", "--bare", "../remote.git"]).status.success());
    assert!(git(&["commit", "--quiet", "--allow-empty", "-m", "x"]).status.success());
    session(&place, "one");
    assert!(git(&["push", "--quiet", "../remote.git", "HEAD:refs/heads/a"]).status.success());
    let ledger = place.folder.join("state/sessions/one/ledger.jsonl");
    let text = fs::read_to_string(&ledger).unwrap();
    fs::write(&ledger, text.replacen("APPROVED", "DENIED", 1)).unwrap();
    let refused = git(&["push", "--quiet", "../remote.git", "HEAD:refs/heads/b"]);
    assert!(!refused.status.success(), "{}", String::from_utf8_lossy(&refused.stderr));
    // From a linked work tree, through a link, and from elsewhere: it is the same repository.
    assert!(git(&["worktree", "add", "--quiet", "../linked"]).status.success());
    symlink(&repository, place.folder.join("link")).unwrap();
    let push = ["push", "--quiet", "../remote.git", "HEAD:refs/heads/b"];
    let elsewhere = ["-C", "../state", "--git-dir", "../repository/.git", "--work-tree", "../repository"];
    for from in [&["-C", "../linked"][..], &["-C", "../link"], &elsewhere] {
        let refused = git(&[from, &push].concat());
        let text = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && text.contains("failed to push"), "{from:?}: {text}");
    }
    let (code, text) = init(&["--undo"]);
    assert!(code == 0 && !hook.exists(), "{text}");
    assert!(git(&["push", "--quiet", "../remote.git", "HEAD:refs/heads/b"]).status.success());
}
