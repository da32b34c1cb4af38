//! The resources of one kind of request, in classes that no policy and no declaration tells apart.
//!
//! Owns which names there are to ask about. Invariant: each request that can be made about an action is in one of its classes.

use std::collections::BTreeSet;

use writ_agentfile::Agent;
use writ_agentfile::cedar::{Action, Kind, MAX_NUMBER, Request};
use writ_agentfile::ceiling::{Level, declared, request};
use writ_agentfile::directive::Inject;
use writ_agentfile::reference::{host_matches, path_within};

use super::rewrite::{Written, own_member};

/// The last part of a name that no file has.
const ANY: &str = "any-other";

/// Resources that are all judged alike, but for what the context says.
pub(super) struct Class {
    /// One of them, as a request names it, with what the context has to hold at least.
    pub one: Request,
    /// What it lies in.
    pub within: BTreeSet<String>,
    /// What the context says of each of them, in Cedar.
    pub when: Vec<String>,
}

/// A text in Cedar.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A text inside a pattern, where `*` is a letter.
fn pattern(before: &str, text: &str, after: &str) -> String {
    let whole = quoted(text).replace('*', "\\*");
    let inner = whole.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default();
    format!("\"{before}{inner}{after}\"")
}

/// The classes of an action's resources that the child may have something to do with.
pub(super) fn classes(action: &'static Action, child: &Level, base: &Level, written: &[&Written]) -> Vec<Class> {
    let mut named = BTreeSet::new();
    for policy in written.iter().filter(|policy| policy.speaks(action.name)) {
        policy.names(action.resource, &mut named);
    }
    let mut out = match action.resource {
        "Path" => paths(action, named, child, base),
        "Host" => hosts(action, named, child, base),
        _ => {
            named.extend(declared(&child.agent));
            named.insert(ANY.to_owned());
            named.into_iter().map(|name| plain(action, &name, child)).collect()
        }
    };
    for class in &mut out {
        class.when.extend(well_formed(action));
    }
    out
}

fn plain(action: &'static Action, name: &str, child: &Level) -> Class {
    Class { one: request(action, name, &child.agent), within: BTreeSet::new(), when: Vec::new() }
}

/// Each named path, and what lies below it and below no other named one.
fn paths(action: &'static Action, mut named: BTreeSet<String>, child: &Level, base: &Level) -> Vec<Class> {
    for level in [child, base] {
        named.extend(level.agent.mounts().map(|(_, (path, _))| path.to_owned()));
    }
    named.insert("/".to_owned());
    let below = |of: &str| if of == "/" { pattern("", "/", "*") } else { pattern("", of, "/*") };
    let mut out = Vec::new();
    for path in &named {
        let around: BTreeSet<String> = named.iter().filter(|other| path_within(path, other)).cloned().collect();
        out.push(Class {
            one: Request::new(action, path.as_str()),
            within: around.iter().filter(|other| *other != path).cloned().collect(),
            when: vec![format!("context.path == {}", quoted(path))],
        });
        let mut when = vec![format!("context.path like {} && context.path != {}", below(path), quoted(path))];
        for other in named.iter().filter(|other| *other != path && path_within(other, path)) {
            when.push(format!("context.path != {} && !(context.path like {})", quoted(other), below(other)));
        }
        let inside = format!("{}/{ANY}", path.trim_end_matches('/'));
        out.push(Class { one: Request::new(action, inside), within: around, when });
    }
    out
}

