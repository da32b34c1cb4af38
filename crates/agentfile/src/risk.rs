//! What a reviewer has to know before an agent runs (§21), and what an update newly asks for.
//!
//! Owns the risk report and its tier with the reasons for it. Knows nothing of signatures: who reads a package adds what it verified.
//! Invariant: everything the file asks for is in the report, and the tier is never lower than its reasons say.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::agent::Agent;
use crate::cedar::Rules;
use crate::directive::{Class, Directive, Mode, known};
use crate::names::tool_name;

/// How much an agent asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Neither network nor writing nor secrets.
    Low,
    /// Some of these, each bounded.
    Medium,
    /// One thing that gives nearly everything.
    High,
    /// Several of these together.
    Critical,
}

impl Tier {
    /// As annotations have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// A line of the report: what, and where the file says it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Item {
    /// In words: `api.github.com:443`.
    pub text: String,
    /// The line of the Agentfile.
    pub line: usize,
}

/// The report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The agent's name.
    pub agent: String,
    /// How much it asks for.
    pub tier: Tier,
    /// Why the tier is what it is.
    pub why: Vec<String>,
    /// Hosts it asks to reach.
    pub hosts: Vec<Item>,
    /// Paths it sees, and whether it writes there.
    pub mounts: Vec<Item>,
    /// Secrets: name, source's kind, hosts.
    pub credentials: Vec<Item>,
    /// Tools.
    pub tools: Vec<Item>,
    /// Those of them that can do nearly everything, with the reason.
    pub risky_tools: Vec<Item>,
    /// What policies permit.
    pub permits: Vec<Item>,
    /// What policies forbid.
    pub forbids: Vec<Item>,
    /// Rates, limits, timeouts, audit.
    pub ceilings: Vec<Item>,
    /// What it is built on.
    pub base: Option<String>,
    /// Directives that are read and that nothing here enforces.
    pub unsupported: Vec<Item>,
}

/// Parts of tools' names, and what they give.
const RISKY: [(&str, &str); 14] = [
    ("shell", "runs any command"),
    ("bash", "runs any command"),
    ("exec", "runs any command"),
    ("terminal", "runs any command"),
    ("subprocess", "runs any command"),
    ("python", "runs any code"),
    ("code_interpreter", "runs any code"),
    ("eval", "runs any code"),
    ("browser", "goes to any page"),
    ("computer", "uses the whole computer"),
    ("http_request", "reaches any address"),
    ("load_tool", "loads tools that nobody reviewed"),
    ("use_agent", "starts other agents"),
    ("sudo", "becomes the administrator"),
];
/// Folders that hold more than an agent's work.
const WIDE: [&str; 8] = ["/", "/etc", "/root", "/home", "/usr", "/var", "/proc", "/run"];

impl Report {
    /// The report on an agent.
    pub fn of(agent: &Agent, rules: &Rules) -> Self {
        let item = |line: usize, text: String| Item { text, line };
        let mut out = Self {
            agent: agent.name_or_default().to_owned(),
            tier: Tier::Low,
            why: Vec::new(),
            hosts: agent
                .destinations()
                .map(|(entry, to)| item(entry.line(), format!("{}:{}", to.host, to.port)))
                .collect(),
            mounts: Vec::new(),
            credentials: Vec::new(),
            tools: agent.tools().map(|(entry, tool)| item(entry.line(), tool.to_string())).collect(),
            risky_tools: Vec::new(),
            permits: Vec::new(),
            forbids: Vec::new(),
            ceilings: Vec::new(),
            base: agent.base().map(|base| match base {
                crate::directive::Base::Scratch => "scratch".to_owned(),
                crate::directive::Base::Reference(reference) => reference.text.clone(),
            }),
            unsupported: Vec::new(),
        };
        for entry in &agent.entries {
            out.entry(item(entry.line(), entry.quoted()), &entry.directive);
        }
        for (_, rule) in rules.each() {
            let text =
                rule.directive.clone().unwrap_or_else(|| rule.text.split_whitespace().collect::<Vec<_>>().join(" "));
            let list = if rule.permits { &mut out.permits } else { &mut out.forbids };
            list.push(item(rule.place.line, text));
        }
        out.rate(agent, rules);
        out
    }

    fn entry(&mut self, item: Item, directive: &Directive) {
        match directive {
            Directive::Mount { path, mode } => {
                let word = if *mode == Mode::Rw { "read and write" } else { "read" };
                self.mounts.push(Item { text: format!("{path} ({word})"), ..item });
            }
            Directive::Cred(cred) => {
                let kind = match &cred.source {
                    crate::directive::Source::Env { .. } => "environment",
                    crate::directive::Source::Vault { .. } => "vault",
                    crate::directive::Source::Keyring { .. } => "keyring",
                };
                let hosts = if cred.hosts.is_empty() { "no host".to_owned() } else { cred.hosts.join(", ") };
                self.credentials.push(Item { text: format!("{} ({kind}) for {hosts}", cred.name), ..item });
            }
            Directive::Toolset(_) => self.tools.push(item),
            Directive::RateLimit { .. } | Directive::Limit { .. } | Directive::Timeout(_) | Directive::Audit(_) => {
                self.ceilings.push(item)
            }
            Directive::Optimizer(_)
            | Directive::Memory { .. }
            | Directive::Healthcheck { .. }
            | Directive::Trace(Some(_))
            | Directive::Extension { .. } => self.unsupported.push(item),
            other => {
                let name = item.text.split(' ').next().unwrap_or_default();
                if known(name).is_some_and(|known| known.class == Class::Placement)
                    && !matches!(other, Directive::Bind { .. })
                {
                    self.unsupported.push(item);
                }
            }
        }
    }

