//! One request to one service, with limits on what comes back and how long it takes.

use std::io::Read;
use std::time::Duration;

use serde::Deserialize;
use ureq::Agent;
use url::{Host, Url};
use writ_core::json::{self, Limits};
use writ_core::{secret, visible};
use writ_evidence::sigstore::{AnswerError, IdentityToken};
use zeroize::Zeroizing;

use super::SigstoreError;
use crate::network::{agent, authorities};

/// How long one request may take: a log answers when the entry is in.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Largest answer. A certificate's chain, an entry and a timestamp have some kilobytes.
const MAX: u64 = 1 << 20;
/// Most of a refusal that is read.
const MAX_SAID: u64 = 64 << 10;

/// Where a service is asked.
pub(super) struct Service {
    name: &'static str,
    pub(super) url: String,
}

impl Service {
    /// One by its address, and where it is asked below that.
    pub fn at(name: &'static str, text: &str, path: &str) -> Result<Self, SigstoreError> {
        let wrong = |why| SigstoreError::Address { service: name, url: visible::line(text).into_owned(), why };
        let url = Url::parse(text).map_err(|_not_one| wrong("it is no URL"))?;
        if !url.username().is_empty() || url.password().is_some() {
            let bare = format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default());
            let why = "an address with a name or password in it is not taken";
            return Err(SigstoreError::Address { service: name, url: bare, why });
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("it has a query or a fragment"));
        }
        let local = match url.host() {
            Some(Host::Domain(host)) => host == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => return Err(wrong("it names no host")),
        };
        match url.scheme() {
            "https" => {}
            "http" if local => {}
            _ => return Err(wrong("write `https://`; plain HTTP is for this machine alone")),
        }
        let url =
            if path.is_empty() { url.to_string() } else { format!("{}{path}", url.as_str().trim_end_matches('/')) };
        Ok(Self { name, url })
    }
}

/// The services, asked.
pub(super) struct Client {
    agent: Agent,
    /// The token, whole and in parts: none of it is shown.
    secrets: Vec<Zeroizing<String>>,
}

#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    message: String,
}

impl Client {
    /// One that shows nothing of this token.
    pub fn new(token: &IdentityToken) -> Self {
        let secrets = std::iter::once(token.text()).chain(token.text().split('.'));
        let secrets = secrets.map(|part| Zeroizing::new(part.to_owned())).collect();
        Self { agent: agent(authorities(), TIMEOUT), secrets }
    }

    /// Sends one request.
    pub fn ask(&self, service: &Service, kind: &str, body: &[u8]) -> Result<Vec<u8>, SigstoreError> {
        let (name, url) = (service.name, service.url.clone());
        let network = |error: &dyn std::fmt::Display| {
            let why = self.shown(&error.to_string());
            SigstoreError::Network { service: name, url: url.clone(), why }
        };
        let sent = self.agent.post(&url).header("Content-Type", kind).send(body);
        let mut answer = sent.map_err(|error| network(&error))?;
        let status = answer.status().as_u16();
        let (good, mut out) = (matches!(status, 200 | 201), Vec::new());
        let limit = if good { MAX } else { MAX_SAID };
        let read = answer.body_mut().as_reader().take(limit + 1).read_to_end(&mut out);
        if !good {
            let said =
                json::from_slice_with(&out, Limits::FOREIGN).map_or(String::new(), |refusal: Refusal| refusal.message);
            let said = if said.is_empty() { said } else { format!(" ({})", self.shown(&said)) };
            return Err(SigstoreError::Refused { service: name, url, status, said });
        }
        read.map_err(|error| network(&error))?;
        if out.len() as u64 > limit {
            return Err(SigstoreError::TooLarge { service: name, url, limit });
        }
        Ok(out)
    }

    /// An answer to something else.
    pub fn wrong(&self, service: &Service, error: &AnswerError) -> SigstoreError {
        // It quotes what stands in the answer's place: a service may send the token back there.
        let why = self.shown(&error.to_string());
        SigstoreError::Answer { service: service.name, url: service.url.clone(), why }
    }

    /// What somebody else says, fit to be shown: short, visible, without the token.
    fn shown(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for secret in self.secrets.iter().filter(|secret| !secret.is_empty()) {
            out = out.replace(secret.as_str(), "[secret]");
        }
        let short: String = secret::mask(&out).chars().take(300).collect();
        visible::line(&short).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_safe_is_asked() {
        for (text, path, expected) in [
            ("https://fulcio.example", "/api", Ok("https://fulcio.example/api")),
            ("https://fulcio.example/below/", "/api", Ok("https://fulcio.example/below/api")),
            ("https://tsa.example/api/v1/timestamp", "", Ok("https://tsa.example/api/v1/timestamp")),
            ("http://127.0.0.1:5/", "/api", Ok("http://127.0.0.1:5/api")),
            ("http://[::1]:5", "/api", Ok("http://[::1]:5/api")),
            ("http://localhost:5", "/api", Ok("http://localhost:5/api")),
            ("http://fulcio.example", "/api", Err("write `https://`")),
            ("http://127.0.0.1.example", "/api", Err("write `https://`")),
            ("ftp://localhost", "/api", Err("write `https://`")),
            ("https://me:word@fulcio.example", "/api", Err("name or password")),
            ("https://fulcio.example?x=1", "/api", Err("query")),
            ("fulcio", "/api", Err("no URL")),
            ("file:///x", "/api", Err("no host")),
        ] {
            match (Service::at("Fulcio", text, path), expected) {
                (Ok(service), Ok(url)) => assert_eq!(service.url, url),
                (Err(error), Err(why)) => {
                    let told = error.to_string();
                    assert!(told.contains(why) && !told.contains("word@"), "{told}");
                }
                (other, _) => panic!("{text}: {:?}", other.map(|service| service.url)),
            }
        }
    }
}
