//! Words that look like the value of a secret (R8, §9.12).
//!
//! Owns where such words are looked for: every word of every directive, comments, and the bodies of blocks. Never repeats them.

use writ_core::secret::{has_token, hide};

use crate::agent::Agent;
use crate::diagnostic::{Diagnostic, Place};
use crate::directive::Directive;
use crate::lines::lines;

const HELP: &str = "declare it: `CRED <name> env:<VAR> host:<host>`; the value stays where it is";

pub(super) fn check(agent: &Agent, found: &mut Vec<Diagnostic>) {
    let before = found.len();
    for entry in &agent.entries {
        if let Directive::Cmd(command) | Directive::Healthcheck { command, .. } = &entry.directive {
            let line = command.join(" ");
            let hidden = hide(&line);
            // `--token $TOKEN` names where the value is.
            let first =
                command.iter().zip(hidden.split(' ')).position(|(word, shown)| word != shown && !names_place(word));
            if let Some(at) = first.filter(|_| hidden != line) {
                let at = at + entry.words.len().saturating_sub(command.len());
                push(found, entry.argument(at));
            }
        }
    }
    for line in lines(&agent.text) {
        if !has_token(line.text) {
            continue;
        }
        let from = line.text.split([' ', '\t']).find(|word| has_token(word));
        let at = from.and_then(|word| line.text.find(word)).unwrap_or_default();
        let end = at + from.map_or(line.text.len(), str::len);
        let place = line.place(at, end);
        if !found.iter().skip(before).any(|known| known.place.line == place.line) {
            push(found, place);
        }
    }
}

fn names_place(word: &str) -> bool {
    let value = word.rsplit(['=', ':']).next().unwrap_or(word);
    value.starts_with('$') || word.starts_with('$') || value.starts_with("env:") || word.starts_with("vault:")
}

fn push(found: &mut Vec<Diagnostic>, place: Place) {
    found.push(Diagnostic::error("plaintext-secret", place, "a word that looks like a secret's value", HELP));
}
