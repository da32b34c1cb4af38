//! How to serve, and why nothing is served.

use std::io::Write;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use writ_engine::attest::issuer::IssuerError;

use super::telemetry::{Otlp, OtlpError, Style};
use super::tokens::TokenError;

/// How to serve.
pub struct Options {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The state folder: keys, and the database unless there is another.
    pub state: PathBuf,
    /// `postgres://…`
    pub database: Option<String>,
    /// Whether verdicts are attested.
    pub attest: bool,
    /// The instance's name, which holds from its first start on.
    pub instance: Option<String>,
    /// Scheme, host and port that its attestations are found at.
    pub base_url: Option<String>,
    /// How long a verdict holds, in seconds.
    pub shelf_life: i64,
    /// The file of access tokens.
    pub tokens: Option<PathBuf>,
    /// The certificate chain and its key.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Requests a second of each token or peer.
    pub rate: Option<NonZeroU32>,
    /// Largest body, in bytes.
    pub max_body: usize,
    /// How long an answer may take.
    pub timeout: Duration,
    /// Where spans and metrics go.
    pub otlp: Option<Otlp>,
    /// How the log looks.
    pub log: Style,
    /// Where it goes.
    pub sink: Box<dyn Write + Send>,
}

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Anybody could ask.
    #[error("{0} is not loopback: give `--token-file`, so that not everybody who reaches it can ask")]
    Open(SocketAddr),
    /// Nobody could find the attestations.
    #[error("{0} is not loopback: give `--base-url`, where others reach it")]
    BaseUrl(SocketAddr),
    /// Spans and metrics cannot be sent there.
    #[error(transparent)]
    Otlp(#[from] OtlpError),
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The system gave no threads or signals.
    #[error("cannot start: {0}")]
    Start(#[from] std::io::Error),
    /// The tokens.
    #[error(transparent)]
    Tokens(#[from] TokenError),
    /// The certificate or its key.
    #[error("{path} cannot be used for TLS: {why}")]
    Tls {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Keys or database.
    #[error(transparent)]
    Issuer(#[from] IssuerError),
}

impl ServeError {
    /// Whether other arguments would help.
    pub const fn is_usage(&self) -> bool {
        matches!(self, Self::Open(_) | Self::BaseUrl(_) | Self::Otlp(_))
    }
}
