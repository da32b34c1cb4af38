//! What a declared tool is and how it is called: the description beside an Agentfile, or a server's word.
//!
//! Owns the reading of descriptions (UTCP 1.x, and the providers of 0.1) and what arguments make of them: a shell line, an HTTP request.
//! Runs nothing, sends nothing, and knows no secret's value. Invariant: an argument stays one value, wherever the description puts it; what
//! a description says that is not understood is refused by its name. Page: `spec/tools.md`. Specification: §17.

mod address;
mod cli;
mod http;
mod quoting;
mod schema;
mod template;

use serde::Deserialize;
use writ_core::json::{self, Limits, Object, Value};

pub use cli::Cli;
pub use http::{Field, Http, Request};
pub use schema::{Mismatch, Schema};
pub use template::{Part, Text};

/// The limit of a result's size, in bytes.
pub const MAX_OUTPUT: &str = "max_output";
/// Largest description, and largest arguments, in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// What descriptions and arguments may be.
pub const LIMITS: Limits = Limits { bytes: MAX_BYTES, ..Limits::OURS };

/// Why a description cannot be used, or arguments do not fit it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{why}", if pointer.is_empty() { String::new() } else { format!("`{pointer}`: ") })]
pub struct Malformed {
    /// Where, as a JSON pointer; empty for the whole.
    pub pointer: String,
    /// What is wrong.
    pub why: String,
}

impl Malformed {
    pub(crate) fn new(pointer: impl Into<String>, why: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), why: why.into() }
    }
}

/// A tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// What it says of itself.
    pub about: String,
    /// What it takes, as JSON Schema.
    pub inputs: Value,
    /// What it gives, as JSON Schema, where that is said.
    pub outputs: Option<Value>,
    /// How it is called.
    pub how: How,
}

/// How a tool is called.
#[derive(Clone, Debug, PartialEq)]
pub enum How {
    /// As a shell line.
    Cli(Cli),
    /// As an HTTP request.
    Http(Box<Http>),
    /// As a program beside the Agentfile, with its arguments on standard input.
    Program,
    /// As a tool of an MCP server.
    Server,
}

impl How {
    /// One word for it.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Cli(_) => "cli",
            Self::Http(_) => "http",
            Self::Program => "program",
            Self::Server => "mcp",
        }
    }
}

/// A description as UTCP has it; members that are of no use to a caller are not read.
#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    description: String,
    #[serde(default, alias = "inputSchema", alias = "input_schema")]
    inputs: Option<Value>,
    #[serde(default, alias = "outputSchema", alias = "output_schema")]
    outputs: Option<Value>,
    #[serde(default)]
    tool_call_template: Option<Value>,
    #[serde(default)]
    tool_provider: Option<Value>,
}

impl Description {
    /// Reads `tools/<name>.json`.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let value = json::parse_with(bytes, LIMITS).map_err(|error| Malformed::new("", error.to_string()))?;
        Self::of(&value)
    }

    /// The same of JSON that was read already.
    pub fn of(value: &Value) -> Result<Self, Malformed> {
        let wire: Wire = json::from_value(value).map_err(|error| Malformed::new("", error.to_string()))?;
        let how = match (&wire.tool_call_template, &wire.tool_provider) {
            (Some(template), None) => how("/tool_call_template", template, false)?,
            (None, Some(provider)) => how("/tool_provider", provider, true)?,
            (None, None) => How::Program,
            (Some(_), Some(_)) => {
                return Err(Malformed::new("/tool_provider", "it stands beside `tool_call_template`: which is meant?"));
            }
        };
        Ok(Self { about: wire.description, inputs: inputs(wire.inputs), outputs: wire.outputs.filter(says), how })
    }

    /// A program without a description.
    pub fn program() -> Self {
        Self { about: String::new(), inputs: inputs(None), outputs: None, how: How::Program }
    }

    /// A tool as its MCP server defines it.
    pub fn of_server(definition: &Value) -> Self {
        let member = |name: &str| definition.get(name).cloned();
        let about = definition.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
        let outputs = member("outputSchema").filter(says);
        Self { about, inputs: inputs(member("inputSchema")), outputs, how: How::Server }
    }

    /// Arguments with the defaults of what is left out, held against what the tool takes.
    pub fn arguments(&self, given: &Object) -> Result<Object, Vec<Mismatch>> {
        let mut out = given.clone();
        let properties = self.inputs.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flat_map(Object::iter) {
            if let (None, Some(default)) = (given.get(name), property.get("default").filter(|it| **it != Value::Null)) {
                out.push(name, default.clone());
            }
        }
        let whole = |why: String| vec![Mismatch { pointer: String::new(), why }];
        Schema::new(&self.inputs).map_err(whole)?.check(&Value::Object(out.clone()))?;
        Ok(out)
    }

    /// Holds what came of a call against what the tool gives.
    pub fn result(&self, result: &Value) -> Result<(), Vec<Mismatch>> {
        let Some(outputs) = &self.outputs else { return Ok(()) };
        let whole = |why: String| vec![Mismatch { pointer: String::new(), why }];
        Schema::new(outputs).map_err(whole)?.check(result)
    }

    /// Each argument in a line of its own: name, type, whether it has to be given, what it is for.
    pub fn parameters(&self) -> Vec<Parameter> {
        let required = self.inputs.get("required").and_then(Value::as_array).unwrap_or_default();
        let properties = self.inputs.get("properties").and_then(Value::as_object);
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let parameter = |(name, property): (&str, &Value)| Parameter {
            name: name.to_owned(),
            kind: text(property, "type"),
            required: required.iter().any(|one| one.as_str() == Some(name)),
            about: text(property, "description"),
        };
        properties.into_iter().flat_map(Object::iter).map(parameter).collect()
    }
}

