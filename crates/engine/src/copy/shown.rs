//! A copy's changes for people and programs.
//!
//! Owns the words; refuses nothing. Invariant: what would run outside later is marked, whatever else is shown of it.

use std::io::{self, Read};

use serde::Serialize;
use writ_core::Digest;

use super::changes::{Change, Pair};
use super::later;
use super::text::{self, unified};
use super::tree::{Kind, Node, Tree};
use super::{Copy, CopyError, disk};

/// All of them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    /// The session.
    pub session: String,
    /// The changes, by path.
    pub changes: Vec<Entry>,
}

/// One.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Where.
    pub path: String,
    /// What becomes of it.
    pub change: What,
    /// Why it would run outside later, or bind somebody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub later: Option<&'static str>,
    /// Whether it is applied only with `--all`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub protected: bool,
    /// Whether it changed outside since the run began: then nothing is applied.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub changed_outside: bool,
    /// What is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Side>,
    /// What the layer has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Side>,
    /// The lines in which two texts differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// What becomes of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// It is new.
    Made,
    /// It is another.
    Changed,
    /// It is gone.
    Removed,
}

/// What something is.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Side {
    /// `file`, `folder`, `link` or `other`.
    pub kind: &'static str,
    /// Its rights, in octal.
    pub mode: String,
    /// Bytes of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Of a file's bytes, or a link's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Where a link leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

impl Copy {
    /// Its changes, with texts of at most this size compared.
    pub fn shown(&self, text: u64) -> Result<Shown, CopyError> {
        let conflicts = self.conflicts()?;
        let mut changes = Vec::new();
        for (change, protected) in self.changes.iter().zip(&self.protected) {
            let Some(pair) = self.pairs.get(change.pair) else { continue };
            let path = self.path(change);
            let mut entry = entry(pair, change, text).map_err(disk(&path))?;
            entry.path = path.to_string_lossy().into_owned();
            entry.protected = *protected;
            entry.later = entry.later.or_else(|| protected.then_some("the policy protects it"));
            entry.changed_outside =
                conflicts.iter().any(|other| other.starts_with(&path) && (*other == path || change.before.is_some()));
            changes.push(entry);
        }
        Ok(Shown { session: self.session.to_string(), changes })
    }
}

fn entry(pair: &Pair, change: &Change, most: u64) -> io::Result<Entry> {
    let side = |tree: &Tree, name, node: &Option<Node>| node.as_ref().map(|node| side(tree, name, node)).transpose();
    let before = side(&pair.below, &change.name, &change.before)?;
    let after = side(&pair.layer, &change.in_layer, &change.after)?;
    let differ = before.as_ref().and_then(|side| side.digest) != after.as_ref().and_then(|side| side.digest);
    let diff = if differ && most > 0 { diff(pair, change, most.min(text::MAX_BYTES))? } else { None };
    let what = match (&change.before, &change.after) {
        (None, _) => What::Made,
        (Some(_), None) => What::Removed,
        (Some(_), Some(_)) => What::Changed,
    };
    let later = later::of(change).map(|later| later.why);
    Ok(Entry {
        path: String::new(),
        change: what,
        later,
        protected: false,
        changed_outside: false,
        before,
        after,
        diff,
    })
}

fn side(tree: &Tree, name: &std::path::Path, node: &Node) -> io::Result<Side> {
    let kind = match node.kind {
        Kind::File => "file",
        Kind::Folder => "folder",
        Kind::Link => "link",
        Kind::Whiteout | Kind::Other => "other",
    };
    let target = if node.kind == Kind::Link { Some(tree.link(name)?) } else { None };
    Ok(Side {
        kind,
        mode: format!("{:04o}", node.mode()),
        size: (node.kind == Kind::File).then(|| node.size()),
        digest: tree.digest(name, node.kind)?,
        target: target.map(|target| target.to_string_lossy().into_owned()),
    })
}

/// The lines in which two texts differ; a side that is not there has none.
fn diff(pair: &Pair, change: &Change, most: u64) -> io::Result<Option<String>> {
    let read = |tree: &Tree, name, node: &Option<Node>| -> io::Result<Option<String>> {
        let Some(node) = node else { return Ok(Some(String::new())) };
        if node.kind != Kind::File || node.size() > most {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        tree.file(name)?.take(most + 1).read_to_end(&mut bytes)?;
        Ok(String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')))
    };
    let old = read(&pair.below, &change.name, &change.before)?;
    let new = read(&pair.layer, &change.in_layer, &change.after)?;
    Ok(old.zip(new).and_then(|(old, new)| unified(&old, &new)))
}
