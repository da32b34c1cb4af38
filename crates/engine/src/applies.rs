//! Applies of Terraform plans in a shell line, and the attestations that speak for the plans.
//!
//! Owns finding the plan files and their verdicts; whether those suffice is the policy's to judge. Refuses verdicts of any instance but
//! this machine's own: nothing is fetched while a call waits. Invariant: a verdict is handed on only if its signature, its key and the
//! plan file's digest agree. Page: `spec/consequence.md`.

use std::path::{Path, PathBuf};

use writ_core::json;
use writ_core::{Digest, Timestamp};
use writ_evidence::attestation::Attestation;
use writ_evidence::registry::Registry;
use writ_policy::{Apply, PlanVerdict};
use writ_shell::{Command, Dir, Env, Word, analyze};
use writ_store::plain;

use crate::attested::{Action, covers, tier};
use crate::notary::Notary;
use crate::proof::Proof;

/// Largest plan file.
const MAX_PLAN: u64 = 256 << 20;
/// Largest attestation beside one.
const MAX_ATTESTATION: u64 = 64 << 20;
/// Programs that apply.
const PROGRAMS: [&str; 3] = ["terraform", "tofu", "terragrunt"];
/// Their options whose value is the next word.
const VALUED: [&str; 10] =
    ["var", "var-file", "target", "exclude", "replace", "state", "state-out", "backup", "lock-timeout", "parallelism"];

/// Where the attestation of a plan file is put, and looked for: `tfplan` has `tfplan.attestation.json`.
pub fn beside(plan: &Path) -> PathBuf {
    let mut name = plan.as_os_str().to_owned();
    name.push(".attestation.json");
    PathBuf::from(name)
}

/// The applies of a line, each with its verdict if it has one, and the proofs behind those.
pub fn find(line: &str, env: &Env, state: Option<&Path>, now: Timestamp) -> (Vec<Apply>, Vec<Proof>) {
    // Nearly every line names none of them; what hides its program's name is unresolved and judged as that.
    if !PROGRAMS.iter().any(|program| line.contains(program)) {
        return (Vec::new(), Vec::new());
    }
    let mut bench = Bench { state, now, registry: None, proofs: Vec::new() };
    let analysis = analyze(line, env);
    let mut applies: Vec<Apply> = Vec::new();
    for (command, plan) in analysis.commands.iter().filter_map(|command| Some((command, applied(command)?))) {
        let plans = match plan {
            Some((folder, plan)) => places(command, env, folder.as_deref(), &plan),
            None => vec![None],
        };
        for plan in plans {
            let verdict = plan.as_deref().and_then(|plan| bench.verdict(Path::new(plan)));
            applies.push(Apply { plan, span: command.span, verdict });
        }
    }
    (applies, bench.proofs)
}

/// A plan file's name, and the folder that `-chdir` names.
type Named = (Option<String>, String);

/// Whether a command applies, and the plan file it names, if it names one.
fn applied(command: &Command) -> Option<Option<Named>> {
    let (program, rest) = command.words.split_first()?;
    let program = program.literal()?;
    if !PROGRAMS.contains(&program.rsplit('/').next()?) {
        return None;
    }
    let words: Vec<Option<String>> = rest.iter().map(Word::literal).collect();
    let is = |word: &Option<String>, names: &[&str]| word.as_deref().is_some_and(|word| names.contains(&word));
    if words.iter().any(|word| is(word, &["-help", "--help", "-h"])) {
        return None;
    }
    // A word that is not known may be the subcommand.
    let at = words.iter().position(|word| word.as_deref().is_none_or(|word| !word.starts_with('-')))?;
    let (globals, rest) = words.split_at(at);
    let (subcommand, rest) = rest.split_first()?;
    match subcommand.as_deref() {
        Some("apply") if program.ends_with("terragrunt") => return Some(None),
        Some("apply") => {}
        None | Some("destroy") => return Some(None),
        Some("run" | "run-all") if rest.iter().any(|word| is(word, &["apply", "destroy"])) => return Some(None),
        Some(_) => return None,
    }
    let chdir = globals.iter().flatten().find_map(|word| word.trim_start_matches('-').strip_prefix("chdir="));
    let mut operands: Vec<&Option<String>> = Vec::new();
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        match word.as_deref().and_then(|word| word.strip_prefix('-')) {
            Some(option) if VALUED.contains(&option.trim_start_matches('-')) => drop(rest.next()),
            Some(_) => {}
            None => operands.push(word),
        }
    }
    match operands.as_slice() {
        [Some(plan)] => Some(Some((chdir.map(str::to_owned), plan.clone()))),
        _ => Some(None),
    }
}

