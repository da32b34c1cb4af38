//! Where a sandbox shows the authority that vouches for hosts whose TLS ends at the proxy.
//!
//! Owns the places, which are part of the plan, and what each shows in one run, which is not: the authority is made when the run
//! begins, and its key never leaves memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use writ_egress::{Authority, AuthorityError, BUNDLES, Certificate, JAVA_STORES, Trust};
use writ_sandbox::{HostPath, HostPathError, Shown};

/// The authority's certificate, where programs are told to look.
pub const AUTHORITY: &str = "/dev/trust/authority.pem";
/// The same with the machine's own authorities.
pub const BUNDLE: &str = "/dev/trust/bundle.pem";

/// A place where the authority is shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustPlace {
    /// Where.
    pub place: HostPath,
    /// In which form.
    pub form: Form,
}

/// How it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Form {
    /// Its certificate alone, PEM.
    Authority,
    /// The machine's authorities and this one, PEM.
    Bundle,
    /// The same as a Java key store.
    Java,
}

/// The places on this machine: its bundles, its Java stores, and two of the sandbox's own.
pub fn places(home: Option<&str>) -> Result<Vec<TrustPlace>, HostPathError> {
    let there = |path: &PathBuf| path.is_file();
    let bundles = BUNDLES.iter().map(PathBuf::from).filter(there).map(|path| (path, Form::Bundle));
    let stores = JAVA_STORES.iter().map(PathBuf::from).chain(javas(home)).filter(there).map(|path| (path, Form::Java));
    let own = [(AUTHORITY.into(), Form::Authority), (BUNDLE.into(), Form::Bundle)];
    // Distributions link one to the other.
    let real = |(path, form): (PathBuf, Form)| (fs::canonicalize(&path).unwrap_or(path), form);
    let place = |(path, form): (PathBuf, Form)| Ok(TrustPlace { place: HostPath::new(path)?, form });
    let mut all = own.into_iter().chain(bundles.chain(stores).map(real)).map(place).collect::<Result<Vec<_>, _>>()?;
    all.sort();
    all.dedup();
    Ok(all)
}

/// The store of each Java.
fn javas(home: Option<&str>) -> Vec<PathBuf> {
    let sdk = home.map(|home| Path::new(home).join(".sdkman/candidates/java"));
    let folders = [Path::new("/usr/lib/jvm"), Path::new("/opt/java")].into_iter().map(Path::to_owned).chain(sdk);
    let javas = folders.filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    javas
        .flat_map(|java| ["lib/security/cacerts", "jre/lib/security/cacerts"].map(|store| java.path().join(store)))
        .collect()
}

/// The authority of one run, where one is needed.
pub fn begin(places: &[TrustPlace]) -> Result<Option<Arc<Authority>>, AuthorityError> {
    if places.is_empty() { Ok(None) } else { Authority::new().map(Arc::new).map(Some) }
}

/// What the sandbox shows of it.
pub fn shown(places: &[TrustPlace], certificate: Option<&Certificate>) -> Vec<Shown> {
    let Some(trust) = certificate.map(Trust::new) else { return Vec::new() };
    let text = |form| match form {
        Form::Authority => trust.authority.clone().into_bytes(),
        Form::Bundle => trust.bundle.clone(),
        Form::Java => trust.java.clone(),
    };
    places.iter().map(|TrustPlace { place, form }| Shown { place: place.clone(), text: text(*form) }).collect()
}
