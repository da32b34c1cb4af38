//! A claim beside the facts: a verdict for each file, and whether the whole is a false DONE.
//!
//! Refuses to call a claim false on doubt: anything that could explain it makes it less than a proof. What costs time is only
//! looked at for a file that would otherwise stand against the claim.

use std::collections::BTreeSet;

use crate::claim::{Claim, Status};
use crate::facts::Facts;
use crate::file::FactCache;
use crate::verdict::{FileVerdict, Landing, Weight};

/// The verdict on a claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// One for each claimed file, and for each entry that is no path.
    pub files: Vec<FileVerdict>,
    /// The paths that changed.
    pub observed: BTreeSet<String>,
    /// Changed, and named by no claim.
    pub unclaimed: Vec<String>,
    /// Done was said, and a file says otherwise beyond doubt.
    pub false_done: bool,
    /// The tree was not clean before: what changed may be somebody else's.
    pub ambiguous: bool,
    /// The false claim is proven by the agent's own transcript, whoever else worked on the tree.
    pub proven: bool,
}

impl Verdict {
    /// The claimed files without a change, as claimed.
    pub fn unchanged(&self) -> impl Iterator<Item = &str> {
        let against = |file: &&FileVerdict| matches!(file.landing, Landing::Unchanged | Landing::Missing);
        self.files.iter().filter(against).map(|file| file.claimed.as_str())
    }

    /// The files that prove the claim false.
    pub fn against(&self) -> impl Iterator<Item = &FileVerdict> {
        self.files.iter().filter(|file| file.weight > Weight::None)
    }

    /// One sentence.
    pub fn reason(&self) -> String {
        match self.against().next() {
            Some(file) if self.false_done => format!("claimed DONE, but {} {}", file.claimed, file.reason),
            _ => match self.unchanged().next() {
                Some(file) => format!("{file} is claimed and did not change, which proves nothing"),
                None => "nothing speaks against the claim".to_owned(),
            },
        }
    }
}

/// Lays a claim beside the facts.
pub fn judge(claim: &Claim, facts: &Facts<'_>) -> Verdict {
    let cache = FactCache::new(facts);
    let mut files: Vec<FileVerdict> =
        claim.files.iter().map(|path| cache.file(path, claim.gone.contains(path))).collect();
    let no_path = |text: &String| FileVerdict::new(text, Landing::CannotVerify, "is no path");
    files.extend(claim.unparsed.iter().map(no_path));
    let claimed: Vec<String> = claim.files.iter().flat_map(|path| cache.inside(path)).collect();
    let covered = |path: &&String| {
        claimed
            .iter()
            .any(|own| own == *path || path.strip_prefix(own.as_str()).is_some_and(|rest| rest.starts_with('/')))
    };
    let unclaimed: Vec<String> = facts.delta.changed.iter().filter(|path| !covered(path)).cloned().collect();
    let weight = files.iter().map(|file| file.weight).max().unwrap_or(Weight::None);
    Verdict {
        unclaimed,
        observed: facts.delta.changed.clone(),
        false_done: claim.status == Some(Status::Done) && weight > Weight::None,
        ambiguous: !facts.delta.clean_before,
        proven: weight == Weight::Transcript,
        files,
    }
}
