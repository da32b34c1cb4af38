//! The policies beside the root that speak on a session's calls: the list of them, and which speaks on whose.
//!
//! Owns the list as a session keeps it, by digest, and the walk that says what has to stand in it. Reads no file and decides
//! nothing. Invariant: resolution ([`super::resolve`]) makes the list and verification checks it by the same walk over the policies'
//! own references. Page: `spec/layers.md`.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use writ_agentfile::placed::BASE;
use writ_core::{Agent, Digest, Timestamp, json};
use writ_policy::{Limit, Measure, Named, Own, Policy, Protected, Reference, strictest};

use super::looser::{self, Limits};
use crate::session::agents::{self, Agents};

/// Most layers beside the root.
pub const MOST: usize = 64;
/// Longest name of a layer.
const MAX_NAME: usize = 64;
/// What rules of a changed file are named with.
pub const CHANGED: &str = "changed-policy";

/// One policy beside the root, as a session keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LayerRef {
    /// What its rules are named with: `base` in `base:/files/deny/0`.
    pub name: String,
    /// Its file, absolute, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What that leads to, where it leads elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real: Option<String>,
    /// Its address, where it is from elsewhere. With neither it is written out in the one that names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Digest of the file (the envelope, when there is one).
    pub file: Digest,
    /// Digest of the policy document itself.
    pub digest: Digest,
    /// `unsigned`, `unknown-key`, `no-functionary` or `trusted`.
    pub signed: String,
    /// The record of trust behind it, where a certificate or a bundle made it trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<Digest>,
    /// Which layer of the list names it; the root where that is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<usize>,
    /// Where that one names it.
    pub pointer: String,
    /// The type of the sub-agents whose calls it is about; all calls where that is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Goes before the names of their attestations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

impl LayerRef {
    /// Where it lies, for people.
    pub fn place(&self) -> String {
        match (&self.path, &self.address) {
            (Some(path), _) => path.clone(),
            (None, Some(address)) => address.clone(),
            (None, None) => format!("{} of the policy that names it", self.pointer),
        }
    }

    /// On whose calls it speaks, for people.
    pub fn about(&self) -> String {
        match &self.agent {
            None => "every call".to_owned(),
            Some(agent) => format!("calls of sub-agents of type `{agent}`"),
        }
    }
}

/// How the limits are held of a policy that is about one type of sub-agent alone.
#[derive(Clone, Debug)]
pub struct OfAgent<'a> {
    /// The type.
    pub agent: &'a str,
    /// The layer under whose name its agents are counted.
    pub layer: &'a str,
    /// Its limits.
    pub limits: Vec<Limit>,
}

impl OfAgent<'_> {
    /// Its limits and the count that they are held against.
    pub fn own<'b>(&'b self, agents: &'b Agents, now: Timestamp) -> Own<'b> {
        Own { agent: self.agent, limits: &self.limits, tally: agents::tally(agents, self.layer, now) }
    }

    /// The layer that is counted, if one has to be.
    pub fn counted(&self) -> Option<&str> {
        (!self.limits.is_empty()).then_some(self.layer)
    }
}

/// Who makes a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller<'a> {
    /// The main agent.
    Main,
    /// A sub-agent of a type.
    SubAgent(&'a str),
    /// A sub-agent whose type its client does not tell: it may be any.
    Untold,
}

impl<'a> Caller<'a> {
    /// Whoever an event happened in.
    pub fn of(agent: Option<&'a Agent>) -> Self {
        match agent {
            None => Self::Main,
            Some(agent) => Self::typed(agent.kind.as_deref()),
        }
    }

    /// A sub-agent by its type.
    pub fn typed(kind: Option<&'a str>) -> Self {
        kind.filter(|kind| !kind.is_empty()).map_or(Self::Untold, Self::SubAgent)
    }
}

