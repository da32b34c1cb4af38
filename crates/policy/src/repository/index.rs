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

impl Index {
    /// Reads an index whose object names have so many bytes. `None` for what is damaged, and for one that leans on another.
    pub fn parse(bytes: &[u8], hash: usize) -> Option<Self> {
        let mut reader = Reader { bytes };
        if reader.take(4)? != b"DIRC" {
            return None;
        }
        let version = reader.number()?;
        let count = reader.number()?;
        if !(2..=4).contains(&version) || count > MAX_ENTRIES {
            return None;
        }
        let mut entries = Vec::new();
        let mut before: Vec<u8> = Vec::new();
        for _ in 0..count {
            let start = reader.bytes.len();
            reader.take(24)?;
            let mode = reader.number()?;
            reader.take(12)?;
            let id = Id::new(reader.take(hash)?);
            let flags = reader.short()?;
            if flags & 0x4000 != 0 {
                if version < 3 {
                    return None;
                }
                reader.short()?;
            }
            let path = if version == 4 {
                let cut = reader.offset()?;
                let kept = before.len().checked_sub(cut)?;
                let mut path = before.get(..kept)?.to_vec();
                path.extend_from_slice(reader.text()?);
                path
            } else {
                let path = reader.text()?.to_vec();
                // Entries are padded to eight bytes; one of the zeros has ended the path.
                let used = start - reader.bytes.len() - 1;
                reader.take((8 - used % 8) - 1)?;
                path
            };
            // A folder of its own in a sparse index hides what is below it.
            if mode == 0o40000 {
                return None;
            }
            entries.push(Tracked { path: String::from_utf8_lossy(&path).into_owned(), id });
            before = path;
        }
        // A part of the entries is in another file.
        let split = reader.bytes.windows(4).take(4096).any(|sign| sign == b"link");
        (!split).then_some(Self { entries })
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