    fn rate(&mut self, agent: &Agent, rules: &Rules) {
        let mut high = Vec::new();
        for (entry, tool) in agent.tools() {
            let lower = tool.name.to_ascii_lowercase();
            let Some((_, what)) = RISKY.iter().find(|(part, _)| lower.contains(part)) else { continue };
            self.risky_tools.push(Item { text: format!("{tool}: {what}"), line: entry.line() });
            if rules.may_permit("tool.invoke", &tool_name(agent, tool), &[agent.name_or_default()]) {
                high.push(format!("`{tool}` {what}, and a policy permits it"));
            }
        }
        for entry in agent.entries.iter().filter(|entry| matches!(entry.directive, Directive::Toolset(_))) {
            let text = format!("{}: its tools are in the lock alone, and may be any", entry.quoted());
            high.push(text.clone());
            self.risky_tools.push(Item { text, line: entry.line() });
        }
        for (entry, mcp) in agent.mcp() {
            let listed = agent
                .tools()
                .any(|(_, tool)| tool.namespace == "mcp" && tool.name.split('.').next() == Some(mcp.name()));
            if !listed {
                self.risky_tools.push(Item {
                    text: format!("MCP server `{}`: no `TOOL` says which of its tools", mcp.name()),
                    line: entry.line(),
                });
            }
        }
        for (_, (path, mode)) in agent.mounts().filter(|(_, (path, _))| WIDE.contains(path)) {
            high.push(format!(
                "`{path}` holds more than an agent's work, and it may {}",
                if mode == Mode::Rw { "write there" } else { "read it" }
            ));
        }
        high.extend(agent.creds().flat_map(|(_, cred)| {
            cred.hosts
                .iter()
                .filter(|host| host.starts_with("*."))
                .map(|host| format!("the secret `{}` may go to any host of `{host}`", cred.name))
        }));
        high.extend(
            rules.boundless().map(|line| format!("the policy on line {line} permits every action on everything")),
        );
        let mut medium = Vec::new();
        let mut say = |any: bool, what: &str| medium.extend(any.then(|| what.to_owned()));
        say(agent.destinations().next().is_some(), "it reaches hosts");
        say(agent.mounts().any(|(_, (_, mode))| mode == Mode::Rw), "it writes files");
        say(agent.creds().next().is_some(), "it uses secrets");
        say(agent.mcp().next().is_some(), "it uses MCP servers");
        let reaches = agent.destinations().next().is_some() && agent.creds().next().is_some();
        self.tier = match (high.len(), medium.is_empty()) {
            (0, true) => Tier::Low,
            (0, false) => Tier::Medium,
            (1, _) if !reaches => Tier::High,
            _ => Tier::Critical,
        };
        self.why = high;
        self.why.extend(medium);
    }

    /// What this report asks for that `before` did not, list by list.
    pub fn beyond(&self, before: &Self) -> Vec<(&'static str, Vec<Item>)> {
        let lists = |report: &Self| {
            [
                ("hosts", report.hosts.clone()),
                ("mounts", report.mounts.clone()),
                ("credentials", report.credentials.clone()),
                ("tools", report.tools.clone()),
                ("permits", report.permits.clone()),
                ("unsupported", report.unsupported.clone()),
            ]
        };
        let gone = |new: &Self, old: &Self| {
            let kept: BTreeSet<&str> = new.iter_texts();
            old.forbids
                .iter()
                .chain(&old.ceilings)
                .filter(|item| !kept.contains(item.text.as_str()))
                .cloned()
                .collect::<Vec<_>>()
        };
        let mut out: Vec<(&'static str, Vec<Item>)> = Vec::new();
        for ((name, new), (_, old)) in lists(self).into_iter().zip(lists(before)) {
            let old: BTreeSet<String> = old.into_iter().map(|item| item.text).collect();
            let added: Vec<Item> = new.into_iter().filter(|item| !old.contains(&item.text)).collect();
            if !added.is_empty() {
                out.push((name, added));
            }
        }
        let gone = gone(self, before);
        if !gone.is_empty() {
            out.push(("no longer forbidden or limited", gone));
        }
        out
    }

    fn iter_texts(&self) -> BTreeSet<&str> {
        self.forbids.iter().chain(&self.ceilings).map(|item| item.text.as_str()).collect()
    }
}
