//! RFC 6962 Merkle trees: leaf `H(0x00 ‖ entry)`, node `H(0x01 ‖ left ‖ right)`.
//!
//! [`TreeOf`] takes leaves one by one and keeps only the roots of its full subtrees. Proofs are checked as RFC 9162 §2.1 says. Every
//! function is the same for each [`NodeHash`]; ledgers have SHA-256, sessions that or SHA-512. Pages: `spec/checkpoint.md`,
//! `spec/turns.md`.

use std::fmt;

use ring::digest::{Algorithm, Context, SHA256, SHA512, digest};
use writ_core::Digest;

/// A hash that a tree is made of.
pub trait NodeHash: Copy + Eq + fmt::Debug {
    /// The function.
    const FUNCTION: &'static Algorithm;
    /// Its name, as policies and statements write it.
    const NAME: &'static str;

    /// Takes what the function gave; `None` for another length.
    fn new(bytes: &[u8]) -> Option<Self>;

    /// Its bytes.
    fn bytes(&self) -> &[u8];

    /// In lower-case hexadecimal, without a prefix.
    fn hex(&self) -> String {
        let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or_default();
        self.bytes().iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    }

    /// Reads [`NodeHash::hex`].
    fn from_hex(text: &str) -> Option<Self> {
        let digit = |byte: &u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
        let bytes: Option<Vec<u8>> = pairs.iter().map(|[high, low]| Some((digit(high)? << 4) | digit(low)?)).collect();
        Self::new(&bytes?)
    }

    /// As many zero bytes.
    fn zero() -> Self;
}

impl NodeHash for Digest {
    const FUNCTION: &'static Algorithm = &SHA256;
    const NAME: &'static str = "sha256";

    fn new(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::from_bytes)
    }

    fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }

    fn zero() -> Self {
        Self::ZERO
    }
}

/// A SHA-512 digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest512([u8; 64]);

impl NodeHash for Digest512 {
    const FUNCTION: &'static Algorithm = &SHA512;
    const NAME: &'static str = "sha512";

    fn new(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn zero() -> Self {
        Self([0; 64])
    }
}

/// What the function gives. Its length is that of the hash, so nothing is ever left out.
fn made<H: NodeHash>(given: &ring::digest::Digest) -> H {
    H::new(given.as_ref()).unwrap_or_else(H::zero)
}

/// A leaf's hash.
pub fn leaf<H: NodeHash>(entry: &[u8]) -> H {
    leaf_in(entry, &mut Vec::with_capacity(entry.len() + 1))
}

/// The same with scratch space: one call into the library is faster than feeding it in pieces.
pub(crate) fn leaf_in<H: NodeHash>(entry: &[u8], room: &mut Vec<u8>) -> H {
    room.clear();
    room.push(0);
    room.extend_from_slice(entry);
    made(&digest(H::FUNCTION, room))
}

/// A leaf whose entry comes in pieces.
#[derive(Clone)]
pub struct LeafHasher(Context);

impl LeafHasher {
    /// Before the first piece.
    pub fn new<H: NodeHash>() -> Self {
        let mut context = Context::new(H::FUNCTION);
        context.update(&[0]);
        Self(context)
    }

    /// Adds a piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The leaf. `H` is the hash that it was begun with.
    pub fn finish<H: NodeHash>(self) -> H {
        made(&self.0.finish())
    }
}

/// An inner node's hash.
pub fn node<H: NodeHash>(left: H, right: H) -> H {
    let mut room = [1u8; 129];
    let (left, right) = (left.bytes(), right.bytes());
    let length = 1 + left.len() + right.len();
    for (to, from) in room.iter_mut().skip(1).zip(left.iter().chain(right)) {
        *to = *from;
    }
    made(&digest(H::FUNCTION, room.get(..length).unwrap_or_default()))
}

/// A tree of SHA-256.
pub type Tree = TreeOf<Digest>;

/// A tree that only grows. Memory is logarithmic in its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeOf<H> {
    size: u64,
    /// Roots of full subtrees, largest first: one for each set bit of `size`.
    roots: Vec<H>,
}

