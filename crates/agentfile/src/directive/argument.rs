//! Single arguments of directives: rates, addresses, secrets' sources, bundles.
//!
//! Owns how each kind of word is read. Refuses what it does not know whole. Invariant: an error says what to write instead.

use url::Url;

use super::{Address, Bundle, Rate, Source, Unit};
use crate::reference::{OciRef, inner_path, is_host, is_name, is_registry};

/// What is wrong with a word: the finding's code, what is wrong, what to write.
pub(super) struct Bad(pub &'static str, pub String, pub String);

impl Bad {
    pub fn new(code: &'static str, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self(code, message.into(), help.into())
    }
}

pub(super) fn count(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // 2^53 is the greatest whole number that JSON holds everywhere.
    text.parse().ok().filter(|count| plain && *count <= 1 << 53)
}

pub(super) fn unit(text: &str) -> Option<Unit> {
    [Unit::Sec, Unit::Min, Unit::Hour, Unit::Day].into_iter().find(|unit| unit.as_str() == text)
}

pub(super) fn rate(text: &str) -> Result<Rate, Bad> {
    let help = "a whole number and a time: `20/hour` (sec, min, hour, day)";
    let bad = || Bad::new("bad-rate", format!("`{text}` is no rate"), help);
    let (number, time) = text.split_once('/').ok_or_else(bad)?;
    let (count, unit) = (count(number).ok_or_else(bad)?, unit(time).ok_or_else(bad)?);
    if count == 0 {
        return Err(Bad::new("bad-rate", "a rate of 0 allows nothing", "`DENY invoke <tool>`"));
    }
    Ok(Rate { count, unit })
}

/// `30s`, `5m`, `500ms`, `1h`, in milliseconds.
pub(super) fn duration(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(end)?;
    let factor = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    count(number)?.checked_mul(factor).filter(|time| *time > 0)
}

/// Names of parts of a query that hold secrets.
fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace(['-', '_'], "");
    ["token", "secret", "password", "passwd", "apikey", "accesskey", "authorization", "signature", "credential"]
        .iter()
        .any(|word| name.contains(word))
        || ["key", "auth", "sig", "pwd", "pass"].contains(&name.as_str())
}

/// Whether an address holds a secret: userinfo, or a part of its query that is called one. Says where.
pub(super) fn secret_in(url: &Url, user_is_one: bool) -> Option<&'static str> {
    if url.password().is_some() || (user_is_one && !url.username().is_empty()) {
        return Some("before its host");
    }
    let named = url.query_pairs().any(|(name, value)| !value.is_empty() && is_secret_name(&name));
    named.then_some("in its query")
}

pub(super) const SECRET_HELP: &str =
    "declare it: `CRED <name> env:<VAR> host:<host>`, and write the address without it";

pub(super) fn address(text: &str) -> Result<Address, Bad> {
    let help = "an address that begins with `https://` or `http://`";
    let bad = |why: String| Bad::new("bad-url", why, help);
    let lower = text.to_ascii_lowercase();
    if !lower.starts_with("https://") && !lower.starts_with("http://") {
        return Err(bad(format!("`{}` is no HTTP or HTTPS address", shown(text))));
    }
    let url = Url::parse(text).map_err(|error| bad(format!("`{}` is no address: {error}", shown(text))))?;
    if let Some(place) = secret_in(&url, true) {
        return Err(Bad::new("plaintext-secret", format!("the address holds a secret {place}"), SECRET_HELP));
    }
    // A second sign of userinfo, or a backslash, is read differently by others.
    let host = url.host_str().unwrap_or_default().to_owned();
    if text.contains('\\') || text.contains('@') || host.contains('*') || !is_host(&host) {
        let why = format!("`{}` does not name one host", shown(text));
        return Err(Bad::new("bad-url", why, "one address for each host: `URL https://api.example.com`"));
    }
    let Some(port) = url.port_or_known_default() else { return Err(bad(format!("`{}` has no port", shown(text)))) };
    Ok(Address { text: text.to_owned(), scheme: url.scheme().to_owned(), host, port })
}

