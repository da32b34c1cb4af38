//! The Merkle tree over a session's turns (R22).
//!
//! Owns the leaf of a turn, `{previousTurnHash, contentHash, timestamp, metrics}` in canonical form, and the tree over them while a
//! transcript is read line by line. Refuses to hold lines: memory is logarithmic in turns and lines. Invariant: the same lines, beginnings
//! and counts give the same tree, however often reading stopped in between. Page: `spec/turns.md`.

use serde::{Deserialize, Serialize};
use writ_core::{Timestamp, json};

use crate::merkle::{self, LeafHasher, NodeHash, TreeOf};

/// Tokens of one turn, by the transcript's word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metrics {
    /// All that the model read: from a cache, into one, and past it.
    pub tokens_in: u64,
    /// All that it wrote.
    pub tokens_out: u64,
    /// What of its input came from a cache.
    pub cache_read: u64,
    /// What of its input went into one.
    pub cache_write: u64,
}

impl Metrics {
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            tokens_in: self.tokens_in.saturating_add(other.tokens_in),
            tokens_out: self.tokens_out.saturating_add(other.tokens_out),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
        }
    }
}

/// What a leaf is the hash of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Leaf {
    /// The leaf's hash of the turn before; zeros at the first.
    pub previous_turn_hash: String,
    /// Root of the tree over the turn's lines.
    pub content_hash: String,
    /// When its prompt was given, by the transcript.
    pub timestamp: Option<Timestamp>,
    /// Its tokens.
    pub metrics: Metrics,
}

impl Leaf {
    /// Its hash in the tree.
    pub fn hash<H: NodeHash>(&self) -> H {
        merkle::leaf(json::to_canonical(self).as_bytes())
    }
}

/// Where a turn stands in its session. Hashes are hexadecimal, without a prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Binding {
    /// Hash of the tree: `sha256` or `sha512`.
    pub algorithm: String,
    /// The root over all turns up to this one.
    pub merkle_root: String,
    /// How many turns that are.
    pub tree_size: u64,
    /// The turn's number, from 0.
    pub turn_index: u64,
    /// From the leaf up to the root.
    pub merkle_proof: Vec<String>,
    /// The hash of the turn before, as its lines were when this turn began.
    pub previous_turn_hash: String,
    /// What the leaf is the hash of.
    pub leaf: Leaf,
}

/// Why a binding does not hold in itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindingError {
    /// Another function than the two.
    #[error("its tree is made with a hash that is not known here")]
    Algorithm,
    /// A hash that is none of that function.
    #[error("it holds a hash that is none of its function")]
    Hash,
    /// The turn is not the last of its tree.
    #[error("its turn is not the last of its tree")]
    Place,
    /// The leaf names another turn before.
    #[error("its leaf names another previous turn")]
    Previous,
    /// The proof leads elsewhere.
    #[error("its proof does not lead to its root")]
    Proof,
}

impl Binding {
    /// Whether the leaf, the proof and the root belong together.
    pub fn check(&self) -> Result<(), BindingError> {
        match self.algorithm.as_str() {
            <writ_core::Digest as NodeHash>::NAME => self.check_as::<writ_core::Digest>(),
            merkle::Digest512::NAME => self.check_as::<merkle::Digest512>(),
            _ => Err(BindingError::Algorithm),
        }
    }

    fn check_as<H: NodeHash>(&self) -> Result<(), BindingError> {
        let read = |text: &String| H::from_hex(text).ok_or(BindingError::Hash);
        let root = read(&self.merkle_root)?;
        let proof = self.merkle_proof.iter().map(read).collect::<Result<Vec<H>, _>>()?;
        read(&self.leaf.content_hash)?;
        let previous = read(&self.previous_turn_hash)?;
        if self.leaf.previous_turn_hash != self.previous_turn_hash || (self.turn_index == 0) != (previous == H::zero())
        {
            return Err(BindingError::Previous);
        }
        if self.tree_size.checked_sub(1) != Some(self.turn_index) {
            return Err(BindingError::Place);
        }
        let holds = merkle::verify_inclusion(self.leaf.hash(), self.turn_index, self.tree_size, &proof, root);
        if holds { Ok(()) } else { Err(BindingError::Proof) }
    }
}

/// The tree while its session goes on.
#[derive(Clone)]
pub struct SessionTree<H> {
    /// Over the turns that have ended.
    turns: TreeOf<H>,
    previous: H,
    open: Open<H>,
    /// A line of which only a part was read.
    line: Option<LeafHasher>,
}

