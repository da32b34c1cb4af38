//! Phase one: are the kept policies the ones the rows name, and whose word are they?

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use writ_core::Digest;
use writ_evidence::row::Row;

use super::report::{Outcome, Phase, Standing};
use crate::governing::{self, Signed};
use crate::state::{PolicyRef, State};
use crate::{Home, Trust};

/// The policy files kept with a session.
pub struct Kept {
    /// By the digest of their bytes as they are now.
    pub kept: HashMap<Digest, Vec<u8>>,
    /// Files whose name is not the digest of their bytes.
    changed: Vec<String>,
}

/// Reads `policies/`.
pub fn read(folder: &Path) -> Kept {
    let mut out = Kept { kept: HashMap::new(), changed: Vec::new() };
    for entry in fs::read_dir(folder.join("policies")).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(bytes) = governing::read(&entry.path()) else { continue };
        let digest = Digest::of(&bytes);
        if digest.hex() == name {
            out.kept.insert(digest, bytes);
        } else {
            out.changed.push(name);
        }
    }
    out
}

/// Checks every policy that a row says governed.
pub fn check(rows: &[Row], policies: &Kept, home: &Home) -> Phase {
    let mut named: Vec<PolicyRef> = Vec::new();
    let mut ungoverned = false;
    for state in rows.iter().filter_map(|row| State::from_detail(&row.detail)) {
        match state.policy {
            Some(policy) if !named.contains(&policy) => named.push(policy),
            Some(_) => {}
            None => ungoverned = true,
        }
    }
    let mut findings: Vec<String> =
        policies.changed.iter().map(|name| format!("the kept policy {name} is not what its name says")).collect();
    let mut good = Vec::new();
    for policy in &named {
        match one(policy, policies, home) {
            Ok(text) => good.push(text),
            Err(why) => findings.push(format!("policy `{}` {}: {why}", policy.name, policy.file)),
        }
    }
    if named.is_empty() && ungoverned && findings.is_empty() {
        let summary = "no policy governed: only claims are on record".to_owned();
        return Phase { name: "policy", outcome: Outcome::Absent, standing: Standing::Observed, summary, findings };
    }
    if named.is_empty() || ungoverned {
        findings.push("a row names no policy".to_owned());
    }
    let (outcome, summary) = if findings.is_empty() {
        (Outcome::Passed, good.join("; then "))
    } else {
        (Outcome::Failed, "the policy is not the one on record".to_owned())
    };
    Phase { name: "policy", outcome, standing: Standing::Observed, summary, findings }
}

fn one(named: &PolicyRef, policies: &Kept, home: &Home) -> Result<String, String> {
    let bytes = policies.kept.get(&named.file).ok_or("it was not kept, or was changed since")?;
    let trust = Trust::open(home.state.as_deref());
    let (inner, signed) = governing::unwrap(&named.path, bytes, || trust.keys()).map_err(|error| error.to_string())?;
    if Digest::of(inner.as_deref().unwrap_or(bytes)) != named.digest {
        return Err("the document inside is another".to_owned());
    }
    let word = match signed {
        Signed::Plain => "not signed".to_owned(),
        Signed::Stranger => "signed by a key not trusted here".to_owned(),
        Signed::By(signers) => format!("signed by {}", signers.join(", ")),
    };
    Ok(format!("`{}` {}, {word}", named.name, named.digest))
}
