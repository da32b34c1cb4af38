//! A host's name and `host:port` as clients send them: one spelling, or none.
//!
//! Owns what may stand in a CONNECT line, a `Host` field, a URL's authority and a TLS server name. Refuses everything that two
//! programs could read differently. Invariant: a [`HostName`] is what the policy compares, letter by letter.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use writ_policy::{Host, HostRule, read_host};

use crate::refusal::Refusal;

/// Longest name (RFC 1035).
const LONGEST: usize = 253;

/// A host: lower case, Punycode, no final dot; an address in its usual spelling, IPv6 in brackets.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(String);

impl HostName {
    /// Reads a name as it was sent.
    pub fn read(sent: &[u8]) -> Result<Self, Refusal> {
        if sent.is_empty() || sent.len() > LONGEST {
            return Err(Refusal::Name("it is empty or too long"));
        }
        if !sent.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:[]".contains(byte)) {
            return Err(Refusal::Name("it holds what no name holds"));
        }
        if sent.ends_with(b".") {
            return Err(Refusal::Name("it ends in a dot"));
        }
        let text = String::from_utf8_lossy(sent).to_ascii_lowercase();
        match read_host(&text) {
            Host::Name(name) if name == text => Ok(Self(name)),
            Host::Name(_) => Err(Refusal::Name("it is an address in another spelling")),
            Host::Ambiguous | Host::Unknown => Err(Refusal::Name("it is no name")),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The address, where it is one.
    pub fn address(&self) -> Option<IpAddr> {
        if let Some(inner) = self.0.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
        }
        self.0.parse::<Ipv4Addr>().ok().map(IpAddr::V4)
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether one of the patterns matches.
pub fn any(patterns: &[HostRule], host: &HostName) -> bool {
    patterns.iter().any(|pattern| pattern.matches(host.as_str()))
}

/// Reads `host` or `host:port`.
pub fn authority(sent: &[u8], port: Option<u16>) -> Result<(HostName, u16), Refusal> {
    if sent.contains(&b'@') {
        return Err(Refusal::Name("it carries a user"));
    }
    let split = match sent.iter().rposition(|byte| *byte == b':') {
        Some(colon) if !sent.ends_with(b"]") => Some(sent.split_at(colon)),
        _ => None,
    };
    let Some((host, rest)) = split else {
        let port = port.ok_or(Refusal::Name("it lacks a port"))?;
        return Ok((bracketed(sent)?, port));
    };
    let digits = rest.get(1..).unwrap_or_default();
    let plain = (1..=5).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit) && !digits.starts_with(b"0");
    let port = std::str::from_utf8(digits).ok().filter(|_| plain).and_then(|text| text.parse().ok());
    Ok((bracketed(host)?, port.ok_or(Refusal::Name("its port is no port"))?))
}

/// Colons belong into brackets: `::1:443` is two things.
fn bracketed(sent: &[u8]) -> Result<HostName, Refusal> {
    if sent.contains(&b':') != sent.starts_with(b"[") {
        return Err(Refusal::Name("an IPv6 address stands in brackets"));
    }
    HostName::read(sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_spelling() {
        for (sent, name) in [
            ("API.Example.com", "api.example.com"),
            ("xn--bcher-kva.de", "xn--bcher-kva.de"),
            ("10.0.0.1", "10.0.0.1"),
            ("[::1]", "[::1]"),
            ("my_host", "my_host"),
        ] {
            assert_eq!(HostName::read(sent.as_bytes()).unwrap().as_str(), name);
        }
        for bad in [
            "",
            "a.com.",
            "a.com..",
            ".a.com",
            "a..com",
            "a.com\0.b.com",
            "a com",
            "u@a.com",
            "a%2ecom",
            "a.com/",
            "bücher.de",
            "xn--a",
            "0x7f.1",
            "0177.0.0.1",
            "2130706433",
            "127.1",
            "127.0.0.1.",
            "1.2.3.4.5",
            "[0:0::1]",
            "[::1%eth0]",
            "[::ffff:127.0.0.1]",
            "a\r\nb",
            "a\tb",
            "ａ.com",
            "a。com",
        ] {
            assert!(HostName::read(bad.as_bytes()).is_err(), "{bad:?}");
        }
        assert!(HostName::read(&b"a".repeat(254)).is_err());
    }

    #[test]
    fn authorities() {
        for (sent, host, port) in
            [("A.com:443", "a.com", 443), ("a.com", "a.com", 80), ("[::1]:8443", "[::1]", 8443), ("[::1]", "[::1]", 80)]
        {
            let (name, found) = authority(sent.as_bytes(), Some(80)).unwrap();
            assert_eq!((name.as_str(), found), (host, port));
        }
        for bad in [
            "a.com:",
            "a.com:0",
            "a.com:65536",
            "a.com:0443",
            "a.com:+44",
            "a.com:44 3",
            "u@a.com:443",
            "u:p@a.com",
            "::1:443",
            "a.com:443:443",
            ":443",
            "[::1",
            "[::1]x:443",
            "a.com:443@b.com",
        ] {
            assert!(authority(bad.as_bytes(), Some(80)).is_err(), "{bad:?}");
        }
        assert!(authority(b"a.com", None).is_err());
    }
}
