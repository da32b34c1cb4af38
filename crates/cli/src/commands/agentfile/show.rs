//! `writ agentfile show`: what a file declares, what its policies are, how much it asks for.

use std::path::Path;

use serde::Serialize;
use writ_agentfile::directive::Directive;
use writ_agentfile::risk::{Item, Report};
use writ_core::Digest;

use super::usable;
use crate::args::Format;
use crate::exit::Failure;
use crate::output;

/// The file as one document.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    file: &'a str,
    digest: Digest,
    policy_hash: Digest,
    directives: Vec<Line<'a>>,
    policies: Vec<Policy<'a>>,
    risk: Report,
}

#[derive(Serialize)]
struct Line<'a> {
    line: usize,
    #[serde(flatten)]
    directive: &'a Directive,
}

#[derive(Serialize)]
struct Policy<'a> {
    rule: String,
    line: usize,
    effect: &'static str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    directive: Option<&'a str>,
}

/// Prints it.
pub fn run(file: &Path, format: Format) -> Result<(), Failure> {
    let linted = usable(file)?;
    let risk = Report::of(&linted.agent, &linted.rules);
    match format {
        Format::Json => output::print_json(&Document {
            file: &linted.agent.file,
            digest: linted.agent.digest(),
            policy_hash: linted.rules.digest(),
            directives: linted
                .agent
                .entries
                .iter()
                .map(|entry| Line { line: entry.line(), directive: &entry.directive })
                .collect(),
            policies: linted
                .rules
                .each()
                .map(|(id, rule)| Policy {
                    rule: id.to_string(),
                    line: rule.place.line,
                    effect: if rule.permits { "permit" } else { "forbid" },
                    text: &rule.text,
                    directive: rule.directive.as_deref(),
                })
                .collect(),
            risk,
        }),
        Format::Human => {
            output::line(format!("{} ({})", output::bold(&risk.agent), linted.agent.file));
            if let Some(command) = linted.agent.command() {
                output::line(format!("  command      {}", command.join(" ")));
            }
            if let Some(base) = &risk.base {
                output::line(format!("  base         {base}"));
            }
            output::line(format!(
                "  risk         {}: {}",
                risk.tier.as_str(),
                if risk.why.is_empty() { "it asks for nothing".to_owned() } else { risk.why.join("; ") }
            ));
            list("hosts", &risk.hosts);
            list("mounts", &risk.mounts);
            list("secrets", &risk.credentials);
            list("tools", &risk.tools);
            list("risky", &risk.risky_tools);
            list("permits", &risk.permits);
            list("forbids", &risk.forbids);
            list("ceilings", &risk.ceilings);
            list("not enforced", &risk.unsupported);
            output::line(format!("  policy hash  {}", linted.rules.digest()));
        }
    }
    Ok(())
}

fn list(name: &str, items: &[Item]) {
    for (at, item) in items.iter().enumerate() {
        let name = if at == 0 { name } else { "" };
        output::line(format!("  {name:<12} {}  {}", output::plain(&item.text), output::dim(format!(":{}", item.line))));
    }
}
