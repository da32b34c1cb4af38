//! Directives → Cedar policies (§9.17): `ALLOW`, `DENY`, `RATELIMIT`, `URL`, `MOUNT`, `CRED`.
//!
//! Owns the text of each lowered policy; its name is the line of its directive. Invariant: what a directive lowers to grants no more
//! than the directive says, and a secret bound to no host lowers to nothing.

use crate::agent::{Agent, Entry};
use crate::directive::{Cred, Directive, Mode};
use crate::names::{Names, Resolved};

/// The policy of a directive, if it lowers to one.
pub(super) fn lower(agent: &Agent, names: &Names<'_>, entry: &Entry) -> Option<String> {
    let principal = format!("principal == AgentRC::Agent::{}", quoted(agent.name_or_default()));
    let rule = |effect: &str, action: &str, resource: String, when: &str| {
        Some(format!("{effect}({principal}, action == AgentRC::Action::{}, resource{resource}){when};", quoted(action)))
    };
    let tool = |word: &str| {
        let name = match names.resolve(word) {
            Resolved::Tool(tool) | Resolved::Later(tool) => names.tool_name(&tool),
            Resolved::Ambiguous(_) | Resolved::Unknown => return None,
        };
        Some(format!(" == AgentRC::Tool::{}", quoted(&name)))
    };
    match &entry.directive {
        Directive::Allow(word) => rule("permit", "tool.invoke", tool(word)?, ""),
        Directive::Deny(word) => rule("forbid", "tool.invoke", tool(word)?, ""),
        Directive::RateLimit { tool: word, .. } => {
            rule("forbid", "tool.invoke", tool(word)?, " when { context.rate_exceeded }")
        }
        Directive::Url(address) => {
            rule("permit", "network.egress", format!(" == AgentRC::Host::{}", quoted(&address.host)), "")
        }
        Directive::Mount { path, mode } => {
            let actions = match mode {
                Mode::Ro => "[AgentRC::Action::\"filesystem.read\"]",
                Mode::Rw => "[AgentRC::Action::\"filesystem.read\", AgentRC::Action::\"filesystem.write\"]",
            };
            // A text, not the hierarchy: a solver knows what a text begins with, and nothing of which folder lies in which.
            let folder = quoted(path).trim_matches('"').trim_end_matches('/').replace('*', "\\*");
            let below = format!("{folder}/*");
            Some(format!(
                "permit({principal}, action in {actions}, resource) when {{ context.path == {} || context.path like \"{below}\" }};",
                quoted(path)
            ))
        }
        Directive::Cred(cred) => {
            let resource = format!(" == AgentRC::Credential::{}", quoted(&cred.name));
            rule("permit", "cred.resolve", resource, &format!(" when {{ {} }}", hosts(cred)?))
        }
        _ => None,
    }
}

fn hosts(cred: &Cred) -> Option<String> {
    let tests = cred.hosts.iter().map(|host| {
        if host.starts_with("*.") {
            format!("context.host like {}", quoted(host))
        } else {
            format!("context.host == {}", quoted(host))
        }
    });
    Some(tests.collect::<Vec<_>>().join(" || ")).filter(|tests| !tests.is_empty())
}

/// A text as Cedar writes it. Words of an Agentfile have no quotes and no control characters.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
