//! Whose yes a policy accepts: the keys that it names, beside those that are known here.

use std::path::Path;

use writ_core::Digest;
use writ_policy::Policy;
use writ_store::regular_file;

use crate::governing::kept;

/// Largest kept policy.
const MAX: u64 = 8 << 20;

/// Whether each policy that an action was judged under accepts a yes by these signers. `policy` gives the one of a file's digest; one
/// that cannot be had accepts none.
pub fn accepted(
    files: &[Digest],
    signers: &[Digest],
    policy: impl Fn(Digest) -> Result<Policy, String>,
) -> Result<(), String> {
    for file in files {
        let policy = policy(*file)?;
        let Some(keys) = policy.approval_keys() else { continue };
        if !signers.iter().any(|signer| keys.contains(signer)) {
            return Err(format!("policy `{}` wants it signed with one of the keys in `approvals.keys`", policy.name()));
        }
    }
    Ok(())
}

/// The policy of a file's digest, as a session's folder keeps it. Its patterns hang off nothing: only its words are asked for.
pub fn kept_in(folder: &Path, file: Digest) -> Result<Policy, String> {
    let path = folder.join("policies").join(file.hex());
    let bytes = regular_file::read(&path, MAX).ok().filter(|bytes| Digest::of(bytes) == file);
    let bytes = bytes.ok_or_else(|| format!("the policy {file} is not as it was kept"))?;
    kept::document(Path::new("/.aflock"), &bytes)
}
