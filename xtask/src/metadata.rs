//! What cargo knows about the workspace and its dependencies.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::run::{cargo, output};

/// One package of `cargo metadata`.
#[derive(Debug, Clone, Default)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its licence, an SPDX expression.
    pub licence: Option<String>,
    /// Its `Cargo.toml`.
    pub manifest: PathBuf,
    /// Names of the packages it uses outside of tests.
    pub uses: Vec<String>,
}

/// A workspace, or everything that is built with it.
#[derive(Debug, Default)]
pub struct Metadata {
    /// The folder that holds the workspace.
    pub root: PathBuf,
    /// Its packages.
    pub packages: Vec<Package>,
}

impl Metadata {
    /// The workspace's own packages.
    pub fn workspace() -> Result<Self> {
        Self::read(&["--no-deps"])
    }

    /// The workspace's packages and all they depend on, on any platform.
    pub fn with_dependencies() -> Result<Self> {
        Self::read(&[])
    }

    fn read(more: &[&str]) -> Result<Self> {
        let json = output(cargo(["metadata", "--locked", "--format-version", "1"]).args(more))?;
        let json: Value = serde_json::from_slice(&json).context("cargo metadata is not JSON")?;
        let root = json.get("workspace_root").and_then(Value::as_str).context("no workspace root")?;
        let packages = json.get("packages").and_then(Value::as_array).context("no packages")?;
        let packages = packages.iter().map(package).collect::<Option<_>>().context("a package without a name")?;
        Ok(Self { root: Path::new(root).to_owned(), packages })
    }
}

fn package(json: &Value) -> Option<Package> {
    let text = |name| json.get(name).and_then(Value::as_str).map(str::to_owned);
    let arrows = json.get("dependencies")?.as_array()?;
    // `kind` is null for normal dependencies; build scripts count like the crate they belong to.
    let arrows = arrows.iter().filter(|arrow| arrow.get("kind").and_then(Value::as_str) != Some("dev"));
    Some(Package {
        name: text("name")?,
        version: text("version")?,
        licence: text("license"),
        manifest: PathBuf::from(text("manifest_path")?),
        uses: arrows.map(|arrow| Some(arrow.get("name")?.as_str()?.to_owned())).collect::<Option<_>>()?,
    })
}
