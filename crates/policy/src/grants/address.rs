//! An entry of `grants` in the form in which what calls use is compared.
//!
//! Owns the one spelling of a host, a path and an address of a store in a pattern. Refuses to guess: where nothing that a call uses
//! can look like the entry there is no pattern. Invariant: what an entry is read as matches what [`crate::web`] makes of the same
//! address. Page: `spec/grants.md`.

use std::net::Ipv6Addr;

use super::Kind;
use crate::glob::Glob;
use crate::rules::Reading;
use crate::url;
use crate::web;

/// Schemes of addresses that are no store's.
const NO_STORES: [&str; 3] = ["file", "ssh", "git"];
/// Schemes of stores in whose addresses a bucket's name stands, and neither a user nor a port.
const BUCKETS: [&str; 8] = ["s3", "s3a", "s3n", "gs", "gcs", "r2", "b2", "oss"];

/// The patterns that an entry without braces stands for; none where it can match nothing.
pub(super) fn patterns(kind: Kind, text: &str, reading: Reading) -> Vec<String> {
    match kind {
        Kind::Secrets => secret(text, reading),
        Kind::Apis if !text.contains("://") => web(&format!("https://{text}"), reading),
        Kind::Apis => web(text, reading),
        Kind::Storage => storage(text, reading),
    }
}

fn secret(text: &str, reading: Reading) -> Vec<String> {
    match text.split_once(':') {
        Some(("env", name)) => variable(name.trim_start_matches('/')).into_iter().collect(),
        Some(("vault", path)) => vault(path, reading),
        _ => Vec::new(),
    }
}

/// A variable's name has none of these.
fn variable(name: &str) -> Option<String> {
    let odd = |c: char| c.is_whitespace() || matches!(c, '$' | '=' | '/');
    (!name.is_empty() && !name.contains(odd)).then(|| format!("env:{name}"))
}

/// A path of Vault, without the `/v1/` in front of it that its web addresses have.
fn vault(path: &str, reading: Reading) -> Vec<String> {
    if path.contains("://") || path.contains('#') || has_query(path) {
        return Vec::new();
    }
    let plain = path.trim_start_matches('/');
    let bare = plain.strip_prefix("v1/").filter(|_| reading == Reading::Wide);
    let each = [Some(plain), bare].into_iter().flatten();
    let each = each.flat_map(|path| both(path, reading)).filter_map(|path| folded(&path));
    each.filter(|path| !path.is_empty()).map(|path| format!("vault:{path}")).collect()
}

