//! A client's calls of a shell, as far as another line can be run in place of the model's.

use writ_core::json::Value;

/// A client that takes another input for a call than the model gave.
pub trait ShellCalls {
    /// The input of a shell call with another line.
    fn with_line(&self, input: &Value, line: &str) -> Value;

    /// What the client's shell does before it runs the line, from that shell's own arguments: what it reads and sets is part of what
    /// the line means. `None` where the arguments are not in a form that is known.
    fn prelude(&self, arguments: &[String]) -> Option<String>;

    /// Whether the call's result comes while its line still runs.
    fn lasts(&self, input: &Value) -> bool;

    /// The exit code that a failed line's error tells; `None` where the line may not have run, or not to its end.
    fn exit_code(&self, error: &str) -> Option<u8>;
}
