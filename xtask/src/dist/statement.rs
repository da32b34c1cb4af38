//! How a release was made: an in-toto statement with SLSA provenance, to be signed by whoever makes it (`cosign attest-blob`, a workflow's own
//! attestation). It says what is in it and no moment, so that it is the same for whoever makes the release again.

use serde_json::{Value, json};

use super::Source;

/// The statement about these files, by name and SHA-256.
pub fn provenance(subjects: &[(String, String)], source: &Source, lock: &str, target: &str) -> Value {
    let subject = |(name, digest): &(String, String)| json!({"name": name, "digest": {"sha256": digest}});
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects.iter().map(subject).collect::<Vec<_>>(),
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": format!("{}/blob/main/spec/release.md", source.repository),
                "externalParameters": {
                    "source": {"uri": format!("git+{}", source.repository), "digest": {"gitCommit": source.commit}},
                    "profile": source.profile,
                    "target": target,
                },
                "internalParameters": {"SOURCE_DATE_EPOCH": source.epoch},
                "resolvedDependencies": [
                    {"uri": format!("git+{}", source.repository), "digest": {"gitCommit": source.commit}},
                    {"name": "Cargo.lock", "digest": {"sha256": lock}},
                    {"name": "rustc", "annotations": {"version": source.toolchain}},
                ],
            },
            "runDetails": {"builder": {"id": format!("{}/blob/main/xtask/src/dist/mod.rs", source.repository)}},
        },
    })
}