/// Which layers of a list speak on somebody's calls, in the order of the list.
pub fn applying(list: &[&LayerRef], caller: Caller<'_>) -> Vec<usize> {
    let mut speaks: Vec<bool> = list
        .iter()
        .map(|layer| match (&layer.agent, caller) {
            (None, _) | (Some(_), Caller::Untold) => true,
            (Some(_), Caller::Main) => false,
            (Some(agent), Caller::SubAgent(kind)) => agent == kind,
        })
        .collect();
    // Whoever names a layer speaks where it speaks: a sub-agent's sub-agent is held by both. Who names stands before the named.
    for at in (0..list.len()).rev() {
        let above = list.get(at).filter(|_| speaks.get(at) == Some(&true)).and_then(|layer| layer.of);
        if let Some(above) = above.and_then(|above| speaks.get_mut(above)) {
            *above = true;
        }
    }
    speaks.iter().enumerate().filter_map(|(at, speaks)| speaks.then_some(at)).collect()
}

/// A layer that speaks on a sub-agent's calls and would not on those of the type that it gives a task to.
pub fn lost<'a>(list: &[&'a LayerRef], caller: Caller<'_>, kind: &str) -> Option<&'a LayerRef> {
    if caller == Caller::Main {
        return None;
    }
    let below = applying(list, Caller::SubAgent(kind));
    let lost = applying(list, caller).into_iter().find(|at| !below.contains(at))?;
    list.get(lost).copied()
}

/// The limits of a layer that is about one type of sub-agent, which are held against what those use: its policy's, and those beside where
/// `above` names it.
pub fn own_limits(layer: &LayerRef, policy: &Policy, above: Option<&Policy>) -> Vec<Limit> {
    let beside = above.into_iter().flat_map(Policy::references).filter(|named| named.pointer == layer.pointer);
    let beside: Vec<Limit> = beside.filter_map(|named| named.child).flat_map(|child| child.held).collect();
    if layer.agent.is_some() { strictest(policy.limits().iter().chain(&beside)) } else { Vec::new() }
}

/// Whether limits count the tasks that agents are given.
pub fn limits_turns(limits: &[Limit]) -> bool {
    limits.iter().any(|limit| limit.measure == Measure::Turns)
}

/// The layers of a list whose limits are counted for the session as a whole: those that speak on every call.
pub fn counted(list: &[LayerRef]) -> impl Iterator<Item = &LayerRef> {
    let refs: Vec<&LayerRef> = list.iter().collect();
    applying(&refs, Caller::Main).into_iter().filter_map(|at| list.get(at))
}

/// A list as it is kept, in the order that it was found in.
pub fn to_bytes(list: &[LayerRef]) -> Vec<u8> {
    json::to_canonical(&list).into_bytes()
}

/// Reads a kept list; none is longer than what is resolved.
pub fn parse(bytes: &[u8]) -> Option<Vec<LayerRef>> {
    json::from_slice(bytes).ok().filter(|list: &Vec<LayerRef>| list.len() <= MOST)
}

/// Where a kept list lies in a session's folder.
pub fn file_name(list: Digest) -> String {
    format!("layers/{}", list.hex())
}

/// Digest of a list without the places where its files lie, which differ between work trees and symlinks to one; `None` where it is
/// empty.
pub fn content(list: &[LayerRef]) -> Option<Digest> {
    let placeless = list.iter().map(|layer| LayerRef { path: None, real: None, ..layer.clone() });
    let placeless: Vec<LayerRef> = placeless.collect();
    (!placeless.is_empty()).then(|| Digest::of(&to_bytes(&placeless)))
}

/// What says, beside an Agentfile, which packages and tools it names.
pub const AGENT_LOCK: &str = "agentrc.lock";

