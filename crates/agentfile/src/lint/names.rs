//! Findings about words for tools that no `TOOL` declares, or that several do.

use crate::agent::Agent;
use crate::diagnostic::Diagnostic;
use crate::directive::Directive;
use crate::names::{Names, Resolved};

pub(super) fn check(agent: &Agent, found: &mut Vec<Diagnostic>) {
    let names = Names::of(agent);
    for entry in &agent.entries {
        let (word, at) = match &entry.directive {
            Directive::Allow(tool) | Directive::Deny(tool) => (tool, 1),
            Directive::RateLimit { tool, .. } => (tool, 0),
            _ => continue,
        };
        let place = entry.argument(at);
        match names.resolve(word) {
            Resolved::Tool(_) => {}
            Resolved::Later(_) => {
                let message = format!(
                    "`{word}` is no declared tool; whether a tool set or server brings it is known to the lock alone"
                );
                found.push(Diagnostic::warning(
                    "unresolved-tool",
                    place,
                    message,
                    format!("`TOOL {word}` declares it"),
                ));
            }
            Resolved::Ambiguous(tools) => {
                let names: Vec<String> = tools.iter().map(|tool| format!("`{tool}`")).collect();
                let message = format!("`{word}` may be any of {}", names.join(", "));
                found.push(Diagnostic::error("ambiguous-tool", place, message, "write the namespace, too"));
            }
            Resolved::Unknown => {
                let message = format!("the tool `{}` is not declared", word.chars().take(60).collect::<String>());
                let near = agent
                    .tools()
                    .map(|(_, tool)| (strsim::damerau_levenshtein(&tool.name, word), tool.to_string()))
                    .min();
                let help = match near {
                    Some((distance, near)) if distance <= 2 => format!("did you mean `{near}`?"),
                    _ if word.contains(':') => format!("declare it: `TOOL {word}`"),
                    _ => format!("declare it: `TOOL utcp:{word}`"),
                };
                found.push(Diagnostic::error("undeclared-tool", place, message, help));
            }
        }
    }
}
