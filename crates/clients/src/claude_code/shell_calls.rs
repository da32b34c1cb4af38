//! The client's calls of a shell (measured, `spec/clients/claude-code.md`).
//!
//! The line is run as `SHELL -c "source SNAPSHOT … && eval 'LINE' && pwd -P >| FILE"`: functions, aliases and options of the user's
//! shell come from a snapshot, and the folder it ends in is the next call's.

use writ_core::json::{Object, Value};

/// What stands before the line.
const BEFORE_LINE: &str = " && eval '";

/// The input with another `command`.
pub fn with_line(input: &Value, line: &str) -> Value {
    let Some(members) = input.as_object() else { return input.clone() };
    let other = |(name, value): (&str, &Value)| {
        (name.to_owned(), if name == "command" { Value::from(line) } else { value.clone() })
    };
    Value::Object(members.iter().map(other).collect::<Object>())
}

/// What the client's shell does before the line.
pub fn prelude(arguments: &[String]) -> Option<String> {
    let script = arguments.iter().skip(1).find(|argument| !argument.starts_with('-'))?;
    let (before, _) = script.split_once(BEFORE_LINE)?;
    Some(before.to_owned())
}

#[cfg(test)]
mod tests {
    use writ_core::json;

    use super::*;

    #[test]
    fn the_line_alone_is_replaced() {
        let input = json::parse(br#"{"command":"ls","description":"list","timeout":5}"#).unwrap();
        let other = with_line(&input, "pwd");
        assert_eq!(json::canonical(&other), r#"{"command":"pwd","description":"list","timeout":5}"#);
    }

    #[test]
    fn what_stands_before_the_line_is_found() {
        let script = "source /s/snapshot.sh 2>/dev/null || true && shopt -u extglob || true && eval 'echo '\"'\"' && eval '\"'\"'' && pwd -P >| /t";
        let arguments = ["/bin/bash", "-c", "-l", script].map(str::to_owned);
        assert_eq!(
            prelude(&arguments).as_deref(),
            Some("source /s/snapshot.sh 2>/dev/null || true && shopt -u extglob || true")
        );
        assert_eq!(prelude(&["bash".to_owned(), "-c".to_owned(), "ls".to_owned()]), None);
        assert_eq!(prelude(&[]), None);
    }
}
