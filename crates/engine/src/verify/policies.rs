//! Phase one: are the kept policies the ones the rows name, and whose word are they?

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use writ_agentfile::placed::Placed;
use writ_clients::Client;
use writ_core::{Digest, Timestamp};
use writ_policy::{Limit, Policy, strictest};

use super::phase::{Outcome, Phase, Standing};
use super::phase_names::EXPIRY;
use crate::Home;
use crate::governing::in_force::PolicyRef;
use crate::governing::kept;
use crate::governing::layers::{self, LayerRef};
use crate::governing::{self, Signed, Trust, When, unenforced};
use crate::session::state::State;

/// Most policies that a session keeps, and most that its rows name.
const MOST: usize = 1000;

/// Most bytes of policies, and of lists of layers, that are held. What finds no room counts as not kept.
const ROOM: usize = 16 << 20;

/// The policy files kept with a session.
pub struct Kept {
    /// By the digest of their bytes as they are now.
    pub kept: HashMap<Digest, Vec<u8>>,
    /// Lists of layers, by the digest of their bytes.
    lists: HashMap<Digest, Vec<u8>>,
    /// Files whose name is not the digest of their bytes.
    changed: Vec<String>,
}

/// Whether the policy that governed last was in force as long as the session went on; nothing where it never ends. One that has expired
/// since then was good for the session.
pub fn expiry(policy: &Policy, last: Option<Timestamp>) -> Option<Phase> {
    let ((at, text), last) = policy.expires().zip(last)?;
    let (outcome, summary) = if last > at {
        (Outcome::Failed, format!("the policy expired on {text}, and the session went on until {last}"))
    } else if Timestamp::now() > at {
        (Outcome::Passed, format!("the policy was in force until the session's last row; it expired since, on {text}"))
    } else {
        (Outcome::Passed, format!("the policy expires on {text}"))
    };
    Some(Phase { name: EXPIRY, outcome, standing: Standing::Observed, summary, findings: Vec::new() })
}

#[cfg(test)]
impl Kept {
    pub(super) fn of(kept: HashMap<Digest, Vec<u8>>) -> Self {
        Self { kept, lists: HashMap::new(), changed: Vec::new() }
    }
}

/// Reads `policies/` and `layers/`.
pub fn read(folder: &Path) -> Kept {
    let mut changed = Vec::new();
    let kept = by_digest(&folder.join("policies"), &mut changed);
    let lists = by_digest(&folder.join("layers"), &mut changed);
    Kept { kept, lists, changed }
}

fn by_digest(folder: &Path, changed: &mut Vec<String>) -> HashMap<Digest, Vec<u8>> {
    let (mut out, mut room) = (HashMap::new(), ROOM);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten().take(MOST) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(bytes) = governing::read(&entry.path()) else { continue };
        let Some(left) = room.checked_sub(bytes.len()) else { continue };
        room = left;
        let digest = Digest::of(&bytes);
        if digest.hex() == name {
            out.insert(digest, bytes);
        } else {
            changed.push(name);
        }
    }
    out
}

/// The policies that rows say governed.
#[derive(Default)]
pub struct Named {
    /// Each with the moment of the first row that it governed: its signers' certificates had to be valid then.
    policies: Vec<(PolicyRef, Timestamp)>,
    governs: Option<PolicyRef>,
    more: bool,
    ungoverned: bool,
    /// What became of the policy's file, as the last row tells, and how often it became something else.
    told: Option<String>,
    changes: u64,
}

impl Named {
    /// Takes the state of the next row.
    pub fn row(&mut self, state: &State, at: Timestamp) {
        if state.told != self.told {
            self.changes += u64::from(state.told.is_some());
            self.told.clone_from(&state.told);
        }
        if self.governs != state.policy {
            self.governs.clone_from(&state.policy);
        }
        match &state.policy {
            None => self.ungoverned = true,
            Some(policy) if self.policies.iter().rev().any(|(known, _)| known == policy) => {}
            Some(_) if self.policies.len() == MOST => self.more = true,
            Some(policy) => self.policies.push((policy.clone(), at)),
        }
    }
}

