//! What a package says of itself to a reviewer: its config (§14, §21).
//!
//! Owns the config's JSON and how it follows from an Agentfile. Judges nothing: the report is the Agentfile's own. Invariant: a config that
//! says something else than the Agentfile beside it is found. Page: `spec/package.md`.

use serde::{Deserialize, Serialize};
use writ_agentfile::Linted;
use writ_agentfile::directive::Directive;
use writ_agentfile::risk::{Item, Report, Tier};
use writ_core::visible;

/// The version of the config.
pub const VERSION: &str = "1";

/// A package's config.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// [`VERSION`].
    pub version: String,
    /// The agent's name.
    pub name: String,
    /// The Agentfile's version, as its first comment says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syntax: Option<String>,
    /// The framework that starts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// The command that starts it.
    pub command: Vec<String>,
    /// What it asks for.
    pub report: Report,
}

impl Config {
    /// Of an Agentfile.
    pub fn of(linted: &Linted) -> Self {
        let agent = &linted.agent;
        let shell = agent.entries.iter().find(|entry| matches!(entry.directive, Directive::Shell(_)));
        Self {
            version: VERSION.to_owned(),
            name: agent.name_or_default().to_owned(),
            syntax: agent.syntax.clone(),
            shell: shell.map(|entry| entry.quoted().trim_start_matches("SHELL ").to_owned()),
            command: agent.command().unwrap_or_default().to_vec(),
            report: Report::of(agent, &linted.rules),
        }
    }

    /// The same without what the next Writ may judge in another way: how much of a risk something is, and what is enforced.
    fn asked(&self) -> Self {
        let mut out = self.clone();
        out.report.tier = Tier::Low;
        out.report.why.clear();
        out.report.risky_tools.clear();
        out.report.unsupported.clear();
        out
    }

    /// Why it is not what `own`, made from the Agentfile, is. What another Writ judges may be more than is found here, not less.
    pub fn differs(&self, own: &Self) -> Option<String> {
        let lacks =
            |said: &[Item], own: &[Item]| own.iter().find(|item| !said.contains(item)).map(|item| item.text.clone());
        let (said, found) = (&self.report, &own.report);
        let reason = found.why.iter().find(|why| !said.why.contains(why)).cloned();
        let less =
            lacks(&said.risky_tools, &found.risky_tools).or_else(|| lacks(&said.unsupported, &found.unsupported));
        if let Some(less) = less.or(reason) {
            return Some(format!("leaves out `{less}`"));
        }
        let items = said.risky_tools.iter().chain(&said.unsupported).map(|item| &item.text);
        if let Some(odd) = items.chain(&said.why).find(|text| visible::line(text) != text.as_str()) {
            return Some(format!("holds signs that cannot be seen: `{}`", visible::line(odd)));
        }
        if self.report.tier < own.report.tier {
            let (said, own) = (self.report.tier.as_str(), own.report.tier.as_str());
            return Some(format!("says that the risk is {said}, and it is {own}"));
        }
        (self.asked() != own.asked()).then(|| "does not say what its Agentfile asks for".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use writ_agentfile::{Options, lint};

    #[test]
    fn a_config_says_no_less_than_its_agentfile() {
        let text =
            "AGENT a\nCMD run\nTOOL utcp:shell\nALLOW invoke shell\nTOOLSET st:ws\nHEALTHCHECK CMD x\nMOUNT / rw\n";
        let own = Config::of(&lint(text.as_bytes(), "Agentfile", &Options::default()));
        let differs = |change: &dyn Fn(&mut Report)| {
            let mut said = own.clone();
            change(&mut said.report);
            said.differs(&own)
        };
        assert_eq!(differs(&|_| ()), None);
        let more = Item { text: "another".to_owned(), line: 1 };
        assert_eq!(differs(&|report| report.risky_tools.push(more.clone())), None);
        assert!(own.report.risky_tools.len() == 2 && own.report.tier == Tier::Critical, "{:?}", own.report);
        let less: [&dyn Fn(&mut Report); 6] = [
            &|report| report.risky_tools.clear(),
            &|report| report.unsupported.clear(),
            &|report| report.why.clear(),
            &|report| report.tier = Tier::Low,
            &|report| report.tools.clear(),
            &|report| report.why.push("nothing \u{1b}[31m at all".to_owned()),
        ];
        for (at, change) in less.into_iter().enumerate() {
            assert!(differs(change).is_some(), "{at}");
        }
    }
}
