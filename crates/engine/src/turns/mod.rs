//! Turns under signature: at each turn's end a statement of what happened in it, bound to the transcript and to the state of the code.
//!
//! Owns the statement's predicate, what it takes from rows and transcripts, and the tree that it stands in (R22). Refuses to sign what
//! only it would know: every member follows from rows or from transcripts, and verification takes it from there again. Invariant: a
//! statement that was signed is never written again, and a row names it by digest. Page: `spec/turns.md`.

pub mod attest;
pub mod gathered;
pub mod name;
pub mod named;
pub mod predicate;
pub mod reading;
pub mod shown;
mod since;
pub mod work_tree;

use writ_core::json::Value;
use writ_evidence::merkle::{Digest512, NodeHash};
use writ_policy::Policy;

/// The event of the row that names a turn's attestation.
pub const TURN: &str = "turn-attested";
/// Where a session keeps attestations, in its folder.
pub const FOLDER: &str = "attestations";

/// Whether a policy wants its tree made with SHA-512.
pub fn wants_sha512(policy: &Policy) -> bool {
    let session = policy.document().get("materialsFrom").and_then(|materials| materials.get("session"));
    session.and_then(|session| session.get("algorithm")).and_then(Value::as_str) == Some(Digest512::NAME)
}
