//! Applies of Terraform plans in a shell line, and the attestations that speak for the plans.

use std::path::{Path, PathBuf};

/// Where the attestation of a plan file is put, and looked for: `tfplan` has `tfplan.attestation.json`.
pub fn beside(plan: &Path) -> PathBuf {
    let mut name = plan.as_os_str().to_owned();
    name.push(".attestation.json");
    PathBuf::from(name)
}
