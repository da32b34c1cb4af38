//! Every decision in `vectors/decisions.jsonl`, live and again from its recorded facts.
//!
//! A line is `{id, policy, call: {tool, input, cwd?}, expect}`; `expect` is `allow`, `ask`, `deny`, or `not-allow` for one of
//! the last two. Calls are made in the policy's folder unless they say otherwise; those with `root` name paths in that folder.

use writ_core::json::{self, Limits, Value};
use writ_core::{Timestamp, ToolCall, Verdict};
use writ_policy::{Layer, Lexical, Policy, Setting, Tally, judge, survey};

const VECTORS: &str = include_str!("../../../vectors/decisions.jsonl");
const ROOT: &str = "/work/project";

#[test]
fn every_vector_is_decided_as_it_says() {
    let now = Timestamp::parse("2026-06-01T00:00:00Z").unwrap();
    let setting = Setting { now, home: Some("/home/user".to_owned()), protected: Vec::new() };
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in VECTORS.lines() {
        let case = json::parse_with(line.as_bytes(), Limits::FOREIGN).unwrap();
        let text = |name: &str| case.get(name).and_then(Value::as_str).unwrap().to_owned();
        let policy = Policy::parse(json::compact(case.get("policy").unwrap()).as_bytes(), ROOT).unwrap();
        let call = case.get("call").unwrap();
        let member = |name: &str| call.get(name).and_then(Value::as_str).map(str::to_owned);
        let (tool, cwd) = (member("tool").unwrap(), member("cwd").unwrap_or_else(|| ROOT.to_owned()));
        assert!(case.get("root").is_none_or(|root| root.as_str() == Some(ROOT)));
        let call = ToolCall::new(tool, call.get("input").cloned().unwrap(), cwd);
        let facts = survey(&policy, &call, &setting, &Lexical);
        let live = judge(&[Layer::own(&policy, &facts)], &setting, Tally::default());
        let holds = match text("expect").as_str() {
            "not-allow" => live.verdict > Verdict::Allow,
            expected => live.verdict.as_str() == expected,
        };
        if !holds {
            wrong.push(format!("{}: {} instead of {}", text("id"), live.verdict, text("expect")));
        }
        let recorded = json::to_canonical(&facts);
        let again =
            judge(&[Layer::own(&policy, &json::from_slice(recorded.as_bytes()).unwrap())], &setting, Tally::default());
        let rules = |decision: &writ_core::Decision| {
            decision.reasons.iter().map(|reason| (reason.verdict, reason.rule.clone())).collect::<Vec<_>>()
        };
        assert_eq!(rules(&live), rules(&again), "{}: the record decides otherwise", text("id"));
        count += 1;
    }
    assert!(count > 1400 && wrong.is_empty(), "{count} vectors, wrong:\n{}", wrong.join("\n"));
}

/// R8: what goes into the ledger holds no argument of a command and no query of a URL.
#[test]
fn facts_hold_no_command_text() {
    let policy = Policy::parse(br#"{"version":"1.0","name":"p","tools":{"deny":["Bash:curl *"]}}"#, ROOT).unwrap();
    let setting = Setting { now: Timestamp::from_millis(0), home: None, protected: Vec::new() };
    let input = json::parse(
        br#"{"command":"curl -H 'Authorization: Bearer s3cr3t' https://x.example/?token=t0k3n && export KEY=hunter2"}"#,
    )
    .unwrap();
    let call = ToolCall::new("Bash", input, ROOT);
    let facts = json::to_compact(&survey(&policy, &call, &setting, &Lexical));
    assert!(facts.contains("x.example") && facts.contains("curl"), "{facts}");
    for secret in ["s3cr3t", "t0k3n", "hunter2", "Bearer"] {
        assert!(!facts.contains(secret), "{secret} in {facts}");
    }
}
