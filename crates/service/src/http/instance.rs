//! The instance that a service attests for: its keys, its name and its URL.

use std::net::SocketAddr;

use writ_core::Timestamp;
use writ_engine::attest::issuer::{Issuer, IssuerError};
use writ_evidence::attestation::is_instance;
use writ_store::instance::{DatabaseError, Identity};

use super::Options;

/// The issuer of this instance, able to sign.
pub fn open(options: &Options, address: SocketAddr) -> Result<Issuer, IssuerError> {
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let url = options.base_url.clone().unwrap_or_else(|| format!("{scheme}://{address}"));
    let url = url.trim_end_matches('/').to_owned();
    if !is_instance(&url) {
        return Err(DatabaseError::Url(url).into());
    }
    let first = match &options.instance {
        Some(id) => Identity { id: id.clone(), url: Some(url.clone()) },
        None => Identity { url: Some(url.clone()), ..Issuer::unnamed_identity()? },
    };
    let mut issuer = Issuer::open(&options.state, options.database.as_deref(), Some(first))?;
    let kept = issuer.identity().clone();
    if let Some(wanted) = options.instance.as_ref().filter(|wanted| **wanted != kept.id) {
        return Err(DatabaseError::OtherInstance {
            kept: kept.id.clone(),
            url: kept.url().to_owned(),
            wanted: wanted.clone(),
        }
        .into());
    }
    if options.base_url.is_some() || kept.url.is_none() {
        issuer.move_to(&url)?;
    }
    // Makes the first key now: what is wrong with keys or database shows before anybody asks.
    issuer.registry(Timestamp::now())?;
    Ok(issuer)
}

/// The port of a base URL.
pub fn port(url: &str) -> u16 {
    let named = url.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    named.unwrap_or(if url.starts_with("https:") { 443 } else { 80 })
}
