//! Who the agents were: each identity that a row names, computed again from its parts.
//!
//! Refuses an identity whose parts are not there or make another, that is of another policy than governed, whose parent was never on
//! record or had fewer tools, and facts that tell of somebody else. What the parts say of model and environment is what they were
//! seen or told to be then; nobody can look again.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::rc::Rc;

use writ_core::json::Value;
use writ_core::{Digest, json};
use writ_evidence::row::Row;
use writ_evidence::tally::{Tally, listed};
use writ_policy::Facts;

use super::report::{Outcome, Phase, Standing};
use crate::identity::environment::{self, Seen};
use crate::identity::{Document, file_name, policy_digest};
use crate::session::rows::{IdentityRef, event};
use crate::session::state::State;

/// Most identities that a report tells one by one.
const MOST: usize = 20;
/// Most documents that are kept while a ledger is read.
const MOST_KEPT: usize = 10_000;
/// Most agents above one.
const MOST_ABOVE: usize = 32;

/// A document, and the identity that its parts make.
struct Made {
    document: Document,
    hash: Digest,
}

/// The identities on record, checked one by one.
pub struct Identities<'a> {
    folder: &'a Path,
    known: HashMap<Digest, Rc<Made>>,
    /// Documents of main agents that were found to be in order.
    mains: HashSet<Digest>,
    /// The tools of parents, by their identities.
    parents: HashMap<Digest, BTreeSet<String>>,
    rows: u64,
    told: Vec<String>,
    wrong: Tally,
}

impl<'a> Identities<'a> {
    /// Identities whose parts lie in `folder`.
    pub fn of(folder: &'a Path) -> Self {
        let (known, parents) = (HashMap::new(), HashMap::new());
        Self { folder, known, mains: HashSet::new(), parents, rows: 0, told: Vec::new(), wrong: Tally::new() }
    }

    /// Takes the next row, and the state it holds.
    pub fn row(&mut self, row: &Row, state: Option<&State>) {
        if row.detail.get("identity").is_none() {
            return;
        }
        self.rows += 1;
        if let Err(why) = self.check(row, state) {
            self.wrong.add(row.sequence, &why);
        }
    }

    fn check(&mut self, row: &Row, state: Option<&State>) -> Result<(), String> {
        let named = IdentityRef::of(&row.detail).ok_or("its identity does not read")?;
        let made = self.document(named.document)?;
        let document = &made.document;
        if made.hash != named.hash {
            return Err("the parts of its identity make another".to_owned());
        }
        let policy = state.and_then(|state| state.policy.as_ref()).ok_or("no policy governed")?;
        let layers = row.detail.get("layers").and_then(Value::as_array).unwrap_or_default();
        let files: Vec<Digest> = layers.iter().filter_map(|layer| digest(layer.get("file"))).collect();
        // A row of a call lists the layers that spoke; another's are known only where there are none.
        let known =
            event(row) == "tool-call" || policy.layers.is_none() && state.is_none_or(|state| state.told.is_none());
        if known && document.parts.policy_digest != policy_digest(policy.file, &files) {
            return Err("its identity is of another policy".to_owned());
        }
        if !self.mains.contains(&named.document) || row.detail.get("agent").is_some() {
            self.chained(row, &named, document)?;
        }
        agrees(row, document)?;
        if self.told.len() < MOST && !self.told.iter().any(|told| told.starts_with(&named.hash.to_string())) {
            let model = document.parts.model.as_deref().unwrap_or("unknown model");
            let agent = row.detail.get("agent").and_then(|agent| agent.get("id")).and_then(Value::as_str);
            let agent = agent.map_or_else(|| "main".to_owned(), |agent| format!("sub-agent {agent}"));
            let tools = document.parts.tools.len();
            self.told.push(format!("{}: {agent}, {model}, {tools} tools, from row {}", named.hash, row.sequence));
        }
        Ok(())
    }

    /// A sub-agent has a parent with all of its tools, and so on up to a main agent.
    fn chained(&mut self, row: &Row, named: &IdentityRef, document: &Document) -> Result<(), String> {
        let tools: BTreeSet<String> = document.parts.tools.iter().cloned().collect();
        if tools.len() != document.parts.tools.len() || !document.parts.tools.is_sorted() {
            return Err("the tools of its identity are not a sorted set".to_owned());
        }
        let is_sub_agent = row.detail.get("agent").is_some();
        match document.parts.parent_identity {
            None if is_sub_agent => Err("a sub-agent's identity names no parent".to_owned()),
            Some(_) if !is_sub_agent => Err("the main agent's identity names a parent".to_owned()),
            None => {
                self.mains.insert(named.document);
                self.parents.insert(named.hash, tools);
                Ok(())
            }
            Some(parent) => self.below(&tools, parent, 0),
        }
    }

