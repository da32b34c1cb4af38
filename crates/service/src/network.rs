//! HTTP and HTTPS to others, for the verifier and for telemetry: no redirects, no proxies, limits on size and time.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use ureq::Agent;
use ureq::config::ConfigBuilder;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::typestate::AgentScope;
use writ_core::regular_file;
use writ_verifier::{Fetch, Fetched, NetworkError};

/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The network. Certificates are checked against the machine's authorities, or those in `$SSL_CERT_FILE`.
#[derive(Clone, Debug)]
pub struct Network {
    agent: Agent,
}

impl Default for Network {
    fn default() -> Self {
        Self { agent: agent(authorities(), TIMEOUT) }
    }
}

/// The machine's authorities, or those in `$SSL_CERT_FILE`.
pub(crate) fn authorities() -> Vec<Certificate<'static>> {
    let roots = rustls_native_certs::load_native_certs().certs;
    roots.iter().map(|root| Certificate::from_der(root).to_owned()).collect()
}

/// Largest file of authorities.
const MAX_PEM: u64 = 16 << 20;

/// The authorities in a file of PEM.
pub(crate) fn authorities_in(path: &Path) -> Result<Vec<Certificate<'static>>, String> {
    let bytes = regular_file::read(path, MAX_PEM).map_err(|error| error.to_string())?;
    let roots =
        CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    Ok(roots.iter().map(|root| Certificate::from_der(root).to_owned()).collect())
}

/// An HTTP client that follows nothing, goes through nothing, and takes every status for an answer.
pub(crate) fn agent(roots: Vec<Certificate<'static>>, timeout: Duration) -> Agent {
    configured(roots).timeout_global(Some(timeout)).build().into()
}

/// The same for what is large: it may take as long as it gets on.
pub(crate) fn transfer_agent(roots: Vec<Certificate<'static>>) -> Agent {
    let config = configured(roots)
        .timeout_connect(Some(CONNECT))
        .timeout_per_read(Some(STILL))
        .timeout_per_write(Some(STILL))
        .timeout_recv_response(Some(ANSWER));
    config.build().into()
}

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(20);
/// How long nothing may come or go.
const STILL: Duration = Duration::from_secs(60);
/// How long a registry may think: it digests what it was sent.
const ANSWER: Duration = Duration::from_secs(300);

fn configured(roots: Vec<Certificate<'static>>) -> ConfigBuilder<AgentScope> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls =
        TlsConfig::builder().root_certs(RootCerts::from(roots)).unversioned_rustls_crypto_provider(provider).build();
    Agent::config_builder()
        .tls_config(tls)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .proxy(None)
        .user_agent(concat!("writ/", env!("CARGO_PKG_VERSION")))
}

impl Fetch for Network {
    fn get(&self, url: &str, limit: usize) -> Result<Fetched, NetworkError> {
        let failed = |error: &dyn std::fmt::Display| NetworkError(format!("{url}: {error}"));
        let mut answer = self.agent.get(url).call().map_err(|error| failed(&error))?;
        let mut body = Vec::new();
        let reader = answer.body_mut().as_reader();
        reader.take(limit as u64 + 1).read_to_end(&mut body).map_err(|error| failed(&error))?;
        Ok(Fetched { status: answer.status().as_u16(), body })
    }
}
