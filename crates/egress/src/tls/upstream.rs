//! TLS to the hosts themselves: verified against the machine's authorities, and those the caller adds.
//!
//! Owns the client's side. Refuses every way around verification. Invariant: a stream from here ends at a program that proved to
//! be the host.

use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::host::HostName;
use crate::refusal::Refusal;

/// The client's side of TLS.
pub struct Client(TlsConnector);

impl Client {
    /// A client that trusts the machine's authorities and `extra`.
    pub fn new(extra: &[CertificateDer<'static>]) -> Result<Self, rustls::Error> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        for certificate in extra {
            roots.add(certificate.clone())?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// TLS with `host` over a connection to it.
    pub async fn connect(&self, host: &HostName, stream: TcpStream) -> Result<TlsStream<TcpStream>, Refusal> {
        let untrusted = |why: String| Refusal::Untrusted { host: host.to_string(), why };
        let name = host.as_str().trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(name).map_err(|error| untrusted(error.to_string()))?;
        self.0.connect(name, stream).await.map_err(|error| untrusted(error.to_string()))
    }
}
