//! A rule's canonical name holds for every client's tool of that kind, whatever the client calls it; the tool's own name holds too.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use writ_core::json::{self, Value};
use writ_core::{Search, Timestamp, ToolCall, ToolKind, Verdict};
use writ_policy::{Entry, Layer, Lexical, Policy, Resolved, Setting, Tally, World, judge, survey};

/// A folder `/w/e` with one file.
struct OneFile;

impl World for OneFile {
    fn resolve(&self, path: &str) -> Resolved {
        let path = Lexical.resolve(path).path;
        Resolved { is_dir: path == "/w" || path == "/w/e", path }
    }

    fn list(&self, dir: &str) -> Option<Vec<Entry>> {
        let entry = |name: &str, is_dir| vec![Entry { name: name.to_owned(), is_dir, is_link: false }];
        match dir.trim_end_matches('/') {
            "/w" => Some(entry("e", true)),
            "/w/e" => Some(entry("x", false)),
            _ => None,
        }
    }
}

fn decided(policy: &str, tool: &str, kind: ToolKind, input: &str) -> Verdict {
    let policy = Policy::parse(policy.as_bytes(), "/w").unwrap();
    let setting = Setting { now: Timestamp::from_millis(0), home: None, protected: Vec::new() };
    let input: Value = json::parse(input.as_bytes()).unwrap();
    let call = ToolCall::of(tool, kind, input, "/w");
    let facts = survey(&policy, &call, &setting, &OneFile);
    let verdict = judge(&[Layer::own(&policy, &facts)], &setting, Tally::default()).verdict;
    let kept = json::to_canonical(&facts);
    assert!(!kept.to_lowercase().contains("a1b2a1b2"), "a token is on record: {kept}");
    let again = json::from_slice(kept.as_bytes()).unwrap();
    assert_eq!(judge(&[Layer::own(&policy, &again)], &setting, Tally::default()).verdict, verdict, "{tool}");
    verdict
}

fn paths(path: &str) -> Vec<String> {
    vec![path.to_owned()]
}

fn names(pattern: &str) -> ToolKind {
    ToolKind::Search(Search::Names { path: None, others: Vec::new(), pattern: pattern.to_owned() })
}

fn contents() -> ToolKind {
    ToolKind::Search(Search::Contents { path: None, others: Vec::new(), glob: None, file_type: None })
}

fn mcp(server: &str, tool: &str) -> ToolKind {
    ToolKind::Mcp { server: server.to_owned(), tool: tool.to_owned() }
}

/// Each rule, with a deed it forbids and one it does not.
fn cases() -> Vec<(&'static str, ToolKind, ToolKind)> {
    let write = |path: &str| ToolKind::Write { paths: paths(path) };
    let edit = |path: &str| ToolKind::edit(paths(path));
    let read = |path: &str| ToolKind::Read { paths: paths(path) };
    let fetch = |url: &str| ToolKind::Fetch { url: url.to_owned() };
    let shell = |line: &str| ToolKind::Shell { command: line.to_owned() };
    let delegate = |kind: &str| ToolKind::Delegate { subagent: kind.to_owned() };
    vec![
        ("Edit:e/**", write("e/x"), write("e/new")),
        ("Edit:e/**", edit("e/x"), edit("f")),
        ("Edit:e/**", shell("sed -i s/a/b/ e/x"), edit("f")),
        ("Write:e/**", write("e/x"), edit("e/x")),
        ("Write", write("e/x"), edit("e/x")),
        ("W*", write("e/x"), edit("e/x")),
        ("Edit", edit("e/x"), write("e/x")),
        ("Read:e/**", read("e/x"), read("f")),
        ("Read", read("e/x"), ToolKind::Search(Search::Folder { path: None, others: Vec::new() })),
        ("Glob:e/*", names("e/*"), names("f/*")),
        ("Glob", names("*"), contents()),
        ("Grep", contents(), names("*")),
        ("LS", ToolKind::Search(Search::Folder { path: None, others: Vec::new() }), contents()),
        ("Bash:git push", shell("git push"), shell("git status")),
        ("WebFetch:domain:a.example", fetch("https://a.example/x"), fetch("https://b.example")),
        ("WebSearch", ToolKind::WebSearch, ToolKind::Own),
        ("Task:evil", delegate("evil"), delegate("good")),
        ("mcp__gh__del*", mcp("gh", "delete_repo"), mcp("gh", "list")),
        ("mcp__gh", mcp("gh", "list"), mcp("x", "gh")),
    ]
}