impl Named {
    /// The one that governed last.
    pub const fn last(&self) -> Option<&PolicyRef> {
        self.governs.as_ref()
    }

    /// The moment of the first row that it governed.
    pub fn since(&self) -> Option<Timestamp> {
        let last = self.last()?;
        self.policies.iter().find(|(known, _)| known == last).map(|(_, at)| *at)
    }
}

/// Checks every policy that a row says governed.
pub fn check(named: &Named, policies: &Kept, home: &Home) -> Phase {
    let Named { policies: named, more, ungoverned, changes, .. } = named;
    let mut findings: Vec<String> =
        policies.changed.iter().map(|name| format!("the kept policy {name} is not what its name says")).collect();
    let mut good = Vec::new();
    if *more {
        findings.push(format!("the rows name more than {MOST} policies"));
    }
    for (policy, at) in named {
        match one(policy, *at, policies, home) {
            Ok(text) => good.push(text),
            Err(why) => findings.push(format!("policy `{}` {}: {why}", policy.name, policy.file)),
        }
    }
    if named.is_empty() && *ungoverned && findings.is_empty() {
        let summary = "no policy governed: only claims are on record".to_owned();
        return Phase { name: "policy", outcome: Outcome::Absent, standing: Standing::Observed, summary, findings };
    }
    if named.is_empty() || *ungoverned {
        findings.push("a row names no policy".to_owned());
    }
    let (outcome, summary) = if findings.is_empty() {
        let remark = match changes {
            0 => String::new(),
            times => format!(" (its file changed or was gone, {times} times; the accepted copy went on governing)"),
        };
        (Outcome::Passed, format!("{}{remark}", good.join("; then ")))
    } else {
        (Outcome::Failed, "the policy is not the one on record".to_owned())
    };
    Phase { name: "policy", outcome, standing: Standing::Observed, summary, findings }
}

/// One phase for each field of these policies that nothing in a session enforces (R75).
pub fn absent(named: &Named, policies: &Kept, client: Option<&dyn Client>) -> Vec<Phase> {
    let mut fields: Vec<String> = Vec::new();
    for (named, _) in &named.policies {
        let list = list(named, policies).unwrap_or_default();
        let read = |layer: &LayerRef| document_of(&named.path, layer.file, policies).ok();
        let layers: Vec<_> = list.iter().filter_map(|layer| Some((layer, read(layer)?))).collect();
        let layers: Vec<_> = layers.iter().map(|(layer, policy)| (*layer, policy)).collect();
        let Ok(root) = document(named, policies) else { continue };
        for pointer in unenforced::fields(&root, &named.signed, &layers, client) {
            // A whole field by its name, a member of one by its pointer.
            let whole = pointer.trim_start_matches('/');
            let field = if whole.contains('/') { pointer.clone() } else { whole.to_owned() };
            if !fields.contains(&field) {
                fields.push(field);
            }
        }
    }
    let one = |field: String| Phase {
        name: "enforcement",
        outcome: Outcome::Absent,
        standing: Standing::Observed,
        summary: format!("nothing in this session enforced `{field}`"),
        findings: Vec::new(),
    };
    fields.into_iter().map(one).collect()
}

/// The policy that a row names, from the bytes that were kept.
pub fn document(named: &PolicyRef, policies: &Kept) -> Result<Policy, String> {
    document_of(&named.path, named.file, policies)
}

/// The policy whose file has a digest, as one at `path`.
pub fn document_of(path: &Path, file: Digest, policies: &Kept) -> Result<Policy, String> {
    let bytes = policies.kept.get(&file).ok_or_else(|| format!("the policy {file} was not kept"))?;
    kept::document(path, bytes)
}