/// Where the plan file lies, for every folder the command may run in.
fn places(command: &Command, env: &Env, chdir: Option<&str>, plan: &str) -> Vec<Option<String>> {
    let place = |dir: &Dir| {
        let Dir::Start(dir) = dir else { return None };
        let mut path = PathBuf::from(env.cwd.as_deref()?);
        path.push(dir);
        path.push(chdir.unwrap_or_default());
        path.push(plan);
        Some(path.to_string_lossy().into_owned())
    };
    command.dirs.iter().map(place).collect()
}

struct Bench<'a> {
    state: Option<&'a Path>,
    now: Timestamp,
    registry: Option<Option<Registry>>,
    proofs: Vec<Proof>,
}

impl Bench<'_> {
    fn verdict(&mut self, plan: &Path) -> Option<PlanVerdict> {
        let document = plain::read(&beside(plan), MAX_ATTESTATION).ok()?;
        let attestation = Attestation::parse(&document).ok()?;
        let bytes = plain::read(plan, MAX_PLAN).ok().filter(|bytes| bytes.len() as u64 <= MAX_PLAN)?;
        let digest = Digest::of(&bytes);
        let until = attestation.expires_at()?;
        if !covers(&attestation, &Action::PlanFile(digest)) || attestation.timestamp() > self.now {
            return None;
        }
        let registry = self.registry.get_or_insert_with(|| own_registry(self.state?, self.now)).as_ref()?;
        registry.check(&attestation).ok()?;
        let proof = Proof::new(attestation.canonical(), json::compact(&registry.to_json()));
        let verdict = PlanVerdict {
            plan: digest,
            attestation: proof.attestation,
            registry: proof.registry,
            tier: tier(&attestation)?,
            until,
        };
        self.proofs.push(proof);
        Some(verdict)
    }
}

/// The registry of this machine's instance, if it ever attested anything.
fn own_registry(state: &Path, now: Timestamp) -> Option<Registry> {
    state
        .join(writ_store::instance::FILE)
        .is_file()
        .then(|| Notary::open(state, None, None).ok()?.registry(now).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plans(line: &str) -> Vec<Option<String>> {
        let env = Env { home: None, cwd: Some("/w".to_owned()) };
        find(line, &env, None, Timestamp::from_millis(0)).0.into_iter().map(|apply| apply.plan).collect()
    }

    #[test]
    fn applies_and_their_plan_files() {
        let one = |plan: &str| vec![Some(plan.to_owned())];
        for (line, found) in [
            ("terraform apply tfplan", one("/w/tfplan")),
            ("tofu apply -auto-approve -lock-timeout 5s /p/tfplan", one("/p/tfplan")),
            ("terraform -chdir=infra apply tfplan", one("/w/infra/tfplan")),
            ("cd infra && terraform apply tfplan", one("/w/infra/tfplan")),
            ("sudo env A=b sh -c 'terraform apply -input=false tfplan'", one("/w/tfplan")),
            ("terraform apply", vec![None]),
            ("terraform apply -auto-approve -var a=b", vec![None]),
            ("terraform apply a b", vec![None]),
            ("terraform apply $PLAN", vec![None]),
            ("terraform $WHAT tfplan", vec![None]),
            ("terraform destroy", vec![None]),
            ("terragrunt run-all apply", vec![None]),
            ("terraform plan -out=tfplan && terraform show -json tfplan", vec![]),
            ("terraform apply -help", vec![]),
            ("echo terraform apply", vec![]),
        ] {
            assert_eq!(plans(line), found, "{line}");
        }
    }
}
