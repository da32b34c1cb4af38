//! Any shell line gets a decision, and judging the recorded facts gives it again.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use writ_core::json::{Object, Value, from_slice, to_canonical};
use writ_core::{Timestamp, ToolCall};
use writ_policy::{Layer, Lexical, Policy, Setting, Tally, judge, survey};

const DOCUMENT: &str = r#"{
  "version": "1.0", "name": "fuzz",
  "tools": {"deny": ["Bash:sudo *", "Bash:rm -rf*"], "requireApproval": ["Bash:git push"]},
  "files": {"allow": ["src/**", "tests/**"], "deny": ["**/.env", "secrets/**"], "readOnly": ["*.lock"]},
  "domains": {"allow": ["github.com", "docs.*"], "deny": ["*"]}
}"#;

static POLICY: LazyLock<Policy> = LazyLock::new(|| Policy::parse(DOCUMENT.as_bytes(), "/work").expect("a good policy"));

fuzz_target!(|line: &str| {
    let mut input = Object::new();
    input.push("command", Value::from(line));
    let call = ToolCall::new("Bash", Value::from(input), "/work");
    let setting = Setting { now: Timestamp::from_millis(0), home: Some("/home/a".to_owned()), protected: Vec::new() };
    let facts = survey(&POLICY, &call, &setting, &Lexical);
    let live = judge(&[Layer::own(&POLICY, &facts)], &setting, Tally::default());
    let recorded = to_canonical(&facts);
    let replayed = judge(&[Layer::own(&POLICY, &from_slice(recorded.as_bytes()).expect("facts read back"))], &setting, Tally::default());
    assert_eq!(live.verdict, replayed.verdict);
});
