//! An Agentfile as the policy of a session.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use writ_agentfile::{extending, is_agentfile, parse, policy};
use writ_core::json::{self, Value};
use writ_core::{Timestamp, ToolCall, Verdict};
use writ_policy::{Lexical, Policy, Setting, decide};

fn call(tool: &str, input: &str) -> ToolCall {
    ToolCall::new(tool.to_owned(), json::parse(input.as_bytes()).unwrap_or(Value::Null), "/repo".to_owned())
}

const TEXT: &str = "AGENT a\nAUDIT all\nTOOL utcp:file_read\nTOOL utcp:shell\nTOOL utcp:file_write\nTOOL mcp:github.get_issue\nURL https://api.example\n\
                    BIND ./ /workspace rw\nMOUNT /workspace rw\nALLOW invoke file_read\nALLOW invoke shell\nALLOW invoke mcp:github.get_issue\nTIMEOUT 60\n\
                    RATELIMIT shell 5/min\nPOLICY\npermit(principal, action == AgentRC::Action::\"tool.invoke\", resource == AgentRC::Tool::\"file_write\")\n  \
                    when { context.path like \"/workspace/src/*\" };\n\
                    forbid(principal, action == AgentRC::Action::\"filesystem.read\", resource in AgentRC::Path::\"/workspace/private\");\nEND\n";

fn verdict(tool: &str, input: &str) -> (Verdict, Vec<String>) {
    let policy = policy(TEXT.as_bytes(), "Agentfile", "/repo").unwrap();
    let decision = decide(
        &policy,
        &call(tool, input),
        &Setting { now: Timestamp::from_millis(0), home: None, protected: Vec::new() },
        &Lexical,
    );
    (
        decision.verdict,
        decision.reasons.into_iter().map(|reason| format!("{} {}", reason.rule, reason.message)).collect(),
    )
}

#[test]
fn what_is_declared_and_permitted_runs_and_nothing_else() {
    for (tool, input, expected) in [
        ("Read", r#"{"file_path":"/repo/src/a.rs"}"#, Verdict::Allow),
        ("Read", r#"{"file_path":"/repo/private/a"}"#, Verdict::Deny),
        ("Read", r#"{"file_path":"/etc/passwd"}"#, Verdict::Deny),
        ("Write", r#"{"file_path":"/repo/src/a.rs","content":"x"}"#, Verdict::Allow),
        ("Write", r#"{"file_path":"/repo/other/a.rs","content":"x"}"#, Verdict::Deny),
        ("Bash", r#"{"command":"ls src"}"#, Verdict::Allow),
        ("Bash", r#"{"command":"curl https://api.example/x"}"#, Verdict::Allow),
        ("Bash", r#"{"command":"curl https://evil.example/x"}"#, Verdict::Deny),
        ("mcp__github__get_issue", r#"{"n":1}"#, Verdict::Allow),
        ("mcp__github__delete_repo", r#"{"n":1}"#, Verdict::Deny),
        ("WebFetch", r#"{"url":"https://api.example"}"#, Verdict::Deny),
        ("TodoWrite", r#"{"todos":[]}"#, Verdict::Allow),
    ] {
        let (found, why) = verdict(tool, input);
        assert_eq!(found, expected, "{tool} {input}: {why:?}");
    }
}

#[test]
fn the_line_that_forbids_is_named() {
    let (_, why) = verdict("Read", r#"{"file_path":"/repo/private/a"}"#);
    assert!(why.iter().any(|why| why.starts_with("/Agentfile/18 ")), "{why:?}");
}

#[test]
fn what_hooks_do_not_enforce_is_listed() {
    let policy = policy(TEXT.as_bytes(), "Agentfile", "/repo").unwrap();
    assert_eq!(policy.not_enforced(), [] as [&str; 0]);
    assert_eq!((policy.limits().len(), policy.rates().len()), (1, 1));
    let text = format!("{TEXT}CRED t env:T host:api.example\nHEALTHCHECK CMD true\n");
    let policy = writ_agentfile::policy(text.as_bytes(), "Agentfile", "/repo").unwrap();
    assert_eq!(policy.not_enforced(), ["/Agentfile/20 (CRED)", "/Agentfile/21 (HEALTHCHECK)"]);
    // A run holds its secrets, or does not begin.
    let placed = writ_agentfile::placed::Placed { agentfile: text, run: true, ..Default::default() };
    let policy = writ_agentfile::policy(&placed.to_bytes(), "Agentfile", "/repo").unwrap();
    assert_eq!(policy.not_enforced(), [] as [&str; 0]);
    assert_eq!((policy.sandbox().secrets.bind.len(), policy.confine().is_some()), (1, true));
}

#[test]
fn an_agentfile_is_told_from_a_policy_and_errors_keep_their_places() {
    assert!(is_agentfile(TEXT.as_bytes()) && is_agentfile(b"# c\n\nAGENT a\n"));
    assert!(!is_agentfile(b"{\"version\":\"1.0\"}") && !is_agentfile(b"") && !is_agentfile(b"# AGENT\n"));
    let error = policy(b"AGENT a\nNOPE\n", "Agentfile", "/repo").unwrap_err();
    let first = error.problems().first().unwrap();
    assert_eq!((first.rule, first.line), ("unknown-directive", 2));
}

#[test]
fn a_policy_that_extends_it_is_one() {
    let (agent, _) = parse(TEXT.as_bytes(), "Agentfile");
    let text = extending(&agent, "a", "./Agentfile", false);
    let policy = Policy::parse(text.as_bytes(), "/repo").unwrap();
    assert_eq!(policy.references().len(), 1);
}