impl<H> Default for TreeOf<H> {
    fn default() -> Self {
        Self { size: 0, roots: Vec::new() }
    }
}

impl<H: NodeHash> TreeOf<H> {
    /// The tree of a size whose full subtrees have these roots, largest first; `None` where that is none.
    pub fn resume(size: u64, roots: Vec<H>) -> Option<Self> {
        (size.count_ones() as usize == roots.len()).then_some(Self { size, roots })
    }

    /// The roots of its full subtrees, largest first.
    pub fn roots(&self) -> &[H] {
        &self.roots
    }

    /// Adds an entry.
    pub fn push(&mut self, entry: &[u8]) {
        self.push_leaf(leaf(entry));
    }

    /// Adds an entry that is hashed already.
    pub fn push_leaf(&mut self, leaf: H) {
        let mut hash = leaf;
        let mut size = self.size;
        while size & 1 == 1 {
            if let Some(left) = self.roots.pop() {
                hash = node(left, hash);
            }
            size >>= 1;
        }
        self.roots.push(hash);
        self.size += 1;
    }

    /// How many entries there are.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The root; the hash of nothing for the empty tree.
    pub fn root(&self) -> H {
        let mut roots = self.roots.iter().rev().copied();
        let Some(last) = roots.next() else { return made(&digest(H::FUNCTION, b"")) };
        roots.fold(last, |right, left| node(left, right))
    }

    /// The inclusion proof that the next leaf will have right after it was added: what stands to its left.
    pub fn proof_of_next(&self) -> Vec<H> {
        self.roots.iter().rev().copied().collect()
    }
}

/// The proof that the leaf at `index` is in the tree over `leaves`: sibling hashes from the leaf up (RFC 6962 §2.1.1).
pub fn inclusion_proof<H: NodeHash>(leaves: &[H], index: usize) -> Option<Vec<H>> {
    if index >= leaves.len() {
        return None;
    }
    let mut proof = Vec::new();
    let mut rest = leaves;
    let mut at = index;
    while rest.len() > 1 {
        let (left, right) = rest.split_at(split(rest.len()));
        if at < left.len() {
            proof.push(root_of(right));
            rest = left;
        } else {
            proof.push(root_of(left));
            at -= left.len();
            rest = right;
        }
    }
    proof.reverse();
    Some(proof)
}

/// Checks an inclusion proof (RFC 9162 §2.1.3.2).
pub fn verify_inclusion<H: NodeHash>(leaf: H, index: u64, size: u64, proof: &[H], root: H) -> bool {
    if index >= size {
        return false;
    }
    let (mut at, mut last, mut hash) = (index, size - 1, leaf);
    for sibling in proof {
        if last == 0 {
            return false;
        }
        if at & 1 == 1 || at == last {
            hash = node(*sibling, hash);
            while at & 1 == 0 && at != 0 {
                at >>= 1;
                last >>= 1;
            }
        } else {
            hash = node(hash, *sibling);
        }
        at >>= 1;
        last >>= 1;
    }
    last == 0 && hash == root
}

/// The proof that the tree over the first `size` leaves is a beginning of the tree over all of them (RFC 6962 §2.1.2).
/// `None` unless `1 ≤ size ≤ leaves.len()`.
pub fn consistency_proof<H: NodeHash>(leaves: &[H], size: usize) -> Option<Vec<H>> {
    if size == 0 || size > leaves.len() {
        return None;
    }
    let mut proof = Vec::new();
    let (mut rest, mut size) = (leaves, size);
    // Whether the old tree is still a whole subtree here: its verifier knows that root already.
    let mut known = true;
    while size < rest.len() {
        let (left, right) = rest.split_at(split(rest.len()));
        if size <= left.len() {
            proof.push(root_of(right));
            rest = left;
        } else {
            proof.push(root_of(left));
            size -= left.len();
            rest = right;
            known = false;
        }
    }
    if !known {
        proof.push(root_of(rest));
    }
    proof.reverse();
    Some(proof)
}

