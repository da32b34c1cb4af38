//! Whether a package is what it says, before anything of it is unpacked.
//!
//! Owns the checks that need the package alone: every blob against its digest, Agentfile, lock, policy, config and annotations against
//! each other. Whom to trust and what it is built on, the engine asks. Refuses at the first thing that does not hold. Invariant: a
//! [`Package`] exists only where all of it held. Page: `spec/verify.md`, "Packages".

use std::collections::BTreeMap;

use writ_agentfile::directive::{Directive, Sop};
use writ_agentfile::risk::Tier;
use writ_agentfile::{Agent, Linted, Lock, Options, lint};
use writ_core::{Digest, json};

use crate::build::{
    AGENTFILE, CONFIG, LOCK, PACKAGE, POLICY, RISK_TIER, SKILL_LAYER, SOURCE, SOURCE_LAYER, TITLE, TOOL_LAYER, TOOLS,
    bundle_title, derived,
};
use crate::config::Config;
use crate::content;
use crate::covered::Covered;
use crate::layer::{self, Budget, Entry, LayerError};
use crate::layout::{Layout, LayoutError};
use crate::manifest::{Descriptor, Document, Manifest};
use crate::portable::is_placement;

/// What the names of notes begin with that follow from a package.
const OWN: &str = "io.agentrc.";

/// A package that holds together.
#[derive(Debug)]
pub struct Package {
    /// Its manifest's descriptor.
    pub descriptor: Descriptor,
    /// Its manifest.
    pub manifest: Manifest,
    /// Its Agentfile, linted.
    pub linted: Linted,
    /// Its lock.
    pub lock: Lock,
    /// What it asks for.
    pub config: Config,
    /// Its layers that are archives.
    pub layers: Vec<Descriptor>,
    /// The files in them.
    pub files: BTreeMap<String, Entry>,
}

/// Why something is no package, or not the one it says. Each has a code that never changes its meaning.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// Something else.
    #[error("{digest} is no agent package: {why}")]
    NotOne {
        /// The manifest.
        digest: Digest,
        /// What it is.
        why: String,
    },
    /// A blob that is not what its descriptor says, or not there.
    #[error(transparent)]
    Blob(LayoutError),
    /// An Agentfile with errors.
    #[error("its Agentfile has an error at {line}:{column}: {message}")]
    Agentfile {
        /// The line.
        line: usize,
        /// The column.
        column: usize,
        /// What.
        message: String,
    },
    /// A lock that is no lock, or of something else.
    #[error("its lock {0}")]
    Lock(String),
    /// A policy that is not the Agentfile's.
    #[error("its policy {0}")]
    Policy(String),
    /// A summary that is not the Agentfile's.
    #[error("its config {0}")]
    Config(String),
    /// A note that says something else.
    #[error("its annotation `{name}` is `{found}`, and the package says `{wanted}`")]
    Annotation {
        /// Which.
        name: String,
        /// What it says.
        found: String,
        /// What it should say.
        wanted: String,
    },
    /// A layer that cannot be unpacked.
    #[error(transparent)]
    Layer(LayerError),
    /// A file that is not the locked one.
    #[error("{0}")]
    Content(String),
}

impl CheckError {
    /// Its code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotOne { .. } => "not-a-package",
            Self::Blob(LayoutError::Missing { .. }) => "blob-missing",
            Self::Blob(_) => "blob-tampered",
            Self::Agentfile { .. } => "agentfile-invalid",
            Self::Lock(_) => "lock-mismatch",
            Self::Policy(_) => "policy-mismatch",
            Self::Config(_) => "config-mismatch",
            Self::Annotation { .. } => "annotation-mismatch",
            Self::Layer(_) => "layer-unsafe",
            Self::Content(_) => "content-mismatch",
        }
    }
}

/// The manifest of a package, whose blobs nobody looked at yet.
pub fn manifest(layout: &Layout, descriptor: &Descriptor) -> Result<Manifest, CheckError> {
    let not_one = |why: &str| CheckError::NotOne { digest: descriptor.digest, why: why.to_owned() };
    match layout.document(descriptor).map_err(CheckError::Blob)? {
        Document::Manifest(manifest) if manifest.kind() != PACKAGE => {
            Err(not_one(&format!("it is a `{}`", writ_core::visible::line(manifest.kind()))))
        }
        Document::Manifest(manifest) if manifest.config.media_type != CONFIG => Err(not_one("its config is another's")),
        Document::Manifest(manifest) => Ok(manifest),
        Document::Index(_) => Err(not_one("it is an index of several")),
    }
}