/// The turn that the next line belongs to.
#[derive(Clone)]
struct Open<H> {
    lines: TreeOf<H>,
    begun: bool,
    timestamp: Option<Timestamp>,
    metrics: Metrics,
}

impl<H> Default for Open<H> {
    fn default() -> Self {
        Self { lines: TreeOf::default(), begun: false, timestamp: None, metrics: Metrics::default() }
    }
}

impl<H: NodeHash> Default for SessionTree<H> {
    fn default() -> Self {
        Self { turns: TreeOf::default(), previous: H::zero(), open: Open::default(), line: None }
    }
}

impl<H: NodeHash> SessionTree<H> {
    /// A turn begins with the next line. What comes before the first prompt belongs to the first turn. Returns whether one ended.
    pub fn begin(&mut self, timestamp: Option<Timestamp>) -> bool {
        let ends = self.open.begun;
        if ends {
            let leaf = self.leaf().hash();
            self.turns.push_leaf(leaf);
            (self.previous, self.open) = (leaf, Open::default());
        }
        (self.open.begun, self.open.timestamp) = (true, timestamp);
        ends
    }

    /// Takes a line, without its line feed, or a part of one.
    pub fn line(&mut self, bytes: &[u8], whole: bool) {
        let mut hasher = self.line.take().unwrap_or_else(LeafHasher::new::<H>);
        hasher.update(bytes);
        if whole {
            self.open.lines.push_leaf(hasher.finish());
        } else {
            self.line = Some(hasher);
        }
    }

    /// Takes a line of which only its hash in the tree is known.
    pub fn hidden_line(&mut self, hash: H) {
        self.line = None;
        self.open.lines.push_leaf(hash);
    }

    /// Forgets a line that never came to its end.
    pub fn abandon(&mut self) {
        self.line = None;
    }

    /// Counts what a line of the open turn told.
    pub const fn count(&mut self, metrics: Metrics) {
        self.open.metrics = self.open.metrics.plus(metrics);
    }

    /// Whether a prompt was read.
    pub const fn has_turn(&self) -> bool {
        self.open.begun
    }

    /// The open turn's number, from 0.
    pub const fn turn_index(&self) -> u64 {
        self.turns.size()
    }

    fn leaf(&self) -> Leaf {
        Leaf {
            previous_turn_hash: self.previous.hex(),
            content_hash: self.open.lines.root().hex(),
            timestamp: self.open.timestamp,
            metrics: self.open.metrics,
        }
    }

    /// The open turn as it stands; `None` before the first prompt.
    pub fn binding(&self) -> Option<Binding> {
        if !self.open.begun {
            return None;
        }
        let leaf = self.leaf();
        let mut whole = self.turns.clone();
        let merkle_proof = whole.proof_of_next().iter().map(H::hex).collect();
        whole.push_leaf(leaf.hash());
        Some(Binding {
            algorithm: H::NAME.to_owned(),
            merkle_root: whole.root().hex(),
            tree_size: whole.size(),
            turn_index: self.turns.size(),
            merkle_proof,
            previous_turn_hash: leaf.previous_turn_hash.clone(),
            leaf,
        })
    }

    /// The root over all turns, the open one as it stands.
    pub fn root(&self) -> H {
        let mut whole = self.turns.clone();
        if self.open.begun {
            whole.push_leaf(self.leaf().hash());
        }
        whole.root()
    }

    /// As it is kept between two readings; a line that was begun is not.
    pub fn kept(&self) -> Kept {
        let hex = |tree: &TreeOf<H>| (tree.size(), tree.roots().iter().map(H::hex).collect());
        let (turns, lines) = (hex(&self.turns), hex(&self.open.lines));
        let Open { begun, timestamp, metrics, .. } = self.open;
        Kept { turns, lines, previous: self.previous.hex(), begun, timestamp, metrics }
    }

    /// Goes on with what was kept; `None` where that is none.
    pub fn resume(kept: &Kept) -> Option<Self> {
        let tree = |(size, roots): &(u64, Vec<String>)| {
            let roots: Option<Vec<H>> = roots.iter().map(|root| H::from_hex(root)).collect();
            TreeOf::resume(*size, roots?)
        };
        let Kept { begun, timestamp, metrics, .. } = *kept;
        let open = Open { lines: tree(&kept.lines)?, begun, timestamp, metrics };
        Some(Self { turns: tree(&kept.turns)?, previous: H::from_hex(&kept.previous)?, open, line: None })
    }
}

