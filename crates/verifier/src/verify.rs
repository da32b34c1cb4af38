//! Verifying one attestation (§7.4), and what keeps its registry current (§5.5).

use writ_core::Timestamp;
use writ_core::json::{self, Limits};
use writ_evidence::attestation::{Attestation, FOLDER, Failure, FailureCode};
use writ_evidence::registry::{KeyState, PATH, Registry};

use crate::cache::{Advance, Cache};
use crate::event::{Discarded, Event, Log, What};
use crate::fetch::{Fetch, Fetched, MAX_ATTESTATION, MAX_REGISTRY};
use crate::nonces::{Nonces, Use};
use crate::{Config, Instance, StateError};

/// How often a verification looks again because another process stored a newer registry meanwhile.
const LOOKS: u8 = 8;

/// A relying party.
#[derive(Clone, Debug)]
pub struct Verifier<F, L> {
    pub(crate) config: Config,
    pub(crate) fetch: F,
    pub(crate) log: L,
    cache: Cache,
    nonces: Nonces,
}

/// An attestation for which every check held. Only a verification makes one.
#[derive(Clone, PartialEq, Debug)]
pub struct Verified {
    attestation: Attestation,
    instance: Instance,
    key_state: KeyState,
    registry_version: u64,
    at: Timestamp,
    copy: Copy,
}

/// What became of the cross-check (§7.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Copy {
    /// Nobody asked for it.
    Unasked,
    /// The copy behind the URL is the same.
    Same,
    /// The URL serves it no more (410), as it may once its key is retired (§6.5).
    Gone,
}

/// Why an attestation is not believed.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// A check of the protocol failed.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// The verifier's own files could not be used.
    #[error(transparent)]
    State(#[from] StateError),
}

impl Refusal {
    /// The protocol's code, where it has one (R32).
    pub const fn code(&self) -> Option<FailureCode> {
        match self {
            Self::Failure(failure) => Some(failure.code),
            Self::State(_) => None,
        }
    }
}

impl Verified {
    /// The attestation. What it says in `output` is what to act on, not what stands around it.
    pub const fn attestation(&self) -> &Attestation {
        &self.attestation
    }

    /// Who issued it.
    pub const fn instance(&self) -> &Instance {
        &self.instance
    }

    /// The signing key's state, never pending or compromised.
    pub const fn key_state(&self) -> KeyState {
        self.key_state
    }

    /// Version of the registry it was checked against.
    pub const fn registry_version(&self) -> u64 {
        self.registry_version
    }

    /// The moment for which it was verified.
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    /// What became of the cross-check.
    pub const fn copy(&self) -> Copy {
        self.copy
    }
}

impl<F: Fetch, L: Log> Verifier<F, L> {
    /// A verifier of these settings and files.
    pub const fn new(config: Config, fetch: F, cache: Cache, nonces: Nonces, log: L) -> Self {
        Self { config, fetch, log, cache, nonces }
    }

    /// Verifies an attestation for looking at it, as often as one likes. Its nonce is neither checked nor used up.
    pub fn verify(&self, attestation: &Attestation, now: Timestamp) -> Result<Verified, Refusal> {
        let instance = self.trusted(attestation)?;
        let (key_state, registry_version) = self.check_signature(attestation, &instance, now)?;
        in_time(attestation, now)?;
        let copy = if self.config.cross_check { self.cross_check(attestation, &instance)? } else { Copy::Unasked };
        Ok(Verified { attestation: attestation.clone(), instance, key_state, registry_version, at: now, copy })
    }

    /// Verifies as [`Self::verify`] does, with a registry that the caller has: nothing is fetched, nothing is kept of it, and no copy is
    /// compared.
    pub fn verify_with(
        &self,
        attestation: &Attestation,
        registry: &Registry,
        now: Timestamp,
    ) -> Result<Verified, Refusal> {
        let instance = self.trusted(attestation)?;
        let (key_state, registry_version) = (registry.check(attestation)?, registry.version());
        in_time(attestation, now)?;
        let attestation = attestation.clone();
        Ok(Verified { attestation, instance, key_state, registry_version, at: now, copy: Copy::Unasked })
    }

    /// Verifies an attestation for acting on it: one with a nonce counts once. The nonce is used up last, so that an attestation that fails,
    /// or a request that may be tried again, does not cost it.
    pub fn verify_once(&self, attestation: &Attestation, now: Timestamp) -> Result<Verified, Refusal> {
        let verified = self.verify(attestation, now)?;
        self.use_up(&verified)?;
        Ok(verified)
    }

    /// Refuses an attestation whose nonce was used up before. Uses up nothing.
    pub fn is_unused(&self, verified: &Verified) -> Result<(), Refusal> {
        let Some(nonce) = verified.attestation.nonce() else { return Ok(()) };
        first(nonce, self.nonces.look(&verified.instance, nonce, verified.attestation.expires_at())?)
    }

    /// Uses up the nonce of an attestation, where it has one: to be done last, by whoever acts on it. Durable on return.
    pub fn use_up(&self, verified: &Verified) -> Result<(), Refusal> {
        let Some(nonce) = verified.attestation.nonce() else { return Ok(()) };
        let end = verified.attestation.expires_at();
        first(nonce, self.nonces.use_up(&verified.instance, nonce, end, verified.at)?)
    }

