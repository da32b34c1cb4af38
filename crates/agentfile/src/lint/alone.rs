//! Findings about single directives among the others: doubles, what is missing, what warns wherever it stands.

use std::collections::HashMap;

use crate::agent::{Agent, Entry};
use crate::diagnostic::{Diagnostic, Place};
use crate::directive::{Base, Class, Directive, Unit, known};
use crate::names::{Names, Resolved};
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
fn key(names: &Names<'_>, entry: &Entry) -> Option<(String, String)> {
    let name = entry.keyword.text.as_str();
    if known(name).is_some_and(|known| known.single) {
        return Some((name.to_owned(), format!("a second `{name}`")));
    }
    let of = |what: &str| Some((format!("{name} {what}"), format!("a second `{name}` of `{what}`")));
    let timed = |what: &str, unit: &str| of(what).map(|(key, words)| (format!("{key} {unit}"), words));
    match &entry.directive {
        Directive::Cred(cred) => of(&cred.name),
        Directive::Mount { path, .. } => of(path),
        Directive::Bind { target, .. } => of(target),
        Directive::Server { name, .. } | Directive::Memory { name, .. } => of(name),
        Directive::Limit { name, unit, .. } => timed(name, unit.map_or("", Unit::as_str)),
        Directive::RateLimit { tool, rate } => match names.resolve(tool) {
            Resolved::Tool(tool) => timed(&tool.to_string(), rate.unit.as_str()),
            Resolved::Later(_) | Resolved::Ambiguous(_) | Resolved::Unknown => timed(tool, rate.unit.as_str()),
        },
        // Policies, locks and packages know these by their names alone.
        Directive::Sop(sop) => of(sop.name()),
        Directive::Skill(skill) => of(skill.name()),
        Directive::Function(function) => of(function.name()),
        Directive::Mcp(mcp) => of(mcp.name()),
        _ => None,
    }
}

fn doubles(agent: &Agent, found: &mut Vec<Diagnostic>) {
    let names = Names::of(agent);
    let (mut seen, mut lines): (HashMap<String, usize>, HashMap<String, usize>) = (HashMap::new(), HashMap::new());
    for entry in &agent.entries {
        let place = entry.keyword.place;
        let Some((key, words)) = key(&names, entry) else {
            if entry.opens_block() {
                continue;
            }
            if let Some(first) = lines.get(&entry.quoted()) {
                let message = format!("`{}` says what line {first} says", entry.quoted());
                found.push(Diagnostic::warning("repeated", place, message, "take one of them out"));
            } else {
                lines.insert(entry.quoted(), entry.line());
            }
            continue;
        };
        if let Some(first) = seen.get(&key) {
            let help = format!("the first is on line {first}: keep one of them");
            found.push(Diagnostic::error("duplicate", place, words, help));
        } else {
            seen.insert(key, entry.line());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Options, lint};

    fn codes(lines: &str) -> Vec<(&'static str, usize)> {
        let text = format!("AGENT a\nCMD run\nAUDIT all\n{lines}");
        let linted = lint(text.as_bytes(), "Agentfile", &Options::default());
        let told = linted.found.into_iter().filter(|one| ["duplicate", "repeated"].contains(&one.code));
        told.map(|one| (one.code, one.place.line)).collect()
    }

    #[test]
    fn what_is_known_by_its_name_stands_once() {
        for lines in [
            "SKILL ./a/x\nSKILL ./b/x\n",
            "SKILL x\nSKILL ghcr.io/o/x:1\n",
            "FUNCTION ./a.py:f\nFUNCTION ./b.py:f\n",
            "FUNCTION f\nFUNCTION ./b.py:f\n",
            "MCP registry://m/a@1\nMCP registry://n/a@2\n",
            "SOP ./a/x.md\nSOP ./b/x.md\n",
            "SOP ./a/x.md\nSOP x\nhi\nEND\n",
        ] {
            assert_eq!(codes(lines), [("duplicate", 5)], "{lines}");
        }
        let rates = "TOOL utcp:x\nRATELIMIT x 1/sec\nRATELIMIT utcp:x 2/sec\n";
        assert_eq!(codes(rates), [("duplicate", 6)]);
        for lines in [
            "SKILL ./a/x\nSKILL ./a/y\n",
            "FUNCTION ./a.py:f\nFUNCTION ./a.py:g\n",
            "MCP a\nMCP b\nSERVER a https://a.example\n",
            "TOOL utcp:x\nRATELIMIT x 1/sec\nRATELIMIT utcp:x 2/hour\n",
            "TOOL utcp:x\nTOOL other:x\nRATELIMIT utcp:x 1/sec\nRATELIMIT other:x 1/sec\n",
        ] {
            assert_eq!(codes(lines), [], "{lines}");
        }
    }

    #[test]
    fn a_line_that_says_nothing_more_is_told() {
        for line in ["TOOL utcp:x", "URL https://a.example", "TOOLSET a:b", "OPTIMIZER a", "PLUGIN a"] {
            assert_eq!(codes(&format!("{line}\n{line} # again\n")), [("repeated", 5)], "{line}");
        }
        assert_eq!(codes("TOOL utcp:x\nTOOL utcp:y\nURL https://a.example\nURL https://a.example/x\n"), []);
        assert_eq!(codes("POLICY\nEND\nPOLICY\nEND\n"), []);
    }
}
