//! The service: routes over the engine, and nothing more.
//!
//! Owns what needs an asynchronous runtime. Decides, evaluates, signs and keeps nothing itself: that is the engine's. Invariant: what
//! was answered is durable. Page: `spec/attestation.md`.

pub mod archivista;
pub mod evaluators;
pub mod http;
pub mod mcp;
mod network;
pub mod notary;
mod policies;
pub mod prove;
pub mod registry;
pub mod sigstore;
mod spawn;
pub mod tools;
mod vault;
pub mod workload;

pub use network::Network;
pub use policies::Policies;
pub use vault::Vault;
