//! Statements of in-toto, in signed envelopes and in Sigstore's bundles: one place for all of them.
//!
//! Owns the statement's JSON (v1 written, v0.1 read too, R3), its signing and opening as DSSE, and the bundle of Sigstore v0.3. Refuses
//! a statement that names no digest of what it is about, and one that is not signed as such. Invariant: a [`Statement`] inside a
//! [`crate::dsse::Verified`] is of the very bytes whose signature was checked. Page: `spec/signing.md`.

mod bundle;
mod entry;
mod envelope;
mod statement;

pub use bundle::{Bundle, BundleError, Content, MEDIA_TYPE, Material};
pub use entry::{Checkpoint, InclusionPromise, InclusionProof, Int64, KindVersion, LogEntry, LogId};
pub use envelope::{StatementError, parse, sign};
pub use statement::{DigestSet, PAYLOAD_TYPE, ResourceDescriptor, Statement, Version};
