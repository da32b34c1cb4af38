//! Objects: loose ones and packs (gitformat-pack(5)), commits and trees.

use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

use super::Repository;

/// Largest object that is read, in bytes.
const MAX_OBJECT: usize = 16 << 20;
/// Longest chain of deltas.
const MAX_CHAIN: usize = 64;
/// Most packs that are looked into.
const MAX_PACKS: usize = 64;

/// An object's name: 20 bytes, of SHA-256 the first 20.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Id([u8; 20]);

/// What an object is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A commit.
    Commit,
    /// A folder.
    Tree,
    /// A file's content.
    Blob,
    /// An annotated tag.
    Tag,
}

/// One name in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The name.
    pub name: String,
    /// Whether it is a tree.
    pub is_tree: bool,
    /// Whether it is a commit of another repository.
    pub is_module: bool,
    /// What it holds.
    pub id: Id,
}

/// A commit's tree and parents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its tree.
    pub tree: Id,
    /// The commits before it.
    pub parents: Vec<Id>,
}

/// The tree without anything in it.
pub const EMPTY: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

impl Id {
    /// The first 20 bytes; zeros behind fewer.
    pub fn new(bytes: &[u8]) -> Self {
        let mut out = [0; 20];
        out.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        Self(out)
    }

    /// 40 hexadecimal digits.
    pub fn hex(text: &str) -> Option<Self> {
        if text.len() != 40 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let mut out = [0; 20];
        for (byte, pair) in out.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(out))
    }

    /// Its 40 digits.
    pub fn text(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Repository<'_> {
    /// An object's kind and bytes.
    pub fn object(&self, id: Id) -> Option<(Kind, Vec<u8>)> {
        if !self.spend() {
            return None;
        }
        self.stores().iter().find_map(|store| self.loose(store, id).or_else(|| self.packed(store, id)))
    }

    /// The folders that objects are in: the repository's own, and those it leans on.
    fn stores(&self) -> Vec<String> {
        let own = format!("{}/objects", self.common);
        let others = self.text(&format!("{own}/info/alternates")).unwrap_or_default();
        let absolute = |line: &str| if line.starts_with('/') { line.to_owned() } else { format!("{own}/{line}") };
        let others = others.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).take(4).map(absolute);
        std::iter::once(own.clone()).chain(others).collect()
    }

    fn loose(&self, store: &str, id: Id) -> Option<(Kind, Vec<u8>)> {
        let text = id.text();
        let (folder, name) = text.split_at_checked(2)?;
        let bytes = self.world.read(&format!("{store}/{folder}/{name}"), 0, MAX_OBJECT)?;
        let bytes = decompress_to_vec_zlib_with_limit(&bytes, MAX_OBJECT).ok()?;
        let end = bytes.iter().take(64).position(|byte| *byte == 0)?;
        let head = std::str::from_utf8(bytes.get(..end)?).ok()?;
        let kind = match head.split(' ').next()? {
            "commit" => Kind::Commit,
            "tree" => Kind::Tree,
            "blob" => Kind::Blob,
            "tag" => Kind::Tag,
            _ => return None,
        };
        Some((kind, bytes.get(end + 1..)?.to_vec()))
    }

    fn packed(&self, store: &str, id: Id) -> Option<(Kind, Vec<u8>)> {
        let entries = self.world.list(&format!("{store}/pack"))?;
        let packs = entries.iter().filter_map(|entry| entry.name.strip_suffix(".idx")).take(MAX_PACKS);
        packs.into_iter().find_map(|pack| {
            let pack = format!("{store}/pack/{pack}");
            let at = self.offset(&format!("{pack}.idx"), id)?;
            self.entry(&format!("{pack}.pack"), at, 0)
        })
    }

    /// Where an object begins in a pack, by its index of version 2.
    fn offset(&self, idx: &str, id: Id) -> Option<u64> {
        let head = self.world.read(idx, 0, 8 + 1024)?;
        if head.get(..8)? != [0xff, b't', b'O', b'c', 0, 0, 0, 2] {
            return None;
        }
        let fan = |at: usize| number(head.get(8 + 4 * at..)?);
        let first = usize::from(*id.0.first()?);
        let (low, high, count) = (if first == 0 { 0 } else { fan(first - 1)? }, fan(first)?, fan(255)?);
        let names =
            self.world.read(idx, 1032 + 20 * low, usize::try_from(high.checked_sub(low)?).ok()?.checked_mul(20)?)?;
        let place = names.chunks_exact(20).position(|name| name == id.0)?;
        let place = low + u64::try_from(place).ok()?;
        let offsets = 1032 + 24 * count;
        let offset = number(&self.world.read(idx, offsets + 4 * place, 4)?)?;
        if offset & 0x8000_0000 == 0 {
            return Some(offset);
        }
        let large = self.world.read(idx, offsets + 4 * count + 8 * (offset & 0x7fff_ffff), 8)?;
        Some(u64::from_be_bytes(large.try_into().ok()?))
    }

    /// The object that begins at a place in a pack.
    fn entry(&self, pack: &str, at: u64, depth: usize) -> Option<(Kind, Vec<u8>)> {
        if depth > MAX_CHAIN {
            return None;
        }
        let head = self.world.read(pack, at, 64)?;
        let mut bytes = head.iter().copied();
        let first = bytes.next()?;
        let mut size = usize::from(first & 0x0f);
        let (mut shift, mut more) = (4u32, first & 0x80 != 0);
        while more {
            let byte = bytes.next()?;
            size |= usize::from(byte & 0x7f).checked_shl(shift)?;
            (shift, more) = (shift + 7, byte & 0x80 != 0);
        }
        let kind = (first >> 4) & 7;
        let base = match kind {
            6 => {
                let byte = bytes.next()?;
                let (mut back, mut more) = (u64::from(byte & 0x7f), byte & 0x80 != 0);
                while more {
                    let byte = bytes.next()?;
                    back = back.checked_add(1)?.checked_mul(128)?.checked_add(u64::from(byte & 0x7f))?;
                    more = byte & 0x80 != 0;
                }
                Some(Base::Offset(at.checked_sub(back).filter(|base| *base < at)?))
            }
            7 => Some(Base::Name(Id::new(&bytes.by_ref().take(20).collect::<Vec<u8>>()))),
            _ => None,
        };
        let used = u64::try_from(head.len() - bytes.len()).ok()?;
        if size > MAX_OBJECT {
            return None;
        }
        // What zlib makes of so many bytes is never longer.
        let packed = self.world.read(pack, at + used, size + size / 512 + 1024)?;
        let data = decompress_to_vec_zlib_with_limit(&packed, size + 1).ok().filter(|data| data.len() == size)?;
        let Some(base) = base else {
            let kind = match kind {
                1 => Kind::Commit,
                2 => Kind::Tree,
                3 => Kind::Blob,
                4 => Kind::Tag,
                _ => return None,
            };
            return Some((kind, data));
        };
        let (kind, base) = match base {
            Base::Offset(base) => self.entry(pack, base, depth + 1)?,
            Base::Name(id) => self.object(id)?,
        };
        Some((kind, patched(&base, &data)?))
    }

    /// A commit.
    pub fn commit(&self, id: Id) -> Option<Commit> {
        let (Kind::Commit, bytes) = self.object(id)? else { return None };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let mut tree = None;
        let mut parents = Vec::new();
        for line in text.lines().take_while(|line| !line.is_empty()) {
            match line.split_once(' ') {
                Some(("tree", id)) => tree = Id::hex(id),
                Some(("parent", id)) => parents.push(Id::hex(id)?),
                _ => {}
            }
        }
        Some(Commit { tree: tree?, parents })
    }

    /// What is in a tree.
    pub fn tree(&self, id: Id) -> Option<Vec<Leaf>> {
        if Id::hex(EMPTY) == Some(id) {
            return Some(Vec::new());
        }
        let (Kind::Tree, bytes) = self.object(id)? else { return None };
        let mut out = Vec::new();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let space = rest.iter().position(|byte| *byte == b' ')?;
            let end = rest.iter().position(|byte| *byte == 0).filter(|end| *end > space)?;
            let mode = rest.get(..space)?;
            let name = String::from_utf8_lossy(rest.get(space + 1..end)?).into_owned();
            let id = Id::new(rest.get(end + 1..end + 21)?);
            out.push(Leaf { name, is_tree: mode == b"40000", is_module: mode == b"160000", id });
            rest = rest.get(end + 21..)?;
        }
        Some(out)
    }

    /// Calls `found` with every path that differs between two trees; a tree that is not there is empty. `None` where one of them
    /// cannot be read, `Some(true)` where `found` said that it is enough.
    pub fn changes(&self, old: Option<Id>, new: Option<Id>, found: &mut dyn FnMut(&str, Id) -> bool) -> Option<bool> {
        let mut todo = vec![(String::new(), old, new)];
        while let Some((base, old, new)) = todo.pop() {
            if old == new {
                continue;
            }
            let read = |id: Option<Id>| id.map_or_else(|| Some(Vec::new()), |id| self.tree(id));
            let (old, new) = (read(old)?, read(new)?);
            let same = |list: &[Leaf], leaf: &Leaf| {
                list.iter().find(|other| other.name == leaf.name && other.is_tree == leaf.is_tree).map(|other| other.id)
            };
            for leaf in &new {
                let before = same(&old, leaf);
                if before == Some(leaf.id) {
                    continue;
                }
                let path = format!("{base}{}", leaf.name);
                if leaf.is_tree {
                    todo.push((format!("{path}/"), before, Some(leaf.id)));
                } else if found(&path, leaf.id) {
                    return Some(true);
                }
            }
            for leaf in old.iter().filter(|leaf| same(&new, leaf).is_none()) {
                let path = format!("{base}{}", leaf.name);
                if leaf.is_tree {
                    todo.push((format!("{path}/"), Some(leaf.id), None));
                } else if found(&path, leaf.id) {
                    return Some(true);
                }
            }
        }
        Some(false)
    }

    /// What a tree holds at a path.
    pub fn at(&self, tree: Id, path: &str) -> Option<Option<Leaf>> {
        let mut here = tree;
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            let leaf = self.tree(here)?.into_iter().find(|leaf| leaf.name == part);
            match leaf {
                Some(leaf) if parts.peek().is_none() => return Some(Some(leaf)),
                Some(leaf) if leaf.is_tree => here = leaf.id,
                _ => return Some(None),
            }
        }
        Some(None)
    }

    /// The objects whose names begin so; two are enough to know that it is not one.
    pub fn beginning(&self, digits: &str) -> Option<Id> {
        let lower = digits.to_ascii_lowercase();
        let (folder, rest) = lower.split_at_checked(2)?;
        let mut found: Vec<Id> = Vec::new();
        for store in self.stores() {
            let loose = self.world.list(&format!("{store}/{folder}")).unwrap_or_default();
            let names = loose.iter().filter(|entry| entry.name.starts_with(rest));
            found.extend(names.filter_map(|entry| Id::hex(&format!("{folder}{}", entry.name))));
            let packs = self.world.list(&format!("{store}/pack")).unwrap_or_default();
            for pack in packs.iter().filter(|entry| entry.name.ends_with(".idx")).take(MAX_PACKS) {
                let idx = format!("{store}/pack/{}", pack.name);
                let head = self.world.read(&idx, 0, 8 + 1024)?;
                let first = usize::from_str_radix(folder, 16).ok()?;
                let fan = |at: usize| number(head.get(8 + 4 * at..)?);
                let (low, high) = (if first == 0 { 0 } else { fan(first - 1)? }, fan(first)?);
                let length = usize::try_from(high.checked_sub(low)?).ok()?.checked_mul(20)?;
                let names = self.world.read(&idx, 1032 + 20 * low, length)?;
                found.extend(names.chunks_exact(20).map(Id::new).filter(|id| id.text().starts_with(&lower)));
            }
        }
        found.sort_unstable();
        found.dedup();
        let [only] = found.as_slice() else { return None };
        Some(*only)
    }
}

