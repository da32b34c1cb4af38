//! HTTP and HTTPS to others, for the verifier and for telemetry: no redirects, no proxies, limits on size and time.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
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
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls =
        TlsConfig::builder().root_certs(RootCerts::from(roots)).unversioned_rustls_crypto_provider(provider).build();
    let config = Agent::config_builder()
        .tls_config(tls)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .proxy(None)
        .timeout_global(Some(timeout))
        .user_agent(concat!("writ/", env!("CARGO_PKG_VERSION")))
        .build();
    config.into()
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
