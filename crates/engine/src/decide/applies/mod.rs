//! Applies of Terraform plans in a shell line, and the attestations that speak for the plans.
//!
//! Owns the verdicts on the plan files; whether those suffice is the policy's to judge. Refuses verdicts of any instance but
//! this machine's own: nothing is fetched while a call waits. Invariant: a verdict is handed on only if its signature, its key and the
//! plan file's digest agree. Page: `spec/consequence.md`.

mod line;

use std::path::{Path, PathBuf};

use writ_core::json;
use writ_core::{Digest, Timestamp};
use writ_evidence::attestation::Attestation;
use writ_evidence::registry::Registry;
use writ_policy::{Apply, PlanVerdict};
use writ_shell::{Env, analyze};
use writ_store::regular_file;

use crate::attest::attested::{Action, covers, tier};
use crate::attest::issuer::Issuer;
use crate::attest::proofs::Proof;

/// Largest plan file.
const MAX_PLAN: u64 = 256 << 20;
/// Largest attestation beside one.
const MAX_ATTESTATION: u64 = 64 << 20;
/// Where the attestation of a plan file is put, and looked for: `tfplan` has `tfplan.attestation.json`.
pub fn beside(plan: &Path) -> PathBuf {
    let mut name = plan.as_os_str().to_owned();
    name.push(".attestation.json");
    PathBuf::from(name)
}

/// The applies of a line, each with its verdict if it has one, and the proofs behind those.
pub fn find(line: &str, env: &Env, state: Option<&Path>, now: Timestamp) -> (Vec<Apply>, Vec<Proof>) {
    let mut search = Search { state, now, registry: None, proofs: Vec::new() };
    let mut applies = line::applies(&analyze(line, env), env);
    for apply in applies.iter_mut().filter(|apply| apply.company.is_none()) {
        apply.verdict = apply.plan.as_deref().and_then(|plan| search.verdict(Path::new(plan)));
    }
    (applies, search.proofs)
}

struct Search<'a> {
    state: Option<&'a Path>,
    now: Timestamp,
    registry: Option<Option<Registry>>,
    proofs: Vec<Proof>,
}

impl Search<'_> {
    fn verdict(&mut self, plan: &Path) -> Option<PlanVerdict> {
        let document = regular_file::read(&beside(plan), MAX_ATTESTATION).ok()?;
        let attestation = Attestation::parse(&document).ok()?;
        let bytes = regular_file::read(plan, MAX_PLAN).ok()?;
        let digest = Digest::of(&bytes);
        let until = attestation.expires_at()?;
        if !covers(&attestation, &Action::PlanFile(digest)) || attestation.timestamp() > self.now {
            return None;
        }
        let registry = self.registry.get_or_insert_with(|| own_registry(self.state?, self.now)).as_ref()?;
        registry.check(&attestation).ok()?;
        let proof = Proof::new(attestation.canonical(), json::to_compact(&registry));
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
        .then(|| Issuer::open(state, None, None).ok()?.registry(now).ok())?
}
