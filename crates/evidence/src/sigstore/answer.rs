//! Why an answer of a service is none to what was asked.

use writ_core::json::FormatError;

/// Why an answer of a service is none to what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// Not JSON, or a member is missing or of the wrong kind.
    #[error("it is not what was asked for: {0}")]
    Format(#[from] FormatError),
    /// No certificate, or one that does not read.
    #[error("it holds no certificate: {0}")]
    Certificate(String),
    /// The certificate log's word stands beside the certificate, where a bundle has no place for it.
    #[error(
        "it has the certificate log's word beside the certificate: this instance is too old for bundles of version 0.3"
    )]
    DetachedSct,
    /// The certificate is for another key.
    #[error("its certificate is for another key")]
    OtherKey,
    /// The log's answer does not read.
    #[error("it is no entry of a transparency log: {0}")]
    Entry(String),
    /// The entry is of something else.
    #[error("its entry is not of this signature: {0}")]
    OtherEntry(&'static str),
    /// The entry comes without what a bundle needs.
    #[error("its entry comes without {0}")]
    Unproven(&'static str),
    /// The timestamp does not read.
    #[error("it is no timestamp: {0}")]
    Timestamp(String),
    /// The authority gives none.
    #[error("the authority gives no timestamp (status {0})")]
    NotGranted(u8),
    /// The timestamp is of something else.
    #[error("its timestamp is not of this signature: {0}")]
    OtherTimestamp(&'static str),
}