/// Holds a package against itself.
pub fn check(layout: &Layout, descriptor: &Descriptor) -> Result<Package, CheckError> {
    let manifest = manifest(layout, descriptor)?;
    for blob in std::iter::once(&manifest.config).chain(&manifest.layers) {
        layout.check(blob).map_err(CheckError::Blob)?;
    }
    let not_one = |why: &str| CheckError::NotOne { digest: descriptor.digest, why: why.to_owned() };
    if layout.read(descriptor).map_err(CheckError::Blob)? != manifest.to_bytes() {
        return Err(not_one("its manifest is not written as `writ build` writes it"));
    }
    if manifest.subject.is_some() {
        return Err(not_one("it is said of something else"));
    }
    let one = |media_type: &str, title: &str| only(layout, &manifest, descriptor, media_type, title);
    let linted = agentfile(&one(AGENTFILE, "Agentfile")?)?;
    let lock_bytes = one(LOCK, "agentrc.lock")?;
    let lock = Lock::parse(&lock_bytes).map_err(|error| CheckError::Lock(format!("cannot be read: {error}")))?;
    if lock.to_bytes() != lock_bytes {
        return Err(CheckError::Lock("is not written as `writ build` writes it".to_owned()));
    }
    if lock.agentfile_hash != linted.agent.digest() {
        let found = linted.agent.digest();
        return Err(CheckError::Lock(format!("is of the Agentfile {}, and this one is {found}", lock.agentfile_hash)));
    }
    let policy = one(POLICY, "policy.cedar")?;
    if lock.policy_hash != Digest::of(&policy) {
        return Err(CheckError::Policy(format!("is {}, and the lock says {}", Digest::of(&policy), lock.policy_hash)));
    }
    if linted.rules.text().as_bytes() != policy {
        return Err(CheckError::Policy("is not what its Agentfile says".to_owned()));
    }
    let mut names: Vec<String> = linted.agent.creds().map(|(_, cred)| cred.name.clone()).collect();
    names.sort();
    names.dedup();
    if lock.credential_names != names {
        return Err(CheckError::Lock("names other credentials than its Agentfile".to_owned()));
    }
    let config = config(layout, &manifest, &linted)?;
    annotations(&manifest, &config, &lock)?;
    let layers: Vec<Descriptor> = manifest
        .layers
        .iter()
        .filter(|layer| [SOURCE_LAYER, TOOL_LAYER, SKILL_LAYER].contains(&layer.media_type.as_str()))
        .cloned()
        .collect();
    if let Some(layer) = out_of_place(&manifest, &linted.agent) {
        return Err(not_one(&format!("{layer} is none that its Agentfile has, or not in its order")));
    }
    let files = files(layout, &layers, &Covered::of(&linted.agent, &lock), &|path| content::is_read(path, &lock))?;
    content::hold(&linted, &lock, &files).map_err(CheckError::Content)?;
    Ok(Package { descriptor: descriptor.clone(), manifest, linted, lock, config, layers, files })
}

