//! What an Agentfile mounts, in the sandbox of its run.
//!
//! Owns the names that lead to folders of this machine (`BIND`), and copies of these that end with the run. Refuses a copy that cannot be
//! made. Invariant: a name leads to what the policy gives and nothing else, so that all that is held there is held by that name too. Page:
//! `spec/agentfile.md`, "A run".

use std::path::Path;

use writ_agentfile::placed::PACKAGE;
use writ_policy::Policy;
use writ_sandbox::{Confinement, Features, HostPath, Link, Reading};

use super::{copy, layers};
use crate::session::Session;

/// What the root's policy shows under other names, and what of it goes to copies that end with the run.
pub fn add(
    session: &Session<'_>,
    policies: &[&Policy],
    confinement: &mut Confinement,
    features: &Features,
) -> Result<(), String> {
    let path = |text: &str| HostPath::new(text).map_err(|error| format!("`{text}`: {error}"));
    for mounted in policies.first().map(|policy| policy.mounted()).unwrap_or_default() {
        if mounted.at != mounted.host {
            confinement.links.push(Link { name: path(&mounted.at)?, target: path(&mounted.host)? });
        }
        if mounted.copied {
            let folder = session.store.folder(&session.id);
            let layers = (folder.as_path(), layers::LAYER);
            copy::into_layers(confinement, Path::new(&mounted.host), layers, features)
                .map_err(|error| format!("`BIND {} {} copy`: {error}", mounted.host, mounted.at))?;
        }
        if mounted.at == PACKAGE && confinement.reading == Reading::Closed {
            // Folders above it are only names on the way to it, and none of the host's, unless something writable holds them.
            let given = confinement.writable.clone();
            let is_given = |kept: &Path| given.iter().any(|path| kept.starts_with(path.as_path()));
            let is_above = |kept: &Path| Path::new(&mounted.host).ancestors().skip(1).any(|above| above == kept);
            confinement.read_only.retain(|kept| !is_above(kept.as_path()) || is_given(kept.as_path()));
        }
    }
    Ok(())
}
