//! Policies from elsewhere: an `https://` address, or an artifact in an OCI registry. For `writ policy lock` alone.
//!
//! Fetches bytes and checks what the address or the registry's manifest says of them; judges no policy. Refuses plain HTTP but to this
//! machine, redirects of addresses, manifests of several platforms. Invariant: bytes of an artifact have the digest that its manifest
//! says, and a manifest that is named by digest has that. Page: `spec/layers.md`.

use std::io::Read;
use std::time::Duration;

use ureq::Agent;
use ureq::http::Response;
use writ_core::Digest;
use writ_package::manifest::Document;
use writ_package::{Descriptor, Reference};

use crate::network::{agent, authorities};
use crate::registry::{Options, Registry};

/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Largest policy, and largest manifest.
const MAX_BYTES: u64 = 4 << 20;
/// The layers that are taken for a policy: plain, or signed.
const POLICY: [&str; 2] = ["application/vnd.aflock.policy+json", "application/vnd.dsse.envelope.v1+json"];

/// Fetches policies.
#[derive(Debug)]
pub struct Policies {
    agent: Agent,
    /// Credentials are not sent: what is locked is public, or mirrored.
    registry: Registry,
}

impl Default for Policies {
    fn default() -> Self {
        Self { agent: agent(authorities(), TIMEOUT), registry: Registry::new(Options::default()) }
    }
}

impl Policies {
    /// The bytes behind an address; why not, in words.
    pub fn fetch(&self, address: &str) -> Result<Vec<u8>, String> {
        if address.starts_with("https://") {
            return body(self.ask(address)?, address);
        }
        let reference = Some(address).filter(|address| address.starts_with("oci://"));
        let reference = reference.and_then(|address| Reference::parse(address).ok()).ok_or_else(|| {
            format!("`{address}` is no reference: `https://…` or `oci://HOST/REPOSITORY[:TAG][@sha256:…]`")
        })?;
        self.artifact(&reference).map_err(|why| format!("{address}: {why}"))
    }

    /// The manifest behind `HOST/REPOSITORY` and a tag or digest: its digest, and what it says it is an artifact of.
    pub fn manifest(&self, host: &str, repository: &str, name: &str) -> Result<(Digest, Option<String>), String> {
        let sign = if name.contains(':') { '@' } else { ':' };
        let reference =
            Reference::parse(&format!("{host}/{repository}{sign}{name}")).map_err(|error| error.to_string())?;
        let (descriptor, _) = self.registry.manifest(&reference).map_err(|error| error.to_string())?;
        Ok((descriptor.digest, descriptor.artifact_type))
    }

    fn artifact(&self, reference: &Reference) -> Result<Vec<u8>, String> {
        let (descriptor, bytes) = self.registry.manifest(reference).map_err(|error| error.to_string())?;
        let document = Document::parse(&descriptor.media_type, &bytes).map_err(|error| error.to_string())?;
        let Document::Manifest(manifest) = document else {
            return Err("it is no manifest of one artifact".to_owned());
        };
        let layer = policy_in(&manifest.layers)?;
        self.registry.blob(reference, layer, MAX_BYTES).map_err(|error| error.to_string())
    }

    fn ask(&self, url: &str) -> Result<Response<ureq::Body>, String> {
        self.agent.get(url).call().map_err(|error| format!("{url}: {error}"))
    }
}

/// The whole body of a good answer.
fn body(mut answer: Response<ureq::Body>, url: &str) -> Result<Vec<u8>, String> {
    if answer.status() != 200 {
        let to = answer.headers().get("location").and_then(|place| place.to_str().ok());
        let to = to.map_or_else(String::new, |to| format!(", and leads to `{to}`: name the place itself"));
        return Err(format!("{url} answers {}{to}", answer.status().as_u16()));
    }
    let mut out = Vec::new();
    let reader = answer.body_mut().as_reader();
    reader.take(MAX_BYTES + 1).read_to_end(&mut out).map_err(|error| format!("{url}: {error}"))?;
    if out.len() as u64 > MAX_BYTES { Err(format!("{url} has more than {MAX_BYTES} bytes")) } else { Ok(out) }
}

/// The policy among a manifest's layers: the one of a policy's type, else the only one.
fn policy_in(layers: &[Descriptor]) -> Result<&Descriptor, String> {
    let policies: Vec<&Descriptor> =
        layers.iter().filter(|layer| POLICY.contains(&layer.media_type.as_str())).collect();
    match (policies.as_slice(), layers) {
        ([only], _) => Ok(only),
        ([], [only]) => Ok(only),
        _ => Err(format!("it has {} layers, and not one that is a policy's ({})", layers.len(), POLICY[0])),
    }
}
