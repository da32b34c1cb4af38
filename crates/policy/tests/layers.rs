//! Several policies on one call: a layer can only tighten, and limits refuse what comes after the last.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use writ_core::Money;
use writ_core::json::{self, Limits, Value};
use writ_core::{Timestamp, ToolCall, Verdict};
use writ_policy::{
    Action, Claims, Enforce, Facts, Layer, Lexical, Own, Policy, Raised, Refused, Setting, Tally, Usage, judge, near,
    refusals, survey,
};

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
        judge(&[Layer::own(&policy, &facts)], &setting(), Tally { calls, turns, ..Tally::default() }).verdict
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

/// Whether a policy with these limits lets each of call, prompt and request happen.
fn lets(limits: &str, tally: Tally<'_>) -> [bool; 3] {
    let text = format!(r#"{{"version":"1.0","name":"l","limits":{limits}}}"#);
    let policy = Policy::parse(text.as_bytes(), ROOT).unwrap();
    [Action::Call, Action::Prompt, Action::Request].map(|action| refusals(&policy, tally, action).is_empty())
}

#[test]
fn what_is_used_up_refuses_calls_prompts_and_requests() {
    let none = Tally::default();
    let usage = |tokens_in, tokens_out, micros| Usage {
        tokens_in,
        tokens_out,
        spend: Money::from_micros(micros),
        ..Usage::default()
    };
    for (limits, under, at) in [
        (r#"{"maxSpendUSD":0.5}"#, usage(9, 9, 499_999), usage(0, 0, 500_000)),
        (r#"{"maxTokensIn":100}"#, usage(99, 900, 9), usage(100, 0, 0)),
        (r#"{"maxTokensOut":{"value":100}}"#, usage(900, 99, 9), usage(0, 100, 0)),
    ] {
        assert_eq!(lets(limits, Tally { usage: Some(&under), ..none }), [true; 3], "{limits}");
        assert_eq!(lets(limits, Tally { usage: Some(&at), ..none }), [false; 3], "{limits}");
        assert_eq!(lets(limits, none), [true; 3], "{limits}");
    }
    // A bare number of these waits for the end (R73), and so does a word that says so.
    let all = usage(1 << 40, 1 << 40, 1 << 40);
    let used = Tally { calls: 99, turns: 99, millis: 1 << 40, usage: Some(&all), ..none };
    assert_eq!(lets(r#"{"maxTokensOut":1,"maxTurns":1,"maxToolCalls":1}"#, used), [true; 3]);
    assert_eq!(lets(r#"{"maxSpendUSD":{"value":1,"enforcement":"post-hoc"}}"#, used), [true; 3]);
    let hour = r#"{"maxWallTimeSeconds":3600}"#;
    assert_eq!(lets(hour, Tally { millis: 3_599_999, ..none }), [true; 3]);
    assert_eq!(lets(hour, Tally { millis: 3_600_000, ..none }), [false; 3]);
}

#[test]
fn the_last_call_and_the_last_turn_are_answered() {
    let none = Tally::default();
    let calls = r#"{"maxToolCalls":{"value":2}}"#;
    assert_eq!(lets(calls, Tally { calls: 2, ..none }), [false, false, true]);
    assert_eq!(lets(calls, Tally { calls: 2, refused: Some(Refused::Call), ..none }), [false; 3]);
    let turns = r#"{"maxTurns":{"value":2}}"#;
    assert_eq!(lets(turns, Tally { turns: 2, ..none }), [true, false, true]);
    assert_eq!(lets(turns, Tally { turns: 2, refused: Some(Refused::Prompt), ..none }), [false; 3]);
    let raised = Raised::from([(writ_policy::Measure::Turns, 3)]);
    assert_eq!(lets(turns, Tally { turns: 2, raised: Some(&raised), ..none }), [true; 3]);
    let lowered = Raised::from([(writ_policy::Measure::Turns, 1)]);
    assert_eq!(lets(turns, Tally { turns: 1, raised: Some(&lowered), ..none }), [true; 3], "nothing lowers");
}

#[test]
fn what_is_not_known_is_not_nothing() {
    let none = Tally::default();
    let unpriced = Usage { unpriced: Some("m".to_owned()), ..Usage::default() };
    let unpriced = Tally { usage: Some(&unpriced), ..none };
    assert_eq!(lets(r#"{"maxSpendUSD":5}"#, unpriced), [false; 3]);
    assert_eq!(lets(r#"{"maxTokensIn":5}"#, unpriced), [true; 3]);
    let unknown = Usage { unknown: Some("no transcript".to_owned()), ..Usage::default() };
    let unknown = Tally { usage: Some(&unknown), ..none };
    assert_eq!(lets(r#"{"maxTokensIn":5}"#, unknown), [false; 3]);
    assert_eq!(lets(r#"{"maxToolCalls":{"value":5}}"#, unknown), [true; 3]);
}

#[test]
fn four_fifths_are_near() {
    let policy =
        Policy::parse(br#"{"version":"1.0","name":"l","limits":{"maxToolCalls":10,"maxSpendUSD":1}}"#, ROOT).unwrap();
    let said = |calls| near(policy.limits(), Tally { calls, ..Tally::default() });
    assert_eq!((said(7).len(), said(8).len()), (0, 1));
    assert_eq!(said(8)[0].1, "8 of 10 tool calls are used (maxToolCalls); more than that fails verification");
}

/// A tool that one policy requires is not there where another takes it, unless that is about one kind of sub-agent.
#[test]
fn a_tool_that_is_required_is_missed_in_all_layers() {
    let policy =
        |more: &str| Policy::parse(format!(r#"{{"version":"1.0","name":"l",{more}}}"#).as_bytes(), ROOT).unwrap();
    let call = ToolCall::new("Bash", json::parse(br#"{"command":"ls"}"#).unwrap(), ROOT);
    let (wants, takes) = (policy(r#""identity":{"requiredTools":["Read"]}"#), policy(r#""tools":{"deny":["Read"]}"#));
    let (one, other) = (facts(&wants, &call), facts(&takes, &call));
    let decided = |second: Layer<'_>| judge(&[Layer::own(&wants, &one), second], &setting(), Tally::default());
    let told = decided(Layer::named("child", &takes, &other));
    assert_eq!((told.verdict, told.reasons[0].rule.as_str()), (Verdict::Deny, "/identity/requiredTools/0"));
    let own = Own { agent: "x", limits: &[], tally: Tally::default() };
    assert_eq!(decided(Layer::named("child", &takes, &other).counted(own)).verdict, Verdict::Allow);
    assert_eq!(judge(&[Layer::own(&wants, &one)], &setting(), Tally::default()).verdict, Verdict::Allow);
}
