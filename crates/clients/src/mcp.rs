//! Writ's own doors for agents that speak MCP: the proxy before a server, and the tools of `writ mcp serve`.
//!
//! Owns no format: what comes in is a message of that protocol, and what goes out an answer of it. Refuses every payload, since no hook
//! is asked in its name. The invariant: a shell line that it runs is the one that was decided, or that line in its sandbox.

use writ_core::json::{Object, Value};
use writ_core::{Answer, Event};

use crate::hints::Hints;
use crate::shell_calls::ShellCalls;
use crate::{Client, PayloadError};

/// The name by which rows know it.
pub const NAME: &str = "mcp";

/// Those doors.
#[derive(Clone, Copy, Debug)]
pub struct Mcp;

impl Client for Mcp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn read(&self, _bytes: &[u8]) -> Result<Event, PayloadError> {
        Err(PayloadError::Member { member: "event", expected: "a hook's: this client has none" })
    }

    fn hints(&self, _bytes: &[u8]) -> Hints {
        Hints::default()
    }

    fn render(&self, _answer: &Answer) -> String {
        "{}".to_owned()
    }

    fn tells_of_turns(&self) -> bool {
        false
    }

    fn shell_calls(&self) -> Option<&dyn ShellCalls> {
        Some(self)
    }
}

impl ShellCalls for Mcp {
    fn with_line(&self, input: &Value, line: &str) -> Value {
        let members = input.as_object().into_iter().flat_map(Object::iter).filter(|(name, _)| *name != "command");
        let line = ("command".to_owned(), Value::from(line));
        Value::Object(members.map(|(name, value)| (name.to_owned(), value.clone())).chain([line]).collect())
    }

    fn prelude(&self, _arguments: &[String]) -> Option<String> {
        None
    }

    fn lasts(&self, _input: &Value) -> bool {
        false
    }

    fn exit_code(&self, _error: &str) -> Option<u8> {
        None
    }
}
