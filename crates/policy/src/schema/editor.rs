//! The table as a JSON Schema, for editors.

use serde::Serialize;
use writ_core::json::{self, Object, Value};

use super::table::ROOT;
use super::{Field, Kind};

const POLICY: &str = "#/$defs/policy";

/// The members of a JSON Schema (draft 2020-12) that a policy's needs.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Schema {
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'static str>,
    #[serde(rename = "$ref", skip_serializing_if = "Option::is_none")]
    reference: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#const: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_length: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#enum: Option<&'static [&'static str]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Box<Schema>>,
    /// By name, in the order of the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    properties: Option<Object>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    required: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_properties: Option<Others>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    one_of: Vec<Schema>,
}

/// What members beside the named ones may be.
#[derive(Serialize)]
#[serde(untagged)]
enum Others {
    None(bool),
    Of(Box<Schema>),
}

/// The whole document.
#[derive(Serialize)]
struct Document {
    #[serde(rename = "$schema")]
    schema: &'static str,
    title: &'static str,
    #[serde(rename = "$ref")]
    reference: &'static str,
    #[serde(rename = "$defs")]
    definitions: Definitions,
}

#[derive(Serialize)]
struct Definitions {
    policy: Schema,
}

/// The JSON Schema (draft 2020-12) of the whole document.
pub fn json_schema() -> Value {
    json::to_value(&Document {
        schema: "https://json-schema.org/draft/2020-12/schema",
        title: "Writ policy (.aflock)",
        reference: POLICY,
        definitions: Definitions { policy: object(ROOT) },
    })
}

fn object(fields: &'static [Field]) -> Schema {
    let property = |field: &Field| {
        let schema = Schema { description: Some(field.doc), ..kind_schema(field.kind) };
        (field.name.to_owned(), json::to_value(&schema))
    };
    Schema {
        properties: Some(fields.iter().map(property).collect()),
        required: fields.iter().filter(|field| field.required).map(|field| field.name).collect(),
        additional_properties: Some(Others::None(false)),
        ..typed("object")
    }
}

fn kind_schema(kind: Kind) -> Schema {
    match kind {
        Kind::Text => typed("string"),
        Kind::Name => Schema { min_length: Some(1), ..typed("string") },
        Kind::Version => Schema { r#const: Some("1.0"), ..Schema::default() },
        Kind::Date => Schema { format: Some("date-time"), ..typed("string") },
        Kind::Truth => typed("boolean"),
        Kind::Count => Schema { minimum: Some(0), ..typed("integer") },
        Kind::Amount => Schema { minimum: Some(0), ..typed("number") },
        Kind::Word(words) => Schema { r#enum: Some(words), ..Schema::default() },
        Kind::List(item) => Schema { items: Some(Box::new(kind_schema(*item))), ..typed("array") },
        Kind::Object(fields) => object(fields),
        Kind::Map(item) => {
            Schema { additional_properties: Some(Others::Of(Box::new(kind_schema(*item)))), ..typed("object") }
        }
        Kind::OrObject(simple, fields) => either(kind_schema(*simple), object(fields)),
        Kind::PolicyOrPath => either(typed("string"), Schema { reference: Some(POLICY), ..Schema::default() }),
    }
}

fn typed(name: &'static str) -> Schema {
    Schema { r#type: Some(name), ..Schema::default() }
}

fn either(one: Schema, other: Schema) -> Schema {
    Schema { one_of: vec![one, other], ..Schema::default() }
}