/// A tree as it is kept between two readings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Kept {
    turns: (u64, Vec<String>),
    lines: (u64, Vec<String>),
    previous: String,
    begun: bool,
    timestamp: Option<Timestamp>,
    metrics: Metrics,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merkle::{Digest512, inclusion_proof, leaf, root_of};
    use writ_core::Digest;

    const TURNS: [&[&str]; 5] = [&["note", "prompt a", "answer"], &["prompt b"], &["c", "d"], &["e", "", "f"], &["g"]];

    fn metrics(lines: &[&str]) -> Metrics {
        let used = lines.iter().map(|line| line.len() as u64).sum();
        Metrics { tokens_in: used, tokens_out: 1, cache_read: 2, cache_write: 3 }
    }

    fn at(turn: usize) -> Option<Timestamp> {
        Some(Timestamp::from_millis(1_700_000_000_000 + turn as i64))
    }

    /// R22 as it is written, from whole turns.
    fn leaves<H: NodeHash>(turns: &[&[&str]]) -> Vec<H> {
        let mut out: Vec<H> = Vec::new();
        for (number, lines) in turns.iter().enumerate() {
            let content: Vec<H> = lines.iter().map(|line| leaf(line.as_bytes())).collect();
            let previous = out.last().copied().unwrap_or_else(H::zero);
            let entry = Leaf {
                previous_turn_hash: previous.hex(),
                content_hash: root_of(&content).hex(),
                timestamp: at(number),
                metrics: metrics(lines),
            };
            out.push(leaf(json::to_canonical(&entry).as_bytes()));
        }
        out
    }

    fn grows<H: NodeHash>() {
        let mut tree = SessionTree::<H>::default();
        for (number, lines) in TURNS.iter().enumerate() {
            let wanted: Vec<H> = leaves(&TURNS[..=number]);
            let (first, rest) = if number == 0 { lines.split_at(1) } else { lines.split_at(0) };
            first.iter().for_each(|line| tree.line(line.as_bytes(), true));
            assert_eq!(tree.begin(at(number)), number > 0);
            for line in rest {
                let (front, back) = line.as_bytes().split_at(line.len() / 2);
                tree.line(front, false);
                tree.line(back, true);
            }
            tree.count(metrics(lines));
            // Reading stops here, and goes on later.
            tree = SessionTree::resume(&tree.kept()).unwrap();
            assert_eq!(tree.root(), root_of(&wanted));
            let binding = tree.binding().unwrap();
            let proof: Vec<String> = inclusion_proof(&wanted, number).unwrap().iter().map(H::hex).collect();
            assert_eq!((binding.turn_index, &binding.merkle_proof), (number as u64, &proof));
            assert_eq!(binding.merkle_root, root_of(&wanted).hex());
            assert_eq!(binding.check(), Ok(()));
        }
    }

    #[test]
    fn it_is_the_tree_of_r22_with_either_hash() {
        grows::<Digest>();
        grows::<Digest512>();
        assert!(SessionTree::<Digest>::default().binding().is_none());
    }

    #[test]
    fn a_binding_that_was_changed_in_any_place_does_not_hold() {
        let mut tree = SessionTree::<Digest>::default();
        for number in 0..3 {
            tree.begin(at(number));
            tree.line(b"line", true);
        }
        let good = tree.binding().unwrap();
        assert_eq!(good.check(), Ok(()));
        let other = Digest::of(b"other").hex();
        let change = |change: &dyn Fn(&mut Binding)| {
            let mut bad = good.clone();
            change(&mut bad);
            assert_ne!(bad, good);
            assert!(bad.check().is_err(), "{bad:?}");
        };
        change(&|bad| bad.algorithm = "sha512".to_owned());
        change(&|bad| bad.algorithm = "md5".to_owned());
        change(&|bad| bad.merkle_root = other.clone());
        change(&|bad| bad.merkle_root = String::new());
        change(&|bad| bad.tree_size = 4);
        change(&|bad| bad.tree_size = 0);
        change(&|bad| bad.turn_index = 1);
        change(&|bad| drop(bad.merkle_proof.pop()));
        change(&|bad| bad.merkle_proof.push(other.clone()));
        change(&|bad| bad.previous_turn_hash = other.clone());
        change(&|bad| bad.leaf.previous_turn_hash = other.clone());
        change(&|bad| bad.leaf.content_hash = other.clone());
        change(&|bad| bad.leaf.timestamp = None);
        change(&|bad| bad.leaf.metrics.cache_read = 1);
    }
}
