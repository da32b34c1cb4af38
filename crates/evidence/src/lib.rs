//! Formats that outlive the session: signed envelopes, ledger rows, Merkle trees, checkpoints, keys, attestations.
//!
//! Pure codecs and checks: no file is opened here. Refuses bytes that are not exactly what Writ would have written. Invariant:
//! a [`dsse::Verified`] exists only where a signature was checked. Pages: `spec/ledger.md`, `spec/signing.md`,
//! `spec/checkpoint.md`, `spec/attestation.md`.

pub mod attestation;
pub mod b64url;
pub mod checkpoint;
pub mod custody;
pub mod dsse;
pub mod intoto;
pub mod jwt;
pub mod keys;
pub mod ledger;
pub mod merkle;
pub mod passphrase;
pub mod registry;
pub mod row;
pub mod session_tree;
pub mod signer;
pub mod sigstore;
pub mod tally;