/// The files of a list, which an agent may not touch.
pub fn protected(list: &[LayerRef]) -> Vec<Protected> {
    let files = list.iter().flat_map(|layer| layer.path.iter().chain(&layer.real));
    let mut files: Vec<&String> = files.collect();
    files.sort_unstable();
    files.dedup();
    let policy = |path: &String| Protected { path: path.clone(), what: "a policy".to_owned(), secret: false };
    let mut out: Vec<Protected> = files.into_iter().map(policy).collect();
    // Of one that names a base, what its lock says of that is as much the policy.
    for layer in list.iter().filter(|layer| layer.address.as_deref().is_some_and(|address| address.starts_with(BASE))) {
        let above = layer.of.and_then(|at| list.get(at)).and_then(|above| above.path.as_deref());
        if let Some(path) = above.map(|path| Path::new(path).with_file_name(AGENT_LOCK).to_string_lossy().into_owned())
        {
            out.push(Protected { path, what: "the Agentfile's lock".to_owned(), secret: false });
        }
    }
    out
}

/// What a layer is called: its policy's own name in plain letters, and a number where another has it already.
pub fn name_of<'a>(policy: &Policy, taken: impl Iterator<Item = &'a str> + Clone) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let own: String = policy.name().chars().take(MAX_NAME).map(plain).collect();
    let free = |name: &str| name != CHANGED && taken.clone().all(|taken| taken != name);
    let numbered = (2_u32..).map(|number| format!("{own}-{number}"));
    std::iter::once(own.clone()).chain(numbered).find(|name| free(name)).unwrap_or(own)
}

/// Where a policy is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file, absolute.
    File(PathBuf),
    /// `https://…` or `oci://…`.
    Elsewhere(String),
    /// Written out in the one that names it.
    Here,
}

/// Where the policies that one names are looked for: from a file's folder, or nowhere on this machine.
pub fn source(named: &Named, of: &Source) -> Result<Source, String> {
    let text = match named {
        Named::Here(_) => return Ok(Source::Here),
        Named::At(text) if text.contains("://") => return Ok(Source::Elsewhere(text.clone())),
        Named::At(text) => text,
    };
    match of {
        Source::File(file) => Ok(Source::File(folded(&file.parent().unwrap_or(Path::new("/")).join(text)))),
        Source::Elsewhere(address) => {
            Err(format!("`{address}` names the file `{text}`: a policy from elsewhere names no files here"))
        }
        Source::Here => Err(format!("the file `{text}` has no folder to be looked for from")),
    }
}

/// A path without `.` and `..`, by its names alone.
fn folded(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(part),
        }
    }
    out
}

/// Whether a list is what the policies in it name, each where it is named, in order; `policy` gives that of a layer.
pub fn check(
    root: &Policy,
    path: &Path,
    list: &[LayerRef],
    policy: &dyn Fn(&LayerRef) -> Result<Policy, String>,
) -> Result<(), String> {
    let mut walk = Walk { list, at: 0, policy };
    walk.below(
        root,
        &Above { of: None, from: &Source::File(path.to_owned()), agent: None, inherited: &Limits::new() },
    )?;
    match list.get(walk.at) {
        Some(layer) => Err(format!("no policy names the layer `{}`", layer.name)),
        None => Ok(()),
    }
}

struct Walk<'a> {
    list: &'a [LayerRef],
    at: usize,
    policy: &'a dyn Fn(&LayerRef) -> Result<Policy, String>,
}

/// A policy whose references are followed, as far as it matters to them.
struct Above<'a> {
    /// Its place in the list.
    of: Option<usize>,
    from: &'a Source,
    agent: Option<&'a str>,
    /// The limits of whoever it is a sub-agent of.
    inherited: &'a Limits,
}

