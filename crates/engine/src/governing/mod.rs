//! The policy that governs a folder: where it is, whose word it is, what becomes of it, what it protects.

mod bases;
pub mod edit;
mod error;
mod find;
pub mod in_force;
pub mod kept;
pub mod layers;
pub mod lock;
mod looser;
mod open;
pub mod protect;
mod resolve;
pub mod signed;
pub mod starter;
mod trust;
pub mod unenforced;

pub use error::{GoverningError, Missing};
pub use find::{NAMES, find, repository};
pub use open::{Governing, Layered, open_alone, open_kept, read, rule_name};
pub use resolve::{Elsewhere, open, open_bytes, placed, with_layers};
pub use signed::{PAYLOAD_TYPE, Signed, When, among, inner, unwrap};
pub use trust::{Authority, Trust, TrustError, TrustedIdentity};
