//! From an Agentfile, its lock and the files beside it to a package: one manifest, always the same for the same input (R64).
//!
//! Owns which file goes into which layer, media types and annotations (§14). Refuses files outside of the Agentfile's folder, links, and
//! files that hold a secret's value. Invariant: nothing of the clock, the machine or the folder's place is digested. Page:
//! `spec/package.md`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use writ_agentfile::directive::{Bundle, Directive, Function, Sop};
use writ_agentfile::lock::Locked;
use writ_agentfile::{Agent, Diagnostic, Linted, Lock, Options, lint};
use writ_core::{Timestamp, json, regular_file};

use crate::config::Config;
use crate::layer::{Files, LayerError, OWN, gather, pack};
use crate::layout::{Layout, LayoutError};
use crate::manifest::{Annotations, Descriptor, Manifest};
use crate::portable::{RunManifest, split};
use crate::secrets::{MAX_TEXT, secret_line};

/// What kind of artifact a package is.
pub const PACKAGE: &str = "application/vnd.agentrc.agent.v1+json";
/// The summary.
pub const CONFIG: &str = "application/vnd.agentrc.agent.config.v1+json";
/// The Agentfile.
pub const AGENTFILE: &str = "application/vnd.agentrc.agent.agentfile.v1+text";
/// The lock.
pub const LOCK: &str = "application/vnd.agentrc.agent.lock.v1+json";
/// The policy.
pub const POLICY: &str = "application/vnd.agentrc.agent.policy.cedar.v1+text";
/// Source and functions.
pub const SOURCE_LAYER: &str = "application/vnd.agentrc.agent.source.layer.v1.tar+gzip";
/// Descriptions of tools.
pub const TOOL_LAYER: &str = "application/vnd.agentrc.agent.tool.layer.v1.tar+gzip";
/// A skill or a procedure.
pub const SKILL_LAYER: &str = "application/vnd.agentrc.agent.skill.layer.v1.tar+gzip";
/// A layer's or blob's name.
pub const TITLE: &str = "org.opencontainers.image.title";
/// The name of the layer of tools.
pub const TOOLS: &str = "tools.tar.gz";
/// The name of the layer of functions, schemas and what else is given.
pub const SOURCE: &str = "source.tar.gz";
/// Digest of the policy.
pub const POLICY_HASH: &str = "io.agentrc.policy.hash";
/// Digest of the base.
pub const BASE_DIGEST: &str = "io.agentrc.base.digest";
/// The agent's name.
pub const AGENT_NAME: &str = "io.agentrc.agent.name";
/// The risk tier.
pub const RISK_TIER: &str = "io.agentrc.risk.tier";
/// The Agentfile's version.
const AGENTFILE_VERSION: &str = "io.agentrc.agentfile.version";
/// The version of an Agentfile that names none.
const DEFAULT_SYNTAX: &str = "agentrc.agentfile/v0.1";

/// What people say of a package.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    /// Its version.
    pub version: Option<String>,
    /// Its licence, as SPDX names it.
    pub licenses: Option<String>,
    /// Where its source is.
    pub source: Option<String>,
    /// Which commit that was.
    pub revision: Option<String>,
    /// `SOURCE_DATE_EPOCH`, the only moment that a package may name.
    pub created: Option<Timestamp>,
}

/// What a package is built of.
#[derive(Debug)]
pub struct Input<'a> {
    /// The Agentfile's folder.
    pub root: &'a Path,
    /// The Agentfile, linted without errors.
    pub linted: &'a Linted,
    /// Its lock.
    pub lock: &'a Lock,
    /// Files and folders of the source layer.
    pub sources: &'a [PathBuf],
    /// Files that may hold what looks like a secret.
    pub known: &'a [PathBuf],
    /// What is said of it.
    pub labels: &'a Labels,
}

/// A package that was built.
#[derive(Debug)]
pub struct Built {
    /// Its manifest.
    pub descriptor: Descriptor,
    /// What it asks for.
    pub config: Config,
    /// Where and how it runs, which is not in it.
    pub placement: Option<RunManifest>,
}

/// Why no package is built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The Agentfile has errors without its placement.
    #[error("the Agentfile cannot be packaged: {}:{}: {}", .0.place.line, .0.place.column, .0.message)]
    Agentfile(Box<Diagnostic>),
    /// The lock is of another Agentfile.
    #[error("the lock is not of this Agentfile: {what}; `writ lock` makes it anew")]
    Lock {
        /// What differs.
        what: String,
    },
    /// A file that the Agentfile names.
    #[error("line {line}: `{path}` {why}")]
    File {
        /// The line.
        line: usize,
        /// The path as written.
        path: String,
        /// What is wrong.
        why: String,
    },
    /// A file that holds what looks like a secret.
    #[error("{}:{line}: this looks like a secret's value, and a package holds none; name it with `CRED`, or say `--known-token {}` if it is none", path.display(), path.display())]
    Secret {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
    },
    /// A path outside of the folder.
    #[error("{} is not in the Agentfile's folder", .0.display())]
    Outside(PathBuf),
    /// Packing.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// The layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

