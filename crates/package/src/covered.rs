//! Which files the layers of a package may hold.
//!
//! Owns what each layer is for: a bundle's own files, what tools are described by and run. Holds no file against a digest ([`content`] does).
//! Invariant: a file outside of the source layer is one that the lock names, or lies in a bundle that it does.
//!
//! [`content`]: crate::content

use std::collections::{BTreeMap, BTreeSet};

use writ_agentfile::Agent;
use writ_agentfile::directive::{Bundle, Directive, Sop};
use writ_agentfile::lock::{Lock, Locked, program_path};
use writ_agentfile::reference::ToolRef;

use crate::build::{SKILL_LAYER, TITLE, TOOL_LAYER, bundle_title};
use crate::manifest::Descriptor;

/// What the layers are for.
pub struct Covered {
    /// The path of each bundle, by its layer's title.
    bundles: BTreeMap<String, String>,
    /// The files of tools.
    tools: BTreeSet<String>,
}

impl Covered {
    /// What an agent asks for, and its lock found.
    pub fn of(agent: &Agent, lock: &Lock) -> Self {
        let bundles = agent.entries.iter().filter_map(|entry| match &entry.directive {
            Directive::Skill(bundle) => bundled("skills", bundle, &lock.skills),
            Directive::Sop(Sop::Reference { bundle }) => bundled("sops", bundle, &lock.sops),
            _ => None,
        });
        let sources = lock.tools.iter().map(|tool| &tool.source).chain(lock.toolsets.iter().map(|set| &set.source));
        let described = sources.filter_map(|source| source.strip_prefix("./")).map(str::to_owned);
        let run = lock.tools.iter().filter(|tool| tool.program.is_some());
        let programs = run.filter_map(|tool| Some(program_path(&ToolRef::parse(&tool.name)?)));
        Self { bundles: bundles.collect(), tools: described.chain(programs).collect() }
    }

    /// Whether a layer may hold a file. What people add as source is said by nothing but the manifest.
    pub fn holds(&self, layer: &Descriptor, path: &str) -> bool {
        match layer.media_type.as_str() {
            TOOL_LAYER => self.tools.contains(path),
            SKILL_LAYER => {
                let bundle = layer.annotation(TITLE).and_then(|title| self.bundles.get(title));
                let rest = bundle.and_then(|bundle| path.strip_prefix(bundle.as_str()));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            _ => true,
        }
    }
}

/// A bundle's layer, and where its files are; nothing where it has none.
fn bundled(folder: &str, bundle: &Bundle, locked: &[Locked]) -> Option<(String, String)> {
    let found = locked.iter().find(|one| one.name == bundle.name())?;
    let path = found.source.strip_prefix("./")?;
    Some((bundle_title(folder, bundle), path.to_owned()))
}
