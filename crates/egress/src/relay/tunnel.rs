//! Bytes both ways, unread but counted.
//!
//! Owns the copying. Refuses what goes over a ceiling, and placeholders as far as they can be seen. Invariant: each end learns
//! that the other has nothing more to say.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::context::Allowed;
use crate::record::Entry;
use crate::refusal::Refusal;
use crate::secret::{Scrubber, Watcher};

/// Read at once: large, since each piece costs two system calls.
const PIECE: usize = 256 << 10;

/// Copies until both ends are silent. `first` was read from the program already.
pub async fn relay(
    down: &mut TcpStream,
    first: &[u8],
    up: &mut TcpStream,
    allowed: &Allowed,
    entry: &Entry,
    mut watcher: Option<Watcher>,
) -> Result<(), Refusal> {
    let (mut down_read, mut down_write) = down.split();
    let (mut up_read, mut up_write) = up.split();
    let upward = copy(first, &mut down_read, &mut up_write, |piece| {
        if let Some(watcher) = &mut watcher {
            watcher.next(piece)?;
        }
        count(allowed, entry, piece.len(), 0)
    });
    let downward = copy(&[], &mut up_read, &mut down_write, |piece| count(allowed, entry, 0, piece.len()));
    tokio::try_join!(upward, downward).map(|_both| ())
}

/// Counts bytes in the record and against the ceilings.
pub fn count(allowed: &Allowed, entry: &Entry, up: usize, down: usize) -> Result<(), Refusal> {
    let (up, down) = (u64::try_from(up).unwrap_or(u64::MAX), u64::try_from(down).unwrap_or(u64::MAX));
    allowed.meter.bytes(up, down)?;
    entry.count(up, down);
    Ok(())
}

async fn copy<R, W>(
    first: &[u8],
    from: &mut R,
    to: &mut W,
    mut look: impl FnMut(&[u8]) -> Result<(), Refusal>,
) -> Result<(), Refusal>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let broken = |_error| Refusal::Broken;
    if !first.is_empty() {
        look(first)?;
        to.write_all(first).await.map_err(broken)?;
    }
    let mut buffer = Vec::with_capacity(PIECE);
    loop {
        buffer.clear();
        if from.read_buf(&mut buffer).await.map_err(broken)? == 0 {
            // The other end may have closed altogether.
            to.shutdown().await.ok();
            return Ok(());
        }
        look(&buffer)?;
        to.write_all(&buffer).await.map_err(broken)?;
    }
}

/// What was agreed on by an upgrade: bytes both ways, watched and scrubbed.
pub async fn upgraded<DR, DW, UR, UW>(
    (down_first, down_read, down_write): (Vec<u8>, &mut DR, &mut DW),
    (up_first, up_read, up_write): (Vec<u8>, &mut UR, &mut UW),
    (allowed, entry): (&Allowed, &Entry),
    (mut watcher, mut scrubber): (Watcher, Scrubber),
) -> Result<(), Refusal>
where
    DR: AsyncRead + Unpin,
    DW: AsyncWrite + Unpin,
    UR: AsyncRead + Unpin,
    UW: AsyncWrite + Unpin,
{
    let upward = copy(&down_first, down_read, up_write, |piece| {
        watcher.next(piece)?;
        count(allowed, entry, piece.len(), 0)
    });
    let downward = async {
        let broken = |_error| Refusal::Broken;
        let mut piece = up_first;
        loop {
            let more = !piece.is_empty() || up_read.read_buf(&mut piece).await.map_err(broken)? > 0;
            count(allowed, entry, 0, piece.len())?;
            scrubber.next(&mut piece, !more);
            down_write.write_all(&piece).await.map_err(broken)?;
            down_write.flush().await.map_err(broken)?;
            piece.clear();
            if !more {
                down_write.shutdown().await.ok();
                return Ok(());
            }
        }
    };
    tokio::try_join!(upward, downward).map(|_both| ())
}
