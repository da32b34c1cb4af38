//! The service: routes over the engine, and nothing more.
//!
//! Owns what needs an asynchronous runtime. Decides, evaluates, signs and keeps nothing itself: that is the engine's. Invariant: what
//! was answered is durable. Page: `spec/attestation.md`.

pub mod http;
mod network;

pub use network::Network;
