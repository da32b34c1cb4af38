//! A request → allowed or denied, and by which lines.
//!
//! Owns R62's first three parts: declared, permitted, not forbidden. Records nothing. Invariant: whatever cannot be decided is denied, and
//! says why.

use std::collections::HashSet;
use std::net::IpAddr;

use cedar_policy::{Authorizer, Decision, Entities, Entity, EntityUid, PolicyId};
use serde::Serialize;
use writ_core::json::{Object, Value};

use super::request::{BadRequest, Request, uid, whole};
use super::rules::Rules;
use crate::agent::Agent;
use crate::directive::{Address, Cred, Directive, Inject};
use crate::names::{Resolved, resolve, tool_name};
use crate::reference::{absolute_path, host_matches, is_host, path_within};

/// A policy that spoke.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Said {
    /// `Agentfile:12`.
    pub rule: String,
    /// The line it stands on.
    pub line: usize,
    /// `permit` or `forbid`.
    pub effect: &'static str,
    /// What `@id` calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The directive it was lowered from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directive: Option<String>,
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decided {
    /// `allow` or `deny`.
    pub decision: &'static str,
    /// The policies that decided it, in the order of the file.
    pub rules: Vec<Said>,
    /// Why it is denied, where no policy says so: undeclared, an error, no permit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Errors of policies: any denies (R5).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

impl Decided {
    /// Whether it may be done.
    pub fn is_allowed(&self) -> bool {
        self.decision == "allow"
    }

    /// A denial for a reason of its own.
    pub(crate) fn refused(reason: &str) -> Self {
        Self::denied(reason.to_owned())
    }

    fn denied(reason: String) -> Self {
        Self { decision: "deny", rules: Vec::new(), reasons: vec![reason], errors: Vec::new() }
    }
}

impl Rules {
    /// Decides a request of the agent itself.
    pub fn decide(&self, agent: &Agent, request: &Request) -> Decided {
        let request = match request.declared_by(agent) {
            Ok(request) => request,
            Err(reason) => return Decided::denied(reason),
        };
        let principal = request.principal.as_deref().unwrap_or(agent.name_or_default());
        self.ask(principal, &request)
    }

    /// What the policies alone say of somebody's request, whatever is declared.
    pub fn ask(&self, principal: &str, request: &Request) -> Decided {
        let whole = match with_resource(request) {
            Ok(request) => request,
            Err(error) => return Decided::denied(error.0),
        };
        let request = &whole;
        if self.broken {
            return Decided::denied("the policies have errors: `writ agentfile lint` shows them".to_owned());
        }
        match self.evaluate(principal, request) {
            Ok(decided) => decided,
            Err(error) => Decided::denied(error.0),
        }
    }

    fn evaluate(&self, principal: &str, request: &Request) -> Result<Decided, BadRequest> {
        let bad = |error: &dyn std::fmt::Display| BadRequest(error.to_string());
        let (principal, action) = (uid("Agent", principal)?, uid("Action", request.action.name)?);
        let resource = uid(request.action.resource, &request.resource)?;
        let entities = ancestors(request.action.resource, &request.resource, &resource)?;
        let asked = cedar_policy::Request::new(principal, action, resource.clone(), request.context()?, None)
            .map_err(|error| bad(&error))?;
        let (mut errors, mut rules) = (Vec::<String>::new(), Vec::<Said>::new());
        let (mut permitted, mut forbidden) = (false, false);
        for set in self.by_action.asked(&self.all, request.action.name, &resource) {
            let response = Authorizer::new().is_authorized(&asked, set, &entities);
            permitted |= response.decision() == Decision::Allow;
            forbidden |= response.decision() == Decision::Deny && response.diagnostics().reason().next().is_some();
            errors.extend(response.diagnostics().errors().map(ToString::to_string));
            rules.extend(response.diagnostics().reason().filter_map(|id| self.said(id)));
        }
        // A forbid of one set outweighs the permits of the other, as within one.
        rules.retain(|said| !forbidden || said.effect == "forbid");
        rules.sort_by_key(|said| said.line);
        let allowed = permitted && !forbidden && errors.is_empty();
        let mut reasons = Vec::new();
        if !errors.is_empty() {
            reasons.push("a policy erred, and what errs is denied".to_owned());
            // A permit beside an error decided nothing.
            rules.retain(|said| said.effect == "forbid");
        } else if rules.is_empty() {
            reasons.push(format!("no policy permits `{}` on `{}`", request.action.name, request.resource));
        }
        Ok(Decided { decision: if allowed { "allow" } else { "deny" }, rules, reasons, errors })
    }

    fn said(&self, id: &PolicyId) -> Option<Said> {
        let rule = self.rules.get(id)?;
        Some(Said {
            rule: id.to_string(),
            line: rule.place.line,
            effect: if rule.permits { "permit" } else { "forbid" },
            id: rule.label.clone(),
            directive: rule.directive.clone(),
        })
    }
}

impl Request {
    /// The request with its resource as the agent's policies name it; why it is none, or the resource is not declared.
    pub fn declared_by(&self, agent: &Agent) -> Result<Self, String> {
        let request = normal(agent, self).map_err(|error| error.0)?;
        undeclared(agent, &request).map_or(Ok(request), Err)
    }
}

/// The request with what its resource says in its context, too: the path, the host. Another one there is no request.
fn with_resource(request: &Request) -> Result<Request, BadRequest> {
    let member = match request.action.resource {
        "Path" => "path",
        "Host" => "host",
        _ => return Ok(request.clone()),
    };
    let mut out = request.clone();
    match request.text(member) {
        None => out.context.push(member, Value::from(request.resource.as_str())),
        Some(said) if said == request.resource => {}
        Some(said) => {
            return Err(BadRequest(format!(
                "`{member}` in the context is `{said}`, and the resource `{}`",
                request.resource
            )));
        }
    }
    Ok(out)
}

/// The request with its resource as policies name it.
fn normal(agent: &Agent, request: &Request) -> Result<Request, BadRequest> {
    let mut out = request.clone();
    match request.action.resource {
        "Tool" => {
            if let Resolved::Tool(tool) | Resolved::Later(tool) = resolve(agent, &request.resource) {
                out.resource = tool_name(agent, &tool);
            }
        }
        "Path" => {
            out.resource =
                absolute_path(&request.resource).map_err(|why| BadRequest(format!("`{}`: {why}", request.resource)))?;
        }
        "Host" => {
            if !is_host(&request.resource) {
                return Err(BadRequest(format!("`{}` is no host", request.resource)));
            }
            out.resource = request.resource.to_ascii_lowercase();
        }
        _ => {}
    }
    if request.text("path").is_some() || request.text("host").is_some() {
        let mut context = Object::new();
        for (name, value) in request.context.iter() {
            context.push(name, said(request, name, value)?);
        }
        out.context = context;
    }
    Ok(out)
}

/// A member of the context as policies compare it: a host is one, and no path leads to another than it names.
fn said(request: &Request, name: &str, value: &Value) -> Result<Value, BadRequest> {
    let text = value.as_str().filter(|text| !text.is_empty());
    Ok(match (name, text) {
        ("host", Some(host)) if !is_host(host) && host.parse::<IpAddr>().is_err() => {
            return Err(BadRequest(format!("`host` in the context: `{host}` is no host")));
        }
        ("host", Some(host)) => Value::from(host.to_ascii_lowercase()),
        // The path of an address is the server's to read.
        ("path", Some(path)) if request.action.name != "network.egress" => {
            let wrong = |why: &str| BadRequest(format!("`path` in the context: `{path}`: {why}"));
            if path.starts_with('/') {
                Value::from(absolute_path(path).map_err(wrong)?)
            } else if path.split('/').any(|part| part == "..") {
                return Err(wrong("the path has `..` in it"));
            } else {
                value.clone()
            }
        }
        _ => value.clone(),
    })
}

/// Why a resource is not the agent's: it is not declared.
fn undeclared(agent: &Agent, request: &Request) -> Option<String> {
    let id = request.resource.as_str();
    let name = request.action.name;
    let declared = match name {
        "tool.invoke" => match resolve(agent, id) {
            Resolved::Tool(_) => true,
            Resolved::Ambiguous(tools) => {
                let names: Vec<String> = tools.iter().map(|tool| format!("`{tool}`")).collect();
                return Some(format!("`{id}` may be any of {}", names.join(", ")));
            }
            Resolved::Later(_) | Resolved::Unknown => false,
        },
        "function.invoke" => agent.functions().any(|(_, function)| function.name() == id),
        "skill.invoke" => {
            agent.skills().any(|(_, skill)| skill.name() == id) || agent.sops().any(|(_, sop)| sop.name() == id)
        }
        "cred.resolve" => {
            let host = request.text("host").unwrap_or_default();
            let cred = agent.creds().find(|(_, cred)| cred.name == id);
            if cred.is_some_and(|(_, cred)| !cred.hosts.iter().any(|pattern| host_matches(pattern, host))) {
                return Some(format!("the secret `{id}` is not bound to the host of the request"));
            }
            let place = |cred: &Cred| if cred.inject == Inject::Query { "query" } else { "header" };
            if let Some((other, (_, cred))) = request.text("inject").filter(|other| !other.is_empty()).zip(cred)
                && other != place(cred)
            {
                return Some(format!(
                    "the secret `{id}` goes into the {} of a request, not into `{other}`",
                    place(cred)
                ));
            }
            cred.is_some()
        }
        "network.egress" => {
            let known: Vec<&Address> =
                agent.destinations().map(|(_, to)| to).filter(|to| host_matches(&to.host, id)).collect();
            if !known.is_empty() && !known.iter().any(|to| is_way(request, to)) {
                return Some(format!("`{id}` is not declared by the scheme and port of the request"));
            }
            !known.is_empty()
        }
        "filesystem.read" => agent.mounts().any(|(_, (path, _))| path_within(id, path)),
        "filesystem.write" => {
            // The nearest mount says whether it may be written.
            let nearest =
                agent.mounts().filter(|(_, (path, _))| path_within(id, path)).max_by_key(|(_, (path, _))| path.len());
            nearest.is_some_and(|(_, (_, mode))| mode == crate::directive::Mode::Rw)
        }
        "memory.read" | "memory.write" => agent.entries.iter().any(|entry| match &entry.directive {
            Directive::Memory { name, mode, .. } => {
                name == id && (request.action.name == "memory.read" || mode != "ro")
            }
            _ => false,
        }),
        "mcp.request" => {
            agent.mcp().any(|(_, mcp)| mcp.name() == id) || agent.servers().any(|(_, (name, _))| name == id)
        }
        // No directive declares whom it may delegate to: policies alone say it.
        _ => true,
    };
    (!declared).then(|| format!("`{id}` is not declared for `{name}`"))
}

/// Whether what a request says of scheme and port is how an address is reached; what it does not say fits.
fn is_way(request: &Request, to: &Address) -> bool {
    let port = request.context.get("port").map(whole);
    request.text("scheme").is_none_or(|scheme| scheme.is_empty() || scheme == to.scheme)
        && port.is_none_or(|port| port == Some(i64::from(to.port)))
}

/// What a resource lies in: a path in its folders, a host in its domains.
fn ancestors(kind: &str, id: &str, resource: &EntityUid) -> Result<Entities, BadRequest> {
    let names: Vec<String> = match kind {
        "Path" => {
            let parts = id.match_indices('/').filter_map(|(at, _)| id.get(..at.max(1)));
            parts.filter(|parent| *parent != id).map(str::to_owned).collect()
        }
        "Host" => id.match_indices('.').filter_map(|(at, _)| Some(format!("*{}", id.get(at..)?))).collect(),
        _ => return Ok(Entities::empty()),
    };
    let parents = names.iter().map(|name| uid(kind, name)).collect::<Result<HashSet<_>, _>>()?;
    let of = parents.iter().map(|uid| Entity::with_uid(uid.clone())).collect::<Vec<_>>();
    let whole = of.into_iter().chain([Entity::new_no_attrs(resource.clone(), parents)]);
    Entities::from_entities(whole, None).map_err(|error| BadRequest(error.to_string()))
}

#[cfg(test)]
mod tests;
