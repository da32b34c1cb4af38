//! Registries: the OCI distribution API, asked over HTTP.
//!
//! Owns requests, credentials, retries and the order in which things are sent. Judges nothing: that bytes are what they should be, their
//! digests say, and what a package is worth, `writ verify` says. Refuses plain HTTP but to this machine or where it is asked for, and
//! sends no credentials where a registry leads. Invariant: what it hands out has the digest that was asked for, or that the registry's
//! manifest names. `oci-client` 0.18 was looked at: it brings a second HTTP client (`reqwest`) with a runtime, holds pushed blobs in
//! memory, and has neither credential helpers, nor uploads that go on where they stopped, nor the tag that stands for referrers. Page:
//! `spec/registry.md`.

mod auth;
mod blobs;
mod credentials;
mod error;
mod http;
mod referrers;
mod transfer;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use ureq::Agent;
use writ_core::Digest;
use writ_package::manifest::{DOCKER_INDEX, DOCKER_MANIFEST, Document, INDEX, MANIFEST, MAX_BYTES};
use writ_package::reference::{is_local, is_registry};
use writ_package::{Descriptor, Reference};
use zeroize::Zeroizing;

pub use credentials::{Credentials, Login};
pub use error::{CredentialsError, RegistryError};
pub use transfer::Moved;

use crate::network::{authorities, transfer_agent};
use auth::Challenge;
use http::{Answer, body, header, network, said};

/// Makes a request with an agent and, where it is known, the value of `Authorization`.
type Making<'a> = dyn FnMut(&Agent, Option<&str>) -> Result<Answer, ureq::Error> + 'a;

/// Manifests are asked for as any of these.
const MANIFESTS: [&str; 4] = [MANIFEST, INDEX, DOCKER_MANIFEST, DOCKER_INDEX];
/// Blobs that are sent or fetched at the same time, where nothing else is said.
pub const CONCURRENCY: usize = 4;

/// Where and how registries are asked.
#[derive(Clone, Debug)]
pub struct Options {
    /// Credentials.
    pub credentials: Credentials,
    /// Whether other machines are spoken to without TLS, too.
    pub plain_http: bool,
    /// Blobs that are sent or fetched at the same time.
    pub concurrency: usize,
    /// Places that are asked before a registry, for what is read: registry, then `HOST[:PORT][/PREFIX]`.
    pub mirrors: Vec<(String, String)>,
    /// Where it is kept how far an upload has got.
    pub uploads: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        let credentials = Credentials::none();
        Self { credentials, plain_http: false, concurrency: CONCURRENCY, mirrors: Vec::new(), uploads: None }
    }
}

/// How much is done of what is to do, told as it goes on.
#[derive(Debug)]
pub struct Watch {
    done: AtomicU64,
    all: AtomicU64,
    show: fn(u64, u64),
}

impl Watch {
    /// One that tells it here.
    pub const fn new(show: fn(u64, u64)) -> Self {
        Self { done: AtomicU64::new(0), all: AtomicU64::new(0), show }
    }

    fn expect(&self, bytes: u64) {
        self.all.fetch_add(bytes, Ordering::Relaxed);
    }

    fn add(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        (self.show)(done, self.all.load(Ordering::Relaxed));
    }

    /// What was counted and is to be done again.
    fn back(&self, bytes: u64) {
        self.done.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Registries, asked.
#[derive(Debug)]
pub struct Registry {
    agent: Agent,
    options: Options,
    /// Headers by registry and scope.
    headers: Mutex<BTreeMap<(String, String), Zeroizing<String>>>,
}

/// A repository on one machine.
#[derive(Clone, Debug)]
struct Place {
    /// The registry as it is called: whose credentials are used.
    registry: String,
    /// `https://HOST/v2`.
    base: String,
    repository: String,
}

impl Place {
    fn url(&self, rest: &str) -> String {
        format!("{}/{}/{rest}", self.base, self.repository)
    }
}

/// What a repository is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Pull,
    Push,
}

impl Registry {
    /// With these options.
    pub fn new(options: Options) -> Self {
        Self { agent: transfer_agent(authorities()), options, headers: Mutex::default() }
    }

