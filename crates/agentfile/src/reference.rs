//! References: OCI images and artifacts, tools, hosts, paths inside an agent's folder.
//!
//! Owns what a reference may look like, and how hosts match. Fetches nothing. Invariant: a reference that parsed names one thing, and a
//! path that parsed stays inside the folder it hangs off.

use std::fmt;

use serde::Serialize;

/// A reference to an image or an artifact in a registry.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct OciRef {
    /// As it was written.
    pub text: String,
    /// The registry's host, with its port; absent where the reference names none.
    pub registry: Option<String>,
    /// The repository.
    pub repository: String,
    /// Its tag.
    pub tag: Option<String>,
    /// Its digest, `sha256:…`.
    pub digest: Option<String>,
}

impl fmt::Display for OciRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl OciRef {
    /// Reads `[host/]name[/name…][:tag][@digest]`; says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.contains("://") {
            return Err("a reference has no scheme".to_owned());
        }
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) if is_digest(digest) => (name, Some(digest.to_owned())),
            Some(_) => return Err("a digest is `sha256:` and 64 hexadecimal digits".to_owned()),
            None => (text, None),
        };
        let (name, tag) = match name.rsplit_once(':') {
            Some((before, tag)) if !tag.contains('/') => (before, Some(tag.to_owned())),
            _ => (name, None),
        };
        if tag.as_deref().is_some_and(|tag| !is_tag(tag)) {
            return Err("a tag has letters, digits, `_`, `.` and `-`, at most 128".to_owned());
        }
        let (registry, repository) = match name.split_once('/') {
            Some((host, rest)) if is_registry(host) => (Some(host.to_owned()), rest),
            _ => (None, name),
        };
        if text.len() > 512 || !repository.split('/').all(is_component) {
            return Err("a repository has lower-case letters, digits and single `.`, `_`, `-` between them".to_owned());
        }
        Ok(Self { text: text.to_owned(), registry, repository: repository.to_owned(), tag, digest })
    }
}

/// Whether the first part of a name is a host: it has a dot or a port, or is `localhost`.
pub fn is_registry(part: &str) -> bool {
    let (host, port) = part.split_once(':').map_or((part, None), |(host, port)| (host, Some(port)));
    let named = part == "localhost" || host.contains('.') || port.is_some();
    named && is_host(host) && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

/// `sha256:` or `sha512:` and their digits.
pub fn is_digest(text: &str) -> bool {
    let hex = |digits: &str, count: usize| {
        digits.len() == count && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    text.strip_prefix("sha256:").is_some_and(|digits| hex(digits, 64))
        || text.strip_prefix("sha512:").is_some_and(|digits| hex(digits, 128))
}

fn is_tag(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.len() <= 128 && text.starts_with(word) && text.chars().all(|c| word(c) || c == '.' || c == '-')
}

fn is_component(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    !text.is_empty()
        && text.starts_with(plain)
        && text.ends_with(plain)
        && text.chars().all(|c| plain(c) || matches!(c, '.' | '_' | '-'))
        && !text.contains("..")
}

/// A name of letters, digits, `_`, `.`, `-`, that begins with a letter or a digit.
pub fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric();
    text.len() <= 256
        && text.starts_with(|c| plain(c) || c == '_')
        && text.chars().all(|c| plain(c) || matches!(c, '.' | '_' | '-'))
}

/// A host's name or an IP address.
pub fn is_host(text: &str) -> bool {
    if text.starts_with('[') {
        return text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .is_some_and(|ip| ip.parse::<std::net::Ipv6Addr>().is_ok());
    }
    let label = |label: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !label.is_empty()
            && label.len() <= 63
            && label.starts_with(plain)
            && label.ends_with(plain)
            && label.chars().all(|c| plain(c) || c == '-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

/// Whether a pattern (`api.x.com`, `*.x.com`) names a host. `*.x.com` does not name `x.com` (R66).
pub fn host_matches(pattern: &str, host: &str) -> bool {
    let (pattern, host) = (pattern.to_ascii_lowercase(), host.to_ascii_lowercase());
    match pattern.strip_prefix("*.") {
        Some(tail) => host
            .strip_suffix(tail)
            .and_then(|rest| rest.strip_suffix('.'))
            .is_some_and(|rest| !rest.is_empty() && rest != "*"),
        None => pattern == host,
    }
}

/// Whether every host that `inner` names is named by `outer`, too.
pub fn host_within(inner: &str, outer: &str) -> bool {
    let same = inner.eq_ignore_ascii_case(outer);
    same || match inner.strip_prefix("*.") {
        Some(tail) => outer.starts_with("*.") && host_matches(outer, tail),
        None => host_matches(outer, inner),
    }
}

/// An absolute path without `.`, `..` and empty parts; says what is wrong with it.
pub fn absolute_path(text: &str) -> Result<String, &'static str> {
    let Some(rest) = text.strip_prefix('/') else { return Err("the path is relative") };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if rest.is_empty() {
        return Ok("/".to_owned());
    }
    for part in rest.split('/') {
        match part {
            "" => return Err("the path has an empty part"),
            "." | ".." => return Err("the path has `.` or `..` in it"),
            _ => {}
        }
    }
    Ok(format!("/{rest}"))
}

/// A relative path that stays inside its folder, without `./` in front; says what is wrong with it.
pub fn inner_path(text: &str) -> Result<String, &'static str> {
    if text.starts_with('/') || text.starts_with('~') {
        return Err("the path leaves the Agentfile's folder");
    }
    let mut parts = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err("the path leads out with `..`"),
            part => parts.push(part),
        }
    }
    if parts.is_empty() { Ok(".".to_owned()) } else { Ok(parts.join("/")) }
}

