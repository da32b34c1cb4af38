//! The reading half of a connection, with what was read of it and not used yet.
//!
//! Owns the buffer. Refuses heads over a limit. Invariant: no byte is used twice, and none is lost between a head and its body.

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::refusal::Refusal;

/// Longest head, with all its fields.
pub const HEAD: usize = 64 << 10;
/// Read at once.
const PIECE: usize = 64 << 10;

/// The reading half of a connection.
pub struct Wire<R> {
    reader: R,
    buffer: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Wire<R> {
    /// What was read already, then the rest.
    pub const fn new(reader: R, buffer: Vec<u8>) -> Self {
        Self { reader, buffer }
    }

    /// What was read and not used.
    pub fn buffer(&self) -> &[u8] {
        &self.buffer
    }

    /// Takes at most `most` bytes of what was read.
    pub fn take(&mut self, most: usize) -> Vec<u8> {
        let rest = self.buffer.split_off(most.min(self.buffer.len()));
        std::mem::replace(&mut self.buffer, rest)
    }

    /// The connection itself.
    pub const fn reader(&mut self) -> &mut R {
        &mut self.reader
    }

    /// Takes the connection apart.
    pub fn into_parts(self) -> (R, Vec<u8>) {
        (self.reader, self.buffer)
    }

    /// Reads more; `false` at the end.
    pub async fn fill(&mut self) -> Result<bool, Refusal> {
        self.buffer.reserve(PIECE);
        let read = self.reader.read_buf(&mut self.buffer).await.map_err(|_error| Refusal::Broken)?;
        Ok(read > 0)
    }

    /// Takes a head with its empty line; `None` when the connection ends before it begins.
    pub async fn head(&mut self) -> Result<Option<Vec<u8>>, Refusal> {
        let mut looked = 0;
        loop {
            let from = looked.min(self.buffer.len());
            let found = self.buffer.get(from..).and_then(|rest| memchr::memmem::find(rest, b"\r\n\r\n"));
            if let Some(end) = found.filter(|end| from + end <= HEAD) {
                return Ok(Some(self.take(from + end + 4)));
            }
            if self.buffer.len() > HEAD {
                return Err(Refusal::Request("its head is too long"));
            }
            // A lone line feed ends a line for some programs and not for others: what follows could be another request.
            if self.buffer.get(from..).is_some_and(|rest| memchr::memmem::find(rest, b"\n\n").is_some()) {
                return Err(Refusal::Request("a line ends without a carriage return"));
            }
            looked = self.buffer.len().saturating_sub(3);
            if !self.fill().await? {
                return if self.buffer.is_empty() { Ok(None) } else { Err(Refusal::Broken) };
            }
        }
    }

    /// Takes a line without its end; at most `most` bytes.
    pub async fn line(&mut self, most: usize) -> Result<Vec<u8>, Refusal> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer) {
                let line = self.take(end + 1);
                let text = line.strip_suffix(b"\r\n").filter(|text| text.len() <= most && !text.contains(&b'\r'));
                return text.map(<[u8]>::to_vec).ok_or(Refusal::Request("a line is malformed or too long"));
            }
            if self.buffer.len() > most + 2 {
                return Err(Refusal::Request("a line is malformed or too long"));
            }
            if !self.fill().await? {
                return Err(Refusal::Broken);
            }
        }
    }
}