    fn base(&self, host: &str) -> String {
        let scheme = if self.options.plain_http || is_local(host) { "http" } else { "https" };
        format!("{scheme}://{host}/v2")
    }

    /// The repository itself.
    fn origin(&self, reference: &Reference) -> Place {
        Place {
            registry: reference.registry().to_owned(),
            base: self.base(reference.api()),
            repository: reference.repository().to_owned(),
        }
    }

    /// Where a repository is read: its mirrors first.
    fn places(&self, reference: &Reference) -> Vec<Place> {
        let mirrors = self.options.mirrors.iter().filter(|(registry, _)| registry == reference.registry());
        let mut out: Vec<Place> = mirrors
            .map(|(_, mirror)| {
                let (host, prefix) = mirror.split_once('/').unwrap_or((mirror, ""));
                let repository = format!("{prefix}/{}", reference.repository());
                let repository = repository.trim_start_matches('/').to_owned();
                Place { registry: host.to_owned(), base: self.base(host), repository }
            })
            .collect();
        out.push(self.origin(reference));
        out
    }

    /// Asks the places where a repository is read, one after the other.
    fn read<T>(
        &self,
        reference: &Reference,
        ask: impl Fn(&Place) -> Result<T, RegistryError>,
    ) -> Result<T, RegistryError> {
        let mut places = self.places(reference);
        let origin = places.pop();
        for mirror in places {
            if let Ok(found) = ask(&mirror) {
                return Ok(found);
            }
        }
        ask(&origin.unwrap_or_else(|| self.origin(reference)))
    }

    /// Sends a request, and once more with what the registry wants to know.
    fn send(&self, place: &Place, scope: &str, url: &str, make: &mut Making<'_>) -> Result<Answer, RegistryError> {
        let key = (place.base.clone(), scope.to_owned());
        let known = self.headers.lock().ok().and_then(|headers| headers.get(&key).cloned());
        let failed = |error: ureq::Error| network(url, &error);
        let mut answer = make(&self.agent, known.as_ref().map(|header| header.as_str())).map_err(failed)?;
        if answer.status() != 401 {
            return Ok(answer);
        }
        let said = said(&mut answer);
        let unauthorized = || RegistryError::Unauthorized { registry: place.registry.clone(), said: said.clone() };
        let challenge = Challenge::of(&answer).ok_or_else(unauthorized)?;
        let login = self.options.credentials.get(&place.registry)?;
        if login.is_some() && place.base.starts_with("http://") && !self.may_be_plain(place) {
            return Err(unauthorized());
        }
        let plain = self.options.plain_http;
        let header = auth::answer(&self.agent, &place.registry, plain, &challenge, scope, login.as_ref())?;
        let header = header.ok_or_else(unauthorized)?;
        let again = make(&self.agent, Some(&header)).map_err(failed)?;
        if again.status() == 401 {
            return Err(unauthorized());
        }
        if let Ok(mut headers) = self.headers.lock() {
            headers.insert(key, header);
        }
        Ok(again)
    }

    fn may_be_plain(&self, place: &Place) -> bool {
        self.options.plain_http || is_local(&place.registry)
    }

    fn scope(place: &Place, wanted: Use) -> String {
        let actions = match wanted {
            Use::Pull => "pull",
            Use::Push => "pull,push",
        };
        format!("repository:{}:{actions}", place.repository)
    }

    /// Whether credentials are good: asks the registry who it is spoken to by.
    pub fn log_in(&self, registry: &str) -> Result<(), RegistryError> {
        let host = if registry == "docker.io" { "registry-1.docker.io" } else { registry };
        let place = Place { registry: registry.to_owned(), base: self.base(host), repository: String::new() };
        let url = format!("{}/", place.base);
        let mut answer = self.send(&place, "", &url, &mut |agent, auth| with(agent.get(&url), auth).call())?;
        match answer.status().as_u16() {
            200 => Ok(()),
            status => Err(RegistryError::Status { url, status, said: said(&mut answer) }),
        }
    }

    /// A manifest or index, with the digest that was asked for.
    pub fn manifest(&self, reference: &Reference) -> Result<(Descriptor, Vec<u8>), RegistryError> {
        self.read(reference, |place| self.manifest_at(place, &reference.name(), reference, Use::Pull))
    }

