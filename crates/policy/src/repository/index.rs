//! The index: gitformat-index(5), versions 2 to 4.

use super::Id;

/// Most entries that are read.
const MAX_ENTRIES: u32 = 2_000_000;

/// What git tracks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// In git's order.
    pub entries: Vec<Tracked>,
}

/// A tracked file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracked {
    /// From the work tree's root.
    pub path: String,
    /// Its content when it was last added.
    pub id: Id,
}

/// An entry as the index has it.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// From the work tree's root; any bytes but a zero.
    pub path: &'a [u8],
    /// The object's name, in full.
    pub id: &'a [u8],
    /// 0o100644 and the like.
    pub mode: u32,
    /// The file as it was when it was last added.
    pub stat: Stat,
    /// 0; more while a merge is not resolved.
    pub stage: u16,
    /// Its file is left out of the work tree.
    pub skipped: bool,
    /// git is told not to look whether its file was changed.
    pub assumed: bool,
}

/// What the index remembers of a file, cut to 32 bits each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// When its inode changed: seconds, nanoseconds.
    pub changed: (u32, u32),
    /// When its content did.
    pub modified: (u32, u32),
    /// Its inode.
    pub inode: u32,
    /// Its length.
    pub size: u32,
}

/// Takes each entry of an index whose object names have so many bytes. `None` for what is damaged, and for one that leans on another.
pub fn each(bytes: &[u8], hash: usize, take: &mut dyn FnMut(Entry<'_>)) -> Option<()> {
    let mut reader = Reader { bytes };
    if reader.take(4)? != b"DIRC" {
        return None;
    }
    let version = reader.number()?;
    let count = reader.number()?;
    if !(2..=4).contains(&version) || count > MAX_ENTRIES {
        return None;
    }
    let mut path: Vec<u8> = Vec::new();
    for _ in 0..count {
        let start = reader.bytes.len();
        let changed = (reader.number()?, reader.number()?);
        let modified = (reader.number()?, reader.number()?);
        let (_device, inode, mode) = (reader.number()?, reader.number()?, reader.number()?);
        let (_user, _group, size) = (reader.number()?, reader.number()?, reader.number()?);
        let id = reader.take(hash)?;
        let flags = reader.short()?;
        let mut more = 0;
        if flags & 0x4000 != 0 {
            if version < 3 {
                return None;
            }
            more = reader.short()?;
        }
        if version == 4 {
            let cut = reader.offset()?;
            path.truncate(path.len().checked_sub(cut)?);
            path.extend_from_slice(reader.text()?);
        } else {
            path.clear();
            path.extend_from_slice(reader.text()?);
            // Entries are padded to eight bytes; one of the zeros has ended the path.
            let used = start - reader.bytes.len() - 1;
            reader.take((8 - used % 8) - 1)?;
        }
        // A folder of its own in a sparse index hides what is below it.
        if mode == 0o40000 {
            return None;
        }
        let stat = Stat { changed, modified, inode, size };
        let (skipped, assumed) = (more & 0x4000 != 0, flags & 0x8000 != 0);
        take(Entry { path: &path, id, mode, stat, stage: (flags >> 12) & 3, skipped, assumed });
    }
    // A part of the entries is in another file.
    let split = reader.bytes.windows(4).take(4096).any(|sign| sign == b"link");
    (!split).then_some(())
}

impl Index {
    /// Reads an index whose object names have so many bytes. `None` for what is damaged, and for one that leans on another.
    pub fn parse(bytes: &[u8], hash: usize) -> Option<Self> {
        let mut entries = Vec::new();
        each(bytes, hash, &mut |entry| {
            entries.push(Tracked { path: String::from_utf8_lossy(entry.path).into_owned(), id: Id::new(entry.id) });
        })?;
        Some(Self { entries })
    }

    /// The content of a tracked file.
    pub fn id(&self, path: &str) -> Option<Id> {
        self.entries.iter().find(|entry| entry.path == path).map(|entry| entry.id)
    }
}

struct Reader<'b> {
    bytes: &'b [u8],
}

impl<'b> Reader<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    /// Text up to a zero, which is taken too.
    fn text(&mut self) -> Option<&'b [u8]> {
        let end = self.bytes.iter().position(|byte| *byte == 0)?;
        let text = self.take(end)?;
        self.take(1)?;
        Some(text)
    }

    /// A number as the offsets of deltas have it.
    fn offset(&mut self) -> Option<usize> {
        let mut value = 0usize;
        for round in 0..8 {
            let byte = *self.take(1)?.first()?;
            if round > 0 {
                value = value.checked_add(1)?;
            }
            value = value.checked_shl(7)?.checked_add(usize::from(byte & 0x7f))?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}