impl Walk<'_> {
    /// Follows a policy's references, and gives its limits and its parents' (R23).
    fn below(&mut self, policy: &Policy, above: &Above<'_>) -> Result<Limits, String> {
        let own = looser::limits_of(policy, policy.name());
        let mut limits = own.clone();
        let strict = |child: &Limits, most: &Limits| looser::looser(child, most).map_or(Ok(()), Err);
        for reference in policy.references() {
            let at = self.at;
            let (inner, place) = self.listed(policy, above, &reference)?;
            let from = if place == Source::Here { above.from.clone() } else { place };
            let agent = reference.child.as_ref().map(|child| child.agent.as_str()).or(above.agent);
            let Some(child) = &reference.child else {
                let held = self.below(&inner, &Above { of: Some(at), from: &from, agent, ..*above })?;
                strict(&own, &held)?;
                limits = looser::merged(limits, &held);
                continue;
            };
            let most = looser::merged(limits.clone(), above.inherited);
            let beside = looser::beside(child, policy.name(), &reference.pointer);
            strict(&beside, &most)?;
            let inherited = looser::merged(most.clone(), &beside);
            let held = self.below(&inner, &Above { of: Some(at), from: &from, agent, inherited: &inherited })?;
            strict(&held, &most)?;
        }
        Ok(limits)
    }

    /// The next policy of the list, which has to be the one that a reference names.
    fn listed(
        &mut self,
        policy: &Policy,
        above: &Above<'_>,
        reference: &Reference,
    ) -> Result<(Policy, Source), String> {
        let Reference { pointer, policy: named, child } = reference;
        let missing = || format!("the layer that `{}` names at {pointer} is not listed", policy.name());
        let layer = self.list.get(self.at);
        let layer = layer.filter(|layer| layer.of == above.of && layer.pointer == *pointer).ok_or_else(missing)?;
        self.at += 1;
        let agent = child.as_ref().map(|child| child.agent.as_str()).or(above.agent);
        let prefix = child.as_ref().and_then(|child| child.prefix.as_deref());
        let place = source(named, above.from)?;
        let (path, address) = match &place {
            Source::File(path) => (Some(path.to_string_lossy().into_owned()), None),
            Source::Elsewhere(address) => (None, Some(address.clone())),
            Source::Here => (None, None),
        };
        let alike = (layer.path == path && layer.address == address)
            && layer.agent.as_deref() == agent
            && layer.prefix.as_deref() == prefix;
        if !alike {
            return Err(format!("the layer `{}` is listed as another than {pointer} names", layer.name));
        }
        if let Named::Here(text) = named
            && Digest::of(text.as_bytes()) != layer.file
        {
            return Err(format!("the layer `{}` is not what stands at {pointer}", layer.name));
        }
        let other = self.list.iter().filter(|other| other.name == layer.name).count() > 1;
        if other || layer.name == CHANGED {
            return Err(format!("the name `{}` stands for more than one policy", layer.name));
        }
        let inner = (self.policy)(layer)?;
        if inner.digest() != layer.digest {
            return Err(format!("the document of layer `{}` is another", layer.name));
        }
        if let Some(Ok(pinned)) = child.as_ref().and_then(|child| child.digest.as_ref())
            && ![layer.digest, layer.file].contains(pinned)
        {
            return Err(format!("the layer `{}` is not the one that {pointer} pins", layer.name));
        }
        Ok((inner, place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(more: &str) -> Policy {
        Policy::parse(format!(r#"{{"version":"1.0","name":"x"{more}}}"#).as_bytes(), "/w").unwrap()
    }

    /// R23 holds of what was kept as it holds of what is loaded: a list that somebody wrote is no way around it.
    #[test]
    fn a_list_with_a_looser_limit_is_refused() {
        for (own, good) in [(3, true), (5, true), (6, false)] {
            let root = policy(r#","limits":{"maxSpendUSD":5},"sublayouts":[{"name":"a","policy":"./c.aflock"}]"#);
            let inner = policy(&format!(r#","limits":{{"maxSpendUSD":{own}}}"#));
            let layer = LayerRef {
                name: "x".to_owned(),
                path: Some("/w/c.aflock".to_owned()),
                real: None,
                address: None,
                file: inner.digest(),
                digest: inner.digest(),
                signed: "unsigned".to_owned(),
                anchor: None,
                of: None,
                pointer: "/sublayouts/0/policy".to_owned(),
                agent: Some("a".to_owned()),
                prefix: None,
            };
            let checked = check(&root, Path::new("/w/.aflock"), &[layer], &|_| Ok(inner.clone()));
            assert_eq!(checked.is_ok(), good, "{own}: {checked:?}");
            assert!(good || checked.unwrap_err().contains("may not exceed"));
        }
    }
}
