//! Names of the base's that a child gives to something of its own.
//!
//! Owns when a tool, a skill, a procedure, a function, a server of the child is another than the one that the base means by the name: what the base
//! permits, it permits by name. Refuses nothing, since a child may replace what it inherits. Invariant: two are taken for the same only where
//! both lines, or both locks, say the same.

use std::borrow::Cow;

use super::{Level, Side};
use crate::agent::{Agent, Entry};
use crate::diagnostic::Diagnostic;
use crate::directive::{Bundle, Directive, Function, Sop};
use crate::lock::Lock;

/// What is told, in the order of the child's file.
pub fn taken(child: &Agent, lock: Option<&Lock>, parent: &Level) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    for entry in &child.entries {
        let Some((kind, name)) = named(&entry.directive) else { continue };
        let base = parent.agent.entries.iter().find(|base| named(&base.directive) == Some((kind, name.clone())));
        let Some(base) = base.filter(|base| !is_same((entry, lock), (base, parent.lock.as_ref()))) else { continue };
        let (here, there) = (Side::of(child, entry).shown(), Side::of(&parent.agent, base).shown());
        let message = format!(
            "the {kind} `{name}` has the name of one of the base's, and is not known to be that: here {here}, in the base {there}"
        );
        let help = "what the base permits of it, it permits of yours: another name, where yours is another";
        out.push(Diagnostic::warning("base-name", entry.argument(0), message, help));
    }
    out
}

/// What policies, or other lines, know something by.
fn named(directive: &Directive) -> Option<(&'static str, Cow<'_, str>)> {
    match directive {
        Directive::Skill(bundle) => Some(("skill", bundle.name().into())),
        Directive::Sop(sop) => Some(("procedure", sop.name().into())),
        Directive::Function(function) => Some(("function", function.name().into())),
        Directive::Server { name, .. } => Some(("server", name.into())),
        Directive::Mcp(mcp) => Some(("MCP server", mcp.name().into())),
        Directive::Tool(tool) => Some(("tool", tool.to_string().into())),
        _ => None,
    }
}

fn is_same(one: (&Entry, Option<&Lock>), other: (&Entry, Option<&Lock>)) -> bool {
    match (pinned(one.0, one.1), pinned(other.0, other.1)) {
        (Some(one), Some(other)) => one == other,
        _ => match (&one.0.directive, &other.0.directive) {
            // Where a text stands in its file is not what it says.
            (Directive::Sop(Sop::Inline { block, .. }), Directive::Sop(Sop::Inline { block: base, .. })) => {
                block.text == base.text
            }
            (one, other) => is_absolute(one) && one == other,
        },
    }
}

/// The digest of what a line means, where its lock has one.
fn pinned(entry: &Entry, lock: Option<&Lock>) -> Option<String> {
    let lock = lock?;
    match &entry.directive {
        Directive::Skill(bundle) => lock.skills.iter().find(|one| one.name == bundle.name())?.hash.clone(),
        Directive::Sop(sop) => lock.sops.iter().find(|one| one.name == sop.name())?.hash.clone(),
        Directive::Function(Function::Local { path, symbol }) => {
            let found =
                lock.functions.iter().find(|one| one.path.trim_start_matches("./") == format!("{path}:{symbol}"));
            found?.hash.map(|hash| hash.to_string())
        }
        Directive::Tool(tool) => {
            let found = lock.tools.iter().find(|one| one.name == tool.to_string())?;
            let program = found.program.map(|program| program.to_string());
            (found.digest.is_some() || program.is_some()).then(|| format!("{:?} {program:?}", found.digest))
        }
        Directive::Mcp(mcp) => {
            lock.mcp.iter().find(|one| one.name == mcp.name())?.digest.map(|digest| digest.to_string())
        }
        _ => None,
    }
}

/// Whether a line means the same in every folder.
fn is_absolute(directive: &Directive) -> bool {
    match directive {
        Directive::Skill(Bundle::Local { .. })
        | Directive::Sop(Sop::Reference { bundle: Bundle::Local { .. } })
        | Directive::Function(Function::Local { .. }) => false,
        Directive::Skill(Bundle::Registry(reference))
        | Directive::Sop(Sop::Reference { bundle: Bundle::Registry(reference) }) => reference.digest.is_some(),
        _ => true,
    }
}
