//! Requests that show what a child grants beyond its base: one of each name that the child holds, and one of a name that nobody does.
//!
//! Owns which requests are tried, and when a base's denial counts. Decides none itself. Invariant: what is told is a request that the child
//! allows, and that the base denies whatever else is known of it. What the base forbids inside of what a child names stays forbidden, and
//! is no violation; where the base's permits have conditions, it is the solver's to ask.

use std::collections::{BTreeMap, BTreeSet};

use writ_core::json::Value;

use super::{Level, MustNot, Side, Violation, named, one_line};
use crate::agent::Agent;
use crate::cedar::{ACTIONS, Action, Decided, Request, Rules};
use crate::directive::Directive;
use crate::names::tool_name;

/// The last part of a name that nothing has.
const ANY: &str = "any-other";
/// Most requests that are tried of one action.
const MOST: usize = 2000;

/// What a child grants beyond its base, a line of the child and an action each.
pub(super) fn beyond(child: &Agent, rules: &Rules, parent: &Level) -> Vec<Violation> {
    let mut found: BTreeMap<(usize, &str), Violation> = BTreeMap::new();
    for action in &ACTIONS {
        for request in requests(action, child, rules).into_iter().take(MOST) {
            let own = rules.decide(child, &request);
            let Some(said) = own.rules.first().filter(|_| own.is_allowed()) else { continue };
            let asked = named(child, &request);
            let held = parent.decide(child.name_or_default(), &asked);
            if found.contains_key(&(said.line, action.name)) || held.is_allowed() || !is_final(parent, &asked, &held) {
                continue;
            }
            let text = said.directive.clone().or_else(|| rules.text_at(said.line)).unwrap_or_default();
            let mine = Side { file: child.file.clone(), line: Some(said.line), text: one_line(&text) };
            let forbid = held.rules.iter().find(|said| said.effect == "forbid");
            let theirs = match forbid {
                Some(forbid) => {
                    let text = forbid.directive.clone().or_else(|| parent.rules.text_at(forbid.line));
                    let text = one_line(&text.unwrap_or_default());
                    Side { file: parent.agent.file.clone(), line: Some(forbid.line), text }
                }
                None => Side::absent(&parent.agent, held.reasons.join("; ")),
            };
            let rule = if forbid.is_some() { MustNot::RemoveDeny } else { of(action) };
            let message = format!("`{}` on `{}` is allowed, which the base denies", action.name, request.resource);
            found.insert((said.line, action.name), Violation { rule, message, child: mine, parent: theirs });
        }
    }
    found.into_values().collect()
}

/// Whether it stays denied, whatever else is known of the request.
fn is_final(parent: &Level, request: &Request, held: &Decided) -> bool {
    held.errors.is_empty()
        && (held.rules.iter().any(|said| said.effect == "forbid" && !parent.rules.reads_context(said.line))
            || request.declared_by(&parent.agent).is_err()
            || !parent.rules.may_permit_in(request.action.name, &as_known(parent, request)))
}

/// The resource as the base's policies name it.
fn as_known(parent: &Level, request: &Request) -> String {
    request.declared_by(&parent.agent).map_or_else(|_undeclared| request.resource.clone(), |known| known.resource)
}

fn of(action: &Action) -> MustNot {
    match action.resource {
        "Host" => MustNot::WidenNetwork,
        "Path" => MustNot::WidenFiles,
        "Credential" => MustNot::ExposeCredential,
        _ => MustNot::IncreaseAuthority,
    }
}

fn requests(action: &'static Action, child: &Agent, rules: &Rules) -> Vec<Request> {
    let mut names: BTreeSet<String> = rules.literals(action.resource).collect();
    match action.resource {
        "Path" => {
            names.extend(child.mounts().map(|(_, (path, _))| path.to_owned()));
            names.insert("/".to_owned());
            let inside: Vec<String> =
                names.iter().map(|path| format!("{}/{ANY}", path.trim_end_matches('/'))).collect();
            names.extend(inside);
        }
        "Host" => {
            names.extend(child.destinations().map(|(_, address)| address.host.to_ascii_lowercase()));
            names = names.into_iter().map(|host| host.replacen("*.", "any-other.", 1)).collect();
            names.insert(ANY.to_owned());
        }
        _ => {
            names.extend(declared(child));
            names.insert(ANY.to_owned());
        }
    }
    names.into_iter().map(|name| request(action, &name, child)).collect()
}

/// A request of a name; one of a secret is for a host that it is declared for.
pub fn request(action: &'static Action, name: &str, of: &Agent) -> Request {
    let mut one = Request::new(action, name);
    if action.name == "cred.resolve"
        && let Some((_, cred)) = of.creds().find(|(_, cred)| cred.name == name)
    {
        let host = cred.hosts.first().map(|host| host.strip_prefix("*.").map_or(host.clone(), |of| format!("a.{of}")));
        one.context.push("host", Value::from(host.unwrap_or_default()));
    }
    one
}

/// What is declared by a name, of any kind.
pub fn declared(agent: &Agent) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for (_, tool) in agent.tools() {
        out.extend([tool.to_string(), tool_name(agent, tool), tool.name.clone()]);
    }
    out.extend(agent.functions().map(|(_, function)| function.name().to_owned()));
    out.extend(agent.skills().map(|(_, skill)| skill.name().to_owned()));
    out.extend(agent.sops().map(|(_, sop)| sop.name().to_owned()));
    out.extend(agent.creds().map(|(_, cred)| cred.name.clone()));
    out.extend(agent.mcp().map(|(_, mcp)| mcp.name().to_owned()));
    out.extend(agent.servers().map(|(_, (name, _))| name.to_owned()));
    out.extend(agent.entries.iter().filter_map(|entry| match &entry.directive {
        Directive::Memory { name, .. } => Some(name.clone()),
        _ => None,
    }));
    out
}
