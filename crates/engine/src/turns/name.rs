//! What the statement of a turn is called.
//!
//! Owns the names: whose turn it is, which, and which part of it. Refuses a name twice. Invariant: whoever verifies knows from the rows alone
//! which names a statement can have. Page: `spec/turns.md`.

use std::collections::HashSet;

use writ_core::{Agent, Digest};

use crate::governing::layers::LayerRef;

/// Longest part of a name that an agent's id or a prefix makes, in characters.
const MAX_PLAIN: usize = 64;

/// What the names of a type's statements begin with, where its sublayout says that.
pub fn prefix(list: &[LayerRef], kind: Option<&str>) -> Option<String> {
    let layer = list.iter().find(|layer| layer.agent.is_some() && layer.agent.as_deref() == kind)?;
    layer.prefix.as_deref().map(plain)
}

/// A turn, and which part of it, as names have it.
pub fn stem(turn: u64, part: Option<u64>) -> String {
    part.map_or_else(|| format!("turn-{turn}"), |part| format!("turn-{turn}-part-{part}"))
}

/// A name that no row names yet, of a statement that is the first of its agent or not.
pub fn fresh(
    used: &HashSet<String>,
    agent: Option<&Agent>,
    list: &[LayerRef],
    first: bool,
    (turn, part): (u64, Option<u64>),
) -> String {
    let stem = stem(turn, part);
    let Some(agent) = agent else { return free(used, "", &stem) };
    let id = plain(&agent.id);
    let Some(prefix) = prefix(list, agent.kind.as_deref()) else { return free(used, &format!("{id}-"), &stem) };
    // Whoever came first has the plain names.
    let own = format!("{prefix}{id}-");
    let mine = used.iter().any(|name| name.starts_with(&own));
    let name = format!("{prefix}{stem}.json");
    let others = first && used.iter().any(|name| name.starts_with(&prefix));
    if mine || others || used.contains(&name) { free(used, &own, &stem) } else { name }
}

/// Whether a statement of this turn can be called so; `agent` is a sub-agent's id, `prefix` what its type's names begin with.
pub fn is_of(name: &str, agent: Option<&str>, prefix: Option<&str>, turn: u64, part: Option<u64>) -> bool {
    let stem = stem(turn, part);
    let own = agent.map(|agent| format!("{}-", plain(agent)));
    let begins: Vec<String> = match (own, prefix) {
        (None, _) => vec![String::new()],
        (Some(own), None) => vec![own],
        (Some(own), Some(prefix)) => vec![prefix.to_owned(), format!("{prefix}{own}")],
    };
    let Some(name) = name.strip_suffix(".json") else { return false };
    let ends = |rest: &str| {
        let number = rest.strip_prefix('-');
        rest.is_empty() || number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    };
    begins
        .iter()
        .any(|begin| name.strip_prefix(begin.as_str()).and_then(|rest| rest.strip_prefix(&stem)).is_some_and(ends))
}

fn free(used: &HashSet<String>, prefix: &str, stem: &str) -> String {
    let plain = format!("{prefix}{stem}.json");
    if !used.contains(&plain) {
        return plain;
    }
    (2..u64::MAX)
        .map(|number| format!("{prefix}{stem}-{number}.json"))
        .find(|name| !used.contains(name))
        .unwrap_or(plain)
}

/// Text as a part of a file's name.
fn plain(text: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    let plain: String = text.chars().take(MAX_PLAIN).map(safe).collect();
    if plain == text {
        plain
    } else {
        format!("{plain}{}", Digest::of(text.as_bytes()).hex().chars().take(8).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_called_as_those_of_its_agent_are() {
        let mut used = HashSet::new();
        let mut names = Vec::new();
        for id in ["a1", "b/2"] {
            for (turn, part, first) in [(1, None, true), (1, Some(2), false), (2, None, false)] {
                let agent = Agent { id: id.to_owned(), kind: None };
                let name = fresh(&used, Some(&agent), &[], first, (turn, part));
                assert!(is_of(&name, Some(id), None, turn, part), "{name}");
                assert!(!is_of(&name, Some(id), None, turn + 1, part) && !is_of(&name, Some("c3"), None, turn, part));
                assert!(!is_of(&name, None, None, turn, part) && used.insert(name.clone()), "{name}");
                names.push(name);
            }
        }
        assert!(is_of("turn-1.json", None, None, 1, None) && is_of("turn-1-2.json", None, None, 1, None));
        for other in ["turn-1", "turn-10.json", "x-turn-1.json", "turn-1-.json", "turn-1-part-2.json"] {
            assert!(!is_of(other, None, None, 1, None), "{other}");
        }
        assert!(
            is_of("r-turn-1.json", Some("a1"), Some("r-"), 1, None)
                && is_of("r-a1-turn-1.json", Some("a1"), Some("r-"), 1, None)
        );
        assert!(!is_of("a1-turn-1.json", Some("a1"), Some("r-"), 1, None));
    }
}
