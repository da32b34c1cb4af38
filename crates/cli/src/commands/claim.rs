//! `writ claim`: the parts of the DONE-claim check by themselves, as the seed's command line has them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use writ_claims::{Claim, Delta, Facts, Limits, Snapshot, Verdict, judge};
use writ_core::json::{self, Object, Value};
use writ_engine::claims::acts_of;

use crate::args::{ClaimCommand, ClaimVerifyArgs};
use crate::exit::Failure;
use crate::{environment, input, output};

/// Runs one of them.
pub fn run(command: &ClaimCommand) -> Result<(), Failure> {
    match command {
        ClaimCommand::Parse { file } => {
            output::print_json(&Claim::parse(&input::text(file)?).to_json());
            Ok(())
        }
        ClaimCommand::Snapshot { repo } => {
            let (snapshot, _) = Snapshot::take(repo, &limits()).map_err(Failure::could_not)?;
            output::print_json(&snapshot.to_json());
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
    let before = Snapshot::from_json(&before).ok_or_else(shape)?;
    let (after, repository) = Snapshot::take(&args.repo, &limits()).map_err(Failure::could_not)?;
    let delta = Delta::between(&before, &after, &repository.root, &limits()).map_err(Failure::could_not)?;
    let home = environment::home();
    let folders: Vec<PathBuf> = [Some(args.repo.clone()), environment::cwd().ok()].into_iter().flatten().collect();
    let folders: Vec<PathBuf> = folders.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
    let acts = args.transcript.as_deref().map(|path| acts_of(path, &home)).unwrap_or_default();
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
fn shown(verdict: &Verdict, files: bool) -> Value {
    let texts = |items: &mut dyn Iterator<Item = &str>| Value::Array(items.map(Value::from).collect());
    let mut out = Object::new();
    out.push("claimed_but_unchanged", texts(&mut verdict.unchanged()));
    out.push("observed_but_unclaimed", texts(&mut verdict.unclaimed.iter().map(String::as_str)));
    out.push("false_done", Value::from(verdict.false_done));
    out.push("ambiguous", Value::from(verdict.ambiguous));
    out.push("reason", Value::from(verdict.reason()));
    if files {
        out.push("files", verdict.files_json());
    }
    Value::Object(out)
}

fn limits() -> Limits {
    let default = Limits::default();
    Limits { max_hash_bytes: environment::home().claims.max_hash_bytes.unwrap_or(default.max_hash_bytes), ..default }
}
