//! One entry of `dataFlow.classify`: what it is about, by how it is written.

use writ_core::OWN_TOOLS;

use crate::grants::{Kind, Pattern};
use crate::host_rule::HostRule;
use crate::rules::{OTHER_TOOLS, PATH_TOOLS, PathRule, Reading, TEXT_TOOLS, ToolRule};

/// What has a label.
#[derive(Clone, Debug)]
pub enum Entry {
    /// Calls of a tool: `WebFetch`, `Bash:psql *`, `mcp__slack`.
    Tool(ToolRule),
    /// Files: a path, or `file:PATH`.
    File(PathRule),
    /// Hosts: `domain:*.example.com`.
    Host(HostRule),
    /// A secret, an API or a store: `env:NAME`, `vault:PATH`, a URL.
    Resource(Kind, Pattern),
}

impl Entry {
    pub(super) fn parse(pointer: String, text: &str, root: &str) -> Option<Self> {
        let wide = Reading::Wide;
        let (first, rest) = text.split_once(':').unwrap_or((text, ""));
        if let Some((scheme, _)) = text.split_once("://").filter(|(scheme, _)| !scheme.contains(':')) {
            let web = matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https" | "ws" | "wss");
            let kind = if web { Kind::Apis } else { Kind::Storage };
            return Some(Self::Resource(kind, Pattern::parse(kind, pointer, text, root, wide)?));
        }
        match first {
            "domain" => return HostRule::parse(pointer, rest).map(Self::Host),
            "env" | "vault" => {
                return Some(Self::Resource(Kind::Secrets, Pattern::parse(Kind::Secrets, pointer, text, root, wide)?));
            }
            "file" => return PathRule::parse(pointer, rest, root, wide).ok().map(Self::File),
            _ => {}
        }
        let known = || PATH_TOOLS.iter().chain(&TEXT_TOOLS).chain(&OTHER_TOOLS).chain(&OWN_TOOLS).copied();
        if first.to_ascii_lowercase().starts_with("mcp__") || known().any(|tool| tool == first) {
            let rule = ToolRule::parse(pointer, text, root, wide).ok()?;
            return (!rule.never_applies()).then_some(Self::Tool(rule));
        }
        // What looks like a tool with a pattern and is none is no path by chance: `file:a:b` is one.
        if text.contains(':') && first.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c)) {
            return None;
        }
        PathRule::parse(pointer, text, root, wide).ok().map(Self::File)
    }
}
