//! Lines that zsh reads otherwise: nobody is asked where the kernel holds all that hangs on the line; each with a twin that asks.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use writ_core::json::{self, Limits};
use writ_core::{Span, Timestamp, ToolCall, Verdict};
use writ_policy::{Held, Layer, Lexical, Policy, Setting, Tally, judge, survey};

fn decided(rules: &str, held: Held) -> Verdict {
    let policy = format!(r#"{{"version":"1.0","name":"x"{rules}}}"#);
    let policy = Policy::parse(policy.as_bytes(), "/w").unwrap();
    let input = json::parse_with(br#"{"command":"ls src"}"#, Limits::FOREIGN).unwrap();
    let call = ToolCall::new("Bash", input, "/w");
    let setting = Setting { now: Timestamp::from_millis(0), home: Some("/h".to_owned()), protected: Vec::new() };
    let facts = survey(&policy, &call, &setting, &Lexical);
    let facts = facts.with_other_shell("an array's element", Span { start: 0, end: 2 }).held(held);
    judge(&[Layer::own(&policy, &facts)], &setting, Tally::default()).verdict
}

#[test]
fn what_the_kernel_holds_needs_no_question() {
    let (nothing, files) = (Held::default(), Held { files: true, hosts: false });
    let all = Held { files: true, hosts: true };
    let domains = r#","domains":{"allow":["a.example"]}"#;
    for (rules, held) in [
        ("", files),
        (r#","files":{"deny":["**/.env"]}"#, files),
        (domains, all),
        (r#","tools":{"deny":["WebSearch"],"allow":["Bash"]}"#, files),
    ] {
        assert_eq!(decided(rules, held), Verdict::Allow, "{rules}");
        assert_eq!(decided(rules, nothing), Verdict::Ask, "{rules}");
    }
    assert_eq!(decided(domains, files), Verdict::Ask);
}

#[test]
fn what_hangs_on_the_line_alone_asks() {
    for rules in [
        r#","tools":{"deny":["Bash:rm *"]}"#,
        r#","tools":{"requireApproval":["Bash:git push *"]}"#,
        r#","consequences":{"ask":4}"#,
        r#","tokens":"ask""#,
        r#","grants":{"secrets":{"deny":["env:AWS_*"]}}"#,
    ] {
        assert_eq!(decided(rules, Held { files: true, hosts: true }), Verdict::Ask, "{rules}");
    }
}
