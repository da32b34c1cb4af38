//! Bodies: taken out of one framing, put into another.
//!
//! Owns the chunks. Refuses chunk heads that programs read differently, and drops extensions and trailers: nothing needs them.
//! Invariant: after the end of a body the reader stands at the next head, or the connection is not used again.

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::head::Framing;
use super::wire::Wire;
use crate::refusal::Refusal;

/// Most bytes of one piece.
const PIECE: usize = 64 << 10;
/// Longest head of a chunk, and longest trailer.
const LINE: usize = 4096;
/// Most trailers.
const TRAILERS: usize = 64;

/// A body that is read piece by piece.
pub struct Body {
    framing: Framing,
    /// What is left of the whole, or of the chunk.
    left: u64,
    done: bool,
    begun: bool,
}

impl Body {
    /// A body that has not begun.
    pub const fn new(framing: Framing) -> Self {
        let (left, done) = match framing {
            Framing::Empty => (0, true),
            Framing::Length(length) => (length, length == 0),
            Framing::Chunked => (0, false),
            Framing::UntilClose => (u64::MAX, false),
        };
        Self { framing, left, done, begun: false }
    }

    /// The next piece; `None` at the end.
    pub async fn next<R: AsyncRead + Unpin>(&mut self, wire: &mut Wire<R>) -> Result<Option<Vec<u8>>, Refusal> {
        if self.done {
            return Ok(None);
        }
        if self.framing == Framing::Chunked && self.left == 0 {
            self.left = self.chunk(wire).await?;
            if self.left == 0 {
                self.trailers(wire).await?;
                self.done = true;
                return Ok(None);
            }
        }
        if wire.buffer().is_empty() && !wire.fill().await? {
            if self.framing == Framing::UntilClose {
                self.done = true;
                return Ok(None);
            }
            return Err(Refusal::Broken);
        }
        let piece = wire.take(PIECE.min(usize::try_from(self.left).unwrap_or(usize::MAX)));
        if self.framing != Framing::UntilClose {
            self.left -= u64::try_from(piece.len()).unwrap_or(self.left);
        }
        self.done = self.left == 0 && matches!(self.framing, Framing::Length(_));
        Ok(Some(piece))
    }

    /// The size of the next chunk.
    async fn chunk<R: AsyncRead + Unpin>(&mut self, wire: &mut Wire<R>) -> Result<u64, Refusal> {
        if self.begun && !wire.line(0).await?.is_empty() {
            return Err(Refusal::Request("a chunk is longer than it says"));
        }
        self.begun = true;
        let mut line = wire.line(LINE).await?;
        line.extend_from_slice(b"\r\n");
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let after = line.get(digits).copied();
        if !(1..=16).contains(&digits) || !matches!(after, Some(b'\r' | b';')) {
            return Err(Refusal::Request("a chunk's size is no number"));
        }
        match httparse::parse_chunk_size(&line) {
            Ok(httparse::Status::Complete((read, size))) if read == line.len() => Ok(size),
            _ => Err(Refusal::Request("a chunk's size is no number")),
        }
    }

    async fn trailers<R: AsyncRead + Unpin>(&mut self, wire: &mut Wire<R>) -> Result<(), Refusal> {
        for _ in 0..TRAILERS {
            if wire.line(LINE).await?.is_empty() {
                return Ok(());
            }
        }
        Err(Refusal::Request("it has too many trailers"))
    }
}

/// Writes a piece in a framing, behind what stands before it; `last` ends the body.
pub async fn write<W: AsyncWrite + Unpin>(
    to: &mut W,
    (framing, before): (Framing, Vec<u8>),
    piece: &[u8],
    last: bool,
) -> Result<(), Refusal> {
    let broken = |_error| Refusal::Broken;
    let plain = framing != Framing::Chunked;
    if plain && before.is_empty() {
        to.write_all(piece).await.map_err(broken)?;
        return to.flush().await.map_err(broken);
    }
    // One write, one TLS record.
    let mut out = before;
    out.reserve(piece.len() + 32);
    if plain {
        out.extend_from_slice(piece);
    } else if !piece.is_empty() {
        out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        out.extend_from_slice(piece);
        out.extend_from_slice(b"\r\n");
    }
    if last && !plain {
        out.extend_from_slice(b"0\r\n\r\n");
    }
    to.write_all(&out).await.map_err(broken)?;
    to.flush().await.map_err(broken)
}
