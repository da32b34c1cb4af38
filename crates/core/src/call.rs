//! What an agent asks for, in words that fit every client.

use crate::json::Value;

/// One tool call as the agent put it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The tool's name as the client spells it (`Bash`, `mcp__server__tool`).
    pub tool: String,
    /// The tool's input: an object in every client known so far, but nothing here relies on it.
    pub input: Value,
    /// The directory that relative paths in the input hang off, absolute.
    pub cwd: String,
}

impl ToolCall {
    /// The text member `name` of the input, if there is one.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.input.get(name).and_then(Value::as_str)
    }
}