    /// The instance, if it is one of the trusted ones.
    fn trusted(&self, attestation: &Attestation) -> Result<Instance, Failure> {
        let instance = Instance::parse(attestation.instance())
            .map_err(|error| Failure::new(FailureCode::InvalidAttestation, error.to_string()))?;
        let trusted = &self.config.trusted_instances;
        if trusted.is_empty() || trusted.contains(&instance) {
            return Ok(instance);
        }
        let detail = format!("{instance} is none of the {} trusted instances", trusted.len());
        Err(Failure::new(FailureCode::InstanceNotTrusted, detail))
    }

    /// Takes an instance's registry as it is published now, whatever version is known (§5.5). Only for an operator who asked for exactly
    /// this: it lifts the protection against rollback once. The entry is recorded before the registry takes effect.
    pub fn force_refresh(
        &self,
        instance: &Instance,
        operator: Option<&str>,
        justification: Option<&str>,
        now: Timestamp,
    ) -> Result<(Discarded, u64), Refusal> {
        let fetched = self.fetch_registry(instance)?;
        let accepted = fetched.version();
        let record = |discarded| {
            let what = What::ForceRefresh {
                instance: instance.clone(),
                operator: operator.map(str::to_owned),
                discarded,
                accepted,
                justification: justification.map(str::to_owned),
            };
            self.log.record(&Event { at: now, what })
        };
        Ok((self.cache.force(instance, fetched, now, record)?, accepted))
    }

    /// The key's state and the registry's version. A fresh cached registry is believed when it says yes; when it says no, the answer is that
    /// of the registry as it is published now.
    fn check_signature(
        &self,
        attestation: &Attestation,
        instance: &Instance,
        now: Timestamp,
    ) -> Result<(KeyState, u64), Refusal> {
        let mut overtaken = None;
        for _ in 0..LOOKS {
            let seen = self.cache.load(instance)?;
            let fresh = seen.as_ref().filter(|entry| entry.is_fresh(now, self.config.key_cache_ttl));
            let doubt = match fresh.map(|entry| (entry.registry().check(attestation), entry.registry().version())) {
                Some((Ok(state), version)) => return Ok((state, version)),
                Some((Err(failure), _)) => Some(failure),
                None => None,
            };
            let fetched = match self.fetch_registry(instance) {
                Ok(fetched) => fetched,
                // No published registry could make this key good again.
                Err(network) => {
                    let known = doubt.filter(|failure| failure.code == FailureCode::KeyCompromised);
                    return Err(known.unwrap_or(network).into());
                }
            };
            match self.cache.advance(instance, fetched, now, seen.as_ref())? {
                Advance::Taken(entry) => return Ok((entry.registry().check(attestation)?, entry.registry().version())),
                Advance::Refused(failure) => return Err(failure.into()),
                Advance::Overtaken(failure) => overtaken = Some(failure),
            }
        }
        let failure = overtaken.unwrap_or_else(|| network("the registry changed too often".to_owned()));
        Err(failure.into())
    }

    fn fetch_registry(&self, instance: &Instance) -> Result<Registry, Failure> {
        let url = format!("{instance}{PATH}");
        let answer = self.get(&url, MAX_REGISTRY)?;
        if answer.status != 200 {
            return Err(network(format!("{url} answered {}", answer.status)));
        }
        Registry::parse(&answer.body).map_err(|error| network(format!("{url} serves no registry: {error}")))
    }

    fn cross_check(&self, attestation: &Attestation, instance: &Instance) -> Result<Copy, Failure> {
        let url = format!("{instance}{FOLDER}{}.json", attestation.id());
        let answer = self.get(&url, MAX_ATTESTATION)?;
        let copy = match answer.status {
            200 => json::parse_with(&answer.body, Limits::SIGNED),
            410 => return Ok(Copy::Gone),
            status => return Err(network(format!("{url} answered {status}"))),
        };
        let same = copy.is_ok_and(|copy| json::canonical(&copy) == attestation.canonical());
        let mismatch = || Failure::new(FailureCode::CrossCheckMismatch, format!("{url} serves another document"));
        same.then_some(Copy::Same).ok_or_else(mismatch)
    }

    /// A request, sent again when the network or the server failed.
    fn get(&self, url: &str, limit: usize) -> Result<Fetched, Failure> {
        let mut left = self.config.retries;
        loop {
            let answer = self.fetch.get(url, limit);
            let failed = answer.as_ref().map_or(true, |answer| answer.status >= 500);
            if !failed || left == 0 {
                let answer = answer.map_err(|error| network(format!("{url}: {error}")))?;
                let fits = answer.body.len() <= limit;
                return if fits { Ok(answer) } else { Err(network(format!("{url} serves more than {limit} bytes"))) };
            }
            left -= 1;
        }
    }
}

fn in_time(attestation: &Attestation, now: Timestamp) -> Result<(), Failure> {
    match attestation.expires_at() {
        Some(end) if now >= end => Err(Failure::new(FailureCode::Expired, format!("it counted until {end}"))),
        _ => Ok(()),
    }
}

fn first(nonce: &str, used: Use) -> Result<(), Refusal> {
    let failure = match used {
        Use::First => return Ok(()),
        Use::Again => Failure::new(FailureCode::NonceReused, format!("`{nonce}` was used before")),
        Use::Unknown => Failure::new(FailureCode::Expired, "its time was over before the clock was set back"),
    };
    Err(failure.into())
}

fn network(detail: String) -> Failure {
    Failure::new(FailureCode::NetworkError, detail)
}
