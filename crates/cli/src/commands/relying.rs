//! The verifier as the command line sets it up: this machine's instance from its own database, others over the network.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use writ_core::Timestamp;
use writ_core::json;
use writ_engine::notary::Notary;
use writ_evidence::attestation::{Attestation, FOLDER, Failure as Refusal, FailureCode, split_uri};
use writ_evidence::registry::{KeyState, PATH};
use writ_service::Network;
use writ_service::mcp::{self, Presented};
use writ_verifier::{
    Cache, Config, Discarded, Fetch, Fetched, Instance, Journal, MAX_ATTESTATION, Mode, NetworkError, Nonces,
    Refusal as Unverified, Verifier,
};

use super::attest;
use crate::args::TrustArgs;
use crate::environment;
use crate::exit::Failure;

/// Whether this names something to fetch rather than a file.
pub fn is_url(named: &str) -> bool {
    named.starts_with("https://") || named.starts_with("http://")
}

/// The bytes behind a URL.
pub fn fetch(url: &str) -> Result<Vec<u8>, Refusal> {
    let unreachable = |detail: String| Refusal::new(FailureCode::NetworkError, detail);
    let fetched = Network::default().get(url, MAX_ATTESTATION).map_err(|error| unreachable(error.to_string()))?;
    match fetched.status {
        200 if fetched.body.len() > MAX_ATTESTATION => {
            Err(unreachable(format!("{url} serves more than {MAX_ATTESTATION} bytes")))
        }
        200 => Ok(fetched.body),
        status => Err(unreachable(format!("{url}: status {status}"))),
    }
}

/// Verifies an attestation of this machine's instance, or of a trusted one.
pub fn verify(
    attestation: &Attestation,
    trust: &TrustArgs,
    now: Timestamp,
) -> Result<Result<KeyState, Refusal>, Failure> {
    let mut own = own(trust)?;
    let url = own.as_ref().map(|own| own.identity().url.clone());
    let mut trusted = trust.trust.iter().map(|url| instance(url)).collect::<Result<Vec<_>, _>>()?;
    trusted.extend(url.as_deref().map(instance).transpose()?);
    if trusted.is_empty() {
        let detail = format!("{} is not trusted: name it with --trust", attestation.instance());
        return Ok(Err(Refusal::new(FailureCode::InstanceNotTrusted, detail)));
    }
    // What this machine's own database says is never old.
    let is_own = url.as_deref() == Some(attestation.instance());
    let ttl = if is_own { Duration::ZERO } else { Config::default().key_cache_ttl };
    let config = Config {
        mode: Mode::Require,
        trusted_instances: trusted,
        key_cache_ttl: ttl,
        cross_check: trust.cross_check,
        ..Config::default()
    };
    let source = Source { own: RefCell::new(own.take().filter(|_| is_own)), network: Network::default() };
    let verifier = verifier(config, source)?;
    let verified = if trust.once { verifier.verify_once(attestation, now) } else { verifier.verify(attestation, now) };
    match verified {
        Ok(verified) => Ok(Ok(verified.key_state())),
        Err(Unverified::Failure(refusal)) => Ok(Err(refusal)),
        Err(Unverified::State(error)) => Err(Failure::could_not(error)),
    }
}

/// What the MCP server asks about attestations of other instances.
pub fn foreign(trusted: &[String]) -> Result<mcp::Foreign, Failure> {
    let trusted = trusted.iter().map(|url| instance(url)).collect::<Result<Vec<_>, _>>()?;
    let config = Config { mode: Mode::Require, trusted_instances: trusted.clone(), ..Config::default() };
    let verifier = verifier(config, Network::default())?;
    Ok(Arc::new(move |presented| {
        let attestation = match presented {
            Presented::Attestation(attestation) => attestation.clone(),
            // Nothing is fetched from where nobody is trusted.
            Presented::Uri(uri) => match named(uri, &trusted).and_then(|uri| Attestation::parse(&fetch(uri)?)) {
                Ok(attestation) => Box::new(attestation),
                Err(failure) => return mcp::Verified::failed(failure),
            },
        };
        let (failure, key_state) = match verifier.verify(&attestation, Timestamp::now()) {
            Ok(verified) => (None, Some(verified.key_state())),
            Err(Unverified::Failure(failure)) => (Some(failure), None),
            Err(Unverified::State(error)) => (Some(Refusal::new(FailureCode::NetworkError, error.to_string())), None),
        };
        mcp::Verified { failure, attestation: Some(attestation), key_state }
    }))
}