/// An argument that a tool takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its JSON type; empty where none is said.
    pub kind: String,
    /// Whether it has to be given.
    pub required: bool,
    /// What it is for.
    pub about: String,
}

/// Arguments are an object, whatever a schema leaves out.
fn inputs(schema: Option<Value>) -> Value {
    let object = || Value::Object([("type".to_owned(), Value::from("object"))].into_iter().collect());
    match schema {
        Some(Value::Object(schema)) if schema.get("type").is_none_or(|kind| *kind == Value::Null) => {
            let rest = schema.iter().filter(|(name, _)| *name != "type");
            let rest = rest.map(|(name, value)| (name.to_owned(), value.clone()));
            Value::Object(rest.chain([("type".to_owned(), Value::from("object"))]).collect())
        }
        Some(schema) if schema != Value::Null => schema,
        Some(_) | None => object(),
    }
}

/// Whether a schema says anything.
fn says(schema: &Value) -> bool {
    match schema {
        Value::Null => false,
        Value::Object(members) => members.iter().any(|(_, value)| *value != Value::Null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => true,
    }
}

fn how(pointer: &str, template: &Value, older: bool) -> Result<How, Malformed> {
    let names = if older { ["provider_type", "type"] } else { ["call_template_type", "type"] };
    let found = names.into_iter().find_map(|name| Some((name, template.get(name)?.as_str()?)));
    let Some((_, kind)) = found else {
        let wanted = names.first().copied().unwrap_or_default();
        return Err(Malformed::new(pointer, format!("it has no text `{wanted}`")));
    };
    match kind {
        "cli" => Cli::read(pointer, template).map(How::Cli),
        "http" => Http::read(pointer, template, older).map(|http| How::Http(Box::new(http))),
        other => Err(Malformed::new(
            pointer,
            format!(
                "tools of the type `{other}` are not called from here: `cli`, `http`, an MCP server's or a program are"
            ),
        )),
    }
}

/// An argument as the text that it is in a line or a URL.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => json::compact(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Description, Malformed> {
        Description::read(text.as_bytes())
    }

    fn object(text: &str) -> Object {
        json::parse(text.as_bytes()).unwrap().as_object().unwrap().clone()
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        for (text, pointer, why) in [
            (r#"{"tool_call_template":{"call_template_type":"grpc"}}"#, "/tool_call_template", "`grpc`"),
            (r#"{"tool_call_template":{"commands":[]}}"#, "/tool_call_template", "call_template_type"),
            (r#"{"tool_call_template":{"call_template_type":"cli"}}"#, "/tool_call_template", "commands"),
            (
                r#"{"tool_call_template":{"call_template_type":"cli","commands":[{"command":"a"}],"shell":"x"}}"#,
                "/tool_call_template",
                "shell",
            ),
            (
                r#"{"tool_provider":{"provider_type":"cli","command_name":"a"},"tool_call_template":{}}"#,
                "/tool_provider",
                "beside",
            ),
            ("{", "", ""),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.pointer == pointer && error.why.contains(why), "{text}: {error}");
        }
        assert_eq!(read("{}").unwrap().how, How::Program);
    }

    #[test]
    fn arguments_are_held_against_the_schema_with_its_defaults() {
        let text = r#"{"inputs":{"properties":{"a":{"type":"integer"},"b":{"type":"string","default":"x"}},"required":["a"],
            "additionalProperties":false}}"#;
        let tool = read(text).unwrap();
        assert_eq!(tool.arguments(&object(r#"{"a":1}"#)).unwrap(), object(r#"{"a":1,"b":"x"}"#));
        for (given, pointer) in [(r#"{"a":"1"}"#, "/a"), ("{}", ""), (r#"{"a":1,"c":2}"#, "")] {
            let wrong = tool.arguments(&object(given)).unwrap_err();
            assert_eq!(wrong.first().unwrap().pointer, pointer, "{given}: {wrong:?}");
        }
        // The value of an argument may be a secret: nothing says it.
        let wrong = tool.arguments(&object(r#"{"a":"c4n4ry"}"#)).unwrap_err();
        assert!(!format!("{wrong:?}").contains("c4n4ry"), "{wrong:?}");
    }

    #[test]
    fn schemas_as_utcp_writes_them_have_empty_members() {
        let tool = read(
            r#"{"inputs":{"type":null,"title":null,"properties":{"a":{"type":"string","enum":null}}},"outputs":{"type":null}}"#,
        );
        let tool = tool.unwrap();
        assert!(tool.arguments(&object(r#"{"a":"x"}"#)).is_ok() && tool.arguments(&object(r#"{"a":1}"#)).is_err());
        assert_eq!(tool.outputs, None);
    }
}