enum Base {
    Offset(u64),
    Name(Id),
}

fn number(bytes: &[u8]) -> Option<u64> {
    Some(u64::from(u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?)))
}

/// What a delta makes of its base.
fn patched(base: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = delta.iter().copied();
    let mut length = || {
        let (mut value, mut shift) = (0usize, 0u32);
        loop {
            let byte = bytes.next()?;
            value |= usize::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
    };
    let (before, after) = (length()?, length()?);
    if before != base.len() || after > MAX_OBJECT {
        return None;
    }
    let mut out = Vec::with_capacity(after);
    while let Some(order) = bytes.next() {
        if order & 0x80 == 0 {
            if order == 0 {
                return None;
            }
            for _ in 0..order {
                out.push(bytes.next()?);
            }
            continue;
        }
        let mut field = |bits: std::ops::Range<u32>| {
            let mut value = 0usize;
            for (place, bit) in bits.enumerate() {
                if order & (1 << bit) != 0 {
                    value |= usize::from(bytes.next()?) << (8 * place);
                }
            }
            Some(value)
        };
        let (from, count) = (field(0..4)?, field(4..7)?);
        let count = if count == 0 { 0x10000 } else { count };
        out.extend_from_slice(base.get(from..from.checked_add(count)?)?);
        if out.len() > after {
            return None;
        }
    }
    (out.len() == after).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas() {
        // Five bytes from the second on, then three of its own.
        let delta = [8, 8, 0x91, 1, 5, 3, b'x', b'y', b'z'];
        assert_eq!(patched(b"abcdefgh", &delta).as_deref(), Some(b"bcdefxyz".as_slice()));
        for broken in [&[9u8, 8, 0x91, 1, 5][..], &[8, 9, 0x91, 1, 5], &[8, 5, 0x91, 7, 5], &[8, 5, 0], &[8]] {
            assert_eq!(patched(b"abcdefgh", broken), None);
        }
    }

    #[test]
    fn names() {
        let text = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        assert_eq!(Id::hex(text).map(Id::text).as_deref(), Some(text));
        assert_eq!(Id::hex("4b825dc642cb6eb9a060e54bf8d69288fbee490"), None);
        assert_eq!(Id::hex("+b825dc642cb6eb9a060e54bf8d69288fbee4904"), None);
    }
}
