//! Evaluation and verification as tools of the Model Context Protocol, over standard input and output or streamable HTTP.
//!
//! Owns the tools' shapes, both transports and their limits. Decides and signs nothing itself: the engine does. Invariants: every
//! request is answered, a line that is no message ends nothing, and with attestation on no report leaves without one. Page:
//! `docs/mcp.md`.

mod arguments;
pub mod ask;
mod evaluate;
mod guarded;
mod http;
mod incoming;
mod json_values;
mod line_transport;
pub mod proxy;
mod resources;
mod schemas;
mod server;
mod session;
mod signer;
mod stdio;
mod verify;
mod well_known;

use std::io;

pub use crate::http::tokens::{AccessTokens, TokenError};
pub use evaluate::World;
pub use http::{HttpSetting, PATH, router, serve as serve_http};
pub use server::Server;
pub use signer::{Instance, Signer};
pub use stdio::serve as serve_stdio;
pub use verify::{Foreign, Presented, Verified, trust_no_instance};

/// Largest message, on a line or in a request body.
pub const MAX_MESSAGE: usize = 32 << 20;

/// Why serving ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// No runtime, no thread, no socket.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The protocol's own machinery gave up.
    #[error("the session failed: {0}")]
    Session(String),
}

/// The runtime everything here runs on. Evaluations have a thread each: they are deep in other people's documents.
fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).thread_stack_size(8 << 20).build()
}

/// Ends when the process is asked to.
async fn asked_to_stop() -> io::Result<()> {
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted,
        _ = terminated.recv() => Ok(()),
    }
}
