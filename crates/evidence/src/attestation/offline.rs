//! A verification with the registry at hand: every step that needs neither network nor memory.

use writ_core::Timestamp;

use super::{Attestation, Failure, FailureCode, Instance};
use crate::registry::{KeyState, Registry};

/// What a verifier demands beside a good signature.
#[derive(Clone, Debug)]
pub struct Terms<'a> {
    /// The instances it trusts; none named means any.
    pub trusted: &'a [String],
    /// Its clock.
    pub now: Timestamp,
}

/// Checks a document against a registry's document, in the order of the page's section 3. What is no registry counts as one that could
/// not be fetched.
pub fn verify(attestation: &[u8], registry: &[u8], terms: &Terms<'_>) -> Result<(Attestation, KeyState), Failure> {
    let fail = |code, detail: String| Err(Failure::new(code, detail));
    let attestation = Attestation::parse(attestation)?;
    if !is_trusted(attestation.instance(), terms.trusted) {
        return fail(FailureCode::InstanceNotTrusted, format!("`{}` is not trusted", attestation.instance()));
    }
    let registry = Registry::parse(registry);
    let registry =
        registry.map_err(|error| Failure::new(FailureCode::NetworkError, format!("no registry: {error}")))?;
    let state = registry.check(&attestation)?;
    match attestation.expires_at() {
        Some(end) if end <= terms.now => fail(FailureCode::Expired, format!("it was valid until {end}")),
        _ => Ok((attestation, state)),
    }
}

/// Whether an instance is one of the trusted ones, however either is spelled. An entry that is no `http(s)://host[:port]` trusts
/// nothing.
pub fn is_trusted(instance: &str, trusted: &[String]) -> bool {
    let same = |at: &Instance| trusted.iter().any(|entry| Instance::parse(entry).as_ref() == Ok(at));
    trusted.is_empty() || Instance::parse(instance).is_ok_and(|at| same(&at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_is_by_scheme_host_and_port() {
        let trusted = |instance: &str, entry: &str| is_trusted(instance, &[entry.to_owned()]);
        for (instance, entry) in [
            ("https://a.example", "https://a.example"),
            ("https://a.example:443", "https://a.example"),
            ("http://a.example", "http://a.example:80"),
            ("http://[::1]:8080", "http://[::1]:8080"),
            ("https://A.example", "https://a.EXAMPLE"),
            ("http://[0:0::1]", "http://[::1]:80"),
        ] {
            assert!(trusted(instance, entry), "{instance} {entry}");
        }
        for (instance, entry) in [
            ("http://a.example", "https://a.example"),
            ("https://a.example", "https://a.example:8443"),
            ("https://a.example:80", "https://a.example"),
            ("https://b.a.example", "https://a.example"),
            ("https://a.example", "https://a.example/"),
            ("https://a.example", ""),
            ("https://a.example.", "https://a.example."),
            ("http://127.1", "http://127.1"),
        ] {
            assert!(!trusted(instance, entry), "{instance} {entry}");
        }
        assert!(is_trusted("http://any.example", &[]));
    }
}
