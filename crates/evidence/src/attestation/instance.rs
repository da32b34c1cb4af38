//! An instance's address: scheme, host and port, in one form.
//!
//! Owns when two addresses are the same. Refuses everything a client could read in two ways: a user, a path, a trailing dot, an escape,
//! letters beyond ASCII, an IPv4 address that is not four plain numbers. Invariant: two [`Instance`]s are equal exactly when a request to
//! one is a request to the other.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};
use writ_core::json;

/// `scheme://host[:port]`, the host in lower case, the default port left out.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct Instance(String);

/// Why a text is no instance.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{text}` is no instance: {why}")]
pub struct InstanceError {
    text: String,
    why: &'static str,
}

impl Instance {
    /// Reads `https://host[:port]` or `http://host[:port]`, and nothing after it.
    pub fn parse(text: &str) -> Result<Self, InstanceError> {
        let no = |why: &'static str| InstanceError { text: text.chars().take(300).collect(), why };
        let (scheme, default, rest) = if let Some(rest) = text.strip_prefix("https://") {
            ("https", 443, rest)
        } else if let Some(rest) = text.strip_prefix("http://") {
            ("http", 80, rest)
        } else {
            return Err(no("it does not begin with `https://` or `http://`"));
        };
        if !rest.is_ascii() {
            return Err(no("the host is not ASCII: write it in Punycode"));
        }
        let (host, port) = match rest.strip_prefix('[') {
            Some(inner) => {
                let (inner, port) = inner.split_once(']').ok_or_else(|| no("`]` is missing"))?;
                let address: Ipv6Addr = inner.parse().map_err(|_odd| no("what stands in `[]` is no IPv6 address"))?;
                (format!("[{address}]"), port)
            }
            None => {
                let (host, port) = rest.split_at(rest.find(':').unwrap_or(rest.len()));
                (name(host).map_err(no)?, port)
            }
        };
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => default,
            Some(digits) => number(digits).ok_or_else(|| no("the port is no number from 1 to 65535"))?,
            None => return Err(no("there is more than scheme, host and port")),
        };
        let port = if port == default { String::new() } else { format!(":{port}") };
        Ok(Self(format!("{scheme}://{host}{port}")))
    }

    /// The address in its one form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Instance {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        json::read_text(deserializer, |text| Self::parse(text).map_err(|error| error.why))
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A host name or an IPv4 address, in lower case.
fn name(host: &str) -> Result<String, &'static str> {
    let host = host.to_ascii_lowercase();
    let taken = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    let label = |label: &str| {
        (1..=63).contains(&label.len()) && label.bytes().all(taken) && !label.starts_with('-') && !label.ends_with('-')
    };
    if host.len() > 253 || !host.split('.').all(label) {
        return Err("the host is no plain host name");
    }
    // Clients read a host that ends in a number as an IPv4 address, some of them in octal: `0177.1` is 127.0.0.1.
    let last = host.rsplit('.').next().unwrap_or_default();
    let hex = last.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if (hex || last.bytes().all(|byte| byte.is_ascii_digit())) && host.parse::<Ipv4Addr>().is_err() {
        return Err("the host ends in a number and is no IPv4 address");
    }
    Ok(host)
}

fn number(digits: &str) -> Option<u16> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    digits.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_form() {
        for (text, form) in [
            ("https://recourse.example", "https://recourse.example"),
            ("https://Recourse.EXAMPLE:443", "https://recourse.example"),
            ("http://localhost:80", "http://localhost"),
            ("http://localhost:443", "http://localhost:443"),
            ("https://xn--mnchen-3ya.example:8443", "https://xn--mnchen-3ya.example:8443"),
            ("http://127.0.0.1:3000", "http://127.0.0.1:3000"),
            ("http://[::1]:80", "http://[::1]"),
            ("https://[2001:DB8:0:0::1]:8443", "https://[2001:db8::1]:8443"),
            ("https://my_host", "https://my_host"),
        ] {
            assert_eq!(Instance::parse(text).unwrap().as_str(), form);
            assert_eq!(Instance::parse(form).unwrap().as_str(), form);
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for bad in [
            "",
            "recourse.example",
            "HTTPS://recourse.example",
            "ftp://recourse.example",
            "https://",
            "https://recourse.example/",
            "https://recourse.example.",
            "https://.recourse.example",
            "https://recourse..example",
            "https://user@recourse.example",
            "https://user:1@recourse.example",
            "https://münchen.example",
            "https://recourse.example\u{3002}com",
            "https://recourse.example?x",
            "https://recourse.example#x",
            "https://recourse%2eexample",
            "https://recourse.example:",
            "https://recourse.example:0",
            "https://recourse.example:0443",
            "https://recourse.example:+443",
            "https://recourse.example:65536",
            "https://recourse.example:443:443",
            "https://recourse .example",
            "https://recourse.example\\@evil.example",
            "https://-a.example",
            "https://0177.0.0.1",
            "https://127.1",
            "https://2130706433",
            "https://0x7f.0x1",
            "https://1.2.3.4.5",
            "https://[::1",
            "https://[::1]x",
            "https://[::1%25lo]",
            "https://[127.0.0.1]",
        ] {
            assert!(Instance::parse(bad).is_err(), "{bad}");
        }
        assert!(Instance::parse(&format!("https://{}", "a.".repeat(126) + "a")).is_ok());
        assert!(Instance::parse(&format!("https://{}", "a.".repeat(127) + "a")).is_err());
        assert!(Instance::parse(&format!("https://{}", "a".repeat(64))).is_err());
    }
}
