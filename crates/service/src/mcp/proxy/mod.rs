//! A proxy between an agent's client and an MCP server: whatever the server offers, its calls obey the policy.
//!
//! Owns the ways to a server (a child on pipes, streamable HTTP) and the relaying in both directions. Decides and records nothing itself:
//! [`writ_engine::mcp`] does. Invariants: bytes go on as they came, a parsed copy is judged, and nothing that is not understood goes on.
//! Page: `spec/mcp.md`.

mod child;
mod http;
pub mod message;
mod relay;

use std::io::{self, BufRead, Write};
use std::sync::{Mutex, PoisonError};

use writ_core::visible;

pub use child::run as run_child;
pub use http::{Header, HttpError, run as run_http};
pub use relay::{Relay, Step};

use super::line_transport::{Next, next};
use super::{MAX_MESSAGE, asked_to_stop};

/// Most notes about lines that are not relayed; a server that prints its log there would fill the screen.
const MOST_NOTES: usize = 20;

/// Where the client listens.
struct Client<W> {
    output: Mutex<W>,
    notes: Mutex<usize>,
    // The library has no terminal of its own: whoever starts it says where notes go.
    tell: fn(&str),
}

impl<W: Write> Client<W> {
    const fn new(output: W, tell: fn(&str)) -> Self {
        Self { output: Mutex::new(output), notes: Mutex::new(0), tell }
    }

    /// Writes whole lines.
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.write_all(bytes)?;
        output.flush()
    }

    fn lines(&self, lines: &[String]) -> io::Result<()> {
        lines.iter().try_for_each(|line| self.write(format!("{line}\n").as_bytes()))
    }

    fn note(&self, note: Option<&str>) {
        let Some(note) = note else { return };
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        *notes += 1;
        match *notes {
            ..=MOST_NOTES => (self.tell)(&visible::line(note)),
            at if at == MOST_NOTES + 1 => (self.tell)("there is more of this, which is not told"),
            _ => {}
        }
    }
}

/// Takes each line of the client's until it says no more, or `take` fails.
fn each_line<W: Write>(
    mut input: impl BufRead,
    client: &Client<W>,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        match next(&mut input, &mut line)? {
            Next::End => return Ok(()),
            Next::Line => take(&line)?,
            Next::TooLong => {
                let why = format!("writ does not relay it: longer than {} MiB", MAX_MESSAGE >> 20);
                client.lines(&[relay::error("null", message::INVALID, &why, None)])?;
            }
        }
    }
}

/// Runs `then` when the process is asked to stop.
fn when_stopped(then: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let wait = move || {
        if runtime.block_on(asked_to_stop()).is_ok() {
            then();
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait).map(drop)
}
