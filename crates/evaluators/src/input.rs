//! What evaluators are shown: the policy, and the statements whose names its patterns match.
//!
//! Owns the document. Refuses nothing: which statements count is the caller's to say. Invariant: each pattern of the policy has its list,
//! in the order of the numbers in the names, and a pattern that matches nothing has an empty one.

use std::cmp::Ordering;

use writ_core::json::{self, Object, Value};
use writ_policy::Glob;

/// A statement by the name of its attestation, without `.json`: `turn-3`, `research-turn-1`, `task-complete`.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Its name.
    pub name: String,
    /// What it is called too: its name without what the names of a sublayout's statements begin with.
    pub also: Option<String>,
    /// The statement: `_type`, `subject`, `predicateType`, `predicate`.
    pub document: Value,
}

/// What evaluators are shown.
#[derive(Clone, Debug)]
pub struct Input {
    /// The document, in canonical form.
    pub text: String,
    /// The patterns that match no statement.
    pub empty: Vec<String>,
    /// The patterns there are.
    pub patterns: Vec<String>,
}

/// The document: `{attestationsFrom: {pattern: [statement]}, limits, policy}`.
pub fn build(policy: &Value, statements: &[Statement]) -> Input {
    let mut ordered: Vec<&Statement> = statements.iter().collect();
    ordered.sort_by(|one, other| natural(&one.name, &other.name));
    let mut from = Object::new();
    let (mut empty, mut patterns) = (Vec::new(), Vec::new());
    for pattern in policy.get("attestationsFrom").and_then(Value::as_array).unwrap_or_default() {
        let Some(pattern) = pattern.as_str().filter(|pattern| !patterns.iter().any(|known| known == pattern)) else {
            continue;
        };
        let glob = Glob::parse(pattern).ok();
        let called = |name: &str| glob.as_ref().is_some_and(|glob| glob.matches(name));
        let matches = |one: &&&Statement| called(&one.name) || one.also.as_deref().is_some_and(called);
        let list: Vec<Value> = ordered.iter().filter(matches).map(|statement| statement.document.clone()).collect();
        if list.is_empty() {
            empty.push(pattern.to_owned());
        }
        patterns.push(pattern.to_owned());
        from.push(pattern, Value::Array(list));
    }
    let limits = limits(policy.get("limits"));
    let mut shown = Object::new();
    for (name, value) in policy.as_object().into_iter().flat_map(Object::iter) {
        // Rules read `limits.NAME.value`, however short the policy wrote it.
        shown.push(name, if name == "limits" { limits.clone() } else { value.clone() });
    }
    let mut document = Object::new();
    document.push("attestationsFrom", Value::Object(from));
    document.push("limits", limits);
    document.push("policy", Value::Object(shown));
    Input { text: json::canonical(&Value::Object(document)), empty, patterns }
}

/// Each limit as an object with `value`.
fn limits(limits: Option<&Value>) -> Value {
    let mut out = Object::new();
    for (name, limit) in limits.and_then(Value::as_object).into_iter().flat_map(Object::iter) {
        let whole = match limit {
            Value::Number(_) => {
                let mut whole = Object::new();
                whole.push("value", limit.clone());
                Value::Object(whole)
            }
            other => other.clone(),
        };
        out.push(name, whole);
    }
    Value::Object(out)
}

/// Names in the order that people expect: `turn-2` before `turn-10`.
fn natural(one: &str, other: &str) -> Ordering {
    let (mut one, mut other) = (one, other);
    loop {
        let (Some(first), Some(second)) = (one.chars().next(), other.chars().next()) else {
            return one.len().cmp(&other.len());
        };
        if first.is_ascii_digit() && second.is_ascii_digit() {
            let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            let (a, b) = (one.split_at(digits(one)), other.split_at(digits(other)));
            let (x, y) = (a.0.trim_start_matches('0'), b.0.trim_start_matches('0'));
            let order = x.len().cmp(&y.len()).then_with(|| x.cmp(y)).then_with(|| a.0.len().cmp(&b.0.len()));
            if order != Ordering::Equal {
                return order;
            }
            (one, other) = (a.1, b.1);
        } else if first == second {
            one = one.get(first.len_utf8()..).unwrap_or_default();
            other = other.get(second.len_utf8()..).unwrap_or_default();
        } else {
            return first.cmp(&second);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(name: &str) -> Statement {
        Statement { name: name.to_owned(), also: None, document: Value::String(name.to_owned()) }
    }

    #[test]
    fn patterns_have_their_statements_in_the_order_of_their_numbers() {
        let policy =
            br#"{"attestationsFrom":["turn-*","control-*"],"limits":{"maxSpendUSD":5,"maxTurns":{"value":3}}}"#;
        let policy = json::parse(policy).unwrap();
        let statements = ["turn-10", "turn-9", "research-turn-1", "turn-1"].map(statement);
        let input = build(&policy, &statements);
        assert!(input.text.contains(r#""turn-*":["turn-1","turn-9","turn-10"]"#), "{}", input.text);
        assert_eq!(input.empty, ["control-*"]);
        let limits = r#""limits":{"maxSpendUSD":{"value":5},"maxTurns":{"value":3}}"#;
        assert_eq!(input.text.matches(limits).count(), 2);
    }
}