fn storage(text: &str, reading: Reading) -> Vec<String> {
    let Some((scheme, rest)) = text.split_once("://") else { return Vec::new() };
    let scheme = scheme.to_ascii_lowercase();
    if matches!(scheme.as_str(), "http" | "https" | "ws" | "wss") {
        // Other hosts are no stores, so that nothing is held against the entry.
        let host = rest.split(['/', ':']).next().unwrap_or_default();
        let name = url::name(host).filter(|_| !is_wild(host));
        let known = is_wild(host) || name.as_deref().is_some_and(web::is_store);
        let over_the_web = if known { web(text, reading) } else { Vec::new() };
        // A store has more than one host, and an address of its own.
        let path = rest.split_once('/').map_or("", |(_, path)| path);
        let own = name.filter(|_| reading == Reading::Wide && !over_the_web.is_empty());
        let own = own.and_then(|host| web::address(&host, &decoded(path)));
        return over_the_web.into_iter().chain(own).collect();
    }
    if NO_STORES.contains(&scheme.as_str()) {
        return Vec::new();
    }
    let (bucket, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    if BUCKETS.contains(&scheme.as_str()) && bucket.contains(['@', ':']) {
        return Vec::new();
    }
    let store = format!("{scheme}://{}{path}", bucket.to_ascii_lowercase());
    let over_the_web = if is_wild(&scheme) { web(text, reading) } else { Vec::new() };
    both(&store, reading).into_iter().chain(over_the_web).collect()
}

/// A web address: the host as its name is compared, the path folded and with `%xx` read.
fn web(text: &str, reading: Reading) -> Vec<String> {
    let Some((scheme, rest)) = text.split_once("://") else { return Vec::new() };
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let scheme = web_scheme(scheme).filter(|_| !rest.contains('#') && !has_query(rest));
    let (Some(scheme), Some(path)) = (scheme, web_path(path, reading)) else { return Vec::new() };
    let usual = if scheme == "http" { "80" } else { "443" };
    hosts(authority, usual, reading).into_iter().map(|host| format!("{scheme}://{host}{path}")).collect()
}

fn web_scheme(scheme: &str) -> Option<String> {
    let scheme = scheme.to_ascii_lowercase();
    match scheme.as_str() {
        "http" | "ws" => Some("http".to_owned()),
        "https" | "wss" => Some("https".to_owned()),
        _ => {
            let glob = Glob::parse(&scheme).ok().filter(|_| is_wild(&scheme))?;
            (glob.matches("http") || glob.matches("https")).then_some(scheme)
        }
    }
}

/// `?name=`: queries are not compared. Any other `?` is one letter.
fn has_query(rest: &str) -> bool {
    let name = |c: char| c.is_ascii_alphanumeric() || "_.-~%".contains(c);
    rest.split('?').skip(1).any(|query| query.starts_with(name) && query.trim_start_matches(name).starts_with('='))
}

fn web_path(path: &str, reading: Reading) -> Option<String> {
    let lower = path.to_ascii_lowercase();
    let odd = ["%2f", "%5c", "%2e", "//"].iter().any(|sign| lower.contains(sign));
    // Servers read these in different ways: a call with one of them is on no list of what is allowed.
    (reading == Reading::Wide || !odd).then(|| folded(&decoded(path)))?
}

/// The spellings of a host with its port. What stands for an address in another form forbids that too.
fn hosts(authority: &str, usual: &str, reading: Reading) -> Vec<String> {
    let bare = authority.parse::<Ipv6Addr>().is_ok();
    let (name, port) = match authority.rsplit_once(':') {
        // `https:/x` has no host.
        Some((_, "")) if !bare => return Vec::new(),
        Some((name, port)) if !bare && !port.ends_with(']') => (name, port),
        _ => (authority, ""),
    };
    let port = match port.parse::<u16>() {
        _ if port.is_empty() || port == usual => String::new(),
        Ok(port) => format!(":{port}"),
        Err(_) if is_wild(port) => format!(":{port}"),
        Err(_) => return Vec::new(),
    };
    let inner = named(name, bare).filter(|_| reading == Reading::Wide).and_then(|name| url::inner_v4(&name));
    let own = match named(name, bare) {
        Some(name) => Some(name.replace('[', "\\[").replace(']', "\\]")),
        None => wild_host(name),
    };
    [own, inner].into_iter().flatten().map(|host| format!("{host}{port}")).collect()
}

/// A host without wildcards, as addresses of calls have it.
fn named(name: &str, bare: bool) -> Option<String> {
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    match address.filter(|address| address.parse::<Ipv6Addr>().is_ok()) {
        Some(_) => url::name(name),
        None if bare => url::name(&format!("[{name}]")),
        None if is_wild(name) || name.contains(['@', '%', '\\']) => None,
        None => url::name(name),
    }
}

/// A host with wildcards: each label as it is compared. One that has letters of other alphabets beside a wildcard is never seen so.
fn wild_host(name: &str) -> Option<String> {
    let label = |label: &str| match label.is_ascii() {
        true => Some(label.to_ascii_lowercase()),
        false => url::name(label).filter(|_| !is_wild(label)),
    };
    let plain = is_wild(name) && !name.contains(['@', '%', ' ']);
    let labels: Option<Vec<String>> = name.trim_end_matches('.').split('.').map(label).collect();
    labels.filter(|_| plain).map(|labels| labels.join("."))
}

fn is_wild(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// A text, and in what forbids also with its `%xx` read.
fn both(text: &str, reading: Reading) -> Vec<String> {
    let read = Some(decoded(text)).filter(|read| reading == Reading::Wide && read != text);
    std::iter::once(text.to_owned()).chain(read).collect()
}

/// A pattern with its `%xx` read; what stood so is no wildcard.
fn decoded(text: &str) -> String {
    url::decoded(text, |c, out| match c {
        '\\' => out.push('/'),
        '*' | '?' | '[' | ']' | '{' | '}' => out.extend(['\\', c]),
        other => out.push(other),
    })
}

/// With `.` and `..` folded; `None` where a `..` stands behind any number of folders.
fn folded(path: &str) -> Option<String> {
    let root = if path.starts_with('/') { "/" } else { "" };
    let mut out: Vec<&str> = Vec::new();
    for part in path.trim_start_matches('/').split('/') {
        match part {
            "." => {}
            ".." if out.last() == Some(&"**") => return None,
            ".." => drop(out.pop()),
            other => out.push(other),
        }
    }
    Some(format!("{root}{}", out.join("/")))
}