/// An attestation's URL, if it belongs to a trusted instance.
fn named<'a>(uri: &'a str, trusted: &[Instance]) -> Result<&'a str, Refusal> {
    let at = split_uri(uri).and_then(|(instance, _)| Instance::parse(instance).ok());
    let found = at.is_some_and(|instance| trusted.contains(&instance));
    let refused = || Refusal::new(FailureCode::InstanceNotTrusted, format!("{uri} is of no trusted instance"));
    found.then_some(uri).ok_or_else(refused)
}

/// Takes an instance's registry whatever version is known. Returns the discarded version and the accepted one.
pub fn refresh(named: &str, operator: Option<&str>, why: Option<&str>) -> Result<(String, u64), Failure> {
    let verifier = verifier(Config::default(), Network::default())?;
    let refreshed = verifier.force_refresh(&instance(named)?, operator, why, Timestamp::now());
    let (discarded, accepted) = refreshed.map_err(Failure::could_not)?;
    let discarded = match discarded {
        Discarded::None => "none".to_owned(),
        Discarded::Version(version) => format!("version {version}"),
        Discarded::Unreadable => "an unreadable one".to_owned(),
    };
    Ok((discarded, accepted))
}

fn verifier<F: Fetch>(config: Config, fetch: F) -> Result<Verifier<F, Journal>, Failure> {
    let home = environment::home();
    let state = home.state().map_err(Failure::could_not)?.join("verifier");
    let (cache, nonces) = (Cache::at(state.join("registries")), Nonces::at(state.join("nonces")));
    Ok(Verifier::new(config, fetch, cache, nonces, Journal::at(state.join("events.jsonl"))))
}

fn instance(url: &str) -> Result<Instance, Failure> {
    Instance::parse(url).map_err(|error| Failure::Usage(error.to_string()))
}

/// This machine's instance, if there is one.
fn own(trust: &TrustArgs) -> Result<Option<Notary>, Failure> {
    let home = environment::home();
    let there = home.state.as_deref().is_some_and(|state| state.join(writ_store::instance::FILE).exists());
    (there || trust.instance.database.is_some()).then(|| attest::notary(&trust.instance)).transpose()
}

/// The own instance's documents from its database, all others from the network.
struct Source {
    own: RefCell<Option<Notary>>,
    network: Network,
}

impl Fetch for Source {
    fn get(&self, url: &str, limit: usize) -> Result<Fetched, NetworkError> {
        let mut own = self.own.borrow_mut();
        let Some(own) = own.as_mut() else { return self.network.get(url, limit) };
        let Some(path) = url.strip_prefix(own.identity().url.as_str()) else { return self.network.get(url, limit) };
        let failed = |error: writ_engine::notary::NotaryError| NetworkError(error.to_string());
        let found = |body: String| Fetched { status: 200, body: body.into_bytes() };
        if path == PATH {
            let registry = own.registry(Timestamp::now()).map_err(failed)?;
            return Ok(found(json::compact(&registry.to_json())));
        }
        let id = path.strip_prefix(FOLDER).and_then(|file| file.strip_suffix(".json")).unwrap_or_default();
        let record = own.find(id).map_err(failed)?;
        Ok(record.map_or(Fetched { status: 404, body: Vec::new() }, |record| found(record.document)))
    }
}
