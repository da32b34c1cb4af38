//! Policies from elsewhere: an `https://` address, or an artifact in an OCI registry. For `writ policy lock` alone.
//!
//! Fetches bytes and checks what the address or the registry's manifest says of them; judges no policy. Refuses plain HTTP but to this
//! machine, redirects of addresses, manifests of several platforms. Invariant: bytes of an artifact have the digest that its manifest
//! says, and a manifest that is named by digest has that. Page: `spec/layers.md`.

use std::io::Read;
use std::time::Duration;

use serde_json::Value;
use ureq::Agent;
use ureq::http::Response;
use writ_core::Digest;

use crate::network::{agent, authorities};

/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Largest policy, and largest manifest.
const MAX_BYTES: u64 = 4 << 20;
/// Most hops from a registry to where it keeps a blob.
const MAX_HOPS: usize = 4;
/// What a manifest is asked for as.
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// What a base may be: a manifest, or the list of those of several platforms.
const ANY_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json";
/// The layers that are taken for a policy: plain, or signed.
const POLICY: [&str; 2] = ["application/vnd.aflock.policy+json", "application/vnd.dsse.envelope.v1+json"];

/// Fetches policies.
#[derive(Clone, Debug)]
pub struct Policies {
    agent: Agent,
}

impl Default for Policies {
    fn default() -> Self {
        Self { agent: agent(authorities(), TIMEOUT) }
    }
}

/// An artifact's place: `oci://HOST/REPOSITORY[:TAG][@sha256:…]`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Artifact {
    base: String,
    repository: String,
    tag: String,
    digest: Option<Digest>,
}

impl Artifact {
    fn parse(text: &str) -> Option<Self> {
        let (place, digest) = match text.strip_prefix("oci://")?.split_once('@') {
            Some((place, digest)) => (place, Some(Digest::parse(digest).ok()?)),
            None => (text.strip_prefix("oci://")?, None),
        };
        let (host, rest) = place.split_once('/')?;
        let (repository, tag) = match rest.rsplit_once(':') {
            Some((repository, tag)) => (repository, tag),
            None => (rest, "latest"),
        };
        let plain = |text: &str, signs: &str| {
            !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || signs.contains(c))
        };
        let good = plain(host, ".-:[]") && plain(repository, "._-/") && plain(tag, "._-") && !repository.contains("..");
        let scheme = if is_local(host) { "http" } else { "https" };
        let (base, repository, tag) = (format!("{scheme}://{host}/v2"), repository.to_owned(), tag.to_owned());
        good.then_some(Self { base, repository, tag, digest })
    }
}

/// Whether a host is this machine, whose registry may speak plainly.
fn is_local(host: &str) -> bool {
    let name = host.strip_prefix("[::1]").map_or_else(|| host.split(':').next().unwrap_or_default(), |_port| "[::1]");
    matches!(name, "localhost" | "127.0.0.1" | "[::1]")
}

impl Policies {
    /// The bytes behind an address; why not, in words.
    pub fn fetch(&self, address: &str) -> Result<Vec<u8>, String> {
        if address.starts_with("https://") {
            return body(self.ask(address, None, None)?, address);
        }
        let artifact = Artifact::parse(address).ok_or_else(|| {
            format!("`{address}` is no reference: `https://…` or `oci://HOST/REPOSITORY[:TAG][@sha256:…]`")
        })?;
        self.artifact(&artifact).map_err(|why| format!("{address}: {why}"))
    }

    /// The manifest behind `HOST/REPOSITORY[:TAG][@sha256:…]`: its digest, and what it says it is an artifact of.
    pub fn manifest(&self, host: &str, repository: &str, name: &str) -> Result<(Digest, Option<String>), String> {
        let scheme = if is_local(host) { "http" } else { "https" };
        let url = format!("{scheme}://{host}/v2/{repository}/manifests/{name}");
        let mut answer = self.ask(&url, Some(ANY_MANIFEST), None)?;
        if answer.status() == 401 {
            let token = self.token(&answer, repository)?;
            answer = self.ask(&url, Some(ANY_MANIFEST), Some(&token))?;
        }
        let bytes = body(answer, &url)?;
        let digest = Digest::of(&bytes);
        if Digest::parse(name).is_ok_and(|named| named != digest) {
            return Err("the registry's manifest is not the one that the reference names".to_owned());
        }
        let manifest: Value = serde_json::from_slice(&bytes).map_err(|error| format!("no manifest: {error}"))?;
        let config = manifest.get("config").and_then(|config| config.get("mediaType"));
        let kind = manifest.get("artifactType").or(config).and_then(Value::as_str);
        Ok((digest, kind.map(str::to_owned)))
    }

    fn artifact(&self, artifact: &Artifact) -> Result<Vec<u8>, String> {
        let Artifact { base, repository, tag, digest } = artifact;
        let name = digest.map_or_else(|| tag.clone(), |digest| digest.to_string());
        let url = format!("{base}/{repository}/manifests/{name}");
        let mut token = None;
        let mut answer = self.ask(&url, Some(MANIFEST), None)?;
        if answer.status() == 401 {
            token = Some(self.token(&answer, repository)?);
            answer = self.ask(&url, Some(MANIFEST), token.as_deref())?;
        }
        let manifest = body(answer, &url)?;
        if digest.is_some_and(|digest| digest != Digest::of(&manifest)) {
            return Err("the registry's manifest is not the one that the reference names".to_owned());
        }
        let manifest: Value = serde_json::from_slice(&manifest).map_err(|error| format!("no manifest: {error}"))?;
        let blob = policy_in(&manifest)?;
        let bytes = self.blob(&format!("{base}/{repository}/blobs/{blob}"), token.as_deref())?;
        if Digest::of(&bytes) == blob { Ok(bytes) } else { Err(format!("the registry's blob is not {blob}")) }
    }

