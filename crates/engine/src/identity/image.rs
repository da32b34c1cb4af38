//! The image that an agent's container was made from, as its engine tells: Docker and Podman, over their API on a Unix socket.
//!
//! Owns the one question, put when a client starts, and what the session keeps of the answer. Refuses answers about another container than the
//! kernel's word, and whatever is not one plain answer within limits. Invariant: a word counts as observed only from root, about a container
//! that is observed, of an agent that is not root. Page: `spec/identity.md`.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::sockopt::socket_peercred;
use serde::{Deserialize, Serialize};
use writ_core::Digest;
use writ_core::json;
use writ_core::regular_file;

use super::answer;
use super::environment::{Seen, Standing, see};
use crate::Home;

/// Where engines answer.
pub const SOCKETS: [&str; 2] = ["/var/run/docker.sock", "/run/podman/podman.sock"];
/// How long one may take.
const TIME: Duration = Duration::from_secs(1);
/// Longest answer.
const MAX: u64 = 1 << 20;
/// Where a session keeps what was told.
const KEPT: &str = "image.json";

/// What an engine told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// The container.
    pub container: String,
    /// The image's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Its id, which is a digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_digest: Option<Digest>,
    /// How that is known.
    pub standing: Standing,
}

/// Asks the first engine that answers about the container of whoever asks; nothing where it is in none, or no engine tells.
pub fn ask(home: &Home) -> Option<Image> {
    let seen = see(home.asker);
    let container = seen.environment.container.clone()?;
    home.engines.iter().find_map(|socket| inspect(socket, &container, &seen).ok())
}

fn inspect(socket: &Path, container: &str, seen: &Seen) -> io::Result<Image> {
    let mut stream = UnixStream::connect(socket)?;
    let peer = socket_peercred(&stream)?;
    stream.set_write_timeout(Some(TIME))?;
    // The id is hexadecimal digits alone.
    write!(stream, "GET /containers/{container}/json HTTP/1.0\r\nHost: engine\r\nAccept: application/json\r\n\r\n")?;
    let body = whole(&mut stream)?;
    let is_root = seen.environment.uid.is_none_or(|uid| uid == 0);
    let observed = peer.uid.is_root() && !is_root && seen.is_observed("container");
    let standing = if observed { Standing::Observed } else { Standing::Reported };
    let made = answer::made(&body, container).ok_or_else(|| io::Error::other("it tells of no such container"))?;
    Ok(Image { container: container.to_owned(), image: made.image, image_digest: made.digest, standing })
}

/// The body of the one answer.
fn whole(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let until = Instant::now() + TIME;
    let mut bytes = Vec::new();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let mut piece = [0; 8192];
        let read = stream.read(&mut piece)?;
        bytes.extend(piece.get(..read).unwrap_or_default());
        if bytes.len() as u64 > MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if read == 0 {
            return answer::body(&bytes).map(<[u8]>::to_vec).ok_or_else(|| io::ErrorKind::InvalidData.into());
        }
    }
}

/// Where a session keeps it.
pub const fn file_name() -> &'static str {
    KEPT
}

/// As it is kept.
pub fn to_bytes(image: &Image) -> Vec<u8> {
    json::to_canonical(image).into_bytes()
}

/// What a session's folder keeps of its container's image, where that is still the container.
pub fn kept(folder: &Path, container: Option<&str>) -> Option<Image> {
    let bytes = regular_file::read(&folder.join(KEPT), MAX).ok()?;
    json::from_slice::<Image>(&bytes).ok().filter(|image| Some(image.container.as_str()) == container)
}
