//! Which policy is in force: the accepted one, and what has become of its file since (R82).
//!
//! The accepted copy, kept by digest in Writ's state, goes on governing whatever happens to the file. A changed file that is
//! valid is judged as one more layer, so that it can only tighten; one that is invalid or gone changes nothing. That holds for the file
//! of each layer. Status, doctor,
//! hook and verification take their words from here. Page: `spec/policy.md`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use writ_core::{Digest, Timestamp, json};
use writ_policy::{Enforce, Facts, Layer, Own, Policy};
use writ_store::{Store, StoreError};

use super::bases;
use super::error::{GoverningError, Missing};
use super::find;
use super::kept;
pub use super::kept::PolicyRef;
use super::layers::{self, CHANGED, Caller, LayerRef, OfAgent};
use super::open::{self, Governing};
use super::resolve::{self, Elsewhere, Locks};
use super::trust::Trust;
use crate::session::agents::Agents;

/// The policies that a session's calls are judged under.
#[derive(Debug)]
pub struct InForce {
    /// As a human last accepted it, with its layers.
    pub accepted: Governing,
    /// What became of files that are no longer what was accepted: the root's first.
    pub changes: Vec<Changed>,
}

/// A file that is no longer what was accepted.
#[derive(Debug)]
pub struct Changed {
    /// Which of the accepted layers it was; the root where that is absent.
    pub layer: Option<usize>,
    /// Where it is.
    pub place: String,
    /// What is there now.
    pub change: Change,
}

/// A policy that speaks on a call.
#[derive(Clone, Debug)]
pub struct Speaks<'a> {
    /// What its rules are named with; nothing for the root's.
    pub name: Option<Cow<'a, str>>,
    /// The policy.
    pub policy: &'a Policy,
    /// Digest of its file.
    pub file: Digest,
    /// Of a policy that is about one type of sub-agent alone.
    pub of_agent: Option<OfAgent<'a>>,
    /// Whether it labels data in another way than the policy did that was accepted.
    pub relabels: bool,
}

impl<'a> Speaks<'a> {
    /// A rule of it, by a name that says whose it is.
    pub fn rule(&self, rule: &str) -> String {
        self.name.as_ref().map_or_else(|| rule.to_owned(), |name| format!("{name}:{rule}"))
    }

    /// It with what was found out for it, and what the agents that it is about have used.
    pub fn layer<'b>(&'b self, facts: &'b Facts, agents: &'b Agents, now: Timestamp) -> Layer<'b>
    where
        'a: 'b,
    {
        let own = self.of_agent.as_ref().map(|agent| agent.own(agents, now));
        layer(self.name.as_deref(), self.policy, facts, own).unseen(self.relabels)
    }
}

/// The layers that are counted when a call is decided on which these speak, each once.
pub fn counted(speaking: &[Speaks<'_>]) -> BTreeSet<String> {
    let layers = speaking.iter().filter_map(|speaks| speaks.of_agent.as_ref()?.counted());
    layers.map(str::to_owned).collect()
}

/// A layer of a decision. What limits one type of sub-agent is held against what those used, not the session as a whole.
pub const fn layer<'a>(name: Option<&'a str>, policy: &'a Policy, facts: &'a Facts, own: Option<Own<'a>>) -> Layer<'a> {
    let layer = match name {
        None => Layer::own(policy, facts),
        Some(name) => Layer::named(name, policy, facts),
    };
    match own {
        Some(own) => layer.counted(own),
        None => layer,
    }
}

/// What a row tells of a file that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// What rules of it are named with.
    pub name: String,
    /// The layer whose file it was; the root where that is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<usize>,
    /// Digest of what is there now, or `lost`.
    pub file: String,
    /// Whether it is a valid policy, which is judged too.
    pub judged: bool,
}

