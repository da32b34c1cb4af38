//! The address of a request: which part of it arguments may be.
//!
//! Owns the places in a URL, and which addresses a request may go to. Asks nobody. Invariant: no argument changes scheme, host or the number
//! of a path's parts.

use url::{Host, Url};
use writ_core::json::Value;

use super::plain;

/// The URL with its arguments, each as one part of a path or one value of a query.
pub fn fill<'v>(template: &str, take: &mut dyn FnMut(&str) -> Option<&'v Value>) -> Result<String, String> {
    let (mut out, mut rest) = (String::new(), template);
    while let Some((before, behind)) = rest.split_once('{') {
        let (name, after) = behind.split_once('}').ok_or("`{` without `}`")?;
        out.push_str(before);
        let value =
            take(name).ok_or_else(|| format!("the argument `{name}` is not given, and the address needs it"))?;
        let text = plain(value);
        if matches!(text.as_str(), "" | "." | "..") && !out.contains('?') {
            return Err(format!("the argument `{name}` is empty, `.` or `..`: it would be no part of the path"));
        }
        for byte in text.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => out.push(char::from(byte)),
                // Two of them, or one alone, could be a step up however they are written.
                b'.' if text != "." && text != ".." => out.push('.'),
                other => out.push_str(&format!("%{other:02X}")),
            }
        }
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// An address that a request may go to: HTTPS, or this machine.
pub fn parts(text: &str) -> Result<Url, &'static str> {
    let authority = text.split("://").nth(1).map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    if text.contains('$') || authority.is_none_or(|authority| authority.contains(['{', '}', '@', '%', '\\'])) {
        return Err(
            "scheme, host and port stand in the address as they are, without arguments, variables and names of users",
        );
    }
    let url = Url::parse(text).map_err(|_error| "it is no address")?;
    let here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => return Err("it has no host"),
    };
    match url.scheme() {
        "https" => Ok(url),
        "http" if here => Ok(url),
        _ => Err("it has to be https, or http to this machine"),
    }
}
