//! The policies that a recorded call was judged under: found again from the lists that the session kept.
//!
//! Owns which layers a row has to hold: those of the accepted policy that speak on its caller's calls, then the changed files that a
//! row before it tells of. Judges nothing. Invariant: a row with a layer less than that, or more, or another, is found. Page:
//! `spec/layers.md`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use writ_core::json;
use writ_core::json::Value;
use writ_core::{Digest, Timestamp};
use writ_evidence::row::Row;
use writ_policy::{Facts, Layer, Limit, Own, Policy};

use super::policies::{self, Kept};
use crate::decide::surveyed::JudgedLayer;
use crate::governing::in_force::{self, PolicyRef, Told};
use crate::governing::layers::{self, Caller, LayerRef};
use crate::session::state::State;
use crate::session::{agents, rows};

/// The policies of a record, read once each.
pub struct Policies<'a> {
    kept: &'a Kept,
    parsed: HashMap<(Digest, PathBuf), Policy>,
    lists: HashMap<Digest, Vec<LayerRef>>,
    /// What the last row about the policy's files tells.
    told: Vec<Told>,
}

impl<'a> Policies<'a> {
    /// Of what was kept.
    pub fn of(kept: &'a Kept) -> Self {
        Self { kept, parsed: HashMap::new(), lists: HashMap::new(), told: Vec::new() }
    }

    /// Takes a row about the policy's files; gives what the state has to say from then on.
    pub fn tell(&mut self, row: &Row) -> Result<Option<String>, String> {
        let changes = row.detail.get("changes").and_then(|changes| json::from_value::<Vec<Told>>(changes).ok());
        self.told = changes.ok_or("it does not say what became of the policy's files")?;
        Ok(in_force::key(&self.told))
    }

    /// Forgets what was told: a human accepted the files as they are.
    pub fn accept(&mut self) {
        self.told.clear();
    }

    /// The list of a policy's layers.
    pub fn list(&mut self, accepted: &PolicyRef) -> Result<Vec<LayerRef>, String> {
        let Some(digest) = accepted.layers else { return Ok(Vec::new()) };
        if let Some(list) = self.lists.get(&digest) {
            return Ok(list.clone());
        }
        let list = policies::list(accepted, self.kept)?;
        self.lists.insert(digest, list.clone());
        Ok(list)
    }

    /// A policy of this file, whose patterns hang off the root's folder.
    pub fn get(&self, root: &Path, file: Digest) -> Option<&Policy> {
        self.parsed.get(&(file, root.to_owned()))
    }

    /// Reads it, the first time.
    pub fn load(&mut self, root: &Path, file: Digest) -> Result<(), String> {
        let key = (file, root.to_owned());
        if !self.parsed.contains_key(&key) {
            self.parsed.insert(key, policies::document_of(root, file, self.kept)?);
        }
        Ok(())
    }

    /// The policies that a call was judged under, the root's first.
    pub fn all(&self, root: &Path, file: Digest, judged: &[Judged]) -> Result<Vec<&Policy>, String> {
        let files = std::iter::once(file).chain(judged.iter().map(|layer| layer.file));
        files.map(|file| self.get(root, file).ok_or_else(|| "no policy".to_owned())).collect()
    }

    /// The policies whose limits are counted for the session as a whole, each with what its rules are named with.
    pub fn counted(&mut self, accepted: &PolicyRef) -> Result<Vec<(Option<String>, Digest)>, String> {
        let list = self.list(accepted)?;
        let layers = layers::counted(&list).map(|layer| (Some(layer.name.clone()), layer.file));
        let named: Vec<(Option<String>, Digest)> = std::iter::once((None, accepted.file)).chain(layers).collect();
        for (_, file) in &named {
            self.load(&accepted.path, *file)?;
        }
        Ok(named)
    }

    /// The layers of a call's row, which have to be those that speak on it.
    pub fn of_row(&mut self, row: &Row, accepted: &PolicyRef) -> Result<Vec<Judged>, String> {
        let list = self.list(accepted)?;
        let refs: Vec<&LayerRef> = list.iter().collect();
        let applying = layers::applying(&refs, rows::caller(&row.detail));
        let recorded = match row.detail.get("layers") {
            None => Vec::new(),
            Some(layers) => json::from_value::<Vec<JudgedLayer>>(layers)
                .map_err(|error| format!("its layers do not read: {error}"))?,
        };
        let own = applying.iter().filter_map(|at| Some((*at, list.get(*at)?)));
        let mut expected: Vec<(String, Option<Digest>, Option<usize>)> =
            own.map(|(at, layer)| (layer.name.clone(), Some(layer.file), Some(at))).collect();
        let told = self.told.iter().filter(|told| told.judged);
        for told in told.filter(|told| told.layer.is_none_or(|at| applying.contains(&at))) {
            expected.push((told.name.clone(), Digest::parse(&told.file).ok(), told.layer));
        }
        let same = expected.len() == recorded.len()
            && expected
                .iter()
                .zip(&recorded)
                .all(|((name, file, _), layer)| *name == layer.name && *file == Some(layer.file));
        if !same {
            return Err("it was not judged under the layers that its policy has for it".to_owned());
        }
        for layer in &recorded {
            self.load(&accepted.path, layer.file)?;
        }
        let prefix = applying.iter().rev().filter_map(|at| list.get(*at)).find_map(|layer| layer.prefix.as_deref());
        if row.detail.get("attestationPrefix").and_then(Value::as_str) != prefix {
            return Err("the prefix of its agent's attestations is not the one its policy gives".to_owned());
        }
        let mut judged = Vec::new();
        let accepted_layers = applying.len();
        for (number, (layer, (_, _, at))) in recorded.into_iter().zip(expected).enumerate() {
            let before = at.and_then(|at| list.get(at)).map_or(accepted.file, |layer| layer.file);
            let relabels = number >= accepted_layers && self.relabels(accepted, before, layer.file)?;
            let of_agent = at.and_then(|at| self.of_agent(accepted, &list, at, layer.file).transpose()).transpose()?;
            judged.push(Judged { name: layer.name, file: layer.file, facts: layer.facts, of_agent, relabels });
        }
        Ok(judged)
    }

