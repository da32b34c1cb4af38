//! `writ mcp proxy` between a client and servers: npm's own ones, and stubs that do what no good server does.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

mod bytes;
mod guarded;
mod place;
mod servers;
mod stubs;
