//! What the agent may not touch, whatever its policy says (R19).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use writ_core::Timestamp;
use writ_core::json::{self, Value};
use writ_policy::{Protected, Setting};

use super::find::{NAMES, repository};
use super::kept;
use super::layers::{self, LayerRef};
use super::lock::Lock;
use super::open::Governing;
use crate::Home;

/// The setting of a decision made at `now`, on this machine, under the policy at `policy`.
pub fn setting(home: &Home, policy: &Path, now: Timestamp) -> Setting {
    Setting { now, home: home.user_text(), protected: protected(home, policy) }
}

/// The session's own transcript, where it does not lie among what is protected anyway.
pub fn transcript(path: Option<&str>, known: &[Protected]) -> Option<Protected> {
    let path = path.filter(|path| path.starts_with('/') && !known.iter().any(|protected| protected.path == *path))?;
    Some(Protected { path: path.to_owned(), what: "a transcript of the client".to_owned(), secret: false })
}

/// Where copies of attestations go, so that the agent does not put others there. A folder that holds the policy itself gets none.
pub fn attestations(governing: &Governing) -> Option<Protected> {
    let wanted = governing.policy.document().get("attestationDir").and_then(Value::as_str)?;
    let place = kept::attestations(&governing.path, wanted)?;
    Some(Protected { path: place.to_str()?.to_owned(), what: "attestations of this session".to_owned(), secret: false })
}

/// The policy's rules in files of their own: they are as much the policy as its file.
pub fn rules(governing: &Governing) -> impl Iterator<Item = Protected> {
    // What a link leads to is as much the rule as the link.
    let mut places: BTreeSet<PathBuf> = governing.rules().into_iter().map(|(_, path)| path).collect();
    places.extend(places.clone().iter().filter_map(|path| path.canonicalize().ok()));
    let file = |path: PathBuf| {
        Some(Protected { path: path.to_str()?.to_owned(), what: "a rule of the policy".to_owned(), secret: false })
    };
    places.into_iter().filter_map(file)
}

/// The setting, under a policy with layers: their files are as much the policy as its own.
#[must_use]
pub fn with_layers(mut setting: Setting, list: &[LayerRef]) -> Setting {
    for file in layers::protected(list) {
        if !setting.protected.iter().any(|known| known.path == file.path) {
            setting.protected.push(file);
        }
    }
    setting
}

/// Reads the setting from a genesis row's detail; its moment is the epoch until a row's is put in.
pub fn recorded(genesis: &Value) -> Option<Setting> {
    json::from_value(genesis.get("setting")?).ok()
}

/// The policy and every name that could take its place, Writ's state and keys, the clients' settings.
fn protected(home: &Home, policy: &Path) -> Vec<Protected> {
    let mut out: Vec<Protected> = Vec::new();
    // What a link leads to is as much the policy as the link.
    let mut add = |path: &Path, what: &str, secret: bool| {
        for path in [Some(path.to_owned()), path.canonicalize().ok()].into_iter().flatten() {
            let path = path.to_string_lossy().into_owned();
            if !out.iter().any(|known| known.path == path) {
                out.push(Protected { path, what: what.to_owned(), secret });
            }
        }
    };
    add(policy, "the policy", false);
    add(&Lock::path(policy), "the policy's lock", false);
    if !policy.file_name().is_some_and(|own| NAMES.iter().any(|name| own == *name)) {
        // What an Agentfile is built on stands there.
        add(&policy.with_file_name(layers::AGENT_LOCK), "the Agentfile's lock", false);
    }
    let folder = policy.parent().unwrap_or(Path::new("/"));
    for dir in [folder, repository(folder)] {
        for name in NAMES {
            add(&dir.join(name), "a policy that would take its place", false);
        }
        for (_, places) in home.all_places(dir) {
            places.settings.iter().for_each(|path| add(path, "the client's settings", false));
            places.others.iter().for_each(|(path, what)| add(path, what, false));
        }
    }
    if let Some(program) = &home.program {
        add(program, writ_policy::PROGRAM, false);
    }
    if let Some(state) = &home.state {
        add(&state.join("keys"), "Writ's keys", true);
        add(state, "Writ's state", false);
    }
    out
}
