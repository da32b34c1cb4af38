//! The verifier as the command line sets it up: this machine's instance from its own database, others over the network.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use writ_core::Timestamp;
use writ_core::json::{self, Value};
use writ_engine::attest::issuer::{Issuer, IssuerError};
use writ_evidence::attestation::{Attestation, Failure as Refusal, FailureCode, split_uri};
use writ_evidence::registry::{PATH, Registry};
use writ_service::Network;
use writ_service::mcp::{self, Presented};
use writ_verifier::{
    Cache, Config, Discarded, Fetch, Fetched, Instance, Journal, MAX_ATTESTATION, Mode, NetworkError, Nonces, Outcome,
    Refusal as Unverified, Verified, Verifier,
};

use super::attest;
use crate::args::TrustArgs;
use crate::environment;
use crate::exit::Failure;
use crate::input;

/// Whether this names something to fetch rather than a file.
pub fn is_url(named: &str) -> bool {
    named.starts_with("https://") || named.starts_with("http://")
}

/// Whoever looks at attestations here: whom they trust, what they know.
pub struct RelyingParty<'a> {
    args: &'a TrustArgs,
    trusted: Vec<Instance>,
    registry: Option<Registry>,
    source: Source,
}

impl<'a> RelyingParty<'a> {
    /// As the arguments say. This machine's instance is one of the trusted.
    pub fn new(args: &'a TrustArgs) -> Result<Self, Failure> {
        let mut trusted = args.trust.iter().map(|url| instance(url)).collect::<Result<Vec<_>, _>>()?;
        let registry = args.registry.as_deref().map(registry).transpose()?;
        let own = own(args)?.map(|own| Ok::<_, Failure>((instance(own.identity().url())?, own))).transpose()?;
        // A registry that somebody chose speaks for itself: without a list, its attestations may be of any instance.
        if registry.is_none() || !trusted.is_empty() {
            trusted.extend(own.iter().map(|(at, _)| at.clone()));
        }
        let (at, own) = own.unzip();
        let source = Source { at, own: RefCell::new(own), network: Network::default() };
        Ok(Self { args, trusted, registry, source })
    }

    /// The bytes behind a URL: from this machine's own database where it is the own instance's, else from the network.
    pub fn fetch(&self, url: &str) -> Result<Vec<u8>, Refusal> {
        if self.source.at.is_none() || origin(url) != self.source.at {
            return fetch(url);
        }
        let absent =
            || Refusal::new(FailureCode::AttestationAbsent, format!("this instance issued nothing under {url}"));
        let (_, id) = split_uri(url).ok_or_else(absent)?;
        let found = self.source.find(id).map_err(|error| Refusal::new(FailureCode::NetworkError, error.0))?;
        found.map(String::into_bytes).ok_or_else(absent)
    }

    /// Judges a report by the mode, and records that. Once the attestation is verified, `acts` says whether it is acted on: then its nonce must
    /// not be used up, and is with `--once`.
    pub fn admit(
        &self,
        report: &Value,
        mode: Mode,
        now: Timestamp,
        acts: impl FnOnce(&Attestation) -> AttestationUse,
    ) -> Result<Outcome, Failure> {
        let issuer = report.get("attestation").and_then(|value| value.get("attestation_uri")).and_then(Value::as_str);
        let is_own = self.source.at.is_some() && issuer.and_then(origin) == self.source.at;
        let config = Config {
            mode,
            trusted_instances: self.trusted.clone(),
            // What this machine's own database says is never old.
            key_cache_ttl: if is_own { Duration::ZERO } else { Duration::from_secs(self.args.ttl.unsigned_abs()) },
            cross_check: self.args.cross_check,
            retries: self.args.retries,
        };
        let verifier = verifier(config, &self.source)?;
        Ok(verifier.admit_by(report, now, |attestation| {
            let verified = self.verified(&verifier, attestation, now)?;
            match acts(attestation) {
                AttestationUse::Looks if !self.args.once => {}
                AttestationUse::Passes if !self.args.once => verifier.is_unused(&verified)?,
                AttestationUse::Looks | AttestationUse::Passes if attestation.nonce().is_none() => {
                    let detail = "it has no `nonce`, so nothing can hold it to one use (`--once`)";
                    return Err(Refusal::new(FailureCode::InvalidAttestation, detail).into());
                }
                AttestationUse::Looks | AttestationUse::Passes => verifier.use_up(&verified)?,
                AttestationUse::Stops => {}
            }
            Ok(verified)
        }))
    }

    fn verified(
        &self,
        verifier: &Verifier<&Source, Journal>,
        attestation: &Attestation,
        now: Timestamp,
    ) -> Result<Verified, Unverified> {
        if let Some(registry) = &self.registry {
            return verifier.verify_with(attestation, registry, now);
        }
        if self.trusted.is_empty() {
            let detail = format!("{} is not trusted: name it with --trust", attestation.instance());
            return Err(Refusal::new(FailureCode::InstanceNotTrusted, detail).into());
        }
        verifier.verify(attestation, now)
    }
}

/// What is done with an attestation that verified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttestationUse {
    /// It is looked at.
    Looks,
    /// An action passes with it.
    Passes,
    /// It is of no use here.
    Stops,
}

/// The bytes behind a URL, over the network.
fn fetch(url: &str) -> Result<Vec<u8>, Refusal> {
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

/// The instance that a URL leads to.
fn origin(url: &str) -> Option<Instance> {
    let host = url.find("://")?.checked_add(3)?;
    let end = url.get(host..)?.find(['/', '?', '#']).map_or(url.len(), |at| host + at);
    Instance::parse(url.get(..end)?).ok()
}

fn registry(file: &Path) -> Result<Registry, Failure> {
    let registry = Registry::parse(&input::bytes(file)?);
    registry.map_err(|error| Failure::malformed(format!("{}: {error}", file.display())))
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
fn own(trust: &TrustArgs) -> Result<Option<Issuer>, Failure> {
    let home = environment::home();
    let there = home.state.as_deref().is_some_and(|state| state.join(writ_store::instance::FILE).exists());
    (there || trust.instance.database.is_some()).then(|| attest::issuer(&trust.instance)).transpose()
}

/// The own instance's registry from its database, everything else from the network: also the copies that a cross-check compares, or it
/// would compare the database with itself.
struct Source {
    at: Option<Instance>,
    own: RefCell<Option<Issuer>>,
    network: Network,
}

impl Source {
    /// The document of an attestation of this machine's instance.
    fn find(&self, id: &str) -> Result<Option<String>, NetworkError> {
        let mut own = self.own.borrow_mut();
        let Some(own) = own.as_mut() else { return Ok(None) };
        Ok(own.find(id).map_err(failed)?.map(|record| record.document))
    }
}

fn failed(error: IssuerError) -> NetworkError {
    NetworkError(error.to_string())
}

impl Fetch for Source {
    fn get(&self, url: &str, limit: usize) -> Result<Fetched, NetworkError> {
        let mut own = self.own.borrow_mut();
        let is_own = self.at.as_ref().is_some_and(|at| url.strip_prefix(at.as_str()) == Some(PATH));
        let Some(own) = own.as_mut().filter(|_| is_own) else { return self.network.get(url, limit) };
        let registry = own.registry(Timestamp::now()).map_err(failed)?;
        Ok(Fetched { status: 200, body: json::to_compact(&registry).into_bytes() })
    }
}
