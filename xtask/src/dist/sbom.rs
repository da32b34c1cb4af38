//! What is in the program: a CycloneDX bill of materials, from what cargo resolves and what the lockfile pins.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Source;
use crate::run::{cargo, output};

/// The bill. Nothing in it depends on when or where it is made.
pub fn cyclonedx(root: &Path, source: &Source, target: &str) -> Result<Value> {
    let parts = parts(root, target)?;
    let sums = checksums(&fs::read_to_string(root.join("Cargo.lock"))?);
    let component = |(name, version, licence): &(String, String, String)| {
        let place = format!("pkg:cargo/{name}@{version}");
        let mut out = json!({
            "type": "library", "bom-ref": place, "name": name, "version": version, "purl": place,
            "licenses": [{"expression": licence.replace('/', " OR ")}],
        });
        if let (Some(sum), Some(members)) = (sums.get(&(name.clone(), version.clone())), out.as_object_mut()) {
            members.insert("hashes".to_owned(), json!([{"alg": "SHA-256", "content": sum}]));
        }
        out
    };
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application", "name": "writ", "version": source.version,
                "purl": format!("pkg:cargo/writ@{}?vcs_url=git%2B{}%40{}", source.version, source.repository, source.commit),
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": parts.iter().filter(|(name, ..)| name != "writ").map(component).collect::<Vec<_>>(),
    }))
}

/// What the program is built from on its platform, without what tests need.
fn parts(root: &Path, target: &str) -> Result<BTreeSet<(String, String, String)>> {
    let mut tree = cargo(["tree", "--locked", "-p", "writ", "--edges", "normal,build", "--prefix", "none"]);
    tree.args(["--target", target, "--format", "{p}|{l}"]).current_dir(root);
    let text = String::from_utf8(output(&mut tree)?).context("cargo tree is not text")?;
    let part = |line: &str| {
        let (package, licence) = line.split_once('|')?;
        let (name, rest) = package.split_once(" v")?;
        let licence = licence.split(" (").next().unwrap_or(licence);
        Some((name.to_owned(), rest.split(' ').next()?.to_owned(), licence.trim().to_owned()))
    };
    Ok(text.lines().filter_map(part).collect())
}

/// The digests that the lockfile pins, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut out = BTreeMap::new();
    for package in lock.split("[[package]]") {
        let member = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(&format!("{name} = \"")));
            line.and_then(|rest| rest.split('"').next()).map(str::to_owned)
        };
        if let (Some(name), Some(version), Some(sum)) = (member("name"), member("version"), member("checksum")) {
            out.insert((name, version), sum);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::checksums;

    #[test]
    fn digests_are_those_of_the_lockfile() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"x\"\nchecksum = \"ff\"\n\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n";
        let found = checksums(lock);
        assert_eq!(found.len(), 1);
        assert_eq!(found.get(&("a".to_owned(), "1.0.0".to_owned())).map(String::as_str), Some("ff"));
    }
}