/// The Agentfile as it is packaged, linted: without placement.
pub fn packaged(linted: &Linted) -> Result<(Linted, Option<RunManifest>), BuildError> {
    let (text, placement) = split(&linted.agent);
    let portable = lint(text.as_bytes(), "Agentfile", &Options::default());
    match portable.found.iter().find(|found| found.is_error()) {
        Some(error) => Err(BuildError::Agentfile(Box::new(error.clone()))),
        None => Ok((portable, placement)),
    }
}

/// The lock as it is packaged: of the Agentfile without placement.
pub fn sealed(lock: &Lock, linted: &Linted, portable: &Linted) -> Result<Lock, BuildError> {
    let differs = |what: &str| BuildError::Lock { what: what.to_owned() };
    if lock.agentfile_hash != linted.agent.digest() {
        return Err(differs("the Agentfile changed since it was locked"));
    }
    if lock.policy_hash != linted.rules.digest() {
        return Err(differs("the policy changed since it was locked"));
    }
    let mut out = lock.sorted();
    out.agentfile_hash = portable.agent.digest();
    out.policy_hash = portable.rules.digest();
    Ok(out)
}

/// Builds a package into a layout. It is not named there yet.
pub fn build(layout: &Layout, input: &Input<'_>) -> Result<Built, BuildError> {
    let (portable, placement) = packaged(input.linted)?;
    let lock = sealed(input.lock, input.linted, &portable)?;
    let config = Config::of(&portable);
    let titled = |media_type: &str, title: &str, bytes: &[u8]| {
        Ok::<_, LayoutError>(layout.write(media_type, bytes)?.with(TITLE, title))
    };
    let mut layers = vec![
        titled(AGENTFILE, "Agentfile", portable.agent.text.as_bytes())?,
        titled(LOCK, "agentrc.lock", &lock.to_bytes())?,
        titled(POLICY, "policy.cedar", portable.rules.text().as_bytes())?,
    ];
    let mut taken = BTreeSet::new();
    for part in parts(input, &portable.agent, &lock)? {
        let files: Files = part.files.into_iter().filter(|(name, _)| taken.insert(name.clone())).collect();
        if files.is_empty() {
            continue;
        }
        without_secrets(&files, input.known)?;
        let layer = pack(layout, part.media_type, &files)?;
        // What takes files by their titles unpacks it, too.
        layers.push(layer.with(TITLE, &part.title).with("io.deis.oras.content.unpack", "true"));
    }
    let written = layout.write(CONFIG, json::to_canonical(&config).as_bytes())?;
    let mut manifest = Manifest::artifact(PACKAGE, written, layers);
    manifest.annotations = annotations(&config, &lock, input.labels);
    let descriptor = layout.write_manifest(&manifest)?;
    Ok(Built { descriptor, config, placement })
}

/// The notes on a package's manifest.
fn annotations(config: &Config, lock: &Lock, labels: &Labels) -> Annotations {
    let mut out = derived(config, lock);
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            out.insert(name.to_owned(), value);
        }
    };
    add("org.opencontainers.image.version", labels.version.clone());
    add("org.opencontainers.image.licenses", labels.licenses.clone());
    add("org.opencontainers.image.source", labels.source.clone());
    add("org.opencontainers.image.revision", labels.revision.clone());
    add("org.opencontainers.image.created", labels.created.map(|created| created.to_string()));
    out
}

/// The notes that follow from the package itself.
pub fn derived(config: &Config, lock: &Lock) -> Annotations {
    let syntax = config.syntax.clone().unwrap_or_else(|| DEFAULT_SYNTAX.to_owned());
    let mut out = Annotations::from([
        (AGENTFILE_VERSION.to_owned(), syntax),
        (AGENT_NAME.to_owned(), config.name.clone()),
        (TITLE.to_owned(), config.name.clone()),
        (POLICY_HASH.to_owned(), lock.policy_hash.to_string()),
        (RISK_TIER.to_owned(), config.report.tier.as_str().to_owned()),
    ]);
    if let Some(base) = &lock.base_image {
        out.insert(BASE_DIGEST.to_owned(), base.digest.clone());
    }
    out
}

