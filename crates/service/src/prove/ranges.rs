//! When what a policy computes is a number that Cedar can hold.
//!
//! Owns the condition under which a sum, a difference, a product with a number that is written out, or a negation does not err. Knows nothing
//! of other errors. Invariant: a condition computes nothing that errs itself, where the operands do not.

use serde_json::{Value, json};

/// The condition; nothing for what is no such computation.
pub(super) fn condition(name: &str, of: &Value) -> Option<Value> {
    let part = |name: &str| of.get(name).cloned();
    match name {
        "neg" => Some(json!({ "!=": { "left": part("arg")?, "right": number(i64::MIN) } })),
        "+" | "-" => {
            let (left, right) = (part("left")?, part("right")?);
            // `least <= left <= most`, each bound computed on the side of zero where it cannot err.
            let least = |with: &str| pair("<=", pair(with, number(i64::MIN), right.clone()), left.clone());
            let most = |with: &str| pair("<=", left.clone(), pair(with, number(i64::MAX), right.clone()));
            let positive = pair("<", number(0), right.clone());
            let (then, other) = if name == "+" { (most("-"), least("-")) } else { (least("+"), most("+")) };
            Some(json!({ "if-then-else": { "if": positive, "then": then, "else": other } }))
        }
        "*" => {
            let (left, right) = (part("left")?, part("right")?);
            let (factor, other) =
                written(&left).map(|factor| (factor, right.clone())).or_else(|| Some((written(&right)?, left)))?;
            let (one, two) = (i64::MIN.checked_div(factor), i64::MAX.checked_div(factor));
            let (least, most) = match (one, two) {
                (Some(one), Some(two)) => (one.min(two), one.max(two)),
                // Nothing is too large times 0; times -1, the least number alone.
                _ if factor == 0 => (i64::MIN, i64::MAX),
                _ => (-i64::MAX, i64::MAX),
            };
            let within = [pair("<=", number(least), other.clone()), pair("<=", other, number(most))];
            let [from, to] = within;
            Some(pair("&&", from, to))
        }
        _ => None,
    }
}

/// How many parts an expression has.
pub(super) fn size(value: &Value) -> usize {
    match value {
        Value::Array(of) => of.iter().map(size).sum::<usize>() + 1,
        Value::Object(of) => of.values().map(size).sum::<usize>() + 1,
        _ => 1,
    }
}

fn number(value: i64) -> Value {
    json!({ "Value": value })
}

fn pair(name: &str, left: Value, right: Value) -> Value {
    json!({ name: { "left": left, "right": right } })
}

/// A number that is written out.
fn written(value: &Value) -> Option<i64> {
    match value.get("neg") {
        Some(of) => written(of.get("arg")?)?.checked_neg(),
        None => value.get("Value")?.as_i64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_is_bounded_by_what_its_factor_leaves() {
        let bounds = |factor: i64| {
            let of = json!({ "left": { "Var": "context" }, "right": number(factor) });
            let found = condition("*", &of).unwrap();
            let bound = |at: &str| found.pointer(at).and_then(Value::as_i64).unwrap();
            (bound("/&&/left/<=/left/Value"), bound("/&&/right/<=/right/Value"))
        };
        assert_eq!(bounds(0), (i64::MIN, i64::MAX));
        assert_eq!(bounds(1), (i64::MIN, i64::MAX));
        assert_eq!(bounds(-1), (-i64::MAX, i64::MAX));
        for factor in [2, 3, -2, -3, i64::MAX, i64::MIN] {
            let (least, most) = bounds(factor);
            for inside in [least, most] {
                assert!(inside.checked_mul(factor).is_some(), "{inside} * {factor}");
            }
            for outside in [least.checked_sub(1), most.checked_add(1)].into_iter().flatten() {
                assert!(outside.checked_mul(factor).is_none(), "{outside} * {factor}");
            }
        }
        let open = json!({ "left": { "Var": "context" }, "right": { "Var": "context" } });
        assert!(condition("*", &open).is_none() && condition("like", &open).is_none());
    }
}
