//! `writ claim`: the parts of the DONE-claim check by themselves, as the seed's command line has them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;
use writ_claims::{Claim, Delta, Facts, FileVerdict, Limits, Snapshot, Verdict, judge};
use writ_clients::DEFAULT;
use writ_core::json;
use writ_engine::claims::acts_of;

use crate::args::{ClaimCommand, ClaimVerifyArgs};
use crate::exit::Failure;
use crate::{environment, input, output};

/// Runs one of them.
pub fn run(command: &ClaimCommand) -> Result<(), Failure> {
    match command {
        ClaimCommand::Parse { file } => {
            output::print_json(&Claim::parse(&input::text(file)?));
            Ok(())
        }
        ClaimCommand::Snapshot { repo } => {
            let (snapshot, _) = Snapshot::take(repo, &limits()).map_err(Failure::could_not)?;
            output::print_json(&snapshot);
            Ok(())
        }
        ClaimCommand::Verify(args) => verify(args),
    }
}

fn verify(args: &ClaimVerifyArgs) -> Result<(), Failure> {
    let claim = Claim::parse(&input::text(&args.claim_file)?);
    let before = input::text(&args.before)?;
    let unreadable = |why: String| Failure::could_not(format!("{}: {why}", args.before.display()));
    let before =
        json::parse_with(before.as_bytes(), json::Limits::FOREIGN).map_err(|error| unreadable(error.to_string()))?;
    let shape = || unreadable("expected {path: fingerprint}, as `writ claim snapshot` prints it".to_owned());
    let before: Snapshot = json::from_value(&before).map_err(|_other| shape())?;
    let (after, repository) = Snapshot::take(&args.repo, &limits()).map_err(Failure::could_not)?;
    let delta = Delta::between(&before, &after, &repository.root, &limits()).map_err(Failure::could_not)?;
    let home = environment::home();
    let folders: Vec<PathBuf> = [Some(args.repo.clone()), environment::cwd().ok()].into_iter().flatten().collect();
    let folders: Vec<PathBuf> = folders.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
    let acts = args.transcript.as_deref().map(|path| acts_of(path, DEFAULT, &home)).unwrap_or_default();
    let facts = Facts {
        before: &before,
        since: std::fs::metadata(&args.before).and_then(|found| found.modified()).ok(),
        after: &after,
        delta: &delta,
        repository: &repository,
        folders: &folders,
        home: home.user.as_deref(),
        acts: &acts,
        others: &BTreeSet::new(),
        limits: &limits(),
    };
    let verdict = judge(&claim, &facts);
    output::print_json(&shown(&verdict, args.files));
    if args.exit_code && verdict.false_done { Err(Failure::No) } else { Ok(()) }
}

/// The seed's members, in its order.
#[derive(Serialize)]
struct Shown<'a> {
    claimed_but_unchanged: Vec<&'a str>,
    observed_but_unclaimed: &'a [String],
    false_done: bool,
    ambiguous: bool,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<&'a [FileVerdict]>,
}

fn shown(verdict: &Verdict, files: bool) -> Shown<'_> {
    Shown {
        claimed_but_unchanged: verdict.unchanged().collect(),
        observed_but_unclaimed: &verdict.unclaimed,
        false_done: verdict.false_done,
        ambiguous: verdict.ambiguous,
        reason: verdict.reason(),
        files: files.then_some(verdict.files.as_slice()),
    }
}

fn limits() -> Limits {
    let default = Limits::default();
    Limits { max_hash_bytes: environment::home().claims.max_hash_bytes.unwrap_or(default.max_hash_bytes), ..default }
}
