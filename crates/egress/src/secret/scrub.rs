//! Streams without secrets: values taken out of what comes back, placeholders watched for in what goes out.
//!
//! Owns the bytes at the end of a piece that could be the beginning of a spelling: they wait for the next piece. Refuses to change
//! a stream's length: a value is overwritten with `*`, so that no framing has to be made anew. Invariant: no spelling passes,
//! wherever the pieces end.

use std::io::Write;
use std::sync::Arc;

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use zeroize::Zeroize;

use super::Secrets;
use crate::host::HostName;
use crate::refusal::Refusal;

/// Most that a packed request is unpacked for looking through.
const UNPACKED: usize = 64 << 20;

/// Takes values out of one stream.
pub struct Scrubber {
    secrets: Arc<Secrets>,
    /// What waits for the next piece.
    kept: Vec<u8>,
}

impl Scrubber {
    /// A scrubber for one stream.
    pub const fn new(secrets: Arc<Secrets>) -> Self {
        Self { secrets, kept: Vec::new() }
    }

    /// Whether there is nothing to take out.
    pub fn is_idle(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Scrubs the fields of an answer, and its status in words.
    pub fn head(&self, fields: &mut [(String, Vec<u8>)], reason: &mut String) {
        let mut words = std::mem::take(reason).into_bytes();
        self.secrets.scrub(&mut words);
        *reason = String::from_utf8_lossy(&words).into_owned();
        for (name, value) in fields {
            let mut letters = std::mem::take(name).into_bytes();
            self.secrets.scrub(&mut letters);
            *name = String::from_utf8_lossy(&letters).into_owned();
            self.secrets.scrub(value);
        }
    }

    /// Scrubs the next piece in place; with `last` nothing is kept back.
    pub fn next(&mut self, piece: &mut Vec<u8>, last: bool) {
        if self.secrets.is_empty() {
            return;
        }
        if !self.kept.is_empty() {
            piece.splice(0..0, self.kept.drain(..));
        }
        self.secrets.scrub(piece);
        if last {
            return;
        }
        let spellings = self.secrets.0.iter().flat_map(|secret| &secret.spellings);
        let begun = spellings.map(|spelling| spelling.begun(piece)).max().unwrap_or(0);
        self.kept = piece.split_off(piece.len() - begun);
    }
}

impl Drop for Scrubber {
    fn drop(&mut self) {
        self.kept.zeroize();
    }
}

impl Secrets {
    /// Overwrites every value in `bytes`.
    pub fn scrub(&self, bytes: &mut [u8]) {
        for spelling in self.0.iter().flat_map(|secret| &secret.spellings) {
            let mut rest = &mut *bytes;
            while let Some((start, length)) = spelling.find(rest) {
                let (hidden, after) = rest.split_at_mut(start + length);
                hidden.iter_mut().skip(start).for_each(|byte| *byte = b'*');
                rest = after;
            }
        }
    }
}

/// Watches one stream to a host for placeholders that are not for it.
pub struct Watcher {
    secrets: Arc<Secrets>,
    host: HostName,
    tail: Vec<u8>,
    unpacker: Option<Unpacker>,
    unpacked: usize,
}

impl Watcher {
    /// A watcher of one stream; `packed` is its `Content-Encoding`.
    pub fn new(secrets: Arc<Secrets>, host: HostName, packed: Option<&str>) -> Self {
        let unpacker = packed.and_then(Unpacker::new);
        Self { secrets, host, tail: Vec::new(), unpacker, unpacked: 0 }
    }

    /// Looks at the next piece before it is passed on.
    pub fn next(&mut self, piece: &[u8]) -> Result<(), Refusal> {
        if self.secrets.is_empty() {
            return Ok(());
        }
        if let Some(mut unpacker) = self.unpacker.take() {
            // What cannot be unpacked, or is too much, goes on unseen, as a body packed in another way does.
            let Some(plain) = unpacker.next(piece, false) else { return Ok(()) };
            self.unpacked = self.unpacked.saturating_add(plain.len());
            self.unpacker = (self.unpacked < UNPACKED).then_some(unpacker);
            return self.look(&plain);
        }
        self.look(piece)
    }

    fn look(&mut self, piece: &[u8]) -> Result<(), Refusal> {
        let longest = self.secrets.0.iter().flat_map(|secret| &secret.marks).map(Vec::len).max().unwrap_or(0);
        // What ends in this piece began in the tail; what begins in it is in the piece.
        let seam = [self.tail.as_slice(), piece.get(..longest.min(piece.len())).unwrap_or_default()].concat();
        let found = self.secrets.strange(&self.host, &seam).or_else(|| self.secrets.strange(&self.host, piece));
        if let Some(secret) = found {
            return Err(Refusal::Placeholder { secret: secret.rule.name.clone(), host: self.host.to_string() });
        }
        self.tail.extend_from_slice(piece.get(piece.len().saturating_sub(longest)..).unwrap_or_default());
        let over = self.tail.len().saturating_sub(longest);
        self.tail.drain(..over);
        Ok(())
    }
}

/// Unpacks a body piece by piece.
pub enum Unpacker {
    /// gzip, whose members may follow one another.
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    /// What is called deflate, before its first two bytes say which of two forms it is.
    Deflate(Vec<u8>),
    /// zlib.
    Zlib(Box<ZlibDecoder<Vec<u8>>>),
    /// The same without a frame, as several servers send it.
    Raw(Box<DeflateDecoder<Vec<u8>>>),
}

impl Unpacker {
    /// An unpacker of one body; `None` for a `Content-Encoding` (lower case) that is not read here.
    pub fn new(packed: &str) -> Option<Self> {
        match packed {
            "gzip" | "x-gzip" => Some(Self::Gzip(Box::new(MultiGzDecoder::new(Vec::new())))),
            "deflate" => Some(Self::Deflate(Vec::new())),
            _ => None,
        }
    }

    /// The next piece unpacked; `None` when it is packed wrongly or, after the `last`, not whole.
    pub fn next(&mut self, piece: &[u8], last: bool) -> Option<Vec<u8>> {
        match self {
            Self::Deflate(begun) => {
                begun.extend_from_slice(piece);
                let framed = match begun.as_slice() {
                    [first, second, ..] => first & 15 == 8 && u16::from_be_bytes([*first, *second]) % 31 == 0,
                    _ if last => true,
                    _ => return Some(Vec::new()),
                };
                let begun = std::mem::take(begun);
                *self = if framed {
                    Self::Zlib(Box::new(ZlibDecoder::new(Vec::new())))
                } else {
                    Self::Raw(Box::new(DeflateDecoder::new(Vec::new())))
                };
                self.next(&begun, last)
            }
            Self::Raw(reader) => {
                reader.write_all(piece).and_then(|()| if last { reader.try_finish() } else { reader.flush() }).ok()?;
                Some(std::mem::take(reader.get_mut()))
            }
            Self::Gzip(reader) => {
                reader.write_all(piece).and_then(|()| if last { reader.try_finish() } else { reader.flush() }).ok()?;
                Some(std::mem::take(reader.get_mut()))
            }
            Self::Zlib(reader) => {
                reader.write_all(piece).and_then(|()| if last { reader.try_finish() } else { reader.flush() }).ok()?;
                Some(std::mem::take(reader.get_mut()))
            }
        }
    }
}

#[cfg(test)]
mod tests;