/// Checks a consistency proof from the tree of `old` entries to that of `new` (RFC 9162 §2.1.4.2).
pub fn verify_consistency<H: NodeHash>((old, old_root): (u64, H), (new, new_root): (u64, H), proof: &[H]) -> bool {
    if old == 0 || old > new {
        return false;
    }
    if old == new {
        return proof.is_empty() && old_root == new_root;
    }
    let mut proof = proof.iter().copied();
    let (mut at, mut last) = (old - 1, new - 1);
    while at & 1 == 1 {
        at >>= 1;
        last >>= 1;
    }
    let first = if old.is_power_of_two() { Some(old_root) } else { proof.next() };
    let Some(first) = first else { return false };
    let (mut old_hash, mut new_hash) = (first, first);
    for sibling in proof {
        if last == 0 {
            return false;
        }
        if at & 1 == 1 || at == last {
            old_hash = node(sibling, old_hash);
            new_hash = node(sibling, new_hash);
            while at & 1 == 0 && at != 0 {
                at >>= 1;
                last >>= 1;
            }
        } else {
            new_hash = node(new_hash, sibling);
        }
        at >>= 1;
        last >>= 1;
    }
    last == 0 && old_hash == old_root && new_hash == new_root
}

/// The root over `leaves`.
pub fn root_of<H: NodeHash>(leaves: &[H]) -> H {
    let mut tree = TreeOf::default();
    leaves.iter().for_each(|&leaf| tree.push_leaf(leaf));
    tree.root()
}

