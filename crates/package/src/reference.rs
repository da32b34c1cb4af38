//! References to packages in registries: `HOST[:PORT]/REPOSITORY[:TAG][@sha256:…]`.
//!
//! Owns the grammar of the OCI distribution specification and Docker's short names. Refuses digests of other algorithms than SHA-256,
//! names that lead out of a repository, and text that is longer than any registry takes. Invariant: what a reference prints reads back as
//! the same reference. `oci-spec` was looked at: its reader takes any algorithm for a digest, and brings regular expressions and three
//! crates of derives for it. Page: `spec/registry.md`.

use std::fmt;
use std::str::FromStr;

use writ_core::Digest;

/// Longest reference.
const MAX: usize = 1024;
/// Longest repository.
const MAX_REPOSITORY: usize = 255;
/// Longest tag.
const MAX_TAG: usize = 128;
/// Where short names are.
const DOCKER: &str = "docker.io";
/// The machine that answers for it.
const DOCKER_API: &str = "registry-1.docker.io";

/// A place in a registry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

/// Text that is no reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no reference: {why}; write `HOST[:PORT]/REPOSITORY[:TAG][@sha256:…]`")]
pub struct ReferenceError {
    text: String,
    why: &'static str,
}

impl Reference {
    /// A reference whose registry is named.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        Self::read(text, false)
    }

    /// The same, and short names as container tools read them: `python:3.11` is `docker.io/library/python:3.11`.
    pub fn parse_short(text: &str) -> Result<Self, ReferenceError> {
        Self::read(text, true)
    }

    fn read(text: &str, short: bool) -> Result<Self, ReferenceError> {
        let wrong = |why| ReferenceError { text: text.chars().take(120).collect(), why };
        if text.len() > MAX {
            return Err(wrong("it is too long"));
        }
        let bare = text.strip_prefix("oci://").unwrap_or(text);
        let (name, digest) = match bare.split_once('@') {
            Some((name, digest)) => {
                let digest =
                    Digest::parse(digest).map_err(|_other| wrong("its digest is not `sha256:` and 64 digits"))?;
                (name, Some(digest))
            }
            None => (bare, None),
        };
        let (registry, rest) = match name.split_once('/') {
            Some((first, rest)) if is_host(first) => (first.to_owned(), rest.to_owned()),
            _ if !short => return Err(wrong("it names no registry")),
            Some(_) => (DOCKER.to_owned(), name.to_owned()),
            None => (DOCKER.to_owned(), format!("library/{name}")),
        };
        let (repository, tag) = match rest.rsplit_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (rest.as_str(), None),
        };
        if !is_registry(&registry) {
            return Err(wrong("its registry is no host"));
        }
        if repository.len() > MAX_REPOSITORY || !repository.split('/').all(is_component) {
            return Err(wrong("its repository is not of lower-case letters, digits, and `.`, `_`, `-` between them"));
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(wrong("its tag is not of letters, digits, `.`, `_` and `-`"));
        }
        Ok(Self { registry, repository: repository.to_owned(), tag: tag.map(str::to_owned), digest })
    }

    /// The registry as it is written: host and port.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The host and port that answer for it.
    pub fn api(&self) -> &str {
        if self.registry == DOCKER { DOCKER_API } else { &self.registry }
    }

    /// The repository in it.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag that is written.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest that is written.
    pub const fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// What a registry is asked for: the digest, else the tag, else `latest`.
    pub fn name(&self) -> String {
        self.digest.map_or_else(|| self.tag.clone().unwrap_or_else(|| "latest".to_owned()), |digest| digest.to_string())
    }

    /// The same repository at a digest.
    pub fn at(&self, digest: Digest) -> Self {
        Self { tag: None, digest: Some(digest), ..self.clone() }
    }

    /// The same repository at a tag.
    pub fn tagged(&self, tag: &str) -> Result<Self, ReferenceError> {
        if is_tag(tag) {
            return Ok(Self { tag: Some(tag.to_owned()), digest: None, ..self.clone() });
        }
        Err(ReferenceError {
            text: tag.chars().take(120).collect(),
            why: "a tag is of letters, digits, `.`, `_` and `-`",
        })
    }

    /// The repository without tag and digest: `HOST/REPOSITORY`.
    pub fn place(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// Whether the first part of a name is a host, as container tools tell it.
fn is_host(first: &str) -> bool {
    first.contains(['.', ':']) || first == "localhost"
}

/// Whether it is a host, an address, or an IPv6 address in brackets, with or without a port.
pub fn is_registry(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) if address.parse::<std::net::Ipv6Addr>().is_ok() => ("", port),
            _ => return false,
        },
        None => match text.split_once(':') {
            Some((host, _)) => (host, text.strip_prefix(host).unwrap_or_default()),
            None => (text, ""),
        },
    };
    let label = |label: &str| {
        let letters = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        letters && !label.is_empty() && label.len() < 64 && !label.starts_with('-') && !label.ends_with('-')
    };
    let good_host = text.starts_with('[') || host.len() < 254 && host.split('.').all(label);
    let digits = port.strip_prefix(':');
    let good_port = port.is_empty()
        || digits.is_some_and(|digits| {
            digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u16>().is_ok_and(|port| port > 0)
        });
    good_host && good_port
}