/// Each named host, and what lies in each named domain and in no other named one.
fn hosts(action: &'static Action, named: BTreeSet<String>, child: &Level, base: &Level) -> Vec<Class> {
    let mut all: BTreeSet<String> = named.into_iter().map(|name| name.to_ascii_lowercase()).collect();
    for level in [child, base] {
        all.extend(level.agent.destinations().map(|(_, address)| address.host.to_ascii_lowercase()));
    }
    let (domains, exact): (BTreeSet<String>, BTreeSet<String>) =
        all.into_iter().partition(|name| name.starts_with("*."));
    let around = |host: &str| domains.iter().filter(|domain| host_matches(domain, host)).cloned().collect();
    let like = |domain: &str| format!("context.host like {}", pattern("*", domain.trim_start_matches('*'), ""));
    let mut out: Vec<Class> = Vec::new();
    for host in &exact {
        let when = vec![format!("context.host == {}", quoted(host))];
        out.push(Class { one: Request::new(action, host.as_str()), within: around(host), when });
    }
    let other_than = |deeper: &dyn Fn(&str) -> bool| {
        let hosts = exact.iter().map(|host| format!("context.host != {}", quoted(host)));
        let domains = domains.iter().filter(|domain| deeper(domain)).map(|domain| format!("!({})", like(domain)));
        hosts.chain(domains).collect::<Vec<String>>()
    };
    for domain in &domains {
        let host = format!("{ANY}{}", domain.trim_start_matches('*'));
        let mut when = vec![like(domain)];
        when.extend(other_than(&|other| other != domain && host_matches(domain, other.trim_start_matches("*."))));
        out.push(Class { within: around(&host), one: Request::new(action, host), when });
    }
    out.push(Class { one: Request::new(action, ANY), within: BTreeSet::new(), when: other_than(&|_| true) });
    out
}

/// What every request's paths, hosts and numbers are like, in Cedar: others are refused before a policy is asked.
fn well_formed(action: &Action) -> Vec<String> {
    let has = |member: &str| action.context.iter().any(|(name, _)| *name == member);
    let own = own_member(action);
    let numbers = action.context.iter().filter(|(_, kind)| *kind == Kind::Number).map(|(name, _)| {
        let range = format!("context.{name} <= {MAX_NUMBER} && context.{name} >= -{MAX_NUMBER}");
        format!("if context has {name} then {range} else true")
    });
    let mut out: Vec<String> = numbers.collect();
    let mut say = |member: &str, bad: &[String]| {
        let bad = bad.join(" || ");
        out.push(if own == Some(member) {
            format!("!({bad})")
        } else {
            format!("if context has {member} then context.{member} == \"\" || !({bad}) else true")
        });
    };
    if has("path") && action.name != "network.egress" {
        let is = |pattern: &str| format!("context.path like \"{pattern}\"");
        let absolute = ["*//*", "*/./*", "*/.", "*/"].map(is).join(" || ");
        let mut bad = vec![format!("context.path like \"/*\" && context.path != \"/\" && ({absolute})")];
        bad.extend(["*/../*", "*/..", "../*", ".."].map(is));
        say("path", &bad);
    }
    if has("host") {
        let mut bad: Vec<String> = ["*..*", ".*", "*.", "* *", "*/*", "*@*", "*\\**"]
            .map(|pattern| format!("context.host like \"{pattern}\""))
            .to_vec();
        if own == Some("host") {
            bad.push("context.host == \"\"".to_owned());
        }
        say("host", &bad);
    }
    out
}

/// What has to hold of the context, in Cedar, for a resource that an agent declares to be declared for the request.
pub(super) fn bound(action: &Action, agent: &Agent, name: &str) -> Option<String> {
    match action.name {
        "cred.resolve" => secret(agent, name),
        "network.egress" => reached(agent, name),
        _ => None,
    }
}

/// A host, by what a request says of scheme and port.
fn reached(agent: &Agent, host: &str) -> Option<String> {
    let known = agent.destinations().filter(|(_, to)| host_matches(&to.host, host));
    let ways: BTreeSet<String> = known
        .map(|(_, to)| {
            let (scheme, port) = (quoted(&to.scheme), to.port);
            let scheme =
                format!("if context has scheme then context.scheme == \"\" || context.scheme == {scheme} else true");
            format!("(({scheme}) && (if context has port then context.port == {port} else true))")
        })
        .collect();
    (!ways.is_empty()).then(|| ways.into_iter().collect::<Vec<_>>().join(" || "))
}

/// A secret, by its hosts and its place in a request.
fn secret(agent: &Agent, name: &str) -> Option<String> {
    let (_, cred) = agent.creds().find(|(_, cred)| cred.name == name)?;
    let host = |host: &String| match host.strip_prefix('*') {
        Some(domain) => format!("context.host like {}", pattern("*", domain, "")),
        None => format!("context.host == {}", quoted(host)),
    };
    let hosts = cred.hosts.iter().map(host).collect::<Vec<_>>().join(" || ");
    let place = if cred.inject == Inject::Query { "query" } else { "header" };
    let inject =
        format!("if context has inject then context.inject == \"\" || context.inject == \"{place}\" else true");
    Some(format!("context has host && ({hosts}) && ({inject})"))
}