impl InForce {
    /// The policies that all have to permit somebody's calls: the root, its layers, then what their files were changed to.
    pub fn speaking(&self, caller: Caller<'_>) -> Vec<Speaks<'_>> {
        let root = Speaks {
            name: None,
            policy: &self.accepted.policy,
            file: self.accepted.file,
            of_agent: None,
            relabels: false,
        };
        let mut out = vec![root];
        let list: Vec<&LayerRef> = self.accepted.layers.iter().map(|layer| &layer.at).collect();
        let applying = layers::applying(&list, caller);
        out.extend(applying.iter().filter_map(|at| self.accepted.layers.get(*at)).map(|layer| Speaks {
            name: Some(Cow::Borrowed(&layer.at.name)),
            policy: &layer.policy,
            file: layer.at.file,
            of_agent: self.accepted.of_agent(layer, &layer.policy),
            relabels: false,
        }));
        for changed in self.changes.iter().filter(|changed| changed.layer.is_none_or(|at| applying.contains(&at))) {
            let Some(governing) = changed.change.layer() else { continue };
            let layer = changed.layer.and_then(|at| self.accepted.layers.get(at));
            out.push(Speaks {
                name: Some(Cow::Owned(changed_name(layer.map(|layer| layer.at.name.as_str())))),
                policy: &governing.policy,
                file: governing.file,
                of_agent: layer.and_then(|layer| self.accepted.of_agent(layer, &governing.policy)),
                relabels: relabels(layer.map_or(&self.accepted.policy, |layer| &layer.policy), &governing.policy),
            });
        }
        out
    }

    /// The policies that have no say in somebody's calls and label data: what a session took in before, their rules have to know later.
    pub fn labelling(&self, caller: Caller<'_>) -> Vec<&Policy> {
        let list: Vec<&LayerRef> = self.accepted.layers.iter().map(|layer| &layer.at).collect();
        let applying = layers::applying(&list, caller);
        let silent = |at: &usize| !applying.contains(at);
        let layers = self.accepted.layers.iter().enumerate().filter(|(at, _)| silent(at)).map(|(_, own)| &own.policy);
        let changed = self.changes.iter().filter(|changed| changed.layer.as_ref().is_some_and(silent));
        let changed = changed.filter_map(|changed| Some(&changed.change.layer()?.policy));
        layers.chain(changed).filter(|policy| policy.labels_data()).collect()
    }

    /// Those that have a say, the policies alone.
    pub fn policies(&self, caller: Caller<'_>) -> Vec<&Policy> {
        self.speaking(caller).into_iter().map(|speaks| speaks.policy).collect()
    }

    /// What becomes of decisions about somebody's calls: what the strictest says.
    pub fn enforce(&self, caller: Caller<'_>) -> Enforce {
        Enforce::strictest(self.policies(caller).into_iter().map(Policy::enforce))
    }

    /// What rows tell of the changes.
    pub fn told(&self) -> Vec<Told> {
        let told = |changed: &Changed| {
            let layer = changed.layer.and_then(|at| self.accepted.layers.get(at));
            Told {
                name: changed_name(layer.map(|layer| layer.at.name.as_str())),
                layer: changed.layer,
                file: changed.change.key(),
                judged: changed.change.layer().is_some(),
            }
        };
        self.changes.iter().map(told).collect()
    }

    /// What a person is told of them, one a line; nothing where nothing changed.
    pub fn tell(&self) -> Option<String> {
        let lines: Vec<String> = self.changes.iter().map(|changed| changed.change.tell(&changed.place)).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// What rules of a changed file are named with.
fn changed_name(layer: Option<&str>) -> String {
    layer.map_or_else(|| CHANGED.to_owned(), |layer| format!("{CHANGED}:{layer}"))
}

/// Whether a file that changed labels data in another way than it did: what was taken in before got none of its labels.
pub fn relabels(accepted: &Policy, changed: &Policy) -> bool {
    accepted.document().get("dataFlow") != changed.document().get("dataFlow")
}

/// What a state says was told: another digest for other changes, nothing where there are none.
pub fn key(told: &[Told]) -> Option<String> {
    (!told.is_empty()).then(|| Digest::of(json::to_canonical(&told).as_bytes()).to_string())
}

/// What became of the accepted policy's file.
#[derive(Debug)]
pub enum Change {
    /// Another valid policy: both must allow.
    Layer(Box<Governing>),
    /// No valid policy.
    Invalid {
        /// Digest of what is there.
        found: Digest,
        /// What is wrong with it.
        why: String,
    },
    /// It cannot be read.
    Lost {
        /// Why.
        why: String,
    },
}

impl Change {
    /// A text that is another for each other change.
    pub fn key(&self) -> String {
        match self {
            Self::Layer(governing) => governing.file.to_string(),
            Self::Invalid { found, .. } => found.to_string(),
            Self::Lost { .. } => "lost".to_owned(),
        }
    }

    /// The policy that is judged too.
    pub fn layer(&self) -> Option<&Governing> {
        match self {
            Self::Layer(governing) => Some(governing),
            Self::Invalid { .. } | Self::Lost { .. } => None,
        }
    }

    /// What a person is told of it.
    fn tell(&self, path: &str) -> String {
        match self {
            Self::Layer(_) => format!(
                "the policy {path} is not the one a human accepted for this session: the accepted copy goes on governing, and the \
                 changed file is asked too. Review it, then `writ policy accept`"
            ),
            Self::Invalid { why, .. } => format!(
                "the policy {path} changed and is not valid ({why}): the accepted copy goes on governing. Mend it, then `writ policy \
                 accept`"
            ),
            Self::Lost { why } => format!(
                "the policy {path} is gone ({why}): the accepted copy goes on governing. Put it back, as with `git checkout BRANCH -- \
                 FILE`"
            ),
        }
    }
}

/// What is in force for a session whose files are in `folder`.
pub fn of(accepted: &PolicyRef, folder: &Path, trust: &Trust) -> Result<InForce, GoverningError> {
    if accepted.own {
        return Ok(InForce { accepted: kept::open(accepted, folder, trust)?, changes: Vec::new() });
    }
    let (path, found) = (&accepted.path, open::read(&accepted.path));
    let same = found.as_deref().ok().filter(|bytes| Digest::of(bytes) == accepted.file);
    let governing = kept::open_with(accepted, folder, trust, same)?;
    let mut changes = Vec::new();
    if same.is_none() {
        let change = change(accepted.file, found, |bytes| resolve::open_bytes(path, bytes, None, trust));
        changes.extend(change.map(|change| Changed { layer: None, place: path.display().to_string(), change }));
    }
    let root = accepted.root();
    for (at, layer) in governing.layers.iter().enumerate() {
        let Some(found) = now(&layer.at, accepted) else { continue };
        let place = layer.at.place();
        let opened = |bytes| open::open_layer(Path::new(&place), bytes, root, trust, layer.at.path.is_some());
        if let Some(change) = change(layer.at.file, found, opened) {
            changes.push(Changed { layer: Some(at), place, change });
        }
    }
    Ok(InForce { accepted: governing, changes })
}

/// Whether every file is the accepted one, as far as its bytes say.
pub fn is_unchanged(accepted: &PolicyRef, folder: &Path) -> bool {
    let same =
        |file: Digest, found: Result<Vec<u8>, GoverningError>| found.is_ok_and(|bytes| Digest::of(&bytes) == file);
    let layers = || {
        let list = kept::list(accepted, folder).ok()?;
        Some(list.iter().all(|layer| now(layer, accepted).is_none_or(|found| same(layer.file, found))))
    };
    accepted.own || same(accepted.file, open::read(&accepted.path)) && layers().unwrap_or(false)
}

/// What is at a layer's place now: its file, or what the lock holds. Nothing, where it stands in the one that names it.
fn now(layer: &LayerRef, accepted: &PolicyRef) -> Option<Result<Vec<u8>, GoverningError>> {
    if let Some(path) = &layer.path {
        return Some(open::read(Path::new(path)));
    }
    // Which base it is, a digest says: it cannot become another.
    let address = layer.address.as_ref().filter(|address| !bases::is_one(address))?;
    let locks = Locks::of(&accepted.path).map_err(GoverningError::from);
    let gone = |missing: Missing| GoverningError::Unreadable {
        path: PathBuf::from(address),
        source: std::io::Error::new(std::io::ErrorKind::NotFound, missing.why),
    };
    Some(locks.and_then(|locks| locks.bytes(address).map_err(gone)))
}

/// What became of a file with a digest.
fn change(
    file: Digest,
    found: Result<Vec<u8>, GoverningError>,
    open: impl FnOnce(Vec<u8>) -> Result<Governing, GoverningError>,
) -> Option<Change> {
    let bytes = match found {
        Err(error) => return Some(Change::Lost { why: reason(&error) }),
        Ok(bytes) if Digest::of(&bytes) == file => return None,
        Ok(bytes) => bytes,
    };
    let found = Digest::of(&bytes);
    Some(match open(bytes) {
        Ok(governing) => Change::Layer(Box::new(governing)),
        Err(error) => Change::Invalid { found, why: error.to_string() },
    })
}

fn reason(error: &GoverningError) -> String {
    if let GoverningError::Unreadable { source, .. } = error { source.to_string() } else { error.to_string() }
}

/// A session whose policy was not the accepted one when it was last seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// Where the policy was.
    #[serde(with = "json::path")]
    pub path: PathBuf,
    /// Digest of what the store keeps of the accepted one: of its file, where it has no layers.
    pub file: Digest,
}

impl Open {
    /// The note as it is kept.
    pub fn to_bytes(&self) -> Vec<u8> {
        json::to_compact(self).into_bytes()
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        json::from_slice(bytes).ok()
    }
}

/// The name under which a folder's repository is kept in the store.
pub fn repository(folder: &Path) -> Digest {
    let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    Digest::of(find::repository(&real).to_string_lossy().as_bytes())
}

/// What was left open in the repository around `cwd`.
pub fn left_open(store: &Store, cwd: &Path) -> Result<Option<Open>, StoreError> {
    Ok(store.left_open(repository(cwd))?.and_then(|bytes| Open::parse(&bytes)))
}

/// Whether a policy that governed `cwd` is gone without anyone having settled that.
pub fn is_lost(store: &Store, cwd: &Path) -> bool {
    let open = left_open(store, cwd).ok().flatten();
    let real = fs::canonicalize(cwd).unwrap_or_else(|_| cwd.to_owned());
    open.is_some_and(|open| {
        open.path.parent().is_some_and(|folder| [cwd, &real].iter().any(|cwd| cwd.starts_with(folder)))
    })
}

/// What a person is told of a session that began before a human settled what an earlier one left open.
pub fn pending(path: &Path) -> String {
    format!(
        "another session here ended while its policy was changed or gone, and no human has accepted {} as it is now: every call asks \
         until `writ policy accept`",
        path.display()
    )
}
