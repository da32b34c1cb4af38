//! Several policies on one call: a layer can only tighten, and limits refuse what comes after the last.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use writ_core::json::{self, Limits, Value};
use writ_core::{Timestamp, ToolCall, Verdict};
use writ_policy::{Claims, Enforce, Facts, Layer, Lexical, Policy, Setting, Tally, judge, survey};

const ROOT: &str = "/work/repo";
const VECTORS: &str = include_str!("../../../vectors/decisions.jsonl");

fn setting() -> Setting {
    Setting { now: Timestamp::from_millis(0), home: None, protected: Vec::new() }
}

/// Policy and call of each vector.
fn cases() -> Vec<(Policy, ToolCall)> {
    let case = |line: &str| {
        let case = json::parse_with(line.as_bytes(), Limits::FOREIGN).unwrap();
        let policy = Policy::parse(json::compact(case.get("policy").unwrap()).as_bytes(), ROOT).unwrap();
        let call = case.get("call").unwrap();
        let input = call.get("input").cloned().unwrap_or(Value::Null);
        (policy, ToolCall::new(call.get("tool").and_then(Value::as_str).unwrap(), input, ROOT))
    };
    VECTORS.lines().step_by(3).map(case).collect()
}

fn facts(policy: &Policy, call: &ToolCall) -> Facts {
    survey(policy, call, &setting(), &Lexical)
}

#[test]
fn two_layers_are_as_strict_as_the_stricter_of_them() {
    let cases = cases();
    let mut stricter = 0;
    let pairs = (0..cases.len()).flat_map(|at| [7, 401, 997].map(|far| (at, (at + far) % cases.len())));
    for (own, other) in pairs {
        let ((own, call), (other, _)) = (&cases[own], &cases[other]);
        let (here, there) = (facts(own, call), facts(other, call));
        let alone = |policy, facts| judge(&[Layer::own(policy, facts)], &setting(), Tally::default());
        let (first, second) = (alone(own, &here), alone(other, &there));
        let both = [Layer::own(own, &here), Layer::named("second", other, &there)];
        let both = judge(&both, &setting(), Tally::default());
        assert_eq!(both.verdict, first.verdict.max(second.verdict), "{call:?}");
        stricter += usize::from(both.verdict > first.verdict);
        let allows = both.reasons.iter().any(|reason| reason.verdict == Verdict::Allow);
        assert!(!allows || (!first.reasons.is_empty() && !second.reasons.is_empty()), "{call:?}");
        let named = both.reasons.iter().filter(|reason| reason.rule.starts_with("second:/")).count();
        assert!(named <= second.reasons.len() && (named > 0 || second.verdict <= first.verdict || own_rules(&second)));
    }
    assert!(stricter > 100, "{stricter} pairs say something");
}

/// Whether the strictest reason is a rule of Writ's own, which no layer owns.
fn own_rules(decision: &writ_core::Decision) -> bool {
    decision.reasons.first().is_some_and(|reason| reason.rule.starts_with("writ:"))
}

#[test]
fn without_a_layer_nothing_is_allowed() {
    assert_eq!(judge(&[], &setting(), Tally::default()).verdict, Verdict::Deny);
}

#[test]
fn claims_of_layers_are_as_strict_as_the_strictest() {
    let claims = |more: &str| {
        let text = format!(r#"{{"version":"1.0","name":"c","claims":{{{more}}}}}"#);
        Policy::parse(text.as_bytes(), ROOT).unwrap().claims().clone()
    };
    let strictest = |layers: &[&str]| {
        let layers: Vec<Claims> = layers.iter().map(|layer| claims(layer)).collect();
        Claims::strictest(&layers)
    };
    let one = strictest(&[r#""enforce":true,"agents":["main"],"maxRetries":2"#]);
    assert_eq!(one, claims(r#""enforce":true,"agents":["main"],"maxRetries":2"#));
    let both = strictest(&[r#""enforce":true,"agents":["main"]"#, r#""enforce":true,"maxRetries":3,"tests":true"#]);
    assert_eq!(both, claims(r#""enforce":true,"agents":["all","main"],"maxRetries":3,"tests":true"#));
    let loose = strictest(&[r#""agents":["main"]"#, r#""enforce":true,"agents":["Plan"]"#, ""]);
    assert_eq!(
        loose,
        claims(r#""enforce":true,"agents":["Plan"]"#),
        "who does not enforce adds no agents, and frees none"
    );
    assert_eq!(Claims::strictest(&[]), Claims::default());
}

#[test]
fn decisions_are_only_observed_where_all_layers_only_observe() {
    use Enforce::{Decide, Observe};
    for (modes, expected) in
        [(vec![Observe], Observe), (vec![Observe, Observe], Observe), (vec![Observe, Decide], Decide), (vec![], Decide)]
    {
        assert_eq!(Enforce::strictest(modes.clone()), expected, "{modes:?}");
    }
}

#[test]
fn limits_that_fail_fast_refuse_what_comes_after_the_last() {
    let call = ToolCall::new("Bash", json::parse(br#"{"command":"ls"}"#).unwrap(), ROOT);
    let verdict = |limits: &str, calls, turns| {
        let text = format!(r#"{{"version":"1.0","name":"l","limits":{limits}}}"#);
        let policy = Policy::parse(text.as_bytes(), ROOT).unwrap();
        let facts = facts(&policy, &call);
        judge(&[Layer::own(&policy, &facts)], &setting(), Tally { calls, turns }).verdict
    };
    for (limits, calls, turns, expected) in [
        (r#"{"maxToolCalls":{"value":3}}"#, 2, 9, Verdict::Allow),
        (r#"{"maxToolCalls":{"value":3}}"#, 3, 0, Verdict::Deny),
        (r#"{"maxToolCalls":{"value":0,"enforcement":"fail-fast"}}"#, 0, 0, Verdict::Deny),
        (r#"{"maxToolCalls":{"value":3,"enforcement":"post-hoc"}}"#, 9, 9, Verdict::Allow),
        (r#"{"maxToolCalls":3}"#, 9, 9, Verdict::Allow),
        (r#"{"maxTurns":{"value":2}}"#, 9, 2, Verdict::Allow),
        (r#"{"maxTurns":{"value":2}}"#, 0, 3, Verdict::Deny),
    ] {
        assert_eq!(verdict(limits, calls, turns), expected, "{limits} {calls} {turns}");
    }
}
