//! Secrets that a sandbox uses without having them (R66).
//!
//! Owns which secrets every layer binds, the placeholders that stand for them in a session, and their values from the moment a run
//! begins until it ends. Refuses a run whose secret has no value. Invariant: a value is in no plan, no row and no file, and in no
//! variable that the sandbox is given.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use writ_core::json;
use writ_egress::{Inject, SecretError, SecretRule, SecretValue, is_placeholder, placeholder};
use writ_policy::sandbox::{self, Secret, both};
use writ_policy::{GrantRule, Policy};
use writ_store::regular_file;

use crate::Home;
use crate::session::Session;

/// Where a session's placeholders are kept, in its folder.
const KEPT: &str = "sandboxes/placeholders";
/// Largest file of placeholders.
const MAX_KEPT: u64 = 64 << 10;
/// Largest file that holds a value: its longest, and line breaks behind it.
const MAX_FILE: u64 = 16 << 10;

/// Where a value comes from, as a plan says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Source {
    /// A variable of the client's.
    Variable(String),
    /// A file, absolute.
    File(String),
}

/// Why a secret cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// There is no such variable.
    #[error("secret `{name}` has no value: the variable `{variable}` is not set where the client was started")]
    Unset {
        /// The secret.
        name: String,
        /// The variable.
        variable: String,
    },
    /// The file cannot be read.
    #[error("secret `{name}` has no value: `{}`: {error}", path.display())]
    File {
        /// The secret.
        name: String,
        /// The file.
        path: PathBuf,
        /// What the disk said.
        error: io::Error,
    },
    /// It cannot be a secret's.
    #[error(transparent)]
    Value(#[from] SecretError),
    /// The placeholders of the session cannot be read.
    #[error("`{}` holds no placeholders: move it away", .0.display())]
    Placeholders(PathBuf),
    /// They cannot be kept.
    #[error(transparent)]
    Session(#[from] crate::session::SessionError),
}

/// The secrets that every layer binds to the same source, for the hosts and places that every layer names. What one layer binds and
/// another does not is not there.
pub fn bound(layers: &[&Policy]) -> Vec<Secret> {
    let mut all = layers.iter().map(|policy| &policy.sandbox().secrets);
    let Some(first) = all.next() else { return Vec::new() };
    let mut bound = first.bind.clone();
    for other in all {
        bound.retain(|secret| other.refusal(&secret.source).is_none());
        bound = bound.into_iter().filter_map(|secret| narrowed(secret, &other.bind)).collect();
    }
    bound
}

fn narrowed(secret: Secret, others: &[Secret]) -> Option<Secret> {
    let other = others.iter().find(|other| other.name == secret.name && other.source == secret.source)?;
    let hosts = both(&secret.hosts, &other.hosts);
    let inject = if secret.inject == other.inject { secret.inject } else { sandbox::Inject::Header };
    let headers = secret.headers.iter().filter(|header| other.headers.contains(header)).cloned().collect();
    (!hosts.is_empty()).then_some(Secret { hosts, inject, headers, ..secret })
}

/// What the proxy is to know of a secret.
pub fn rule(secret: &Secret, placeholder: String) -> SecretRule {
    let inject = match secret.inject {
        sandbox::Inject::Header => Inject::Header,
        sandbox::Inject::Query => Inject::Query,
    };
    SecretRule {
        name: secret.name.clone(),
        placeholder,
        hosts: secret.hosts.clone(),
        inject,
        headers: secret.headers.clone(),
    }
}

/// Where the value of a secret comes from; relative files hang off the policy's folder.
pub fn source(source: &sandbox::Source, root: &Path, home: Option<&str>) -> Result<Source, String> {
    let file = match source {
        sandbox::Source::Variable(name) => return Ok(Source::Variable(name.clone())),
        sandbox::Source::File(file) => file,
    };
    let path = match (file.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Path::new(home).join(rest),
        (Some(_), None) => return Err(format!("`{file}`: nothing says where the home is")),
        (None, _) => root.join(file),
    };
    path.to_str().map(|path| Source::File(path.to_owned())).ok_or_else(|| format!("`{}` is no text", path.display()))
}

/// The placeholders of these secrets in a session: made once, so that what one call writes down the next can use. They are random,
/// and say nothing of the values. The session is locked, so two calls make no two.
pub fn placeholders(session: &Session<'_>, secrets: &[Secret]) -> Result<BTreeMap<String, String>, SecretsError> {
    let path = session.store.folder(&session.id).join(KEPT);
    let mut kept: BTreeMap<String, String> = match regular_file::read(&path, MAX_KEPT) {
        Ok(bytes) => json::from_slice(&bytes).map_err(|_error| SecretsError::Placeholders(path.clone()))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
        Err(_error) => return Err(SecretsError::Placeholders(path)),
    };
    if !kept.values().all(|text| is_placeholder(text)) {
        return Err(SecretsError::Placeholders(path));
    }
    let before = kept.len();
    for secret in secrets {
        if !kept.contains_key(&secret.name) {
            kept.insert(secret.name.clone(), placeholder()?);
        }
    }
    if kept.len() > before {
        session.keep(KEPT, json::to_canonical(&kept).as_bytes())?;
    }
    Ok(kept)
}

/// The values, as they are now.
pub fn values(sources: &BTreeMap<String, Source>, home: &Home) -> Result<Vec<SecretValue>, SecretsError> {
    sources.iter().map(|(name, source)| value(name, source, home)).collect()
}

fn value(name: &str, source: &Source, home: &Home) -> Result<SecretValue, SecretsError> {
    let bytes = match source {
        Source::Variable(variable) => {
            let unset = || SecretsError::Unset { name: name.to_owned(), variable: variable.clone() };
            home.variable(variable).filter(|value| !value.is_empty()).ok_or_else(unset)?.into_vec()
        }
        Source::File(path) => {
            let failed = |error| SecretsError::File { name: name.to_owned(), path: path.into(), error };
            let mut bytes = regular_file::read(Path::new(path), MAX_FILE).map_err(failed)?;
            while matches!(bytes.last(), Some(b'\n' | b'\r')) {
                bytes.pop();
            }
            bytes
        }
    };
    Ok(SecretValue::new(name.to_owned(), bytes)?)
}

/// Names of the caller's variables that hold one of the values, whatever they are called.
pub fn carriers(values: &[SecretValue], home: &Home) -> Vec<String> {
    let carries = |text: &OsString| values.iter().any(|value| value.stands_in(text.as_bytes()));
    let variables = home.variables().into_iter().filter(|(_, text)| carries(text));
    variables.filter_map(|(name, _)| name.into_string().ok()).collect()
}

/// Names of the caller's variables that one of the rules is about.
pub fn refused(rules: &[GrantRule], home: &Home) -> Vec<String> {
    if rules.is_empty() {
        return Vec::new();
    }
    let names = home.variables().into_iter().filter_map(|(name, _)| name.into_string().ok());
    names.filter(|name| rules.iter().any(|rule| rule.names_variable(name))).collect()
}
