//! What is in a package: a bill of materials as SPDX 2.3.
//!
//! Owns the document. Refuses nothing; what has no digest is listed without one. Invariant: every file of every layer and every locked
//! dependency is in it. Page: `spec/package.md`, "Bill of materials".

use serde::Serialize;
use writ_core::{Digest, Timestamp};

use crate::check::Package;

/// Of whom nothing is known.
const UNKNOWN: &str = "NOASSERTION";
/// The package itself.
const ROOT: &str = "SPDXRef-Package";

/// The document.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sbom {
    spdx_version: &'static str,
    data_license: &'static str,
    #[serde(rename = "SPDXID")]
    id: &'static str,
    name: String,
    document_namespace: String,
    creation_info: CreationInfo,
    packages: Vec<Part>,
    files: Vec<File>,
    relationships: Vec<Relationship>,
}

#[derive(Clone, Debug, Serialize)]
struct CreationInfo {
    created: String,
    creators: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    #[serde(rename = "SPDXID")]
    id: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version_info: Option<String>,
    download_location: String,
    files_analyzed: bool,
    license_concluded: &'static str,
    license_declared: String,
    copyright_text: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    checksums: Vec<Checksum>,
    #[serde(skip_serializing_if = "String::is_empty")]
    comment: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Checksum {
    algorithm: &'static str,
    checksum_value: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(rename = "SPDXID")]
    id: String,
    file_name: String,
    checksums: Vec<Checksum>,
    license_concluded: &'static str,
    copyright_text: &'static str,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Relationship {
    spdx_element_id: String,
    relationship_type: &'static str,
    related_spdx_element: String,
}

impl Sbom {
    /// Of a package, written at this moment.
    pub fn of(package: &Package, at: Timestamp) -> Self {
        let digest = package.descriptor.digest;
        let label = |name: &str| package.manifest.annotations.get(&format!("org.opencontainers.image.{name}")).cloned();
        let licence = label("licenses").unwrap_or_else(|| UNKNOWN.to_owned());
        let source = label("source").unwrap_or_else(|| UNKNOWN.to_owned());
        let mut root =
            part(ROOT.to_owned(), &package.config.name, label("version"), &source, Some(&digest.to_string()));
        root.license_declared = licence;
        let mut packages = vec![root];
        packages.extend(locked(package));
        let files: Vec<File> = package
            .files
            .iter()
            .enumerate()
            .map(|(at, (path, entry))| File {
                id: format!("SPDXRef-File-{at}"),
                file_name: format!("./{path}"),
                checksums: vec![sha256(entry.digest)],
                license_concluded: UNKNOWN,
                copyright_text: UNKNOWN,
            })
            .collect();
        let relate = |from: &str, kind: &'static str, to: &str| Relationship {
            spdx_element_id: from.to_owned(),
            relationship_type: kind,
            related_spdx_element: to.to_owned(),
        };
        let mut relationships = vec![relate("SPDXRef-DOCUMENT", "DESCRIBES", ROOT)];
        relationships.extend(packages.iter().skip(1).map(|one| relate(ROOT, "DEPENDS_ON", &one.id)));
        relationships.extend(files.iter().map(|file| relate(ROOT, "CONTAINS", &file.id)));
        // SPDX has whole seconds.
        let created = format!("{}Z", at.to_string().split('.').next().unwrap_or_default().trim_end_matches('Z'));
        Self {
            spdx_version: "SPDX-2.3",
            data_license: "CC0-1.0",
            id: "SPDXRef-DOCUMENT",
            name: package.config.name.clone(),
            document_namespace: format!("urn:writ:package:{digest}"),
            creation_info: CreationInfo {
                created,
                creators: vec![format!("Tool: writ-{}", env!("CARGO_PKG_VERSION"))],
            },
            packages,
            files,
            relationships,
        }
    }
}

/// What the lock names.
fn locked(package: &Package) -> Vec<Part> {
    let lock = &package.lock;
    let mut rows: Vec<(&str, String, String, String, Option<String>)> = Vec::new();
    if let Some(base) = &lock.base_image {
        let place = format!("oci://{}/{}", base.registry, base.name);
        rows.push(("base", base.name.clone(), base.tag.clone().unwrap_or_default(), place, Some(base.digest.clone())));
    }
    for tool in lock.tools.iter().chain(lock.mcp.iter().flat_map(|server| &server.tools)) {
        rows.push(("tool", tool.name.clone(), tool.version.clone(), tool.source.clone(), tool.digest.clone()));
    }
    for function in &lock.functions {
        let hash = function.hash.map(|hash| hash.to_string());
        rows.push(("function", function.path.clone(), function.version.clone(), function.source.clone(), hash));
    }
    for (kind, list) in [("toolset", &lock.toolsets), ("skill", &lock.skills), ("procedure", &lock.sops)] {
        for one in list {
            rows.push((kind, one.name.clone(), one.version.clone(), one.source.clone(), one.hash.clone()));
        }
    }
    for server in &lock.mcp {
        let digest = server.digest.map(|digest| digest.to_string());
        rows.push(("mcp server", server.name.clone(), server.version.clone(), server.source.clone(), digest));
    }
    let numbered = rows.into_iter().enumerate();
    numbered
        .map(|(at, (kind, name, version, source, digest))| {
            let version = Some(version).filter(|version| !version.is_empty());
            let mut part = part(format!("SPDXRef-Dependency-{at}"), &name, version, UNKNOWN, digest.as_deref());
            part.comment = format!("{kind}, from {source}");
            part
        })
        .collect()
}

fn part(id: String, name: &str, version: Option<String>, place: &str, digest: Option<&str>) -> Part {
    let checksums = digest.and_then(|digest| Digest::parse(digest).ok()).map(sha256);
    Part {
        id,
        name: name.to_owned(),
        version_info: version,
        download_location: place.to_owned(),
        files_analyzed: false,
        license_concluded: UNKNOWN,
        license_declared: UNKNOWN.to_owned(),
        copyright_text: UNKNOWN,
        checksums: checksums.into_iter().collect(),
        comment: String::new(),
    }
}

fn sha256(digest: Digest) -> Checksum {
    Checksum { algorithm: "SHA256", checksum_value: digest.hex() }
}