#[test]
fn a_rule_holds_whatever_the_tool_is_called() {
    for (rule, meant, other) in cases() {
        for (list, expected) in [("deny", Verdict::Deny), ("requireApproval", Verdict::Ask)] {
            let policy = format!(r#"{{"version":"1.0","name":"k","tools":{{"{list}":["{rule}"]}}}}"#);
            for tool in ["zz", "NotebookRead", "TodoWrite", "Skill", "mcp__x__y", "NotebookEdit", "LSP"] {
                assert_eq!(decided(&policy, tool, meant.clone(), "{}"), expected, "{list} {rule}: {tool} {meant:?}");
                assert_eq!(
                    decided(&policy, tool, other.clone(), "{}"),
                    Verdict::Allow,
                    "{list} {rule}: {tool} {other:?}"
                );
            }
        }
    }
}

/// Also where the own name is a canonical one, of the same kind with other members or of another kind.
#[test]
fn a_canonical_own_name_hides_nothing() {
    for (rule, meant, _) in cases() {
        let policy = format!(r#"{{"version":"1.0","name":"k","tools":{{"deny":["{rule}"]}}}}"#);
        for tool in
            ["LS", "Grep", "Glob", "Read", "Write", "Edit", "MultiEdit", "Bash", "WebFetch", "Agent", "mcp__a__b"]
        {
            assert_eq!(decided(&policy, tool, meant.clone(), "{}"), Verdict::Deny, "{rule}: {tool} {meant:?}");
        }
    }
    // The own name holds, too.
    let policy = r#"{"version":"1.0","name":"k","tools":{"deny":["LS","mcp__a__b"]}}"#;
    assert_eq!(decided(policy, "LS", names("*"), "{}"), Verdict::Deny);
    assert_eq!(decided(policy, "mcp__a__b", mcp("gh", "list"), "{}"), Verdict::Deny);
}

/// A tool of which nothing is known may write what its input names as its path.
#[test]
fn an_unknown_tool_may_change_what_it_names() {
    let policy = r#"{"version":"1.0","name":"k","tools":{"deny":["Edit:e/**"]}}"#;
    assert_eq!(decided(policy, "zz", ToolKind::Other, r#"{"file_path":"e/x"}"#), Verdict::Deny);
    assert_eq!(decided(policy, "zz", ToolKind::Other, r#"{"file_path":"f"}"#), Verdict::Allow);
    let notebook = ToolCall::new("NotebookEdit", json::parse(br#"{"notebook_path":"e/x"}"#).unwrap(), "/w").kind;
    assert_eq!(decided(policy, "NotebookEdit", notebook, r#"{"notebook_path":"e/x"}"#), Verdict::Deny);
}

/// `tokens` looks at all that a call says of itself; what stays on the machine is left alone, and the record holds none.
#[test]
fn a_token_is_seen_wherever_it_stands() {
    let token = "ghp_".to_owned() + &"a1B2".repeat(9);
    let policy = r#"{"version":"1.0","name":"k","tokens":"deny"}"#;
    let shell = |line: String| ToolKind::Shell { command: line };
    let with = |kind: ToolKind, input: &str| (kind, input.replace("TOKEN", &token));
    let plain = || ToolKind::Fetch { url: "https://x.example".to_owned() };
    let shown = [
        with(shell(format!("echo {token}")), "{}"),
        with(ToolKind::Fetch { url: format!("https://x.example/?t={token}") }, "{}"),
        with(ToolKind::Fetch { url: format!("https://{token}.example/") }, "{}"),
        with(mcp(&token, "t"), "{}"),
        with(mcp("s", "t"), r#"{"a":[{"TOKEN":1}]}"#),
        with(plain(), r#"{"prompt":"TOKEN"}"#),
        with(ToolKind::Other, r#"{"a":"TOKEN"}"#),
    ];
    for (kind, input) in shown {
        for tool in ["zz", "TodoWrite", "Read", "Write"] {
            assert_eq!(decided(policy, tool, kind.clone(), &input), Verdict::Deny, "{tool} {kind:?} {input}");
        }
    }
    for (kind, input) in [
        with(ToolKind::Write { paths: paths("a") }, r#"{"content":"TOKEN"}"#),
        with(ToolKind::Delegate { subagent: "x".to_owned() }, r#"{"prompt":"TOKEN"}"#),
        with(plain(), "{}"),
        with(shell("echo hello".to_owned()), "{}"),
    ] {
        assert_eq!(decided(policy, "zz", kind.clone(), &input), Verdict::Allow, "{kind:?} {input}");
    }
    let any = r#"{"version":"1.0","name":"k"}"#;
    assert_eq!(decided(any, "zz", mcp(&token, "t"), "{}"), Verdict::Deny, "no rule could name it on record");
}
