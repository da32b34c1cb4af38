//! How a hook and whoever answers for it write fields to each other.
//!
//! Owns the form: each field behind its length. Refuses what is longer than it may be before it is read. Invariant: a side that is lied to
//! reads no more than its limits.

use std::io::{self, Read, Write};

/// Longest payload, and longest answer.
pub const MAX_BYTES: u32 = 16 << 20;
/// Longest text for standard error.
const MAX_NOTES: u32 = 64 << 10;
/// Room that is made for a field before any of it is there.
const ROOM: usize = 64 << 10;

/// What a hook is told.
#[derive(Debug, PartialEq, Eq)]
pub struct Told {
    /// What it prints.
    pub text: Vec<u8>,
    /// What it says on standard error.
    pub notes: Vec<u8>,
}

impl Told {
    /// Reads one.
    pub fn read(stream: &mut impl Read) -> io::Result<Self> {
        Ok(Self { text: field(stream, MAX_BYTES)?, notes: field(stream, MAX_NOTES)? })
    }

    /// Adds it to what is sent.
    pub fn put(&self, bytes: &mut Vec<u8>) -> io::Result<()> {
        put(bytes, &self.text)?;
        put(bytes, self.notes.get(..MAX_NOTES as usize).unwrap_or(&self.notes))
    }

    /// Sends it.
    pub fn write(&self, stream: &mut impl Write) -> io::Result<()> {
        let mut bytes = Vec::new();
        self.put(&mut bytes)?;
        stream.write_all(&bytes)
    }
}

/// Adds a field to what is sent.
pub fn put(bytes: &mut Vec<u8>, field: &[u8]) -> io::Result<()> {
    let length = u32::try_from(field.len()).ok().filter(|length| *length <= MAX_BYTES);
    let length = length.ok_or_else(|| io::Error::other("it is longer than 16 MiB"))?;
    bytes.extend(length.to_be_bytes());
    bytes.extend(field);
    Ok(())
}

/// Reads a field of at most so many bytes.
pub fn field(stream: &mut impl Read, most: u32) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a field is longer than it may be"));
    }
    // Without room it would be read in pieces that begin at 32 bytes.
    let mut bytes = Vec::with_capacity(ROOM.min(length as usize));
    stream.take(length.into()).read_to_end(&mut bytes)?;
    if bytes.len() < length as usize { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
}