/// A word as it may stand in a message.
pub(super) fn shown(text: &str) -> String {
    let hidden = writ_core::secret::hide(text);
    if hidden.chars().count() <= 80 { hidden } else { format!("{}…", hidden.chars().take(80).collect::<String>()) }
}

pub(super) fn source(text: &str) -> Result<Source, Bad> {
    let bad = |why: &str| {
        let help = "`env:<VAR>`, `vault://<path>#<key>` or `keyring:<key>`";
        Bad::new("bad-source", format!("the secret's source {why}"), help)
    };
    let word = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    if let Some(variable) = text.strip_prefix("env:") {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let named = variable.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && variable.chars().all(plain);
        return if named { Ok(Source::Env { variable: variable.to_owned() }) } else { Err(bad("names no variable")) };
    }
    if let Some(rest) = text.strip_prefix("vault://") {
        let (path, key) = rest.split_once('#').ok_or_else(|| bad("has no `#<key>`"))?;
        let whole = word(path) && word(key) && !key.contains('#') && path.split('/').all(|part| part != "..");
        return if whole && !path.contains('@') {
            Ok(Source::Vault { path: path.to_owned(), key: key.to_owned() })
        } else {
            Err(bad("is no path and key of a vault"))
        };
    }
    if let Some(key) = text.strip_prefix("keyring:") {
        return if word(key) { Ok(Source::Keyring { key: key.to_owned() }) } else { Err(bad("names no entry")) };
    }
    let help = "a file names where the value is, never the value: `env:<VAR>`, `vault://<path>#<key>`, `keyring:<key>`";
    Err(Bad::new("plaintext-secret", "the source is none that is known, and may be the secret itself", help))
}

/// A host that a secret may be sent to.
pub(super) fn cred_host(text: &str) -> Result<String, Bad> {
    let lower = text.to_ascii_lowercase();
    let tail = lower.strip_prefix("*.");
    if lower == "*" || tail.is_some_and(|tail| !tail.contains('.')) {
        let help = "name the hosts: `host:api.example.com`, `host:*.example.com`";
        return Err(Bad::new(
            "host-wildcard",
            format!("`host:{text}` would send the secret to nearly every host"),
            help,
        ));
    }
    if !is_host(tail.unwrap_or(&lower)) {
        let help = "a host's name, or `*.` and a domain, without scheme, port or path";
        return Err(Bad::new("bad-host", format!("`{}` is no host", shown(text)), help));
    }
    Ok(lower)
}

/// Whether a word is a reference: it has a slash or a file's extension.
pub(super) fn is_reference(text: &str) -> bool {
    let extension = text.rsplit_once('.').is_some_and(|(before, ending)| {
        !before.is_empty() && (1..=8).contains(&ending.len()) && ending.chars().all(|c| c.is_ascii_alphanumeric())
    });
    text.contains('/') || extension
}

/// A skill or procedure, by name, path or registry reference.
pub(super) fn bundle(text: &str) -> Result<Bundle, Bad> {
    if text.contains("://") {
        let help = "a registry's reference has no scheme: `ghcr.io/org/skills/name:1.2`";
        return Err(Bad::new("bad-reference", format!("`{}` is no reference", shown(text)), help));
    }
    if text.split_once('/').is_some_and(|(host, _)| host != "." && host != ".." && is_registry(host)) {
        let reference = OciRef::parse(text);
        return reference.map(Bundle::Registry).map_err(|why| {
            Bad::new(
                "bad-reference",
                format!("`{}` is no reference: {why}", shown(text)),
                "`ghcr.io/org/skills/name:1.2`",
            )
        });
    }
    if is_reference(text) {
        return path(text).map(|path| Bundle::Local { path });
    }
    if !is_name(text) {
        return Err(Bad::new("bad-name", format!("`{}` is no name", shown(text)), "letters, digits, `_`, `.`, `-`"));
    }
    Ok(Bundle::Named { name: text.to_owned() })
}

pub(super) fn path(text: &str) -> Result<String, Bad> {
    inner_path(text).map_err(|why| {
        Bad::new(
            "bad-path",
            format!("`{}`: {why}", shown(text)),
            "a path inside the Agentfile's folder: `./skills/name`",
        )
    })
}
