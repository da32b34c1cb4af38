//! How a package was built: SLSA's provenance, v1.
//!
//! Owns the predicate and its check against a package. Claims nothing that Writ does not know: who started it is the signature's to say.
//! Invariant: what it says of Agentfile, lock and base are the digests that the package has. Page: `spec/package.md`, "Provenance".

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use writ_core::json::Value;
use writ_core::{Digest, Timestamp, json};

use crate::check::Package;

/// What builds packages this way.
pub const BUILD_TYPE: &str = "https://github.com/writ-dev/writ/spec/package.md#build@v1";
/// Who built it, where nobody else says so.
pub const BUILDER: &str = "https://github.com/writ-dev/writ/cli";

/// The predicate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Provenance {
    /// What was built of what.
    pub build_definition: BuildDefinition,
    /// By whom.
    pub run_details: RunDetails,
}

/// What was built of what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BuildDefinition {
    /// [`BUILD_TYPE`].
    pub build_type: String,
    /// What whoever built it gave.
    pub external_parameters: BTreeMap<String, String>,
    /// What went into it.
    #[serde(default)]
    pub resolved_dependencies: Vec<Dependency>,
}

/// Something that went into it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dependency {
    /// What it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// Its digests.
    #[serde(default)]
    pub digest: BTreeMap<String, String>,
}

/// By whom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunDetails {
    /// The builder.
    pub builder: Builder,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

/// Who built it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Builder {
    /// A URI.
    pub id: String,
    /// Versions of what it used.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub version: BTreeMap<String, String>,
}

impl Provenance {
    /// Of a package.
    pub fn of(package: &Package, builder: Option<&str>, finished: Option<Timestamp>) -> Self {
        let label = |name: &str| package.manifest.annotations.get(&format!("org.opencontainers.image.{name}")).cloned();
        let mut parameters = BTreeMap::from([("agent".to_owned(), package.config.name.clone())]);
        for name in ["source", "revision", "version"] {
            if let Some(value) = label(name) {
                parameters.insert(name.to_owned(), value);
            }
        }
        let metadata = finished.map(|at| {
            let mut members = json::Object::new();
            members.push("finishedOn", Value::from(at.to_string()));
            Value::Object(members)
        });
        Self {
            build_definition: BuildDefinition {
                build_type: BUILD_TYPE.to_owned(),
                external_parameters: parameters,
                resolved_dependencies: dependencies(package),
            },
            run_details: RunDetails {
                builder: Builder {
                    id: builder.unwrap_or(BUILDER).to_owned(),
                    version: BTreeMap::from([("writ".to_owned(), env!("CARGO_PKG_VERSION").to_owned())]),
                },
                metadata,
            },
        }
    }

    /// What of it does not fit a package. Provenance of another builder is held against its own dependencies alone: the names are its own.
    pub fn differs(&self, package: &Package) -> Option<String> {
        let known = |name: &str| {
            let named =
                self.build_definition.resolved_dependencies.iter().find(|one| one.name.as_deref() == Some(name));
            named.and_then(|one| one.digest.get("sha256")).cloned()
        };
        if self.build_definition.build_type != BUILD_TYPE {
            return None;
        }
        for wanted in dependencies(package) {
            let Some(name) = wanted.name.clone() else { continue };
            let digest = wanted.digest.get("sha256").cloned();
            if known(&name) != digest {
                return Some(format!(
                    "says that `{name}` was {}",
                    known(&name).unwrap_or_else(|| "nothing".to_owned())
                ));
            }
        }
        None
    }
}

fn dependencies(package: &Package) -> Vec<Dependency> {
    let of = |name: &str, digest: Digest| Dependency {
        name: Some(name.to_owned()),
        uri: None,
        digest: BTreeMap::from([("sha256".to_owned(), digest.hex())]),
    };
    let mut out =
        vec![of("Agentfile", package.lock.agentfile_hash), of("agentrc.lock", Digest::of(&package.lock.to_bytes()))];
    if let Some(base) = &package.lock.base_image {
        let hex = base.digest.strip_prefix("sha256:").unwrap_or(&base.digest).to_owned();
        out.push(Dependency {
            name: Some("base".to_owned()),
            uri: Some(format!("oci://{}/{}", base.registry, base.name)),
            digest: BTreeMap::from([("sha256".to_owned(), hex)]),
        });
    }
    out
}
