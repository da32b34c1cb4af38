//! Sub-agents' policies for types that no client here has: a rule that never speaks looks like one that does.

use std::path::{Path, PathBuf};

use writ_clients::CLIENTS;

use crate::Home;
use crate::governing::{self, Governing};

/// What is said of layers whose type of sub-agent is defined nowhere.
pub fn never_met(governing: &Governing, home: &Home) -> Vec<String> {
    let project = governing::repository(governing.path.parent().unwrap_or(Path::new("/")));
    let types = |client: &dyn writ_clients::Client| {
        let own = home.folder(client).map(PathBuf::from).or_else(|| Some(home.user.as_ref()?.join(".claude")));
        client.agent_types(project, own.as_deref())
    };
    let known: Vec<Vec<String>> = CLIENTS.into_iter().filter_map(types).collect();
    let is_met = |agent: &String| agent.contains(':') || known.iter().flatten().any(|known| known == agent);
    let mut out: Vec<String> = Vec::new();
    for agent in governing.layers.iter().filter_map(|layer| layer.at.agent.as_ref()) {
        let text = format!("no sub-agent of type `{agent}` is defined here: its sublayout never speaks");
        if !known.is_empty() && !is_met(agent) && !out.contains(&text) {
            out.push(text);
        }
    }
    out
}
