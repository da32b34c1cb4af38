//! A package's files against its lock.
//!
//! Owns one question: would locking the package's own files give its lock? What lies elsewhere (a registry, a server, a runner) is taken
//! as the lock has it, where its Agentfile asks for it. Invariant: each entry of the lock is one that the Agentfile asks for, and each
//! digest of a file is that of the file in the package.

use std::collections::BTreeMap;

use writ_agentfile::directive::Base;
use writ_agentfile::lock::{Found, Lock, LockedServer, Shown, Sources, differences, resolve};
use writ_agentfile::reference::OciRef;
use writ_agentfile::{Agent, Linted};
use writ_core::Digest;

use crate::layer::Entry;

/// Most differences that are told.
const TOLD: usize = 4;

/// Whether a file's text is needed: what describes a tool or begins a bundle, and what declares a function.
pub fn is_read(path: &str, lock: &Lock) -> bool {
    let of_function = |one: &str| one.trim_start_matches("./").rsplit_once(':').is_some_and(|(file, _)| file == path);
    let is_source = |source: &String| source.trim_start_matches("./") == path;
    let mut sources = lock.skills.iter().chain(&lock.sops).map(|one| &one.source);
    ["tools/", "toolsets/"].iter().any(|folder| path.starts_with(folder))
        || path.ends_with("/SKILL.md")
        || path.ends_with("/SOP.md")
        || sources.any(is_source)
        || lock.functions.iter().any(|one| of_function(&one.path))
}

/// Holds the files against the lock; says in what they differ.
pub fn hold(linted: &Linted, lock: &Lock, files: &BTreeMap<String, Entry>) -> Result<(), String> {
    let inside = Inside { agent: &linted.agent, lock, files };
    let mut own = resolve(&linted.agent, &linted.rules, &inside).map_err(|found| {
        let told: Vec<&str> = found.iter().take(TOLD).map(|one| one.message.as_str()).collect();
        format!("it does not hold what its Agentfile asks for: {}", told.join("; "))
    })?;
    for server in &mut own.mcp {
        if let Some(shown) = lock.mcp.iter().find(|known| known.name == server.name && is_same(known, server)) {
            *server = shown.clone();
        }
    }
    for tool in own.tools.iter_mut().filter(|tool| tool.digest.is_none()) {
        let shown = lock.mcp.iter().flat_map(|server| &server.tools).find(|shown| shown.name == tool.name);
        if let Some(shown) = shown {
            *tool = shown.clone();
        }
    }
    if lock.to_bytes() == own.to_bytes() {
        return Ok(());
    }
    let found = differences(lock, &own);
    if found.is_empty() {
        // Differences are told by name.
        return Err("its lock has an entry twice".to_owned());
    }
    let told: Vec<&str> = found.iter().take(TOLD).map(String::as_str).collect();
    let more = found.len().saturating_sub(TOLD);
    let more = if more == 0 { String::new() } else { format!("; and {more} more") };
    Err(format!("it holds something else than its lock says: {}{more}", told.join("; ")))
}

/// Whether what the lock tells of a server is about the one that the Agentfile names.
fn is_same(known: &LockedServer, asked: &LockedServer) -> bool {
    known.source == asked.source || asked.source == "runner" && known.source == "stdio"
}

/// The package as what a lock is made from.
struct Inside<'a> {
    agent: &'a Agent,
    lock: &'a Lock,
    files: &'a BTreeMap<String, Entry>,
}

impl Sources for Inside<'_> {
    fn file(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        Ok(self.files.get(path).map(|entry| entry.text.clone().unwrap_or_default()))
    }

    fn tree(&self, path: &str) -> Result<Option<BTreeMap<String, Digest>>, String> {
        let below = format!("{}/", path.trim_end_matches('/'));
        let inside = |(name, entry): (&String, &Entry)| Some((name.strip_prefix(&below)?.to_owned(), entry.digest));
        let tree: BTreeMap<String, Digest> = self.files.iter().filter_map(inside).collect();
        Ok((!tree.is_empty()).then_some(tree))
    }

    fn registry(&self, reference: &OciRef) -> Result<Found, String> {
        let base = self.lock.base_image.as_ref().filter(|base| {
            let registry = reference.registry.as_deref().unwrap_or("docker.io");
            matches!(self.agent.base(), Some(Base::Reference(asked)) if asked == reference)
                && (base.registry.as_str(), &base.name, &base.tag) == (registry, &reference.repository, &reference.tag)
        });
        let path = reference.text.split_once('@').map_or(reference.text.as_str(), |(path, _)| path);
        let set = format!("registry://{path}");
        let bundles = self.lock.skills.iter().chain(&self.lock.sops).filter(|one| one.source == reference.text);
        let mut others = bundles.chain(self.lock.toolsets.iter().filter(|one| one.source == set));
        let digest = base.map(|base| base.digest.clone()).or_else(|| others.find_map(|one| one.hash.clone()));
        let digest = digest.ok_or("the lock does not name it")?;
        if reference.digest.as_ref().is_some_and(|pinned| *pinned != digest) {
            return Err("the lock has another digest than is written".to_owned());
        }
        Ok(Found { digest, package: base.is_some_and(|base| base.package) })
    }

    fn server(&self, _name: &str, _address: Option<&str>) -> Result<Option<Shown>, String> {
        Ok(None)
    }
}
