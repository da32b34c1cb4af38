//! A bundle: its files as its manifest lists them, each named by the record, and then the record itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use writ_clients::transcript::MAIN;
use writ_core::regular_file;
use writ_evidence::keys::PublicKey;
use writ_evidence::tally::Tally;

use super::report::{Bundled, Outcome, Phase, Report, Standing, Status};
use super::sources::{Hidden, MadeOf, Sources};
use super::{Options, VerifyError, verify};
use crate::Home;
use crate::bundle::{self, BundleError, Manifest, Opened};
use crate::session::PUBLIC_KEY;

/// Why there is nothing to verify in a bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleVerifyError {
    /// The bundle.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The record in it.
    #[error(transparent)]
    Verify(#[from] VerifyError),
}

/// Verifies a bundle, which is laid out in `room`, an empty folder. Of one whose manifest is not signed by the key that it brings nothing is
/// judged: whoever changed it chose how long that takes.
pub fn bundle(path: &Path, room: &Path, home: &Home, options: &Options) -> Result<Report, BundleVerifyError> {
    let Opened { folder, manifest, text, signature } = bundle::open(path, room, options.progress)?;
    let Some(signer) = signer(&folder, &text, &signature) else {
        return Err(BundleError::Unsigned { path: path.to_owned() }.into());
    };
    // It may be long, and is not looked at again.
    drop(text);
    let options = Options { sources: sources(&folder, &manifest), ..options.clone() };
    let report = verify(&folder, home, &options, None)?;
    let bundled = if options.sources.withheld() { Bundled::WithoutTranscripts } else { Bundled::Whole };
    let mut report = Report { bundled: Some(bundled), ..report };
    let phase =
        phase(&folder, &manifest, &report).map_err(|source| VerifyError::Io { path: path.to_owned(), source })?;
    if phase.outcome == Outcome::Failed {
        report.status = Status::Broken;
    }
    report.phases.insert(0, phase);
    // What the transcripts were is the manifest's word alone: of lines that are masked, and of what no stop read.
    let other = options.key.as_ref().is_some_and(|key| *key != signer) && !manifest.transcripts.is_empty();
    report.phases.extend(other.then(|| Phase {
        name: "transcripts",
        outcome: Outcome::Absent,
        standing: Standing::Observed,
        summary: format!("what they were is the word of another key than the trusted one ({})", signer.key_id()),
        findings: Vec::new(),
    }));
    Ok(report)
}

fn sources(folder: &Path, manifest: &Manifest) -> Sources {
    let (mut mains, mut masked) = (BTreeMap::new(), BTreeMap::new());
    let told = manifest.transcripts.iter();
    let made_of: MadeOf =
        told.map(|one| ((PathBuf::from(&one.main), one.name.clone()), (one.size, one.sha256.0))).collect();
    if !made_of.is_empty() && manifest.transcripts.iter().all(|transcript| transcript.path.is_none()) {
        return Sources::Withheld(made_of);
    }
    for transcript in &manifest.transcripts {
        let Some(at) = transcript.path.as_ref().map(|path| folder.join(path)) else { continue };
        if !transcript.masked.is_empty() {
            let lines =
                transcript.masked.iter().map(|(line, hash, length)| (*line, Hidden { hash: hash.0, length: *length }));
            masked.insert(at.clone(), lines.collect());
        }
        if transcript.name == MAIN {
            mains.insert(PathBuf::from(&transcript.main), at);
        }
    }
    Sources::Moved { mains, masked, made_of }
}

/// The key that the bundle brings, if it signed its manifest. Whether that is the right key is asked of the record.
fn signer(folder: &Path, manifest: &[u8], signature: &str) -> Option<PublicKey> {
    let key = PublicKey::from_pem(&regular_file::text(&folder.join(PUBLIC_KEY), 1 << 16).ok()?).ok()?;
    let words = bundle::signed_words(manifest);
    let signed = key.verify(words.as_bytes(), &BASE64.decode(signature).ok()?).is_ok();
    signed.then_some(key)
}

fn phase(folder: &Path, manifest: &Manifest, report: &Report) -> std::io::Result<Phase> {
    let Manifest { files, transcripts, session, .. } = manifest;
    let mut findings = Tally::new();
    for path in bundle::unnamed(folder, files)? {
        findings.apart(format!("`{path}`: neither a row nor a file that rows lead to names it"));
    }
    for path in bundle::misplaced(files, transcripts) {
        findings.apart(format!("`{path}` does not lie where a file of its kind does, or is there twice"));
    }
    if report.session.as_ref() != Some(session) {
        findings.apart(format!("the manifest says it is of session `{session}`, and the record is not"));
    }
    let (mut texts, mut lines) = (BTreeSet::new(), 0);
    for transcript in transcripts {
        let Some(path) = &transcript.path else { continue };
        lines += transcript.masked.len();
        texts.insert(path.as_str());
        let file = files.iter().find(|file| file.path == *path);
        let as_it_was = file.is_some_and(|file| file.size == transcript.size && file.sha256 == transcript.sha256);
        if file.is_none() || transcript.masked.is_empty() && !as_it_was {
            findings.apart(format!("`{path}` is not the transcript that the manifest says"));
        }
    }
    let outcome = if findings.total() == 0 { Outcome::Passed } else { Outcome::Failed };
    let told = match (texts.len(), transcripts.len(), lines) {
        (_, 0, _) => "no transcript".to_owned(),
        (0, all, _) => format!("the digests of {all} transcripts"),
        (some, _, 0) => format!("the text of {some} transcripts"),
        (some, _, masked) => format!("the text of {some} transcripts, {masked} lines of it masked"),
    };
    let summary = match outcome {
        Outcome::Passed => format!("{} files, each as listed and named by the record; {told}", files.len()),
        Outcome::Failed | Outcome::Absent => "it is not what the record and its key speak for".to_owned(),
    };
    Ok(Phase { name: "bundle", outcome, standing: Standing::Observed, summary, findings: findings.texts() })
}
