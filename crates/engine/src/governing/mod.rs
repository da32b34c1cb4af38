//! The policy that governs a folder: where it is, whose word it is, what becomes of it, what it protects.

mod find;
pub mod in_force;
mod open;
pub mod protect;
pub mod starter;
mod trust;

pub use find::{NAMES, find, repository};
pub use open::{Governing, GoverningError, PAYLOAD_TYPE, Signed, open, open_bytes, open_kept, read, unwrap};
pub use trust::{Trust, TrustError};
