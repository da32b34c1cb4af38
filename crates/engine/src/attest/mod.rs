//! Verdicts under signature: what they are about, who issues them, what they are worth.

pub mod archive;
pub mod attested;
pub mod issuer;
pub mod proofs;
pub mod subject;
pub mod verdicts;