    /// Tools are among those of a parent, whose own are among its parent's.
    fn below(&mut self, tools: &BTreeSet<String>, parent: Digest, depth: usize) -> Result<(), String> {
        if depth > MOST_ABOVE {
            return Err("there are more agents above it than there can be".to_owned());
        }
        if let Some(parents) = self.parents.get(&parent) {
            return is_less(tools, parents);
        }
        let made = self.named(parent)?;
        let parents: BTreeSet<String> = made.document.parts.tools.iter().cloned().collect();
        is_less(tools, &parents)?;
        if let Some(above) = made.document.parts.parent_identity {
            self.below(&parents, above, depth + 1)?;
        }
        self.parents.insert(parent, parents);
        Ok(())
    }

    /// The parts of an identity that no row has to name: they were kept for those below it.
    fn named(&mut self, identity: Digest) -> Result<Rc<Made>, String> {
        let names = std::fs::read_dir(self.folder.join("identities")).into_iter().flatten().flatten();
        for name in names.map(|entry| entry.file_name()).take(MOST_KEPT) {
            let hex = name.to_str().and_then(|name| name.strip_suffix(".json")).unwrap_or_default();
            let Ok(digest) = Digest::parse(&format!("sha256:{hex}")) else { continue };
            let Ok(made) = self.document(digest) else { continue };
            if made.hash == identity {
                return Ok(made);
            }
        }
        Err("the parent of its identity is not on record".to_owned())
    }

    fn document(&mut self, digest: Digest) -> Result<Rc<Made>, String> {
        if let Some(known) = self.known.get(&digest) {
            return Ok(Rc::clone(known));
        }
        let bytes = super::optional(&self.folder.join(file_name(digest))).ok().flatten();
        let bytes = bytes.ok_or("the parts of its identity are not there")?;
        let document = Document::parse(&bytes, digest).ok_or("the parts of its identity were changed")?;
        let made = Rc::new(Made { hash: document.parts.hash(), document });
        if self.known.len() < MOST_KEPT {
            self.known.insert(digest, Rc::clone(&made));
        }
        Ok(made)
    }

    /// What it comes to; nothing where no row names an identity.
    pub fn phase(self) -> Option<Phase> {
        if self.rows == 0 {
            return None;
        }
        let (outcome, summary, findings) = if self.wrong.total() > 0 {
            (Outcome::Failed, "an identity is not what its parts make it".to_owned(), self.wrong.texts())
        } else {
            let count = self.told.len() as u64;
            let summary = format!("{} rows name identities, each made of its parts again", self.rows);
            (Outcome::Passed, summary, listed(self.told, count))
        };
        Some(Phase { name: "identity", outcome, standing: Standing::Observed, summary, findings })
    }
}

fn is_less(tools: &BTreeSet<String>, parents: &BTreeSet<String>) -> Result<(), String> {
    if tools.is_subset(parents) { Ok(()) } else { Err("a sub-agent has tools that its parent has not".to_owned()) }
}

/// The facts of a call tell of the agent that its identity tells of.
fn agrees(row: &Row, document: &Document) -> Result<(), String> {
    let Some(facts) = row.detail.get("facts") else { return Ok(()) };
    let facts: Facts = json::from_value(facts).map_err(|error| format!("its facts do not read: {error}"))?;
    let Some(known) = facts.agent() else { return Ok(()) };
    let seen = Seen::recorded(&document.parts.environment, &document.standing);
    let of = |wanted| -> Vec<String> {
        seen.names().into_iter().filter(|(_, standing)| *standing == wanted).map(|(name, _)| name).collect()
    };
    let same = known.model == document.parts.model
        && known.observed == of(environment::Standing::Observed)
        && known.reported == of(environment::Standing::Reported);
    same.then_some(()).ok_or_else(|| "its facts tell of another agent than its identity".to_owned())
}

fn digest(value: Option<&Value>) -> Option<Digest> {
    value.and_then(Value::as_str).and_then(|text| Digest::parse(text).ok())
}
