//! Which host a URL leads to, read twice: as browsers do (WHATWG) and strictly by RFC 3986.
//!
//! Where the two readings differ, programs differ, and an attacker picks the one that suits: such a URL is ambiguous and is
//! refused wherever domains are ruled. Page: `spec/policy.md`.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::facts::Host;

/// Longest URL that is read.
const MAX_LEN: usize = 8192;

/// Schemes whose host is read as browsers do; for the others only where it stands is known.
const WEB: [&str; 6] = ["http", "https", "ws", "wss", "ftp", "ftps"];

/// Schemes by which another protocol is spoken to whatever listens, and those of a browser's own pages.
const REFUSED: [&str; 6] = ["gopher", "dict", "chrome", "about", "jar", "blob"];

/// What a URL is to a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A host, or one that cannot be told.
    Host(Host),
    /// `file://`: a path.
    File(String),
}

/// Reads a URL. Text without a scheme is taken for `https`, as fetching programs take it.
pub fn read(text: &str) -> Target {
    host(text).unwrap_or(Target::Host(Host::Ambiguous))
}

/// The spellings of an address that programs take for the same, beside its own: as browsers write it, and with `%xx` read.
pub fn spellings(text: &str) -> Vec<String> {
    let text = text.trim();
    let full = if has_scheme(text) { text.to_owned() } else { format!("https://{}", text.trim_start_matches('/')) };
    let read = url::Url::parse(&full).ok().filter(|_| text.len() <= MAX_LEN).map(String::from);
    let decoded = read.as_deref().and_then(percent_decoded);
    read.into_iter().chain(decoded).collect()
}

/// A web address whose two slashes are missing, single or backslashes, as browsers take it: `https:host`, `https:/host`, `https:\\host`.
pub fn as_browsers_read(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once(':')?;
    let web = ["http", "https", "ws", "wss"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
    let bare = rest.trim_start_matches(['/', '\\']);
    let host = bare.split(['/', '\\', ':', '?', '#']).next().unwrap_or_default();
    let odd =
        !rest.starts_with("//") && !text.contains(char::is_whitespace) && (host.contains('.') || host == "localhost");
    (web && odd).then(|| format!("{scheme}://{}", bare.replace('\\', "/")))
}

fn host(text: &str) -> Option<Target> {
    let odd = |c: char| c.is_control() || c.is_whitespace() || c == '\\';
    if text.len() > MAX_LEN || text.is_empty() || text.contains(odd) {
        return None;
    }
    let full = match text.strip_prefix("//") {
        Some(rest) => format!("https://{rest}"),
        None if has_scheme(text) => text.to_owned(),
        None => format!("https://{text}"),
    };
    let (scheme, rest) = full.split_once(':')?;
    let scheme = scheme.to_ascii_lowercase();
    if scheme == "file" {
        let path = url::Url::parse(&full).ok()?;
        return path.host_str().is_none_or(str::is_empty).then(|| percent_decoded(path.path()).map(Target::File))?;
    }
    let rest = rest.strip_prefix("//")?;
    if matches!(scheme.as_str(), "unix" | "sqlite" | "sqlite3") && rest.starts_with('/') {
        return percent_decoded(rest).map(Target::File);
    }
    if REFUSED.contains(&scheme.as_str()) {
        return None;
    }
    // A database's URL may name another host in its query.
    let query = rest.split_once('?').map_or("", |(_, query)| query);
    let elsewhere = |pair: &str| pair.to_ascii_lowercase().starts_with("host");
    if !WEB.contains(&scheme.as_str()) && query.split(['&', ';']).any(elsewhere) {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    if authority.matches('@').count() > 1 {
        return None;
    }
    let strict = authority.rsplit('@').next()?;
    let strict =
        if strict.starts_with('[') { strict.split_inclusive(']').next()? } else { strict.split(':').next()? };
    if strict.is_empty() || strict.contains(['%', ',']) {
        return None;
    }
    // The parser treats only the web's own schemes as having a host in the strict sense; the host's rules are the same.
    let web = url::Url::parse(&format!("https:{}", full.split_once(':')?.1)).ok()?;
    let (browser, own) = (web.host()?.to_owned(), url::Host::parse(strict).ok()?);
    let host = normal(&own.to_string())?;
    (browser == own).then_some(Target::Host(Host::Name(host)))
}

/// A path with its `%xx` read; `None` where that gives no text a path could be.
pub fn percent_decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
    }
    String::from_utf8(bytes).ok().filter(|path| !path.contains('\0'))
}

/// A path with its `%xx` read where they give letters, each written by `write`; what gives none stays as it is.
pub fn decoded(path: &str, write: impl Fn(char, &mut String)) -> String {
    let (mut out, mut rest) = (String::with_capacity(path.len()), path);
    while let Some(at) = rest.find('%') {
        let (plain, tail) = rest.split_at(at);
        out.push_str(plain);
        let bytes: Vec<u8> = tail.as_bytes().chunks(3).map_while(hex_byte).collect();
        if bytes.is_empty() {
            out.push('%');
        }
        for chunk in bytes.utf8_chunks() {
            for letter in chunk.valid().chars() {
                if letter == '\0' { out.push_str("%00") } else { write(letter, &mut out) }
            }
            chunk.invalid().iter().for_each(|byte| out.push_str(&format!("%{byte:02X}")));
        }
        rest = tail.get((bytes.len() * 3).max(1)..).unwrap_or_default();
    }
    out + rest
}

/// `%xx`
fn hex_byte(text: &[u8]) -> Option<u8> {
    let [b'%', high, low] = text else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(high)? << 4 | digit(low)?)
}

