//! JSON Schema: whether a value is what a tool takes or gives.
//!
//! Owns the limits around the library that decides it. Resolves no reference that leads out of the schema. Invariant: what is told of a
//! value names places and rules, never the value (R8).

use jsonschema::{PatternOptions, Validator};
use writ_core::json::{self, Object, Value};

/// Largest schema, in bytes.
const MAX_BYTES: usize = 256 << 10;
/// Deepest schema, and deepest value.
const MAX_DEPTH: usize = 64;
/// Most steps of one pattern on one text.
const MAX_STEPS: usize = 100_000;
/// Most mismatches that are told.
const MOST: usize = 8;
/// Members that hold values, not schemas.
const VALUES: [&str; 4] = ["const", "default", "enum", "examples"];

/// Where a value is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The place in the value, as a JSON pointer; empty for the whole.
    pub pointer: String,
    /// What is wrong there.
    pub why: String,
}

/// A schema that can be asked.
#[derive(Debug)]
pub struct Schema(Validator);

impl Schema {
    /// Reads a schema; says why it is none, or none that can be used here.
    pub fn new(schema: &Value) -> Result<Self, String> {
        if depth(schema) > MAX_DEPTH {
            return Err(format!("the schema nests deeper than {MAX_DEPTH}"));
        }
        let text = json::compact(&without_nulls(schema));
        if text.len() > MAX_BYTES {
            return Err(format!("the schema is longer than {} KiB", MAX_BYTES >> 10));
        }
        let schema: serde_json::Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let patterns = PatternOptions::fancy_regex().backtrack_limit(MAX_STEPS);
        let built = jsonschema::options().with_pattern_options(patterns).build(&schema);
        built.map(Self).map_err(|error| format!("the schema cannot be used: {}", error.masked()))
    }

    /// Everything in which a value does not fit, as far as people want to read it.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Mismatch>> {
        let whole = |why: String| vec![Mismatch { pointer: String::new(), why }];
        if depth(value) > MAX_DEPTH {
            return Err(whole(format!("it nests deeper than {MAX_DEPTH}")));
        }
        let text = json::compact(value);
        let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| whole(error.to_string()))?;
        let found = self.0.iter_errors(&value).take(MOST);
        let found: Vec<Mismatch> = found
            .map(|error| Mismatch { pointer: error.instance_path().to_string(), why: error.masked().to_string() })
            .collect();
        if found.is_empty() { Ok(()) } else { Err(found) }
    }
}

fn depth(value: &Value) -> usize {
    let (mut deepest, mut rest) = (0, vec![(value, 1)]);
    while let Some((value, at)) = rest.pop() {
        deepest = deepest.max(at);
        match value {
            Value::Array(items) => rest.extend(items.iter().map(|item| (item, at + 1))),
            Value::Object(members) => rest.extend(members.iter().map(|(_, member)| (member, at + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    deepest
}

/// The schema without members that say nothing: UTCP's own writer puts `null` for each that it does not have.
fn without_nulls(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let said = members.iter().filter(|(name, value)| **value != Value::Null || VALUES.contains(name));
            let kept = |(name, value): (&str, &Value)| {
                let value = if VALUES.contains(&name) { value.clone() } else { without_nulls(value) };
                (name.to_owned(), value)
            };
            // `default: null` and `enum: null` are of that writer, too.
            let said = said.filter(|(name, value)| **value != Value::Null || *name == "const");
            Value::Object(said.map(kept).collect::<Object>())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    fn check(schema: &str, text: &str) -> Result<(), Vec<Mismatch>> {
        Schema::new(&value(schema)).unwrap().check(&value(text))
    }

    #[test]
    fn places_are_named_and_values_are_not() {
        let schema = r#"{"type":"object","properties":{"a":{"items":{"maxLength":3}}},"required":["b"]}"#;
        let wrong = check(schema, r#"{"a":["xyz","secret"],"b":1}"#).unwrap_err();
        assert_eq!(wrong.len(), 1);
        assert_eq!(wrong.first().unwrap().pointer, "/a/1");
        assert!(!wrong.first().unwrap().why.contains("secret"), "{wrong:?}");
        assert!(check(schema, r#"{"a":["xyz"],"b":1}"#).is_ok());
        assert!(check(schema, r#"{"a":["xyz"]}"#).unwrap_err().first().unwrap().why.contains("required"));
    }

    #[test]
    fn references_stay_inside() {
        for outside in ["https://example.com/s.json", "file:///etc/passwd", "other.json", "//host/x"] {
            assert!(Schema::new(&value(&format!(r#"{{"$ref":"{outside}"}}"#))).is_err(), "{outside}");
        }
        assert!(check(r##"{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}"##, "1").is_err());
        // One that leads to itself ends.
        assert!(check(r##"{"$ref":"#"}"##, "1").is_ok());
        assert!(check(r##"{"properties":{"a":{"$ref":"#"}},"type":"object"}"##, r#"{"a":{"a":1}}"#).is_err());
    }

    #[test]
    fn what_costs_too_much_is_refused() {
        let deep = "[".repeat(60) + &"]".repeat(60);
        let schema = |depth: usize| {
            let mut schema = value("{}");
            for _ in 0..depth {
                schema = Value::Object([("not".to_owned(), schema)].into_iter().collect());
            }
            Schema::new(&schema)
        };
        assert!(schema(60).is_ok() && schema(70).is_err());
        assert!(check("{}", &deep).is_ok());
        let long = format!(r#"{{"title":"{}"}}"#, "x".repeat(300 << 10));
        assert!(Schema::new(&value(&long)).is_err());
        // A pattern that would take for ever is given up, which is no match.
        let text = format!("\"{}!\"", "a".repeat(60));
        assert!(check(r#"{"pattern":"^(?=(a+)+$)a+b"}"#, &text).is_err());
    }
}
