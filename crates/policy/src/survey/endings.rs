//! Commands that end processes which they find by a name or a pattern: whether Writ's own may be among them.
//!
//! Owns what `pkill`, `killall` and `fuser` may mean, and a `kill` of what a search of the same line found. Does not know which
//! process a number is: one that is read from elsewhere is anybody's. Page: `spec/policy.md`.

use writ_core::Span;
use writ_shell::{Analysis, Command};

use crate::command::Candidate;

/// What a process of Writ's is called, and its whole line.
const NAME: &str = "writ";
const LINE: &str = "writ notary run";
/// Signs that stand for other letters in a pattern.
const SIGNS: [char; 14] = ['.', '*', '+', '?', '[', ']', '(', ')', '{', '}', '^', '$', '\\', '|'];
/// Programs that print what they find of a name, among other things.
const FINDERS: [&str; 12] =
    ["grep", "egrep", "rg", "awk", "gawk", "sed", "cat", "head", "lsof", "fuser", "systemctl", "ss"];

/// Whether a command may end a process of Writ's.
pub fn ends_own(command: &Command, candidate: &Candidate, analysis: &Analysis) -> bool {
    let named = |text: String| text.contains(NAME) || text.contains("notary");
    match candidate.program() {
        "pkill" => finds(candidate),
        "killall" if flag(candidate, 'r', "--regexp") => {
            candidate.operands().flatten().any(|pattern| may_match(&pattern, NAME))
        }
        "fuser" if flag(candidate, 'k', "--kill") => candidate.operands().flatten().any(named),
        "kill" if candidate.operands().any(|operand| operand.is_none()) => {
            let through = command.via.iter().any(|via| matches!(via.as_str(), "xargs" | "gxargs" | "parallel"));
            analysis.commands.iter().any(|other| {
                let candidate = Candidate::of(other);
                match candidate.program() {
                    "pgrep" => finds(&candidate),
                    "pidof" => candidate.operands().flatten().any(named),
                    finder if FINDERS.contains(&finder) && (through || is_inside(other.span, command.span)) => {
                        candidate.operands().flatten().any(|text| named(text.replace(['[', ']'], "")))
                    }
                    _ => false,
                }
            })
        }
        _ => false,
    }
}

/// Whether `pkill` or `pgrep` may find a process of Writ's.
fn finds(candidate: &Candidate) -> bool {
    let exact = flag(candidate, 'x', "--exact");
    let text = if flag(candidate, 'f', "--full") { LINE } else { NAME };
    candidate.operands().flatten().any(|pattern| if exact { pattern == text } else { may_match(&pattern, text) })
}

/// Whether a pattern may match in a text: each piece between its signs stands in it, in order.
fn may_match(pattern: &str, text: &str) -> bool {
    pattern.split('|').any(|one| {
        let mut rest = text;
        !one.is_empty()
            && one.split(SIGNS).all(|piece| match rest.find(piece) {
                Some(at) => {
                    rest = rest.get(at + piece.len()..).unwrap_or_default();
                    true
                }
                None => false,
            })
    })
}

fn flag(candidate: &Candidate, letter: char, long: &str) -> bool {
    candidate.flags().iter().any(|flag| match flag.strip_prefix("--") {
        Some(_) => flag.len() > 3 && long.starts_with(flag.as_str()),
        // A signal by its name is no cluster.
        None => flag.contains(letter) && !flag.contains(|c: char| c.is_ascii_uppercase()),
    })
}

fn is_inside(inner: Span, outer: Span) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}
