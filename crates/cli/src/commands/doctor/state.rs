//! The state folder: whether it can be written, who else can, and whether the ledger key is the one that sealed what is there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use writ_core::json::Value;
use writ_engine::Home;
use writ_store::{Store, StoreError};

use super::{Finding, bad, good};
use crate::environment;

/// Everything about the state folder.
pub fn check(home: &Home) -> Vec<Finding> {
    let mut out: Vec<Finding> = environment::not_absolute()
        .into_iter()
        .map(|(name, value)| {
            let remedy = format!("set {name} to a path that begins with `/`");
            bad(format!("{name} is `{value}`, which is no absolute path, and is not used"), remedy)
        })
        .collect();
    let Some(dir) = &home.state else {
        out.push(bad("there is nowhere to keep state", "set HOME or WRIT_STATE_DIR to an absolute path"));
        return out;
    };
    let probe = dir.join(".probe");
    let written = fs::create_dir_all(dir).and_then(|()| fs::write(&probe, b"")).and_then(|()| fs::remove_file(&probe));
    if let Err(error) = written {
        let shown = dir.display();
        let remedy = if dir.exists() && !dir.is_dir() {
            format!("move what is there away: `mv '{shown}' '{shown}.old'`")
        } else {
            format!("make it yours: `chmod u+rwx '{shown}'`; until then every governed call is denied")
        };
        out.push(bad(format!("{shown} cannot be written: {error}"), remedy));
        return out;
    }
    let Ok(store) = Store::open(dir.clone()) else { return out };
    out.extend(modes(dir, &store));
    out.extend(key(dir, &store));
    if out.iter().all(|finding| finding.good) {
        out.push(good(format!("state is kept in {}", dir.display())));
    }
    out
}

/// What others than the owner can write to, and keys that they can read.
fn modes(dir: &Path, store: &Store) -> Vec<Finding> {
    let others = |path: std::path::PathBuf| {
        bad(format!("others can write to {}", path.display()), format!("`chmod go-w '{}'`", path.display()))
    };
    let mut out: Vec<Finding> = store.exposed().into_iter().map(others).collect();
    let keys = dir.join("keys");
    let files = fs::read_dir(&keys).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in files.filter(|path| path.extension().is_some_and(|ending| ending == "pem" || ending == "json")) {
        let open = fs::metadata(&path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0);
        let private =
            fs::read_to_string(&path).is_ok_and(|text| text.contains("PRIVATE KEY") || text.contains("\"check\""));
        if open && private {
            let shown = path.display();
            out.push(bad(format!("others can use the key {shown}"), format!("`chmod 600 '{shown}'`")));
        }
    }
    out
}

/// The ledger key, held against the sessions that it should have sealed.
fn key(dir: &Path, store: &Store) -> Option<Finding> {
    let path = dir.join("keys/ledger.pem");
    let shown = path.display();
    let newest = store.sessions().ok().and_then(|sessions| sessions.into_iter().next());
    let aside = |path: &Path| format!("mv '{0}' '{0}.before'", path.display());
    // What another key sealed does not go on with a new one.
    let sealed = ["sessions", "heads", "begun"].map(|name| dir.join(name));
    let remedy = |broken: Option<&Path>| {
        let paths =
            broken.into_iter().chain(sealed.iter().map(std::path::PathBuf::as_path).filter(|path| path.exists()));
        let moves: Vec<String> = paths.map(aside).collect();
        format!("put the right key back at {shown}; without one, put aside what it sealed: `{}`", moves.join(" && "))
    };
    let held = match store.held_ledger_key() {
        Ok(held) => held.map(|key| key.public().key_id().to_string()),
        // Its mode is told among the modes, with the mend that keeps it.
        Err(StoreError::KeyExposed { .. }) => return None,
        Err(error) => return Some(bad(format!("the ledger key does not read: {error}"), remedy(Some(&path)))),
    };
    let genesis = store.first_row(&newest?).ok()??;
    let named = genesis.detail.get("key").and_then(Value::as_str)?;
    match held {
        Some(id) if id == named => None,
        Some(_) => Some(bad(format!("{shown} is not the key that the newest session began with"), remedy(None))),
        None => {
            Some(bad(format!("the ledger key {shown} is gone, though sessions were recorded with it"), remedy(None)))
        }
    }
}