/// The largest power of two below `len`, for `len` of at least 2.
const fn split(len: usize) -> usize {
    1 << (usize::BITS - 1 - (len - 1).leading_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seven entries and roots of the reference implementation's test tree.
    #[test]
    fn known_roots() {
        let entries: [&[u8]; 8] = [
            b"",
            b"\x00",
            b"\x10",
            b"\x20\x21",
            b"\x30\x31",
            b"\x40\x41\x42\x43",
            b"\x50\x51\x52\x53\x54\x55\x56\x57",
            b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
        ];
        let roots = [
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
            "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
            "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
            "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
            "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
        ];
        let mut tree = Tree::default();
        let mut leaves = Vec::new();
        for (entry, root) in entries.iter().zip(roots) {
            tree.push(entry);
            leaves.push(leaf(entry));
            assert_eq!(tree.root().hex(), root);
            for index in 0..leaves.len() {
                let proof = inclusion_proof(&leaves, index).unwrap();
                let (at, size) = (index as u64, tree.size());
                assert!(verify_inclusion(leaves[index], at, size, &proof, tree.root()));
                assert!(!verify_inclusion(leaf(b"other"), at, size, &proof, tree.root()));
                assert!(!verify_inclusion(leaves[index], at + 1, size, &proof, tree.root()) || size == 1);
            }
        }
    }

    fn leaves(count: usize) -> Vec<Digest> {
        (0..count).map(|number| leaf(&number.to_le_bytes())).collect()
    }

    /// RFC 6962 §2.1 as it is written, the oracle for the tree that grows.
    fn recursive_root(leaves: &[Digest]) -> Digest {
        match leaves {
            [] => Digest::of(b""),
            [leaf] => *leaf,
            more => {
                let (left, right) = more.split_at(more.len().next_power_of_two() / 2);
                node(recursive_root(left), recursive_root(right))
            }
        }
    }

    #[test]
    fn grows_as_the_rfc_defines() {
        for count in 0..70 {
            assert_eq!(root_of(&leaves(count)), recursive_root(&leaves(count)), "{count}");
        }
    }

    #[test]
    fn consistency_proofs_hold_for_every_pair_of_sizes() {
        let all = leaves(40);
        for new in 1..=all.len() {
            for old in 1..=new {
                let proof = consistency_proof(&all[..new], old).unwrap();
                let before = (old as u64, root_of(&all[..old]));
                let after = (new as u64, root_of(&all[..new]));
                assert!(verify_consistency(before, after, &proof), "{old} → {new}");
                let other = Digest::of(b"other");
                assert!(!verify_consistency((before.0, other), after, &proof), "{old} → {new}");
                assert!(!verify_consistency(before, (after.0, other), &proof), "{old} → {new}");
                assert!(!verify_consistency(before, after, &[&proof[..], &[other]].concat()), "{old} → {new}");
                for at in 0..proof.len() {
                    let mut bent = proof.clone();
                    bent[at] = other;
                    assert!(!verify_consistency(before, after, &bent), "{old} → {new}");
                    bent.remove(at);
                    assert!(!verify_consistency(before, after, &bent), "{old} → {new}");
                }
            }
        }
        assert!(consistency_proof(&all, 0).is_none() && consistency_proof(&all, 41).is_none());
        assert!(!verify_consistency((0, root_of(&[])), (1, all[0]), &[]));
    }

    #[test]
    fn inclusion_proofs_hold_for_every_leaf() {
        let all = leaves(33);
        for size in 1..=all.len() {
            let root = root_of(&all[..size]);
            for at in 0..size {
                let proof = inclusion_proof(&all[..size], at).unwrap();
                assert!(verify_inclusion(all[at], at as u64, size as u64, &proof, root));
                assert!(!verify_inclusion(all[at], at as u64, size as u64, &[&proof[..], &[root]].concat(), root));
                for gone in 0..proof.len() {
                    let mut short = proof.clone();
                    short.remove(gone);
                    assert!(!verify_inclusion(all[at], at as u64, size as u64, &short, root));
                }
            }
            assert!(inclusion_proof(&all[..size], size).is_none());
        }
    }

    /// The same tree with SHA-512, against the RFC's own words.
    #[test]
    fn trees_of_sha512_have_proofs_too() {
        fn recursive(leaves: &[Digest512]) -> Digest512 {
            match leaves {
                [] => made(&digest(&SHA512, b"")),
                [leaf] => *leaf,
                more => {
                    let (left, right) = more.split_at(more.len().next_power_of_two() / 2);
                    node(recursive(left), recursive(right))
                }
            }
        }
        let all: Vec<Digest512> = (0..20u32).map(|number| leaf(&number.to_le_bytes())).collect();
        for size in 0..=all.len() {
            let root = recursive(&all[..size]);
            assert_eq!(root_of(&all[..size]), root, "{size}");
            for at in 0..size {
                let proof = inclusion_proof(&all[..size], at).unwrap();
                assert!(verify_inclusion(all[at], at as u64, size as u64, &proof, root));
                assert!(!verify_inclusion(all[at], at as u64, size as u64, &proof, all[0]) || size == 1);
            }
        }
        assert_eq!(Digest512::from_hex(&all[3].hex()), Some(all[3]));
        for bad in ["", "00", all[3].hex().get(1..).unwrap(), &all[3].hex().to_uppercase()] {
            assert_eq!(Digest512::from_hex(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_proof_of_a_leaf_is_known_before_it_is_added() {
        let all = leaves(40);
        let mut tree = Tree::default();
        for (at, leaf) in all.iter().enumerate() {
            let proof = tree.proof_of_next();
            assert_eq!(Some(&proof), inclusion_proof(&all[..=at], at).as_ref());
            let again = Tree::resume(tree.size(), tree.roots().to_vec()).unwrap();
            assert_eq!(again, tree);
            tree.push_leaf(*leaf);
            let mut pieces = LeafHasher::new::<Digest>();
            at.to_le_bytes().chunks(3).for_each(|piece| pieces.update(piece));
            assert_eq!(pieces.finish::<Digest>(), *leaf);
        }
        assert_eq!(Tree::resume(3, vec![all[0]]), None);
    }

    /// The empty tree is the hash of nothing (RFC 6962 §2.1).
    #[test]
    fn the_empty_tree() {
        assert_eq!(Tree::default().root().hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