/// Whether a registry is this machine's own, which may speak plainly.
pub fn is_local(registry: &str) -> bool {
    let host = registry.split(':').next().unwrap_or_default();
    registry.starts_with("[::1]") || matches!(host, "localhost" | "127.0.0.1")
}

/// `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*`
fn is_component(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let separated = text.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    let separators = separated.filter(|part| !part.is_empty());
    let good = |part: &str| matches!(part, "." | "_" | "__") || part.bytes().all(|byte| byte == b'-');
    text.bytes().next().is_some_and(plain) && text.bytes().last().is_some_and(plain) && separators.into_iter().all(good)
}

/// `[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}`
pub fn is_tag(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let first = text.bytes().next().is_some_and(word);
    first && text.len() <= MAX_TAG && text.bytes().all(|byte| word(byte) || byte == b'.' || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_read_back_as_they_print() {
        let digest = Digest::of(b"x");
        for (text, registry, repository, tag, at) in [
            ("r.example/a".to_owned(), "r.example", "a", None, None),
            ("r.example:443/team/base:1.2".to_owned(), "r.example:443", "team/base", Some("1.2"), None),
            (format!("localhost/a__b/c-d@{digest}"), "localhost", "a__b/c-d", None, Some(digest)),
            (format!("[::1]:5000/a:t@{digest}"), "[::1]:5000", "a", Some("t"), Some(digest)),
        ] {
            let read = Reference::parse(&text).unwrap();
            assert_eq!(
                (read.registry(), read.repository(), read.tag(), read.digest()),
                (registry, repository, tag, at)
            );
            assert_eq!(read.to_string(), text);
            assert_eq!(Reference::parse(&format!("oci://{text}")).unwrap(), read);
        }
    }

    #[test]
    fn short_names_are_dockers() {
        for (text, printed) in [
            ("python:3.11-slim", "docker.io/library/python:3.11-slim"),
            ("org/tool", "docker.io/org/tool"),
            ("ghcr.io/org/tool:1", "ghcr.io/org/tool:1"),
        ] {
            assert_eq!(Reference::parse_short(text).unwrap().to_string(), printed);
        }
        assert!(Reference::parse("python:3.11-slim").is_err());
        assert_eq!(Reference::parse_short("python").unwrap().api(), "registry-1.docker.io");
    }

    #[test]
    fn refuses_what_is_none() {
        let long = format!("r.example/{}", "a".repeat(256));
        for wrong in [
            "",
            "/",
            "r.example",
            "r.example/",
            "r.example//a",
            "r.example/A",
            "r.example/a..b",
            "r.example/../x",
            "r.example/a_",
            "r.example/-a",
            "r.example/a:",
            "r.example/a:-x",
            "r.example/a b",
            "r.example/a@sha256:1",
            "r.example/a@md5:00",
            "r.example:0/a",
            "r.example:70000/a",
            "r.example:x/a",
            "-r.example/a",
            "[::1/a",
            "[zz]/a",
            "https://r.example/a",
            "r.example/a:t:t",
            "user@r.example/a",
            "r.example/a?x",
            &long,
        ] {
            assert!(Reference::parse(wrong).is_err(), "{wrong}");
        }
        assert!(
            is_local("localhost:5000")
                && is_local("[::1]")
                && !is_local("localhost.example")
                && !is_local("127.0.0.1.example")
        );
    }
}