/// A bare host name or address, as `ssh` or `ping` takes it.
pub fn read_host(text: &str) -> Host {
    let odd = |c: char| c.is_control() || c.is_whitespace() || matches!(c, '\\' | '/' | '@' | '%' | '?' | '#');
    if text.is_empty() || text.len() > 255 || text.contains(odd) {
        return Host::Ambiguous;
    }
    let bracketed = if text.contains(':') && !text.starts_with('[') { format!("[{text}]") } else { text.to_owned() };
    name(&bracketed).map_or(Host::Ambiguous, Host::Name)
}

/// A host name as URLs have it: lower case, Punycode, one spelling of an address, no final dot.
pub fn name(text: &str) -> Option<String> {
    normal(&url::Host::parse(text).ok()?.to_string())
}

/// The IPv4 address that an IPv6 address stands for: mapped, compatible, NAT64 and 6to4.
pub fn inner_v4(name: &str) -> Option<String> {
    let address: Ipv6Addr = name.strip_prefix('[')?.strip_suffix(']')?.parse().ok()?;
    let [a, b, c, d, e, f, high, low] = address.segments();
    let (high, low) = match [a, b, c, d, e, f] {
        [0, 0, 0, 0, 0, 0 | 0xffff] | [0, 0, 0, 0, 0xffff, 0] | [0x64, 0xff9b, ..] if (high, low) > (0, 1) => {
            (high, low)
        }
        [0x2002, high, low, ..] => (high, low),
        _ => return None,
    };
    Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)).to_string())
}

/// Without the final dot; no name when a label is empty.
fn normal(host: &str) -> Option<String> {
    let name = host.strip_suffix('.').unwrap_or(host).to_lowercase();
    let whole = name.starts_with('[') || name.split('.').all(|label| !label.is_empty());
    whole.then_some(name)
}

/// `scheme://`, or a scheme that is never a host name (`mailto:x`, `https:x`): then the text is no bare host and port.
fn has_scheme(text: &str) -> bool {
    let Some((head, tail)) = text.split_once(':') else { return false };
    let named = head.starts_with(|c: char| c.is_ascii_alphabetic())
        && head.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    let port = tail
        .split(['/', '?', '#'])
        .next()
        .is_some_and(|port| !port.is_empty() && port.chars().all(|c| c.is_ascii_digit()));
    named && (tail.starts_with("//") || !port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Option<String> {
        match read(text) {
            Target::Host(Host::Name(name)) => Some(name),
            Target::Host(_) | Target::File(_) => None,
        }
    }

    #[test]
    fn addresses_as_browsers_read_them() {
        for (text, expected) in [
            ("https:evil.example", Some("https://evil.example")),
            ("HTTPS:/evil.example/x", Some("HTTPS://evil.example/x")),
            ("https:\\\\evil.example\\x", Some("https://evil.example/x")),
            ("http:///localhost:80", None),
            ("https://x.example", None),
            ("http:8080", None),
            ("https: see x.example", None),
            ("mailto:a@x.example", None),
        ] {
            assert_eq!(as_browsers_read(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn reads_hosts() {
        for (text, host) in [
            ("https://GitHub.com/a", "github.com"),
            ("https://user:pass@evil.com:8443/p", "evil.com"),
            ("https://evil.com?x=@github.com", "evil.com"),
            ("https://evil.com#@github.com", "evil.com"),
            ("https://github.com@evil.com/", "evil.com"),
            ("https://github.com./a", "github.com"),
            ("http://2130706433/", "127.0.0.1"),
            ("http://0x7f.1/", "127.0.0.1"),
            ("http://[::1]:80/", "[::1]"),
            ("https://аpple.com/", "xn--pple-43d.com"),
            ("github.com/x", "github.com"),
            ("localhost:8080/x", "localhost"),
            ("git+ssh://git@github.com/x", "github.com"),
            ("postgres://u:p@localhost:5432/x", "localhost"),
            ("redis://localhost:6379", "localhost"),
        ] {
            assert_eq!(name(text).as_deref(), Some(host), "{text}");
        }
    }

    #[test]
    fn refuses_what_programs_read_differently() {
        for text in [
            "",
            "https://",
            "https:evil.com",
            "https:/evil.com",
            "https://evil.com\\@github.com",
            "https://github.com\t.evil.com",
            "https://github.com@x@evil.com",
            "https://%67ithub.com",
            "javascript:alert(1)",
            "data:text/html,x",
            "https://a b/",
            "gopher://x/",
            "postgres://localhost/x?host=evil.com",
            "mongodb://a,b/x",
            "file://host/etc/passwd",
            "file:///etc/%00passwd",
            "https://..example.com/",
            "/api",
        ] {
            assert_eq!(read(text), Target::Host(Host::Ambiguous), "{text}");
        }
        for text in ["file:///etc/%70asswd", "file:/etc/passwd", "FILE://localhost/etc/passwd"] {
            assert_eq!(read(text), Target::File("/etc/passwd".to_owned()), "{text}");
        }
    }

    #[test]
    fn addresses_inside_addresses() {
        for text in ["::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "::a9fe:a9fe", "2002:a9fe:a9fe::1"] {
            let name = super::name(&format!("[{text}]")).unwrap();
            assert_eq!(inner_v4(&name).as_deref(), Some("169.254.169.254"), "{name}");
        }
        assert!(inner_v4("[::1]").is_none() && inner_v4("[2001:db8::1]").is_none() && inner_v4("x.com").is_none());
    }

    #[test]
    fn bare_hosts() {
        assert_eq!(read_host("Example.COM."), Host::Name("example.com".to_owned()));
        assert_eq!(read_host("::1"), Host::Name("[::1]".to_owned()));
        for bad in ["", "a b", "x/y", "u@h", "a%41"] {
            assert_eq!(read_host(bad), Host::Ambiguous);
        }
    }
}
