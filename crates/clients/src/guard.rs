//! The shell line that starts Writ as a hook of a client which lets tools run when a hook fails.
//!
//! Owns its form, written and recognised. Clients of this kind run the tool when the hook's program is missing, dies or exits with any code
//! but 2, and some when it exits with 2 in silence; so the line says no by itself whenever Writ did not answer. Refuses to hold a stop: a
//! client without a cap would send its agent back to work for ever. Invariant: a line that this writes is one that it recognises.

/// What says no where Writ said nothing. A client may start it with any shell of its user's, so it is in no shell's own syntax.
const UNANSWERED: &str = "sh -c 'echo writ gave no verdict >&2; exit 2'";

/// Events whose answer can keep something from happening, under every client's name for them.
const DECIDING: [&str; 9] = [
    "PreToolUse",
    "PermissionRequest",
    "BeforeTool",
    "preToolUse",
    "permissionRequest",
    "preMcpToolCall",
    "beforeShellExecution",
    "beforeMCPExecution",
    "beforeReadFile",
];

/// Whether a hook at this event has to say no where it cannot answer.
pub fn decides(event: &str) -> bool {
    DECIDING.contains(&event)
}

/// The line for a client's event.
pub fn line(program: &str, client: &str, event: &str) -> String {
    let start = format!("{} hook --client {client}", quoted(program));
    if decides(event) { format!("{start} || {UNANSWERED}") } else { start }
}

/// Whether a line says no where Writ does not answer.
pub fn is_guarded(line: &str) -> bool {
    line.split_once(" || ").is_some_and(|(_, after)| after.trim() == UNANSWERED)
}

/// Whether a line starts Writ as a hook of this client.
pub fn is_of(line: &str, client: &str) -> bool {
    let start = line.split(" || ").next().unwrap_or_default().trim();
    let words = format!(" hook --client {client}");
    let program = start.strip_suffix(&words).map(unquoted);
    program.is_some_and(|program| program.rsplit('/').next() == Some("writ"))
}

/// The program that a line starts.
pub fn program(line: &str) -> Option<String> {
    let (program, _) = line.split_once(" hook --client ")?;
    Some(unquoted(program))
}

/// A word as every POSIX shell reads it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+');
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn unquoted(word: &str) -> String {
    match word.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        Some(inner) => inner.replace(r"'\''", "'"),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_recognised() {
        for program in ["writ", "/usr/bin/writ", "/o'brien's/a b/writ"] {
            for event in ["PreToolUse", "BeforeTool", "Stop", "SessionStart"] {
                let line = line(program, "codex", event);
                assert!(is_of(&line, "codex") && !is_of(&line, "qwen"), "{line}");
                assert_eq!(super::program(&line).as_deref(), Some(program));
                assert_eq!(is_guarded(&line), decides(event), "{line}");
            }
        }
        for other in [
            "writ hook --client codexx",
            "/bin/writer hook --client codex",
            "writ hook",
            "true || writ hook --client codex",
            "",
        ] {
            assert!(!is_of(other, "codex"), "{other}");
        }
        assert!(!is_guarded("writ hook --client codex || true") && !is_guarded("writ hook --client codex"));
    }
}
