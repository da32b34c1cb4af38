//! `vectors/canonical`, `vectors/attestation` and `vectors/registry`, made by `vectors/make.py` with a JSON writer and an Ed25519 that
//! are not ours.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]
#![expect(clippy::indexing_slicing, reason = "a member that is missing fails the test")]

use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use writ_core::json::{self, Limits};
use writ_core::{Digest, Timestamp};
use writ_evidence::attestation::{Terms, verify};
use writ_evidence::registry::Registry;

struct Case {
    name: String,
    members: Value,
}

impl Case {
    /// The files of one folder, at least so many of them.
    fn all(folder: &str, at_least: usize) -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors").join(folder);
        let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let cases: Vec<Self> = paths
            .map(|path| {
                let members: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
                let name = members["name"].as_str().unwrap().to_owned();
                assert_eq!(path.file_stem().unwrap().to_str(), Some(name.as_str()));
                Self { name, members }
            })
            .collect();
        assert!(cases.len() >= at_least, "only {} cases", cases.len());
        cases
    }

    fn text(&self, member: &str) -> &str {
        self.members[member].as_str().unwrap()
    }

    /// A member that is a text, or the base64 of what is none.
    fn bytes(&self, member: &str) -> Vec<u8> {
        match self.members[member].as_str() {
            Some(text) => text.as_bytes().to_vec(),
            None => STANDARD.decode(self.text(&format!("{member}_base64"))).unwrap(),
        }
    }
}

#[test]
fn canonical() {
    for case in Case::all("canonical", 90) {
        let parsed = json::parse_with(&case.bytes("input"), Limits::SIGNED);
        if case.text("expect") == "invalid" {
            assert!(parsed.is_err(), "{}: {parsed:?}", case.name);
            continue;
        }
        let canonical = json::canonical(&parsed.unwrap());
        assert_eq!(canonical, case.text("canonical"), "{}", case.name);
        assert_eq!(Digest::of(canonical.as_bytes()).hex(), case.text("sha256"), "{}", case.name);
        let again = json::parse_with(canonical.as_bytes(), Limits::SIGNED).unwrap();
        assert_eq!(json::canonical(&again), canonical, "{}", case.name);
    }
}

#[test]
fn attestations() {
    for case in Case::all("attestation", 250) {
        let entries = case.members["trusted_instances"].as_array();
        let entries =
            entries.map(|list| list.iter().map(|entry| entry.as_str().unwrap().to_owned()).collect::<Vec<_>>());
        let trusted = entries.unwrap_or_default();
        let terms = Terms { trusted: &trusted, now: Timestamp::parse(case.text("now")).unwrap() };
        let outcome = verify(&case.bytes("attestation"), &case.bytes("registry"), &terms);
        let said = outcome.as_ref().map_or_else(|failure| failure.code.as_str(), |_| "valid");
        assert_eq!(said, case.text("expect"), "{} ({}): {outcome:?}", case.name, case.text("why"));
    }
}

#[test]
fn registries() {
    let mut successions = 0;
    for case in Case::all("registry", 130) {
        let said = if case.members["fetched"].is_string() {
            successions += 1;
            let [known, fetched] = ["known", "fetched"].map(|member| Registry::parse(&case.bytes(member)).unwrap());
            match fetched.may_follow(&known) {
                Err(failure) => failure.code.as_str(),
                Ok(()) if fetched.version() == known.version() => "keep",
                Ok(()) => "take",
            }
        } else {
            Registry::parse(&case.bytes("document")).map_or("invalid", |_| "valid")
        };
        assert_eq!(said, case.text("expect"), "{} ({})", case.name, case.text("why"));
    }
    assert!(successions >= 40);
}