    /// Whether a file that changed labels data in another way than it did.
    fn relabels(&mut self, accepted: &PolicyRef, before: Digest, now: Digest) -> Result<bool, String> {
        self.load(&accepted.path, before)?;
        let get = |file| self.get(&accepted.path, file).ok_or("no policy");
        Ok(in_force::relabels(get(before)?, get(now)?))
    }

    /// Of a layer about one type of sub-agent, which may have changed to `file`, what limits those.
    fn of_agent(
        &mut self,
        accepted: &PolicyRef,
        list: &[LayerRef],
        at: usize,
        file: Digest,
    ) -> Result<Option<OfAgents>, String> {
        let Some((layer, agent)) = list.get(at).and_then(|layer| Some((layer, layer.agent.clone()?))) else {
            return Ok(None);
        };
        let above = layer.of.and_then(|above| list.get(above)).map_or(accepted.file, |above| above.file);
        self.load(&accepted.path, above)?;
        self.load(&accepted.path, file)?;
        let policy = self.get(&accepted.path, file).ok_or("no policy")?;
        let limits = layers::own_limits(layer, policy, self.get(&accepted.path, above));
        Ok(Some(OfAgents { agent, layer: layer.name.clone(), limits }))
    }

    /// Those that limit the turns of the sub-agents that a call gives a task to, by the type that its facts name.
    pub fn starting(&mut self, accepted: &PolicyRef, starts: Option<&str>) -> Result<Vec<(OfAgents, Digest)>, String> {
        let Some(kind) = starts else { return Ok(Vec::new()) };
        let mut found = self.of_agents(accepted, Some(Caller::typed(Some(kind))))?;
        found.retain(|(of_agents, _)| layers::limits_turns(&of_agents.limits));
        Ok(found)
    }

    /// The layers that limit sub-agents of one type, as they were accepted, each with its file; those that speak on somebody's calls,
    /// where somebody is named.
    pub fn of_agents(
        &mut self,
        accepted: &PolicyRef,
        caller: Option<Caller<'_>>,
    ) -> Result<Vec<(OfAgents, Digest)>, String> {
        let list = self.list(accepted)?;
        let refs: Vec<&LayerRef> = list.iter().collect();
        let applying = caller.map(|caller| layers::applying(&refs, caller));
        let mut found = Vec::new();
        for (at, layer) in list.iter().enumerate() {
            if applying.as_ref().is_some_and(|applying| !applying.contains(&at)) {
                continue;
            }
            let of_agent = self.of_agent(accepted, &list, at, layer.file)?;
            found
                .extend(of_agent.filter(|of_agent| !of_agent.limits.is_empty()).map(|of_agent| (of_agent, layer.file)));
        }
        Ok(found)
    }
}

/// What limits sub-agents of one type.
#[derive(Clone, Debug)]
pub struct OfAgents {
    /// The type.
    pub agent: String,
    /// The layer under whose name they are counted.
    pub layer: String,
    /// The limits.
    pub limits: Vec<Limit>,
}

impl OfAgents {
    /// The limits, and the count that they are held against.
    pub fn own<'a>(&'a self, state: &'a State, now: Timestamp) -> Own<'a> {
        Own {
            agent: &self.agent,
            limits: &self.limits,
            tally: agents::tally(&state.agents, &self.layer, state.steady(now)),
        }
    }
}

/// A layer of a row.
pub struct Judged {
    /// What its rules are named with.
    pub name: String,
    /// Digest of its file.
    pub file: Digest,
    /// What its survey found.
    pub facts: Facts,
    /// Of one that is about one type of sub-agent alone.
    pub of_agent: Option<OfAgents>,
    /// Whether it is a file that changed and labels data in another way than it did.
    pub relabels: bool,
}

impl Judged {
    /// It, to be judged again.
    pub fn layer<'a>(&'a self, policy: &'a Policy, state: &'a State, now: Timestamp) -> Layer<'a> {
        let own = self.of_agent.as_ref().map(|of_agent| of_agent.own(state, now));
        in_force::layer(Some(&self.name), policy, &self.facts, own).unseen(self.relabels)
    }
}