/// A layer to be.
struct Part {
    media_type: &'static str,
    title: String,
    files: Files,
}

/// The layers in their order: skills, procedures, tools, then functions, schemas and source.
fn parts(input: &Input<'_>, agent: &Agent, lock: &Lock) -> Result<Vec<Part>, BuildError> {
    let mut out = Vec::new();
    let mut source = Files::new();
    for entry in &agent.entries {
        let line = entry.line();
        match &entry.directive {
            Directive::Skill(one) => out.extend(bundle(input, line, "skills", one, &lock.skills)?),
            Directive::Sop(Sop::Reference { bundle: one }) => {
                out.extend(bundle(input, line, "sops", one, &lock.sops)?);
            }
            Directive::Function(Function::Local { path, .. }) => source.extend(named(input, line, path)?),
            Directive::Memory { schema_path, .. } => source.extend(named(input, line, schema_path)?),
            _ => {}
        }
    }
    let mut tools = Files::new();
    let described = lock.tools.iter().map(|tool| &tool.source).chain(lock.toolsets.iter().map(|set| &set.source));
    for source in described.filter(|source| source.starts_with("./")) {
        tools.extend(named(input, 0, source)?);
    }
    for tool in lock.tools.iter().filter(|tool| tool.program.is_some()) {
        if let Some(tool) = writ_agentfile::reference::ToolRef::parse(&tool.name) {
            tools.extend(named(input, 0, &writ_agentfile::lock::program_path(&tool))?);
        }
    }
    out.push(Part { media_type: TOOL_LAYER, title: TOOLS.to_owned(), files: tools });
    for path in input.sources {
        let text = path.to_str().filter(|_| path.is_relative()).ok_or_else(|| BuildError::Outside(path.clone()))?;
        source.extend(named(input, 0, text)?);
    }
    for own in OWN {
        source.remove(own);
    }
    out.push(Part { media_type: SOURCE_LAYER, title: SOURCE.to_owned(), files: source });
    Ok(out)
}

/// The name of a skill's or procedure's layer.
pub fn bundle_title(folder: &str, bundle: &Bundle) -> String {
    format!("{folder}/{}.tar.gz", bundle.name())
}

/// A skill's or procedure's files, where the lock found it beside the Agentfile.
fn bundle(
    input: &Input<'_>,
    line: usize,
    folder: &str,
    bundle: &Bundle,
    locked: &[Locked],
) -> Result<Option<Part>, BuildError> {
    let name = bundle.name();
    let beside = |one: &&Locked| one.name == name && one.source.starts_with("./");
    let source = match bundle {
        Bundle::Local { path } => format!("./{path}"),
        Bundle::Named { .. } => match locked.iter().find(beside) {
            Some(found) => found.source.clone(),
            None => return Ok(None),
        },
        Bundle::Registry(_) => return Ok(None),
    };
    Ok(Some(Part { media_type: SKILL_LAYER, title: bundle_title(folder, bundle), files: named(input, line, &source)? }))
}

/// The files at a path that the Agentfile names.
fn named(input: &Input<'_>, line: usize, path: &str) -> Result<Files, BuildError> {
    let wrong = |why: &str| BuildError::File { line, path: path.to_owned(), why: why.to_owned() };
    let inner = writ_agentfile::reference::inner_path(path).map_err(wrong)?;
    let below = input.root.join(&inner);
    if below.symlink_metadata().is_err() {
        return Err(wrong("is not there"));
    }
    let mut step = input.root.to_owned();
    for part in inner.split('/') {
        step.push(part);
        if step.is_symlink() {
            return Err(LayerError::NotPlain { path: step, what: "a symbolic link" }.into());
        }
    }
    Ok(gather(input.root, &below, &is_left_out)?)
}

/// What no package holds.
fn is_left_out(path: &Path) -> bool {
    writ_agentfile::lock::is_left_out(path.file_name().and_then(|name| name.to_str()).unwrap_or_default())
}

/// Refuses files that hold a secret's value, or whose name says that they do.
fn without_secrets(files: &Files, known: &[PathBuf]) -> Result<(), BuildError> {
    for (name, path) in files {
        if known.iter().any(|one| path.ends_with(one)) {
            continue;
        }
        let size = path.metadata().map_or(0, |found| found.len());
        let bytes = if size > MAX_TEXT {
            Vec::new()
        } else {
            regular_file::read(path, MAX_TEXT).map_err(|source| LayerError::Io {
                what: "read",
                path: path.clone(),
                source,
            })?
        };
        if let Some(line) = secret_line(name, &bytes) {
            return Err(BuildError::Secret { path: path.clone(), line });
        }
    }
    Ok(())
}
