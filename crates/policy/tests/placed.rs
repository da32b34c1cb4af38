//! A program that is named by its path, in a list of what may run: the rule names one file, wherever the line runs.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use writ_core::json::{self, Object, Value};
use writ_core::{Timestamp, ToolCall, ToolKind, Verdict};
use writ_policy::{Entry, Layer, Lexical, Policy, Resolved, Setting, Tally, World, judge, survey};

/// A folder in which `link.sh` leads to `rm`, and `link` to a folder elsewhere.
struct Linked;

impl World for Linked {
    fn resolve(&self, path: &str) -> Resolved {
        let path = Lexical.resolve(path).path;
        let path = match path.as_str() {
            "/w/link.sh" => "/usr/bin/rm".to_owned(),
            other => other.replacen("/w/link/", "/elsewhere/", 1),
        };
        Resolved { is_dir: !path.contains('.'), path }
    }

    fn list(&self, _dir: &str) -> Option<Vec<Entry>> {
        None
    }
}

/// The verdict, and what the refusal advises.
fn decided(rules: &[&str], line: &str) -> (Verdict, String) {
    let rules = Value::Array(rules.iter().map(|rule| Value::from(*rule)).collect());
    let policy = format!(r#"{{"version":"1.0","name":"p","tools":{{"allow":{}}}}}"#, json::compact(&rules));
    let policy = Policy::parse(policy.as_bytes(), "/w").unwrap();
    let setting = Setting { now: Timestamp::from_millis(0), home: None, protected: Vec::new() };
    let input = Value::Object(Object::from([("command", Value::from(line))]));
    let call = ToolCall::of("Bash", ToolKind::Shell { command: line.to_owned() }, input, "/w");
    let facts = survey(&policy, &call, &setting, &Linked);
    let decision = judge(&[Layer::own(&policy, &facts)], &setting, Tally::default());
    let again = json::from_slice(json::to_canonical(&facts).as_bytes()).unwrap();
    let again = judge(&[Layer::own(&policy, &again)], &setting, Tally::default());
    let told = [&decision, &again].map(|one| {
        let advice: String = one.reasons.iter().map(|reason| reason.instead.clone()).collect();
        (one.verdict, advice)
    });
    let [first, second] = told;
    assert_eq!(first, second, "{line}");
    first
}

#[test]
fn a_rule_names_one_file() {
    for (rule, line, allowed) in [
        ("Bash:./run.sh *", "./run.sh", true),
        ("Bash:./run.sh *", "./run.sh --fast", true),
        ("Bash:./run.sh *", "/w/run.sh --fast", true),
        ("Bash:./run.sh *", "./x/../run.sh", true),
        ("Bash:./run.sh", "./run.sh --fast", false),
        ("Bash:./run.sh *", "cd sub && ../run.sh", true),
        ("Bash:./run.sh *", "cd sub && ./run.sh", false),
        ("Bash:./run.sh *", "cd \"$X\" && ./run.sh", false),
        ("Bash:./run.sh *", "cd /tmp; ./run.sh", false),
        ("Bash:./run.sh *", "/tmp/run.sh", false),
        ("Bash:./run.sh *", "run.sh", false),
        ("Bash:run.sh *", "./run.sh", false),
        ("Bash:*run.sh", "./run.sh", false),
        ("Bash:target/debug/app *", "target/debug/app serve", true),
        ("Bash:./target/*", "target/debug/app serve", true),
        ("Bash:/opt/tool/x *", "/opt/tool/x a", true),
        ("Bash:/opt/tool/x *", "./x a", false),
        // A link goes by its name, and by what it leads to.
        ("Bash:./link.sh *", "./link.sh -rf .", true),
        ("Bash:./link/run.sh *", "./link/run.sh", true),
        ("Bash:./other.sh *", "./link.sh", false),
        ("Bash:/elsewhere/run.sh *", "./link/run.sh", true),
        ("Bash:ls *", "/usr/bin/ls -l", true),
    ] {
        let (verdict, advice) = decided(&[rule], line);
        assert_eq!(verdict == Verdict::Allow, allowed, "{rule}: {line}: {advice}");
    }
}

#[test]
fn what_a_refusal_advises_allows() {
    for line in ["./run.sh", "cd sub && ../gradlew test", "target/debug/app -v", "/opt/tool/x", "cd sub && ./x y"] {
        let (verdict, advice) = decided(&["Bash:ls *"], line);
        assert_eq!(verdict, Verdict::Deny, "{line}");
        let rule = advice.split('`').nth(1).unwrap_or_else(|| panic!("{line}: {advice}"));
        assert_eq!(decided(&[rule], line).0, Verdict::Allow, "{line}: {rule}");
    }
}
