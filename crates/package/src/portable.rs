//! What of an Agentfile is the agent, and what is where it runs (R63).
//!
//! Owns the cut between the two: placement directives leave the packaged Agentfile and make the run manifest. Refuses nothing. Invariant:
//! two Agentfiles that differ in placement alone are one packaged Agentfile. Page: `spec/package.md`, "Run manifest".

use serde::{Deserialize, Serialize};
use writ_agentfile::Agent;
use writ_agentfile::directive::Directive;
use writ_agentfile::placed::Private;
use writ_core::json::{self, FormatError};

/// The version of a run manifest.
const VERSION: &str = "1";

/// Where and how an agent runs, beside the package: lines of an Agentfile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunManifest {
    /// 1.
    pub version: String,
    /// The agent that it is for.
    pub agent: String,
    /// Placement directives, each as it stands in an Agentfile. Relative sources of `BIND` hang off the manifest's folder.
    pub placement: Vec<String>,
    /// Private addresses that hosts may have where it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub private: Vec<Private>,
}

impl RunManifest {
    /// Reads one.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        json::from_slice(bytes)
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        (json::pretty(&json::to_value(self)) + "\n").into_bytes()
    }
}

/// Whether a directive says where an agent runs, and not what it is.
pub const fn is_placement(directive: &Directive) -> bool {
    matches!(
        directive,
        Directive::Bind { .. }
            | Directive::Slice(_)
            | Directive::Image(_)
            | Directive::Isolation(_)
            | Directive::Broker(_)
            | Directive::Backend(_)
            | Directive::Plugin(_)
    )
}

/// The Agentfile without placement, and the placement.
pub fn split(agent: &Agent) -> (String, Option<RunManifest>) {
    let placed: Vec<_> = agent.entries.iter().filter(|entry| is_placement(&entry.directive)).collect();
    let lines: Vec<usize> = placed.iter().map(|entry| entry.line()).collect();
    let text = agent.text.strip_prefix('\u{feff}').unwrap_or(&agent.text);
    let kept = text.split_inclusive('\n').enumerate().filter(|(at, _)| !lines.contains(&(at + 1)));
    // One way to end a line: a checkout may have changed it.
    let kept: String = kept.map(|(_, line)| line.replace("\r\n", "\n")).collect();
    let placement: Vec<String> = placed.iter().map(|entry| entry.quoted()).collect();
    let manifest = (!placement.is_empty()).then(|| RunManifest {
        version: VERSION.to_owned(),
        agent: agent.name_or_default().to_owned(),
        placement,
        private: Vec::new(),
    });
    (kept, manifest)
}
