//! The policies that speak on a session or on one type of its sub-agents, and whose statements count for each of them.
//!
//! Owns the way from a policy to its parents and its sublayouts, and to its functionaries. Refuses the functionaries of a policy that nobody
//! trusted signed (R11, R72): whoever writes such a file could name themselves. Invariant: where nobody is named, nobody counts. Page:
//! `spec/verify.md`, "Sublayouts"; `spec/statements.md`, "What somebody else signed".

use writ_core::Digest;
use writ_evidence::keys::PublicKey;
use writ_policy::{Functionary, Policy};

use super::policies::{self, Kept};
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
        let own = parent.and_then(|parent| Functionaries::named(policy.functionaries(), &parent.signed));
        own.unwrap_or_else(|| self.functionaries_at(at))
    }

    /// Those of a sublayout are the ones that stand beside it, then its policy's own, then its parent's.
    fn functionaries_at(&self, at: Option<usize>) -> Functionaries {
        let own = |file, signed: &str| Functionaries::named(self.document(file).ok()?.functionaries(), signed);
        let Some(layer) = self.layer(at) else {
            return own(self.named.file, self.named.signed.as_str()).unwrap_or_default();
        };
        let signed = self.layer(layer.of).map_or(&self.named.signed, |above| &above.signed);
        let references = self.above(layer).map(|above| above.references()).unwrap_or_default();
        let beside = references.into_iter().find(|named| named.pointer == layer.pointer);
        Functionaries::named(beside.and_then(|named| named.child?.functionaries), signed)
            .or_else(|| own(layer.file, layer.signed.as_str()))
            .unwrap_or_else(|| self.functionaries_at(layer.of))
    }
}

/// Who may say something beside the session itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Functionaries(Vec<Functionary>);

impl Functionaries {
    /// Those that a policy names, where somebody trusted signed it; `None` where it names none.
    fn named(named: Option<Vec<Functionary>>, signed: &str) -> Option<Self> {
        named.map(|named| Self(if signed == TRUSTED { named } else { Vec::new() }))
    }

    /// Whether one of them is told by this key. What is taken into a record shows no certificate and no bundle.
    pub fn have(&self, key: &PublicKey) -> bool {
        let hex = key.key_id().hex();
        let is = |id: &String| id.rsplit(':').next().unwrap_or_default().eq_ignore_ascii_case(&hex);
        self.0.iter().any(|one| matches!(one, Functionary::Key { id } if is(id)))
    }
}