    /// A token for reading, as the registry says where to get one. Credentials are not sent: what is locked is public, or mirrored.
    fn token<B>(&self, refused: &Response<B>, repository: &str) -> Result<String, String> {
        let header =
            refused.headers().get("www-authenticate").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let part = |name: &str| {
            let (_, rest) = header.split_once(&format!("{name}=\""))?;
            Some(rest.split_once('"')?.0.to_owned())
        };
        let realm = part("realm").filter(|_| header.to_ascii_lowercase().starts_with("bearer "));
        let realm = realm.ok_or("the registry wants credentials, and Writ sends none")?;
        let local =
            realm.strip_prefix("http://").is_some_and(|rest| is_local(rest.split('/').next().unwrap_or_default()));
        if !realm.starts_with("https://") && !local {
            return Err(format!("the registry sends for a token to `{realm}`, which is not HTTPS"));
        }
        let mut request = self.agent.get(&realm).query("scope", format!("repository:{repository}:pull"));
        if let Some(service) = part("service") {
            request = request.query("service", service);
        }
        let answer = request.call().map_err(|error| format!("{realm}: {error}"))?;
        let answer: Value =
            serde_json::from_slice(&body(answer, &realm)?).map_err(|error| format!("{realm}: {error}"))?;
        let token = answer.get("token").or_else(|| answer.get("access_token")).and_then(Value::as_str);
        token.map(str::to_owned).ok_or_else(|| format!("{realm} gave no token"))
    }

    /// A blob, wherever the registry keeps it: its digest is checked, so that it may come from anywhere.
    fn blob(&self, url: &str, token: Option<&str>) -> Result<Vec<u8>, String> {
        let (mut url, mut token) = (url.to_owned(), token);
        for _hop in 0..MAX_HOPS {
            let answer = self.ask(&url, None, token)?;
            if !answer.status().is_redirection() {
                return body(answer, &url);
            }
            let place = answer.headers().get("location").and_then(|place| place.to_str().ok());
            let place = place.filter(|place| place.starts_with("https://") || place.starts_with('/'));
            let place = place.ok_or("the registry leads to a place that is not HTTPS")?;
            // A token is for the registry alone.
            (url, token) =
                if place.starts_with('/') { (origin(&url) + place, token) } else { (place.to_owned(), None) };
        }
        Err("the registry leads from one place to the next".to_owned())
    }

    fn ask(&self, url: &str, accept: Option<&str>, token: Option<&str>) -> Result<Response<ureq::Body>, String> {
        let mut request = self.agent.get(url);
        if let Some(accept) = accept {
            request = request.header("Accept", accept);
        }
        if let Some(token) = token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        request.call().map_err(|error| format!("{url}: {error}"))
    }
}

/// `https://host` of a URL.
fn origin(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    format!("{scheme}://{}", rest.split('/').next().unwrap_or_default())
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

/// The digest of the policy among a manifest's layers: the one of a policy's type, else the only one.
fn policy_in(manifest: &Value) -> Result<Digest, String> {
    let layers = manifest.get("layers").and_then(Value::as_array).ok_or("it is no manifest of one artifact")?;
    let kind = |layer: &Value| layer.get("mediaType").and_then(Value::as_str).map(str::to_owned);
    let policies: Vec<&Value> =
        layers.iter().filter(|layer| kind(layer).is_some_and(|kind| POLICY.contains(&kind.as_str()))).collect();
    let layer = match (policies.as_slice(), layers.as_slice()) {
        ([only], _) => *only,
        ([], [only]) => only,
        _ => return Err(format!("it has {} layers, and not one that is a policy's ({})", layers.len(), POLICY[0])),
    };
    let digest = layer.get("digest").and_then(Value::as_str).and_then(|text| Digest::parse(text).ok());
    digest.ok_or_else(|| "its layer has no SHA-256".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_name_host_repository_tag_and_digest() {
        let read =
            |text: &str| Artifact::parse(text).map(|found| (found.base, found.repository, found.tag, found.digest));
        let digest = Digest::of(b"x");
        let expected = |base: &str, repository: &str, tag: &str, digest| {
            Some((base.to_owned(), repository.to_owned(), tag.to_owned(), digest))
        };
        assert_eq!(read("oci://r.example/team/base:1.2"), expected("https://r.example/v2", "team/base", "1.2", None));
        assert_eq!(read("oci://127.0.0.1:5000/base"), expected("http://127.0.0.1:5000/v2", "base", "latest", None));
        assert_eq!(
            read(&format!("oci://r.example:443/base@{digest}")),
            expected("https://r.example:443/v2", "base", "latest", Some(digest))
        );
        for wrong in [
            "oci://r.example",
            "oci:///base",
            "oci://r.example/",
            "oci://r.example/a@sha256:1",
            "oci://r/../x",
            "https://x/y",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert!(!is_local("localhost.example") && is_local("[::1]:5000"));
    }
}
