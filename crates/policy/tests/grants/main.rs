//! What `grants` decides about shell lines, fetches and tools of servers; each refusal with a twin that goes through.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

mod secrets;
mod web;

use writ_core::json::{self, Limits, Value};
use writ_core::{Decision, Timestamp, ToolCall, Verdict};
use writ_policy::{Layer, Lexical, Policy, Setting, Tally, judge, survey};

const ROOT: &str = "/w";

/// Decides live, and again from the record, which must agree.
fn decided(grants: &str, tool: &str, input: &str) -> Decision {
    let policy = format!(r#"{{"version":"1.0","name":"x","grants":{grants}}}"#);
    let policy = Policy::parse(policy.as_bytes(), ROOT).unwrap();
    let input: Value = json::parse_with(input.as_bytes(), Limits::FOREIGN).unwrap();
    let call = ToolCall::new(tool, input, ROOT);
    let setting = Setting { now: Timestamp::from_millis(0), home: Some("/h".to_owned()), protected: Vec::new() };
    let facts = survey(&policy, &call, &setting, &Lexical);
    let live = judge(&[Layer::own(&policy, &facts)], &setting, Tally::default());
    let again = json::from_slice(json::to_canonical(&facts).as_bytes()).unwrap();
    let again = judge(&[Layer::own(&policy, &again)], &setting, Tally::default());
    assert_eq!((live.verdict, live.reasons.len()), (again.verdict, again.reasons.len()), "{call:?}");
    live
}

fn line(grants: &str, line: &str) -> Verdict {
    decided(grants, "Bash", &json::to_canonical(&std::collections::BTreeMap::from([("command", line)]))).verdict
}

fn all(grants: &str, cases: &[(&str, Verdict)]) {
    for (text, expected) in cases {
        assert_eq!(line(grants, text), *expected, "{grants}: {text}");
    }
}

use Verdict::{Allow, Ask, Deny};

/// Rows hold neither a URL's path and query nor a value.
#[test]
fn facts_keep_no_more_than_a_rule_names() {
    let policy = r#"{"version":"1.0","name":"x","grants":{"apis":{"deny":["https://x.example/*"]}}}"#;
    let policy = Policy::parse(policy.as_bytes(), ROOT).unwrap();
    let input = json::parse_with(br#"{"command":"curl 'https://x.example/path?key=value'; echo $A"}"#, Limits::FOREIGN)
        .unwrap();
    let setting = Setting { now: Timestamp::from_millis(0), home: Some("/h".to_owned()), protected: Vec::new() };
    let facts = survey(&policy, &ToolCall::new("Bash", input, ROOT), &setting, &Lexical);
    let text = json::to_canonical(&facts);
    assert!(
        text.contains(r#""name":"https://x.example""#) && !text.contains("path?") && !text.contains("value"),
        "{text}"
    );
}

#[test]
fn what_can_match_nothing_is_not_enforced() {
    let idle = |grants: &str| {
        let text = format!(r#"{{"version":"1.0","name":"x","grants":{grants}}}"#);
        Policy::parse(text.as_bytes(), ROOT).unwrap().not_enforced()
    };
    assert_eq!(
        idle(r#"{"secrets":{"deny":["AWS_KEY","env:X"]},"storage":{"deny":["bucket"]}}"#),
        ["/grants/secrets/deny/0", "/grants/storage/deny/0"]
    );
    let none = |kind: &str, entry: &str| idle(&format!(r#"{{"{kind}":{{"deny":["{entry}"]}}}}"#)).len() == 1;
    for entry in [
        "ftp://x.example/*",
        "https://u@x.example/a",
        "https://x.example/a#b",
        "https://x.example/a?b=c",
        "x.example?b=*",
        "https://x.example:port/a",
        "https://..x/a",
        "https:///a",
        "https:/x.example/a",
        "https://*.bü*.example/",
        "https://a%2eb/",
    ] {
        assert!(none("apis", entry), "{entry}");
    }
    for entry in ["https://x.example/a", "file:///a", "arn:aws:s3:::prod/*", "s3://u@prod/x", "gs://prod:80/x"] {
        assert!(none("storage", entry), "{entry}");
    }
    for entry in [
        "env:$X",
        "env:A B",
        "env:A=b",
        "env:",
        "vault:",
        "vault:https://v/x",
        "vault:a/b#c",
        "vault:a/b?version=1",
        "file:$HOME/.x",
        "op://a/b",
    ] {
        assert!(none("secrets", entry), "{entry}");
    }
    for (kind, entry) in [
        ("apis", "wss://x.example/*"),
        ("apis", "https://x.example/v?/b"),
        ("apis", "https://[a-c].example/*"),
        ("apis", "https://*"),
        ("apis", "*"),
        ("storage", "https://b.s3.amazonaws.com/*"),
        ("storage", "https://*/a"),
        ("storage", "s3://b/a#b"),
        ("secrets", "env:*"),
        ("secrets", "{env:A,vault:b}"),
        ("secrets", "file:~/a$"),
    ] {
        assert!(!none(kind, entry), "{entry}");
    }
    assert_eq!(
        idle(r#"{"secrets":{"deny":["env:X"],"allow":["vault:a/*"]},"apis":{"deny":["x.example"]}}"#),
        [] as [&str; 0]
    );
}