/// The first layer that is not among those that the Agentfile can have, in their order and by their names.
fn out_of_place(manifest: &Manifest, agent: &Agent) -> Option<String> {
    let bundles = agent.entries.iter().filter_map(|entry| match &entry.directive {
        Directive::Skill(one) => Some((SKILL_LAYER, bundle_title("skills", one))),
        Directive::Sop(Sop::Reference { bundle }) => Some((SKILL_LAYER, bundle_title("sops", bundle))),
        _ => None,
    });
    let first = [(AGENTFILE, "Agentfile"), (LOCK, "agentrc.lock"), (POLICY, "policy.cedar")];
    let last = [(TOOL_LAYER, TOOLS), (SOURCE_LAYER, SOURCE)];
    let owned = |(media_type, title): (&'static str, &str)| (media_type, title.to_owned());
    let mut known = first.map(owned).into_iter().chain(bundles).chain(last.map(owned));
    let strange = manifest.layers.iter().find(|layer| {
        let own = |(media_type, title): (&str, String)| {
            layer.media_type == media_type && layer.annotation(TITLE) == Some(title.as_str())
        };
        layer.platform.is_some() || layer.artifact_type.is_some() || !known.any(own)
    })?;
    let title = writ_core::visible::line(strange.annotation(TITLE).unwrap_or_default()).into_owned();
    Some(format!("its layer `{title}` ({})", writ_core::visible::line(&strange.media_type)))
}

/// The one blob of that type.
fn only(
    layout: &Layout,
    manifest: &Manifest,
    descriptor: &Descriptor,
    media_type: &str,
    title: &str,
) -> Result<Vec<u8>, CheckError> {
    let mut found = manifest.layers.iter().filter(|layer| layer.media_type == media_type);
    match (found.next(), found.next()) {
        (Some(layer), None) if layer.annotation(TITLE) == Some(title) => layout.read(layer).map_err(CheckError::Blob),
        (Some(_), None) => {
            Err(CheckError::NotOne { digest: descriptor.digest, why: format!("its `{title}` has another name") })
        }
        _ => Err(CheckError::NotOne { digest: descriptor.digest, why: format!("it has not one `{title}`") }),
    }
}

fn agentfile(bytes: &[u8]) -> Result<Linted, CheckError> {
    let linted = lint(bytes, "Agentfile", &Options::default());
    let place = |line, column, message: &str| CheckError::Agentfile { line, column, message: message.to_owned() };
    if let Some(error) = linted.found.iter().find(|found| found.is_error()) {
        return Err(place(error.place.line, error.place.column, &error.message));
    }
    if let Some(entry) = linted.agent.entries.iter().find(|entry| is_placement(&entry.directive)) {
        return Err(place(entry.line(), 1, "placement belongs in a run manifest, not in a package"));
    }
    Ok(linted)
}

fn config(layout: &Layout, manifest: &Manifest, linted: &Linted) -> Result<Config, CheckError> {
    let bytes = layout.read(&manifest.config).map_err(CheckError::Blob)?;
    let said: Config =
        json::from_slice(&bytes).map_err(|error| CheckError::Config(format!("cannot be read: {error}")))?;
    if json::to_canonical(&said).as_bytes() != bytes {
        return Err(CheckError::Config("is not written as `writ build` writes it".to_owned()));
    }
    let own = Config::of(linted);
    match said.differs(&own) {
        Some(why) => Err(CheckError::Config(why)),
        None => Ok(own),
    }
}

/// The notes that follow from the package are what follows; there are no others of their kind. A tier may say more than is found here.
fn annotations(manifest: &Manifest, config: &Config, lock: &Lock) -> Result<(), CheckError> {
    let derived = derived(config, lock);
    let strange = manifest.annotations.iter().find(|(name, _)| name.starts_with(OWN) && !derived.contains_key(*name));
    if let Some((name, found)) = strange {
        let found = writ_core::visible::line(found).into_owned();
        let name = writ_core::visible::line(name).into_owned();
        return Err(CheckError::Annotation { name, found, wanted: String::new() });
    }
    for (name, wanted) in derived {
        let found = manifest.annotations.get(&name).cloned().unwrap_or_default();
        let said: Option<Tier> =
            if name == RISK_TIER { json::from_value(&json::Value::from(found.as_str())).ok() } else { None };
        if found != wanted && said.is_none_or(|said| said < config.report.tier) {
            return Err(CheckError::Annotation { name, found: writ_core::visible::line(&found).into_owned(), wanted });
        }
    }
    Ok(())
}

/// All files of all layers; one path in two layers is an error, and so is a file that its layer is not for.
fn files(
    layout: &Layout,
    layers: &[Descriptor],
    covered: &Covered,
    read: &dyn Fn(&str) -> bool,
) -> Result<BTreeMap<String, Entry>, CheckError> {
    let (mut out, mut budget) = (BTreeMap::new(), Budget::default());
    for one in layers {
        for (path, entry) in layer::list(layout, one, &mut budget, read).map_err(CheckError::Layer)? {
            let front = path.split('/').next().unwrap_or_default();
            if layer::OWN.contains(&front) {
                return Err(CheckError::Content(format!("`{path}` is in a layer of files, and has one of its own")));
            }
            if !covered.holds(one, &path) {
                let title = writ_core::visible::line(one.annotation(TITLE).unwrap_or_default()).into_owned();
                return Err(CheckError::Content(format!("`{path}` is in `{title}`, and its lock pins no such file")));
            }
            if out.insert(path.clone(), entry).is_some() {
                return Err(CheckError::Content(format!("`{path}` is in two layers")));
            }
        }
    }
    for path in out.keys() {
        let mut above = path.as_str();
        while let Some((folder, _)) = above.rsplit_once('/') {
            if out.contains_key(folder) {
                return Err(CheckError::Content(format!("`{folder}` is a file and a folder")));
            }
            above = folder;
        }
    }
    Ok(out)
}
