//! Why a connection or a request was refused, in words for people and in one word for the record.
//!
//! Owns every text that a refused program is shown. Refuses to hold values of secrets: a variant carries names, never what was
//! sent. Invariant: each variant has its own word and its own line in `spec/egress.md`.

use std::net::IpAddr;

use crate::address::AddressKind;

/// Why something was refused or failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum Refusal {
    #[error("`{host}` is not allowed ({rule})")]
    Host { host: String, rule: String },
    #[error("what was asked of `{host}` is not granted ({rule})")]
    Api { host: String, rule: String },
    #[error("the address `{host}` is not allowed: no rule other than `*` names it")]
    Address { host: String },
    #[error("port {port} of `{host}` has no rule")]
    Port { host: String, port: u16 },
    #[error("the host's name cannot be read in one way: {0}")]
    Name(&'static str),
    #[error("`{host}` leads to {address}, {kind}, which no rule names")]
    Private { host: String, address: IpAddr, kind: AddressKind },
    #[error("two hosts are named: `{asked}` and `{sent}`")]
    Mismatch { asked: String, sent: String },
    #[error("the TLS client names no server")]
    NoServerName,
    #[error("the TLS client hides its server's name (ECH), so it cannot be checked")]
    EncryptedHello,
    #[error("what was sent is not TLS: {0}")]
    NotTls(&'static str),
    #[error("what was sent is not one plain HTTP request: {0}")]
    Request(&'static str),
    #[error("the method `{0}` is not carried")]
    Method(String),
    #[error(
        "{0}: this machine gives no namespaces, so only the proxy, and addresses that stand for allowed names, are reached"
    )]
    Past(String),
    #[error("SOCKS is not spoken here: use HTTP_PROXY and HTTPS_PROXY")]
    Socks,
    #[error("`{host}` receives a secret, so it is reached over TLS only")]
    PlainSecret { host: String },
    #[error("the placeholder of secret `{secret}` is not for `{host}`")]
    Placeholder { secret: String, host: String },
    #[error("the placeholder of secret `{secret}` stands where nothing is put in ({place})")]
    Place { secret: String, place: &'static str },
    #[error("`{host}` was asked too often ({rule})")]
    Rate { host: String, rule: String },
    #[error("the ceiling of bytes for `{host}` is reached ({rule})")]
    Bytes { host: String, rule: String },
    #[error("`{0}` is not found")]
    Unresolved(String),
    #[error("`{host}` cannot be reached: {why}")]
    Unreachable { host: String, why: String },
    #[error("`{host}` did not prove who it is: {why}")]
    Untrusted { host: String, why: String },
    #[error("the client does not trust Writ's certificate or speaks no HTTP/1.1: {0}")]
    Handshake(String),
    #[error("`{host}` gave no answer that can be passed on: {why}")]
    Answer { host: String, why: &'static str },
    #[error("nothing came in time")]
    Timeout,
    #[error("the connection broke")]
    Broken,
    #[error("too many connections are open at once, and this one had named no host or was the oldest")]
    Crowded,
    #[error("the run has ended")]
    Ended,
    #[error("the connection could not be recorded")]
    Record,
}

impl Refusal {
    /// One word for the record.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Host { .. } => "host",
            Self::Api { .. } => "api",
            Self::Address { .. } => "address",
            Self::Port { .. } => "port",
            Self::Name(_) => "name",
            Self::Private { .. } => "private",
            Self::Mismatch { .. } => "mismatch",
            Self::NoServerName => "no-server-name",
            Self::EncryptedHello => "encrypted-hello",
            Self::NotTls(_) => "not-tls",
            Self::Request(_) => "request",
            Self::Method(_) => "method",
            Self::Past(_) => "past",
            Self::Socks => "socks",
            Self::PlainSecret { .. } => "plain-secret",
            Self::Placeholder { .. } => "placeholder",
            Self::Place { .. } => "place",
            Self::Rate { .. } => "rate",
            Self::Bytes { .. } => "bytes",
            Self::Unresolved(_) => "unresolved",
            Self::Unreachable { .. } => "unreachable",
            Self::Untrusted { .. } => "untrusted",
            Self::Handshake(_) => "handshake",
            Self::Answer { .. } => "answer",
            Self::Timeout => "timeout",
            Self::Broken => "broken",
            Self::Crowded => "crowded",
            Self::Ended => "ended",
            Self::Record => "record",
        }
    }

    /// The HTTP status that says it.
    pub const fn status(&self) -> (u16, &'static str) {
        match self {
            Self::Name(_) | Self::Request(_) | Self::NotTls(_) | Self::Socks => (400, "Bad Request"),
            Self::Method(_) => (405, "Method Not Allowed"),
            Self::Mismatch { .. } => (421, "Misdirected Request"),
            Self::Rate { .. } => (429, "Too Many Requests"),
            Self::Unresolved(_) | Self::Unreachable { .. } | Self::Untrusted { .. } | Self::Answer { .. } => {
                (502, "Bad Gateway")
            }
            Self::Crowded | Self::Ended | Self::Record | Self::Broken => (503, "Service Unavailable"),
            Self::Timeout => (504, "Gateway Timeout"),
            Self::Host { .. }
            | Self::Api { .. }
            | Self::Address { .. }
            | Self::Port { .. }
            | Self::Private { .. }
            | Self::NoServerName
            | Self::EncryptedHello
            | Self::Past(_)
            | Self::PlainSecret { .. }
            | Self::Placeholder { .. }
            | Self::Place { .. }
            | Self::Bytes { .. }
            | Self::Handshake(_) => (403, "Forbidden"),
        }
    }

    /// Whether Writ decided it; else the network or one of its ends failed.
    pub const fn is_decision(&self) -> bool {
        !matches!(
            self,
            Self::Unresolved(_)
                | Self::Unreachable { .. }
                | Self::Untrusted { .. }
                | Self::Handshake(_)
                | Self::Answer { .. }
                | Self::Timeout
                | Self::Broken
                | Self::Ended
        )
    }
}