/// The list of a policy's layers, as it was kept.
pub fn list(named: &PolicyRef, policies: &Kept) -> Result<Vec<LayerRef>, String> {
    let Some(digest) = named.layers else { return Ok(Vec::new()) };
    let bytes = policies.lists.get(&digest).ok_or("the list of its layers was not kept, or was changed since")?;
    layers::parse(bytes).ok_or_else(|| "the list of its layers does not read".to_owned())
}

/// What a policy and its layers let a session as a whole use, as far as they were kept.
pub fn limits(named: &PolicyRef, policies: &Kept) -> Vec<Limit> {
    let list = list(named, policies).unwrap_or_default();
    let files = std::iter::once(named.file).chain(layers::counted(&list).map(|layer| layer.file));
    let documents: Vec<Policy> = files.filter_map(|file| document_of(&named.path, file, policies).ok()).collect();
    strictest(documents.iter().flat_map(Policy::limits))
}

/// Whether somebody whom the verifier trusts signed the policy whose file has a digest, in the place of its functionaries where it names some.
pub fn is_trusted(path: &Path, file: Digest, policies: &Kept, (trust, at): (&Trust, Timestamp)) -> bool {
    let Some(bytes) = policies.kept.get(&file) else { return false };
    let Ok(policy) = kept::document(path, bytes) else { return false };
    let signed = governing::unwrap(path, bytes, trust, When::At(at));
    signed.is_ok_and(|(_, signed)| governing::among(policy.functionaries(), signed).is_trusted())
}

/// Checks that the list is what the policies say, and names each layer with its digest.
fn layers_of(named: &PolicyRef, at: Timestamp, policies: &Kept, trust: &Trust) -> Result<Vec<String>, String> {
    let list = list(named, policies)?;
    let policy = |layer: &LayerRef| document_of(&named.path, layer.file, policies);
    layers::check(&document(named, policies)?, &named.path, &list, &policy)?;
    let told = |layer: &LayerRef| {
        let bytes = policies.kept.get(&layer.file).ok_or("a layer was not kept")?;
        let opened = governing::unwrap(Path::new(&layer.place()), bytes, trust, When::At(at));
        let (_, signed) = opened.map_err(|error| error.to_string())?;
        Ok(format!("`{}` {} for {}, {}", layer.name, layer.digest, layer.about(), word(&signed)))
    };
    list.iter().map(told).collect()
}

fn word(signed: &Signed) -> String {
    match signed {
        Signed::Plain => "not signed".to_owned(),
        Signed::UnknownKey(reasons) if reasons.is_empty() => "signed by a key not trusted here".to_owned(),
        Signed::UnknownKey(reasons) => format!("signed by nobody trusted here: {}", reasons.join("; ")),
        Signed::NoFunctionary => "signed by none of its functionaries".to_owned(),
        Signed::By(_) | Signed::Accepted(_) => format!("signed by {}", signed.signers().unwrap_or_default().join(", ")),
    }
}

fn one(named: &PolicyRef, at: Timestamp, policies: &Kept, home: &Home) -> Result<String, String> {
    let bytes = policies.kept.get(&named.file).ok_or("it was not kept, or was changed since")?;
    let trust = Trust::open(home.state.as_deref());
    let opened = governing::unwrap(&named.path, bytes, &trust, When::At(at));
    let (inner, signed) = opened.map_err(|error| error.to_string())?;
    if Digest::of(inner.as_deref().unwrap_or(bytes)) != named.digest {
        return Err("the document inside is another".to_owned());
    }
    let signed = governing::among(document(named, policies)?.functionaries(), signed);
    let layers = layers_of(named, at, policies, &trust)?;
    let layers = if layers.is_empty() { String::new() } else { format!("; with {}", layers.join(", and ")) };
    let word = match (named.own, Placed::of(bytes)) {
        (true, Some(Placed { manifest: Some(package), .. })) => format!("the Agentfile of the package {package}"),
        (true, Some(_)) => "an Agentfile, with the place that it ran in".to_owned(),
        (true, None) => "Writ's own, to learn one".to_owned(),
        (false, _) => word(&signed),
    };
    Ok(format!("`{}` {}, {word}{layers}", named.name, named.digest))
}