/// Whether one absolute path is another or lies below it.
pub fn path_within(inner: &str, outer: &str) -> bool {
    inner == outer || outer == "/" || inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'))
}

/// A tool: `utcp:file_read`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct ToolRef {
    /// `utcp`, `mcp`, a framework's name.
    pub namespace: String,
    /// What follows the colon.
    pub name: String,
}

impl fmt::Display for ToolRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.namespace, self.name)
    }
}

impl ToolRef {
    /// Reads `<namespace>:<name>`.
    pub fn parse(text: &str) -> Option<Self> {
        let (namespace, name) = text.split_once(':')?;
        let part = |part: &str| part.split('/').all(is_name);
        (is_name(namespace) && part(name)).then(|| Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// Whether a text is this reference in full.
    pub fn is_written(&self, text: &str) -> bool {
        text.split_once(':').is_some_and(|(namespace, name)| namespace == self.namespace && name == self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_or_refused() {
        let digest = format!("ghcr.io/o/a:1@sha256:{}", "0".repeat(64));
        for good in [
            "python:3.11-slim",
            "ghcr.io/org/base-agent:1.4",
            "localhost:5000/a",
            "127.0.0.1:5000/a/b",
            "a__b",
            &digest,
        ] {
            assert!(OciRef::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "https://x/y", "A/b", "a:", "a@sha256:...", "a/../b", "a:b:c", "-a", "ghcr.io/"] {
            assert!(OciRef::parse(bad).is_err(), "{bad}");
        }
        let read = OciRef::parse("ghcr.io:443/o/a:1").unwrap();
        assert_eq!(
            (read.registry.as_deref(), read.repository.as_str(), read.tag.as_deref()),
            (Some("ghcr.io:443"), "o/a", Some("1"))
        );
    }

    #[test]
    fn wildcards_name_what_is_below_them_alone() {
        assert!(
            host_matches("*.x.com", "a.x.com")
                && host_matches("*.x.com", "a.b.x.com")
                && host_matches("X.com", "x.COM")
        );
        assert!(
            !host_matches("*.x.com", "x.com")
                && !host_matches("*.x.com", "ax.com")
                && !host_matches("x.com", "a.x.com")
        );
        assert!(
            host_within("*.a.x.com", "*.x.com")
                && host_within("*.x.com", "*.x.com")
                && host_within("a.x.com", "*.x.com")
        );
        assert!(!host_within("*.x.com", "a.x.com") && !host_within("*.com", "*.x.com"));
    }

    #[test]
    fn paths_stay_where_they_are() {
        assert_eq!(absolute_path("/a/b/"), Ok("/a/b".to_owned()));
        assert_eq!(inner_path("./a/./b"), Ok("a/b".to_owned()));
        for bad in ["a", "/a/../b", "/a//b", "/./a", ""] {
            assert!(absolute_path(bad).is_err(), "{bad}");
        }
        for bad in ["/a", "../a", "a/../../b", "~/a"] {
            assert!(inner_path(bad).is_err(), "{bad}");
        }
        assert!(path_within("/a/b", "/a") && path_within("/a", "/") && !path_within("/ab", "/a"));
    }
}
