//! `grants.secrets`: what a command uses without having it (R66).
//!
//! Owns their names, sources and hosts, never a value. Refuses a secret that could go nowhere, or anywhere: its hosts are those that
//! `domains` allows. `allow` and `deny` of the specification are about sources, and so decide over what is bound.

use std::fmt;

use writ_core::json::Value;

use super::{hosts, items};
use crate::domains::Domains;
use crate::error::Found;
use crate::glob::Glob;
use crate::host_rule::HostRule;

/// Most secrets.
const MOST: usize = 64;
/// Longest name.
const LONGEST: usize = 128;

/// What a policy says of secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets {
    /// Those that are bound.
    pub bind: Vec<Secret>,
    allow: Option<Vec<Pattern>>,
    deny: Vec<Pattern>,
}

/// A pattern over sources: `env:GITHUB_*`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    pointer: String,
    glob: Glob,
}

/// A secret that is bound to hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// JSON pointer of the entry.
    pub pointer: String,
    /// The variable that holds its placeholder inside, and what records call it.
    pub name: String,
    /// Where its value comes from.
    pub source: Source,
    /// Hosts that may receive it.
    pub hosts: Vec<HostRule>,
    /// Where it is put in.
    pub inject: Inject,
    /// Fields beside the usual ones; lower case.
    pub headers: Vec<String>,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A variable of the client's.
    Variable(String),
    /// A file: absolute, below the home (`~/`), or below the policy's folder.
    File(String),
}

/// Where a secret is put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inject {
    /// In fields of the head.
    Header,
    /// In the query, and in fields of the head.
    Query,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{path}"),
        }
    }
}

impl Source {
    fn parse(text: &str) -> Option<Self> {
        let (kind, place) = text.split_once(':')?;
        let plain =
            !place.is_empty() && !place.contains(char::is_control) && !place.split('/').any(|part| part == "..");
        match kind {
            "env" if is_name(place) => Some(Self::Variable(place.to_owned())),
            "file" if plain && !place.ends_with('/') => Some(Self::File(place.to_owned())),
            _ => None,
        }
    }
}

/// Whether a text can be a variable's name.
fn is_name(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= LONGEST && text.bytes().all(letter) && text.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}

impl Secrets {
    pub(super) fn read(document: &Value, domains: &Domains, found: &mut Vec<Found>) -> Self {
        let member = document.get("grants").and_then(|grants| grants.get("secrets"));
        let list = |name: &str| member.and_then(|member| member.get(name));
        // What is no pattern is said by `semantics`.
        let patterns = |name: &str| -> Vec<Pattern> {
            let read =
                |(pointer, item): (String, &Value)| Some(Pattern { pointer, glob: Glob::parse(item.as_str()?).ok()? });
            items(list(name), &format!("/grants/secrets/{name}")).into_iter().filter_map(read).collect()
        };
        let allow = list("allow").map(|_| patterns("allow"));
        let mut secrets = Self { bind: Vec::new(), allow, deny: patterns("deny") };
        let bound = items(list("bind"), "/grants/secrets/bind");
        if bound.len() > MOST {
            let message = format!("more than {MOST} secrets");
            found.push(Found::value("/grants/secrets/bind", message, "bind fewer").rule("bad-secret"));
        }
        for (place, item) in bound {
            let Some(secret) = secret(item, &place, found) else { continue };
            if secrets.bind.iter().any(|other| other.name == secret.name) {
                let message = format!("the name `{}` is there twice", secret.name);
                let pointer = format!("{place}/name");
                found.push(Found::value(&pointer, message, "a name of its own").rule("duplicate-name"));
            }
            if let Some(rule) = secrets.refusal(&secret.source) {
                let message = format!("`{}` is refused by `{rule}`", secret.source);
                let help = "bind another source, or let `grants.secrets` allow it";
                found.push(Found::value(&format!("{place}/from"), message, help).rule("bad-secret"));
            }
            reachable(&secret, domains, &place, found);
            secrets.bind.push(secret);
        }
        secrets
    }

    /// The files that values come from, as they are written, with the pointers of their entries.
    pub(crate) fn files(&self) -> impl Iterator<Item = (String, &str)> {
        self.bind.iter().filter_map(|secret| match &secret.source {
            Source::File(file) => Some((format!("{}/from", secret.pointer), file.as_str())),
            Source::Variable(_) => None,
        })
    }

    /// The pointer of what refuses a source.
    pub fn refusal(&self, source: &Source) -> Option<&str> {
        let text = source.to_string();
        let denied = self.deny.iter().find(|pattern| pattern.glob.matches(&text));
        let named = |allow: &[Pattern]| allow.iter().any(|pattern| pattern.glob.matches(&text));
        let absent = self.allow.as_deref().is_some_and(|allow| !named(allow)).then_some("/grants/secrets/allow");
        denied.map(|pattern| pattern.pointer.as_str()).or(absent)
    }
}

fn secret(item: &Value, place: &str, found: &mut Vec<Found>) -> Option<Secret> {
    let text = |name: &str| item.get(name).and_then(Value::as_str);
    let (name, from) = (text("name")?, text("from")?);
    let mut bad = |member: &str, message: String, help: &str| {
        found.push(Found::value(&format!("{place}/{member}"), message, help).rule("bad-secret"));
    };
    if !is_name(name) {
        let help = "letters, digits and `_`, no digit first: programs find its placeholder in a variable of this name";
        bad("name", format!("`{name}` is no variable's name"), help);
    }
    let source = Source::parse(from);
    if source.is_none() {
        bad("from", format!("`{from}` is no source"), "`env:NAME`, or `file:PATH` without `..`");
    }
    let headers = items(item.get("headers"), &format!("{place}/headers"));
    let headers = headers.into_iter().filter_map(|(_, header)| Some(header.as_str()?.to_ascii_lowercase())).collect();
    let inject = if text("inject") == Some("query") { Inject::Query } else { Inject::Header };
    let hosts = hosts(item, place, found);
    Some(Secret { pointer: place.to_owned(), name: name.to_owned(), source: source?, hosts, inject, headers })
}

/// A secret's hosts have to be such that `domains` allows: no others are reached.
fn reachable(secret: &Secret, domains: &Domains, place: &str, found: &mut Vec<Found>) {
    if !domains.any() {
        let message = "without `domains` the network is open, and no secret can be kept from anybody";
        let help = "name its hosts in `domains.allow`";
        found.push(Found::value(place, message, help).rule("bad-secret"));
        return;
    }
    for rule in &secret.hosts {
        let mut bad = |message: String, help: &str| {
            found.push(Found::value(&rule.pointer, message, help).rule("bad-secret"));
        };
        if rule.is_everything() {
            bad("a secret for every host is no secret".to_owned(), "name its hosts");
        } else if !domains.covers(rule) {
            bad(format!("`domains` does not allow `{}`", rule.pattern), "add it to `domains.allow`");
        }
    }
}
