//! RFC 6962 Merkle trees over ledger rows: leaf `SHA-256(0x00 ‖ row)`, node `SHA-256(0x01 ‖ left ‖ right)`.
//!
//! [`Tree`] takes leaves one by one and keeps only the roots of its full subtrees. Proofs are checked as RFC 9162 §2.1 says.
//! Page: `spec/checkpoint.md`.

use writ_core::Digest;

/// A leaf's hash.
pub fn leaf(entry: &[u8]) -> Digest {
    leaf_in(entry, &mut Vec::with_capacity(entry.len() + 1))
}

/// The same with scratch space: one call into the library is faster than feeding it in pieces.
pub(crate) fn leaf_in(entry: &[u8], room: &mut Vec<u8>) -> Digest {
    room.clear();
    room.push(0);
    room.extend_from_slice(entry);
    Digest::of(room)
}

/// An inner node's hash.
pub fn node(left: Digest, right: Digest) -> Digest {
    let mut block = [1u8; 65];
    let (front, to_right) = block.split_at_mut(33);
    if let Some(to_left) = front.get_mut(1..) {
        to_left.copy_from_slice(left.as_bytes());
    }
    to_right.copy_from_slice(right.as_bytes());
    Digest::of(&block)
}

/// A tree that only grows. Memory is logarithmic in its size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    size: u64,
    /// Roots of full subtrees, largest first: one for each set bit of `size`.
    roots: Vec<Digest>,
}

impl Tree {
    /// Adds an entry.
    pub fn push(&mut self, entry: &[u8]) {
        self.push_leaf(leaf(entry));
    }

    /// Adds an entry that is hashed already.
    pub fn push_leaf(&mut self, leaf: Digest) {
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
    pub fn root(&self) -> Digest {
        let mut roots = self.roots.iter().rev().copied();
        let Some(last) = roots.next() else { return Digest::of(b"") };
        roots.fold(last, |right, left| node(left, right))
    }
}

/// The proof that the leaf at `index` is in the tree over `leaves`: sibling hashes from the leaf up (RFC 6962 §2.1.1).
pub fn inclusion_proof(leaves: &[Digest], index: usize) -> Option<Vec<Digest>> {
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
pub fn verify_inclusion(leaf: Digest, index: u64, size: u64, proof: &[Digest], root: Digest) -> bool {
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
pub fn consistency_proof(leaves: &[Digest], size: usize) -> Option<Vec<Digest>> {
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
pub fn verify_consistency((old, old_root): (u64, Digest), (new, new_root): (u64, Digest), proof: &[Digest]) -> bool {
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
pub fn root_of(leaves: &[Digest]) -> Digest {
    let mut tree = Tree::default();
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

    /// The empty tree is the hash of nothing (RFC 6962 §2.1).
    #[test]
    fn the_empty_tree() {
        assert_eq!(Tree::default().root().hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
