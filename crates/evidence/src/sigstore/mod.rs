//! What a keyless signature asks of Sigstore's services, and what they answer: tokens, certificates, log entries, timestamps.
//!
//! Owns the requests' and answers' bytes; who sends them is the caller's to know. Refuses an answer that is about something else than what
//! was asked: another key, another signature, another nonce. Invariant: what is read here has the form that a bundle needs, and is believed by
//! nobody before `signer::keyless` has checked it against a trusted root. The requests to a log and its answers are `sigstore-rekor`'s types;
//! `sigstore-sign` 0.15 was looked at: it brings a second HTTP client with a runtime, reads answers of any size, and asks for a certificate
//! anew for each statement. Page: `spec/package.md`, "Keyless".

mod answer;
pub mod certificate;
pub mod log;
mod services;
pub mod timestamp;
mod token;

pub use answer::AnswerError;
pub use services::{Log, Services, ServicesError};
pub use token::{IdentityToken, IdentityTokenError};
