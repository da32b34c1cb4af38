//! What people are shown of a recorded call: programs, paths, hosts, and the rules that spoke.
//!
//! Reads the facts that the row keeps, and nothing else: there is no command text to show (R8). Bounded, because a row may
//! hold many facts.

use serde::Serialize;
use writ_core::json::Value;
use writ_evidence::row::Row;
use writ_policy::Policy;

use crate::governing::Governing;

/// Most names of one kind that a summary has.
const MOST: usize = 4;

/// A call as its row tells it. Each name stands once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// The tool.
    pub tool: String,
    /// Base names of the programs it runs, types of subagents.
    pub programs: Vec<String>,
    /// Paths with what happens to them: `write /w/.env`.
    pub paths: Vec<String>,
    /// Hosts it contacts.
    pub hosts: Vec<String>,
    /// What is not known before it runs, by kind.
    pub unresolved: Vec<String>,
    /// What it would lose: `tier 4 (git/reset-hard)`.
    pub loss: Option<String>,
    /// Verdict and pointer of each rule that spoke: `deny /tools/deny/0`.
    pub rules: Vec<String>,
}

impl Shown {
    /// Reads a row; one that is about no call has a tool's name at most.
    pub fn of(row: &Row) -> Self {
        let facts = row.detail.get("facts");
        let items = |name: &str| facts.and_then(|facts| facts.get(name)).and_then(Value::as_array).unwrap_or_default();
        let rules = row.detail.get("rules").and_then(Value::as_array).unwrap_or_default();
        let loss = facts.and_then(|facts| facts.get("loss"));
        Self {
            tool: row.tool_name.clone().unwrap_or_default(),
            programs: once(items("texts").iter().filter_map(|text| named(text, "name"))),
            paths: once(
                items("paths")
                    .iter()
                    .filter_map(|path| Some(format!("{} {}", named(path, "access")?, named(path, "path")?))),
            ),
            hosts: once(
                items("hosts").iter().map(|host| named(host, "host").unwrap_or_else(|| "unknown host".to_owned())),
            ),
            unresolved: once(items("unresolved").iter().filter_map(|open| named(open, "kind"))),
            loss: loss
                .and_then(|loss| Some(format!("tier {} ({})", loss.get("tier")?.as_u64()?, named(loss, "rule")?))),
            rules: once(rules.iter().filter_map(Value::as_str).map(str::to_owned)),
        }
    }

    /// One line: `Bash git, curl; write /w/.env; x.example`.
    pub fn summary(&self) -> String {
        let mut parts = Vec::new();
        let own = format!("{} ", self.tool.to_lowercase());
        let paths: Vec<String> =
            self.paths.iter().map(|path| path.strip_prefix(&own).unwrap_or(path).to_owned()).collect();
        for list in [&self.programs, &paths, &self.hosts] {
            if !list.is_empty() {
                parts.push(short(list));
            }
        }
        parts.extend(self.unresolved.first().map(|kind| format!("not known: {kind}")));
        parts.extend(self.loss.clone());
        format!("{} {}", self.tool, parts.join("; ")).trim_end().to_owned()
    }
}

/// Where the text of a rule is found: one policy, or one with its layers.
pub trait Rules {
    /// The text of the rule that is named so.
    fn text(&self, rule: &str) -> Option<String>;
}

impl Rules for Policy {
    fn text(&self, rule: &str) -> Option<String> {
        self.rule_text(rule)
    }
}

impl Rules for Governing {
    fn text(&self, rule: &str) -> Option<String> {
        match rule.split_once(":/") {
            Some((name, pointer)) => {
                let layer = self.layers.iter().find(|layer| layer.at.name == name)?;
                layer.policy.rule_text(&format!("/{pointer}"))
            }
            None => self.policy.rule_text(rule),
        }
    }
}

/// A rule as a person wants it: its text, and where it stands.
pub fn cite(rules: Option<&dyn Rules>, rule: &str) -> String {
    match rules.and_then(|rules| rules.text(rule)) {
        Some(text) => format!("`{text}`, {rule}"),
        None => rule.to_owned(),
    }
}

fn named(value: &Value, name: &str) -> Option<String> {
    value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn once(items: impl Iterator<Item = String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for item in items {
        if !out.contains(&item) {
            out.push(item);
        }
    }
    out
}

/// The first names, and how many more there are.
fn short(list: &[String]) -> String {
    let first = list.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", ");
    match list.len().saturating_sub(MOST) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
