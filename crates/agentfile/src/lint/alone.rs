//! Findings about single directives among the others: doubles, what is missing, what warns wherever it stands.

use std::collections::HashMap;

use crate::agent::{Agent, Entry};
use crate::diagnostic::{Diagnostic, Place};
use crate::directive::{Base, Bundle, Class, Directive, Sop, known};
use crate::reference::host_matches;

pub(super) fn check(agent: &Agent, found: &mut Vec<Diagnostic>) {
    doubles(agent, found);
    if agent.name().is_none() {
        let help = "`AGENT <name>`, lower case; without it the package cannot be published";
        found.push(Diagnostic::warning("no-agent", Place::START, "no `AGENT`: the agent has no name", help));
    }
    if agent.audit().is_none() && !found.iter().any(|found| found.message.contains("audit")) {
        let help = "`AUDIT basic`, or `AUDIT off` where that is meant";
        found.push(Diagnostic::warning(
            "no-audit",
            Place::START,
            "no `AUDIT`: what has to be recorded is not said",
            help,
        ));
    }
    for entry in &agent.entries {
        each(agent, entry, found);
    }
}

fn each(agent: &Agent, entry: &Entry, found: &mut Vec<Diagnostic>) {
    let name = entry.keyword.text.as_str();
    if known(name).is_some_and(|known| known.class == Class::Placement) {
        let help = "it stays out of the package's digest: put it into the run manifest";
        let message = format!("`{name}` says where the agent runs, not what it is");
        found.push(Diagnostic::warning("placement", entry.keyword.place, message, help));
    }
    match &entry.directive {
        Directive::Agent(name) if !is_label(name) => {
            let message = format!("`{name}` is no lower-case DNS label");
            let help = "lower-case letters, digits and `-`, at most 63: `code-reviewer`";
            found.push(Diagnostic::warning("agent-name", entry.argument(0), message, help));
        }
        Directive::From(Base::Reference(reference)) if reference.digest.is_none() => {
            let what = match &reference.tag {
                Some(tag) => format!("the tag `{tag}` can be moved to another image"),
                None => "a reference without a tag means whatever is latest".to_owned(),
            };
            let help = format!("pin it: `FROM {}@sha256:<digest>`; `writ lock` finds the digest", reference.text);
            found.push(Diagnostic::warning("mutable-base", entry.argument(0), what, help));
        }
        Directive::Bind { mode: None, .. } => {
            let help = "`copy`, `direct`, `ro` or `rw`; two words mean `copy`";
            found.push(Diagnostic::warning("bind-mode", entry.keyword.place, "`BIND` without a mode", help));
        }
        Directive::Cred(cred) if cred.hosts.is_empty() => {
            let help = format!("`host:<host>` behind it; without one `{}` is put into no request", cred.name);
            found.push(Diagnostic::warning(
                "unbound-secret",
                entry.argument(0),
                format!("the secret `{}` is bound to no host", cred.name),
                help,
            ));
        }
        Directive::Cred(cred) => {
            for host in &cred.hosts {
                let named = agent.destinations().any(|(_, address)| host_matches(host, &address.host));
                if !named {
                    let at =
                        entry.words.iter().position(|word| word.text.to_ascii_lowercase() == format!("host:{host}"));
                    let help = format!("`URL https://{}`, or take the host out", host.trim_start_matches("*."));
                    let message = format!("no `URL` names `{host}`, which the secret `{}` is bound to", cred.name);
                    found.push(Diagnostic::warning("secret-host", entry.argument(at.unwrap_or(0)), message, help));
                }
            }
        }
        _ => {}
    }
}

fn is_label(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.len() <= 63 && name.starts_with(plain) && name.ends_with(plain) && name.chars().all(|c| plain(c) || c == '-')
}

/// What may stand once: the key that a second one has in common with the first, and what it is in words.
fn key(entry: &Entry) -> Option<(String, String)> {
    let name = entry.keyword.text.as_str();
    if known(name).is_some_and(|known| known.single) {
        return Some((name.to_owned(), format!("a second `{name}`")));
    }
    let of = |what: &str| Some((format!("{name} {what}"), format!("a second `{name}` of `{what}`")));
    match &entry.directive {
        Directive::Cred(cred) => of(&cred.name),
        Directive::Mount { path, .. } => of(path),
        Directive::Bind { target, .. } => of(target),
        Directive::Server { name, .. } | Directive::Memory { name, .. } => of(name),
        Directive::Limit { name, unit, .. } => {
            of(name).map(|(key, words)| (format!("{key} {}", unit.map_or("", crate::directive::Unit::as_str)), words))
        }
        Directive::RateLimit { tool, rate } => {
            of(tool).map(|(key, words)| (format!("{key} {}", rate.unit.as_str()), words))
        }
        Directive::Sop(Sop::Inline { name, .. } | Sop::Reference { bundle: Bundle::Named { name } }) => of(name),
        _ => None,
    }
}

fn doubles(agent: &Agent, found: &mut Vec<Diagnostic>) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for entry in &agent.entries {
        let Some((key, words)) = key(entry) else { continue };
        if let Some(first) = seen.get(&key) {
            let help = format!("the first is on line {first}: keep one of them");
            found.push(Diagnostic::error("duplicate", entry.keyword.place, words, help));
        } else {
            seen.insert(key, entry.line());
        }
    }
}
