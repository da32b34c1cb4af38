//! What a shell offers for a word, beside options: sessions on record, policies, keys, schemas.
//!
//! Reads names alone, and says nothing where they cannot be had: a completion is no place for errors.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter};
use writ_engine::governing::{NAMES, repository};
use writ_engine::session::state::State;
use writ_store::Store;

use crate::{environment, schemas};

/// Most sessions that are offered.
const MOST: usize = 50;

/// Sessions on record, those of this repository first, the newest before others.
pub fn sessions() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| offered(word).unwrap_or_default())
}

fn offered(word: &OsStr) -> Option<Vec<CompletionCandidate>> {
    let word = word.to_str()?;
    let home = environment::home();
    let store = Store::open(home.state().ok()?.to_owned()).ok()?;
    let cwd = environment::cwd().ok()?;
    let mut found = Vec::new();
    for id in store.sessions().ok()?.into_iter().filter(|id| id.as_str().starts_with(word)) {
        let (Ok(Some(first)), Ok(Some(last))) = (store.first_row(&id), store.last_row(&id)) else { continue };
        let began = first.detail.get("cwd").and_then(|cwd| cwd.as_str()).unwrap_or_default().to_owned();
        let here = repository(Path::new(&began)) == repository(&cwd);
        let policy = State::from_detail(&last.detail).map(|state| state.policy_name().to_owned()).unwrap_or_default();
        found.push((
            !here,
            std::cmp::Reverse(last.timestamp),
            id.to_string(),
            format!("{} {policy} {began}", last.timestamp),
        ));
    }
    found.sort();
    let candidate = |(.., id, help): (_, _, String, String)| {
        CompletionCandidate::new(id).help(Some(writ_core::visible::line(&help).into_owned().into()))
    };
    Some(found.into_iter().take(MOST).map(candidate).collect())
}

/// The tools of the Agentfile here.
pub fn tools() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| {
        let named = || {
            let (bytes, word) = (fs::read(environment::cwd().ok()?.join("Agentfile")).ok()?, word.to_str()?);
            let (agent, _) = writ_agentfile::parse(&bytes, "Agentfile");
            let names = agent.tools().map(|(_, tool)| writ_agentfile::tool_name(&agent, tool));
            Some(names.filter(|name| name.starts_with(word)).map(CompletionCandidate::new).collect())
        };
        named().unwrap_or_default()
    })
}

/// Policies: files of their names, and folders on the way.
pub fn policies() -> ArgValueCompleter {
    ArgValueCompleter::new(PathCompleter::any().filter(|path: &Path| path.is_dir() || is_policy(path)))
}

fn is_policy(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    NAMES.contains(&name.as_str()) || name.ends_with(".aflock") || name.ends_with(".aflock.signed")
}

/// Keys: PEM files, and folders on the way.
pub fn keys() -> ArgValueCompleter {
    ArgValueCompleter::new(PathCompleter::any().filter(|path: &Path| path.is_dir() || is_key(path)))
}

fn is_key(path: &Path) -> bool {
    let ending = path.extension().is_some_and(|ending| ending == "pem" || ending == "pub" || ending == "key");
    ending || fs::read(path).is_ok_and(|bytes| bytes.len() < 1 << 16 && bytes.starts_with(b"-----BEGIN"))
}

/// Schemas, with the commands that each is for.
pub fn schemas() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| {
        let named =
            schemas::ALL.iter().filter(|schema| word.to_str().is_some_and(|word| schema.name.starts_with(word)));
        named
            .map(|schema| CompletionCandidate::new(schema.name).help(Some(schema.commands.join(", ").into())))
            .collect()
    })
}

/// Ids of keys that are pinned.
pub fn pinned() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| {
        let state = environment::home().state;
        let trust = writ_engine::governing::Trust::open(state.as_deref());
        let ids = trust.keys().unwrap_or_default().into_iter().map(|key| key.key_id().hex());
        ids.filter(|id| word.to_str().is_some_and(|word| id.starts_with(word))).map(CompletionCandidate::new).collect()
    })
}