    fn manifest_at(
        &self,
        place: &Place,
        name: &str,
        reference: &Reference,
        wanted: Use,
    ) -> Result<(Descriptor, Vec<u8>), RegistryError> {
        let url = place.url(&format!("manifests/{name}"));
        let scope = Self::scope(place, wanted);
        let mut answer = self.send(place, &scope, &url, &mut |agent, auth| {
            with(agent.get(&url), auth).header("Accept", MANIFESTS.join(", ")).call()
        })?;
        match answer.status().as_u16() {
            200 => {}
            404 => return Err(RegistryError::NotFound { what: format!("{}/{name}", reference.place()) }),
            status => return Err(unexpected(&url, status, &mut answer, place)),
        }
        let said = header(&answer, "content-type").unwrap_or_default();
        let media_type = said.split(';').next().unwrap_or_default().trim().to_owned();
        let promised = header(&answer, "docker-content-digest").and_then(|said| Digest::parse(said).ok());
        let bytes = body(&mut answer, &url, MAX_BYTES)?;
        let digest = Digest::of(&bytes);
        if let Some(wanted) = Digest::parse(name).ok().or(promised)
            && wanted != digest
        {
            let registry = place.registry.clone();
            return Err(RegistryError::Other { registry, wanted: wanted.to_string(), found: digest.to_string() });
        }
        // Some registries call everything by one type: what the document says of itself counts then.
        let document = Document::parse(&media_type, &bytes)
            .map_err(|source| RegistryError::Document { what: reference.to_string(), source })?;
        let mut descriptor = Descriptor::of(&media_type, &bytes);
        descriptor.artifact_type = document.artifact_type().map(str::to_owned);
        Ok((descriptor, bytes))
    }

    /// Puts a manifest under its digest or a tag; whether the registry lists what it is said of.
    fn put_manifest(
        &self,
        reference: &Reference,
        name: &str,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<bool, RegistryError> {
        let place = self.origin(reference);
        let url = place.url(&format!("manifests/{name}"));
        let scope = Self::scope(&place, Use::Push);
        let mut answer = self.send(&place, &scope, &url, &mut |agent, auth| {
            with(agent.put(&url), auth).header("Content-Type", media_type).send(bytes)
        })?;
        match answer.status().as_u16() {
            200..=299 => Ok(header(&answer, "oci-subject").is_some()),
            status => Err(unexpected(&url, status, &mut answer, &place)),
        }
    }

    /// Gives a manifest another tag.
    pub fn tag(&self, reference: &Reference, tag: &str) -> Result<Descriptor, RegistryError> {
        let tagged = reference.tagged(tag)?;
        let place = self.origin(reference);
        let (descriptor, bytes) = self.manifest_at(&place, &reference.name(), reference, Use::Push)?;
        self.put_manifest(&tagged, tag, &descriptor.media_type, &bytes)?;
        Ok(descriptor)
    }
}

/// A request with the header that says who asks.
fn with<B>(request: ureq::RequestBuilder<B>, auth: Option<&str>) -> ureq::RequestBuilder<B> {
    match auth {
        Some(auth) => request.header("Authorization", auth),
        None => request,
    }
}

/// A failure with what the registry says of it.
fn unexpected(url: &str, status: u16, answer: &mut Answer, place: &Place) -> RegistryError {
    let said = said(answer);
    match status {
        401 | 403 => RegistryError::Unauthorized { registry: place.registry.clone(), said },
        status => RegistryError::Status { url: url.split('?').next().unwrap_or_default().to_owned(), status, said },
    }
}

/// A mirror as it is written: `REGISTRY=HOST[:PORT][/PREFIX]`.
pub fn mirror(text: &str) -> Result<(String, String), String> {
    let wrong = || format!("`{text}` is no mirror: write `REGISTRY=HOST[:PORT][/PREFIX]`");
    let (registry, place) = text.split_once('=').ok_or_else(wrong)?;
    let host = place.split('/').next().unwrap_or_default();
    let prefix = place.strip_prefix(host).unwrap_or_default();
    let good = Reference::parse(&format!("{host}{prefix}/x")).is_ok();
    if is_registry(registry) && good { Ok((registry.to_owned(), place.to_owned())) } else { Err(wrong()) }
}
