//! What a verification came to, as a statement that others can rely on: a SLSA Verification Summary Attestation.
//!
//! Owns the predicate. Refuses to pass what is not verified without exception. Page: `spec/verify.md`, "Summary".

use std::collections::BTreeMap;

use serde::Serialize;
use writ_core::{Digest, Timestamp};
use writ_evidence::intoto::{ResourceDescriptor, Statement};

use super::report::{Bundled, Report};
use crate::session::statements::subject_of;

/// The type of the predicate.
pub const VSA: &str = "https://slsa.dev/verification_summary/v1";
/// The version of SLSA whose words these are.
const SLSA: &str = "1.1";
/// What a session is that passes; it is none of SLSA's own levels.
const VERIFIED: &str = "WRIT_SESSION_VERIFIED";
/// What one is whose bundle leaves the transcripts out: what they alone tell was not looked for.
const BY_ROWS: &str = "WRIT_SESSION_ROWS_VERIFIED";

/// A summary's predicate.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    verifier: Verifier,
    time_verified: Timestamp,
    resource_uri: String,
    policy: Named,
    input_attestations: Vec<Named>,
    verification_result: &'static str,
    verified_levels: [&'static str; 1],
    slsa_version: &'static str,
}

#[derive(Clone, Debug, Serialize)]
struct Verifier {
    id: String,
    version: BTreeMap<&'static str, &'static str>,
}

/// A file by its name and the digest of its bytes.
#[derive(Clone, Debug, Serialize)]
struct Named {
    uri: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    digest: BTreeMap<&'static str, String>,
}

impl Named {
    fn new(uri: String, digest: Digest) -> Self {
        Self { uri, digest: BTreeMap::from([("sha256", digest.hex())]) }
    }
}

/// The summary of a report on `file`, whose bytes have that digest. `None` where nothing says which session it was.
pub fn summary(report: &Report, file: (&str, Digest), key: Digest, now: Timestamp) -> Option<Statement<Summary>> {
    let (session, run) = (report.session.as_deref()?, report.run?);
    let about = subject_of(session, run);
    let passed = report.verified();
    let predicate = Summary {
        verifier: Verifier {
            id: format!("urn:writ:verifier:{key}"),
            version: BTreeMap::from([("writ", env!("CARGO_PKG_VERSION"))]),
        },
        time_verified: now,
        resource_uri: about.name.clone(),
        policy: report.policy.as_ref().map_or_else(
            || Named { uri: "urn:writ:no-policy".to_owned(), digest: BTreeMap::new() },
            |(name, file)| Named::new(format!("urn:writ:policy:{name}"), *file),
        ),
        input_attestations: vec![Named::new(file.0.to_owned(), file.1)],
        verification_result: if passed { "PASSED" } else { "FAILED" },
        verified_levels: [match report.bundled {
            _ if !passed => "FAILED",
            Some(Bundled::WithoutTranscripts) => BY_ROWS,
            Some(Bundled::Whole) | None => VERIFIED,
        }],
        slsa_version: SLSA,
    };
    let subjects = vec![about, ResourceDescriptor::sha256(file.0, file.1)];
    Some(Statement::new(subjects, VSA, predicate))
}
