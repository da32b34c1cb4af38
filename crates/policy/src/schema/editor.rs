//! The table as a JSON Schema, for editors.

use writ_core::json::{Object, Value};

use super::table::{COUNTED, MEASURED, ROOT};
use super::{Field, Kind};

/// The JSON Schema (draft 2020-12) of the whole document.
pub fn json_schema() -> Value {
    let mut out = Object::new();
    out.push("$schema", Value::from("https://json-schema.org/draft/2020-12/schema"));
    out.push("title", Value::from("Writ policy (.aflock)"));
    let mut defs = Object::new();
    defs.push("policy", object_schema(ROOT));
    out.push("$ref", Value::from("#/$defs/policy"));
    out.push("$defs", Value::Object(defs));
    Value::Object(out)
}

fn object_schema(fields: &[Field]) -> Value {
    let mut properties = Object::new();
    for field in fields {
        let mut schema = Object::new();
        schema.push("description", Value::from(field.doc));
        let Value::Object(kind) = kind_schema(field.kind) else { continue };
        kind.iter().for_each(|(name, value)| schema.push(name, value.clone()));
        properties.push(field.name, Value::Object(schema));
    }
    let needed: Vec<Value> =
        fields.iter().filter(|field| field.required).map(|field| Value::from(field.name)).collect();
    let mut out = typed("object");
    out.push("properties", Value::Object(properties));
    if !needed.is_empty() {
        out.push("required", Value::Array(needed));
    }
    out.push("additionalProperties", Value::from(false));
    Value::Object(out)
}

fn kind_schema(kind: Kind) -> Value {
    let words = |words: &[&str]| Value::Array(words.iter().map(|&word| Value::from(word)).collect());
    let mut out;
    match kind {
        Kind::Text => out = typed("string"),
        Kind::Name => {
            out = typed("string");
            out.push("minLength", Value::Number(1.0));
        }
        Kind::Version => {
            out = Object::new();
            out.push("const", Value::from("1.0"));
        }
        Kind::Date => {
            out = typed("string");
            out.push("format", Value::from("date-time"));
        }
        Kind::Truth => out = typed("boolean"),
        Kind::Count => out = number("integer"),
        Kind::Amount => out = number("number"),
        Kind::Word(list) => {
            out = Object::new();
            out.push("enum", words(list));
        }
        Kind::List(item) => {
            out = typed("array");
            out.push("items", kind_schema(*item));
        }
        Kind::Object(fields) => return object_schema(fields),
        Kind::Map(item) => {
            out = typed("object");
            out.push("additionalProperties", kind_schema(*item));
        }
        Kind::Money | Kind::Limit => {
            let (plain, fields) =
                if matches!(kind, Kind::Limit) { (Kind::Count, COUNTED) } else { (Kind::Amount, MEASURED) };
            out = Object::new();
            out.push("oneOf", Value::Array(vec![kind_schema(plain), object_schema(fields)]));
        }
        Kind::PolicyOrPath => {
            let mut reference = Object::new();
            reference.push("$ref", Value::from("#/$defs/policy"));
            out = Object::new();
            out.push("oneOf", Value::Array(vec![Value::Object(typed("string")), Value::Object(reference)]));
        }
    }
    Value::Object(out)
}

fn typed(name: &str) -> Object {
    let mut out = Object::new();
    out.push("type", Value::from(name));
    out
}

fn number(name: &str) -> Object {
    let mut out = typed(name);
    out.push("minimum", Value::Number(0.0));
    out
}
