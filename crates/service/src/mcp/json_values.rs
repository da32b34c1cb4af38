//! JSON between Writ's own values and those of the protocol's library. Numbers stay the doubles that they are.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Number};
use writ_core::json::{self, Object, Value};

/// A value for the protocol's library.
pub fn to_serde(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(truth) => serde_json::Value::Bool(*truth),
        Value::Number(number) => number_to_serde(*number),
        Value::String(text) => serde_json::Value::String(text.clone()),
        Value::Array(items) => serde_json::Value::Array(items.iter().map(to_serde).collect()),
        Value::Object(object) => serde_json::Value::Object(
            object.iter().map(|(name, value)| (name.to_owned(), to_serde(value))).collect::<Map<_, _>>(),
        ),
    }
}

/// As its canonical form is written, where the library can hold that.
fn number_to_serde(number: f64) -> serde_json::Value {
    let text = json::compact(&Value::Number(number));
    let whole = text.parse().map(|number: u64| Number::from(number));
    let whole = whole.or_else(|_not| text.parse().map(|number: i64| Number::from(number)));
    whole.ok().or_else(|| Number::from_f64(number)).map_or(serde_json::Value::Null, serde_json::Value::Number)
}

/// A request as far as an answer to it has to know it.
#[derive(Deserialize)]
struct Asked {
    id: serde_json::Value,
    method: Option<IgnoredAny>,
}

/// The id of a request that the strict parser does not take (a lone surrogate, too deep, a member twice): whoever sent it waits for an
/// answer. `None` where there is no telling, as where the id itself is there twice.
pub fn asked_id(bytes: &[u8]) -> Option<serde_json::Value> {
    let asked: Asked = serde_json::from_slice(bytes).ok()?;
    let plain = asked.id.is_string() || asked.id.is_i64() || asked.id.is_u64();
    (plain && asked.method.is_some()).then_some(asked.id)
}

/// An integer that a double would round, in a document where that matters.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the number {0} is not in its canonical form")]
pub struct Rounded(String);

/// One of Writ's values. `exact` refuses integers that would canonicalise like their neighbours (`spec/attestation.md`, section 1).
pub fn from_serde(value: serde_json::Value, exact: bool) -> Result<Value, Rounded> {
    Ok(match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(truth) => Value::Bool(truth),
        serde_json::Value::Number(number) => {
            let double = Value::Number(number.as_f64().unwrap_or_default());
            if exact && !number.is_f64() && json::compact(&double) != number.to_string() {
                return Err(Rounded(number.to_string()));
            }
            double
        }
        serde_json::Value::String(text) => Value::String(text),
        serde_json::Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| from_serde(item, exact)).collect::<Result<_, _>>()?)
        }
        serde_json::Value::Object(members) => {
            let members = members.into_iter().map(|(name, value)| Ok((name, from_serde(value, exact)?)));
            Value::Object(members.collect::<Result<Object, _>>()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use writ_core::json::Limits;

    use super::*;

    #[test]
    fn both_ways_keep_the_canonical_form() {
        for text in [
            r#"{"a":[1,-1,0.1,1e300,5e-324,9007199254740991,1152921504606847000,null,true,"x"],"b":{}}"#,
            "[1e+21,-0,123456789012345680000]",
        ] {
            let value = json::parse_with(text.as_bytes(), Limits::FOREIGN).unwrap();
            let there = serde_json::to_string(&to_serde(&value)).unwrap();
            let back = from_serde(serde_json::from_str(&there).unwrap(), true).unwrap();
            assert_eq!(json::canonical(&back), json::canonical(&value), "{there}");
        }
    }

    #[test]
    fn a_rounded_integer_is_refused_where_that_matters() {
        let value: serde_json::Value = serde_json::from_str("[9007199254740993]").unwrap();
        assert!(from_serde(value.clone(), false).is_ok());
        assert_eq!(from_serde(value, true), Err(Rounded("9007199254740993".to_owned())));
    }
}
