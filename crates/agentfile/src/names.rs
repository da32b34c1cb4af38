//! Which tool a word means (R65).
//!
//! Owns the resolution of tools' names: the name behind the namespace where it is unique, else the full reference. Invariant: a word
//! means one tool, or none.

use std::collections::HashMap;

use crate::agent::Agent;
use crate::directive::{Directive, Toolset};
use crate::reference::ToolRef;

/// What a word for a tool means in an Agentfile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// A declared tool.
    Tool(ToolRef),
    /// A tool that a set or a server may bring, which the lock knows.
    Later(ToolRef),
    /// Several tools have this short name.
    Ambiguous(Vec<ToolRef>),
    /// No tool of the file.
    Unknown,
}

/// What a word means.
pub fn resolve(agent: &Agent, word: &str) -> Resolved {
    let mut named: Vec<&ToolRef> = Vec::new();
    for (_, tool) in agent.tools() {
        if tool.is_written(word) {
            return Resolved::Tool(tool.clone());
        }
        if tool.name == word && !named.contains(&tool) {
            named.push(tool);
        }
    }
    of_short(agent, word, &named)
}

/// What a word means that is no declared tool's full reference.
fn of_short(agent: &Agent, word: &str, named: &[&ToolRef]) -> Resolved {
    match named {
        [] => later(agent, word).map_or(Resolved::Unknown, Resolved::Later),
        [only] => Resolved::Tool((*only).clone()),
        _ => Resolved::Ambiguous(named.iter().map(|tool| (*tool).clone()).collect()),
    }
}

/// The same for many words: the declared tools by their names.
pub struct Names<'a> {
    agent: &'a Agent,
    tools: HashMap<&'a str, Vec<&'a ToolRef>>,
}

impl<'a> Names<'a> {
    /// Of an Agentfile.
    pub fn of(agent: &'a Agent) -> Self {
        let mut tools: HashMap<&str, Vec<&ToolRef>> = HashMap::new();
        for (_, tool) in agent.tools() {
            let named = tools.entry(&tool.name).or_default();
            if !named.contains(&tool) {
                named.push(tool);
            }
        }
        Self { agent, tools }
    }

    fn named(&self, name: &str) -> &[&'a ToolRef] {
        self.tools.get(name).map_or(&[], Vec::as_slice)
    }

    /// What a word means.
    pub fn resolve(&self, word: &str) -> Resolved {
        let full =
            word.split_once(':').and_then(|(_, name)| self.named(name).iter().find(|tool| tool.is_written(word)));
        match full {
            Some(tool) => Resolved::Tool((*tool).clone()),
            None => of_short(self.agent, word, self.named(word)),
        }
    }

    /// What policies call a tool.
    pub fn tool_name(&self, tool: &ToolRef) -> String {
        let shared = self.named(&tool.name).iter().any(|other| *other != tool);
        if shared { tool.to_string() } else { tool.name.clone() }
    }
}

/// A tool of a set's namespace, or of a declared MCP server.
fn later(agent: &Agent, word: &str) -> Option<ToolRef> {
    let tool = ToolRef::parse(word)?;
    let of_set = agent.entries.iter().any(|entry| match &entry.directive {
        Directive::Toolset(Toolset::Named(set)) => set.namespace == tool.namespace,
        Directive::Toolset(Toolset::Registry { .. }) => true,
        _ => false,
    });
    let server = tool.name.split_once('.').map(|(server, _)| server);
    let of_server =
        tool.namespace == "mcp" && server.is_some_and(|server| agent.mcp().any(|(_, mcp)| mcp.name() == server));
    (of_set || of_server).then_some(tool)
}

/// What a call of a tool is on record as, where Writ makes it: the tool's name where no other declared tool has that name, else with its
/// namespace before; a server's tool as clients call it. A colon would make it a pattern (R15).
pub fn call_name(agent: &Agent, tool: &ToolRef) -> String {
    match tool.namespace.as_str() {
        "mcp" => format!("mcp__{}", tool.name.replacen('.', "__", 1)),
        _ if tool_name(agent, tool) == tool.name => tool.name.clone(),
        namespace => format!("{namespace}__{}", tool.name),
    }
}

/// What policies call a tool: its name where no other declared tool has that name, else the full reference.
pub fn tool_name(agent: &Agent, tool: &ToolRef) -> String {
    let shared = agent.tools().any(|(_, other)| other.name == tool.name && other != tool);
    if shared { tool.to_string() } else { tool.name.clone() }
}
