//! Writ asks git about the work tree outside of any sandbox: neither settings nor programs that a confined call wrote are run for that.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
#[path = "workplace/lab.rs"]
mod lab;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::process::Command;
use std::time::Duration;

use lab::Lab;
use serde_json::json;

const COMMIT: &str = "git -c user.name=a -c user.email=a@example.invalid -c maintenance.auto=false commit -q -m one";

fn lab(name: &str, variables: &[(&str, &str)]) -> Lab {
    let policy = json!({"version": "1.0", "name": "own", "enforce": "calls", "claims": {"agents": ["main", "all"]}});
    Lab::new(name, &policy, variables)
}

/// Has Writ ask git: with the variables of the client.
fn subagent(lab: &Lab, event: &str) {
    use std::io::Write;
    let more =
        r#","agent_id":"a1","agent_type":"general-purpose","agent_transcript_path":"/none","stop_hook_active":false"#;
    let variables = lab.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let mut hook = lab.place.command(&["hook"]).envs(variables).spawn().unwrap();
    hook.stdin.take().unwrap().write_all(lab.place.payload(event, more).as_bytes()).unwrap();
    assert!(hook.wait_with_output().unwrap().status.success());
}

#[test]
fn a_git_of_the_work_tree_is_not_run() {
    let system = std::env::var("PATH").unwrap();
    let mut lab = lab("own-path", &[]);
    let path = format!("{}/.venv/bin:{system}", lab.repository().display());
    lab.variables = vec![("PATH".to_owned(), path.clone())];
    let made = format!("echo x > a && git add a && {COMMIT} && mkdir -p .venv/bin");
    let (code, said) = lab.run(&made);
    assert_eq!(code, Some(0), "{said}");
    let program = "#!/bin/sh\ntouch \"${0%/*}/ran\"\nexec /usr/bin/git \"$@\"\n";
    let (code, said) = lab.run(&format!("printf '%s' '{program}' > .venv/bin/git && chmod 755 .venv/bin/git"));
    assert_eq!(code, Some(0), "{said}");
    let ran = lab.repository().join(".venv/bin/ran");
    for event in ["SubagentStart", "SubagentStop", "UserPromptSubmit", "Stop"] {
        subagent(&lab, event);
        assert!(!ran.exists(), "{event}");
    }
    let git = Command::new("sh").args(["-c", "git status"]).current_dir(lab.repository()).env("PATH", path).output();
    assert!(git.is_ok() && ran.exists(), "the trap is one");
}

#[test]
fn settings_that_are_written_while_git_is_asked_run_nothing() {
    let lab = lab("own-filter", &[]);
    fs::remove_dir_all(lab.repository().join(".git")).unwrap();
    let ran = lab.repository().join("ran");
    let arm = format!(
        "git init -q && echo '* filter=e' > .gitattributes && echo x > a && git add a && {COMMIT} && \
         printf '[filter \"e\"]\\n\\tclean = touch {}; cat\\n' >> .git/config && sleep 0.1 && touch a armed",
        ran.display()
    );
    let (code, said) = lab.run(&format!("(sleep 0.5; {arm}) > /dev/null 2>&1 &"));
    assert_eq!(code, Some(0), "{said}");
    for _ in 0..200 {
        if lab.repository().join("armed").exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    subagent(&lab, "SubagentStart");
    assert!(!ran.exists() && lab.repository().join("armed").exists());
    let status = Command::new("git").args(["-c", "safe.directory=*", "status"]).current_dir(lab.repository()).output();
    assert!(status.is_ok() && ran.exists(), "the trap is one");
}
