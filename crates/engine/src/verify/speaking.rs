//! The policies that speak on a session or on one type of its sub-agents, and whose statements count for each of them.
//!
//! Owns the way from a policy to its parents and its sublayouts, and to its functionaries. Refuses the functionaries of a policy that nobody
//! trusted signed (R11, R72): whoever writes such a file could name themselves. Doubts those of one that the verifier trusts no signer of.
//! Invariant: where nobody is named, nobody counts. Page: `spec/verify.md`, "Sublayouts"; `spec/statements.md`, "What somebody else signed".

use std::path::PathBuf;

use writ_core::{Digest, Timestamp};
use writ_evidence::keys::PublicKey;
use writ_policy::{Functionary, Policy};

use super::policies::{self, Kept};
use crate::governing::Trust;
use crate::governing::in_force::PolicyRef;
use crate::governing::layers::LayerRef;

/// Where a policy names its parent.
const PARENT: &str = "/extends";
/// Where it names sub-agents' policies.
const CHILDREN: &str = "/sublayouts/";
/// The word of a policy that somebody trusted signed.
const TRUSTED: &str = "trusted";

/// A policy that speaks, and what its rules are named with where it is a layer.
pub type Speaking<'a> = (Option<&'a LayerRef>, Policy);

/// The policies of a session.
#[derive(Clone, Copy)]
pub struct Policies<'a> {
    /// The one that governed last.
    pub named: &'a PolicyRef,
    /// What was kept of it and its layers.
    pub kept: &'a Kept,
    /// Its layers.
    pub list: &'a [LayerRef],
    /// Whom the verifier trusts.
    pub trust: &'a Trust,
    /// Since when it governed.
    pub since: Timestamp,
}

impl<'a> Policies<'a> {
    /// The layer at a place of the list.
    pub fn layer(&self, at: Option<usize>) -> Option<&'a LayerRef> {
        at.and_then(|at| self.list.get(at))
    }

    /// The policy whose file has a digest.
    pub fn document(&self, file: Digest) -> Result<Policy, String> {
        policies::document_of(&self.named.path, file, self.kept)
    }

    /// The policy that names a layer.
    pub fn above(&self, layer: &LayerRef) -> Result<Policy, String> {
        self.document(self.layer(layer.of).map_or(self.named.file, |above| above.file))
    }

    /// The policies that speak where the one at this place of the list does: it, and its parents. Those that were not kept are left to the
    /// phase `policy`.
    pub fn speaking(&self, at: Option<usize>) -> Vec<Speaking<'a>> {
        let own = self.layer(at);
        let policy = self.document(own.map_or(self.named.file, |layer| layer.file)).ok();
        let mut all: Vec<Speaking<'a>> = policy.map(|policy| (own, policy)).into_iter().collect();
        let parents = self.parents(at).into_iter();
        all.extend(parents.filter_map(|layer| Some((Some(layer), self.document(layer.file).ok()?))));
        all
    }

    fn parents(&self, at: Option<usize>) -> Vec<&'a LayerRef> {
        let named = self.list.iter().enumerate().filter(|(_, layer)| layer.of == at && layer.pointer == PARENT);
        named.flat_map(|(at, layer)| std::iter::once(layer).chain(self.parents(Some(at)))).collect()
    }

    /// The places of the sublayouts that a policy names, or one of its parents.
    pub fn children(&self, at: Option<usize>) -> Vec<usize> {
        let named = |(place, layer): (usize, &LayerRef)| match layer {
            layer if layer.of != at => Vec::new(),
            layer if layer.pointer.starts_with(CHILDREN) => vec![place],
            _ => self.children(Some(place)),
        };
        self.list.iter().enumerate().flat_map(named).collect()
    }

    /// Whose statements count for one of the policies that speak where the one at this place does: its own functionaries, else those of the
    /// one at this place.
    pub fn functionaries(&self, at: Option<usize>, (layer, policy): &Speaking<'_>) -> Functionaries {
        let parent = layer.filter(|layer| Some(*layer) != self.layer(at));
        let own = parent.and_then(|parent| self.named_by(Some(parent), policy.functionaries()));
        own.unwrap_or_else(|| self.functionaries_at(at))
    }

    /// Those that a layer names, or the policy itself; `None` where it names none. A policy that the record says nobody trusted signed names
    /// nobody.
    fn named_by(&self, layer: Option<&LayerRef>, named: Option<Vec<Functionary>>) -> Option<Functionaries> {
        let named = named?;
        let (place, file, signed) = match layer {
            Some(layer) => (PathBuf::from(layer.place()), layer.file, &layer.signed),
            None => (self.named.path.clone(), self.named.file, &self.named.signed),
        };
        if signed != TRUSTED {
            return Some(Functionaries::default());
        }
        let here = policies::is_trusted(&place, file, self.kept, (self.trust, self.since));
        Some(Functionaries { named, doubted: !here })
    }

    /// Those of a sublayout are the ones that stand beside it, then its policy's own, then its parent's.
    fn functionaries_at(&self, at: Option<usize>) -> Functionaries {
        let own = |layer: Option<&LayerRef>| {
            let file = layer.map_or(self.named.file, |layer| layer.file);
            self.named_by(layer, self.document(file).ok()?.functionaries())
        };
        let Some(layer) = self.layer(at) else { return own(None).unwrap_or_default() };
        let references = self.above(layer).map(|above| above.references()).unwrap_or_default();
        let beside = references.into_iter().find(|named| named.pointer == layer.pointer);
        self.named_by(self.layer(layer.of), beside.and_then(|named| named.child?.functionaries))
            .or_else(|| own(Some(layer)))
            .unwrap_or_else(|| self.functionaries_at(layer.of))
    }
}

/// Who may say something beside the session itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Functionaries {
    named: Vec<Functionary>,
    doubted: bool,
}

impl Functionaries {
    /// Whether nobody whom the verifier trusts signed the policy that names them, though the record says that somebody trusted did.
    pub const fn doubted(&self) -> bool {
        self.doubted
    }

    /// Whether one of them is told by this key. What is taken into a record shows no certificate and no bundle.
    pub fn have(&self, key: &PublicKey) -> bool {
        let hex = key.key_id().hex();
        let is = |id: &String| id.rsplit(':').next().unwrap_or_default().eq_ignore_ascii_case(&hex);
        self.named.iter().any(|one| matches!(one, Functionary::Key { id } if is(id)))
    }
}
