//! What this machine allows, tried once a boot.
//!
//! Owns the kept result. Refuses one of another boot or another user. Invariant: nothing is said to be held that was not seen to
//! work since this boot.

use std::io;
use std::path::Path;

use writ_core::json;
use writ_policy::Confine;
use writ_sandbox::{Features, Level};
use writ_store::{Store, StoreError, regular_file};

/// Its name in Writ's state.
const KEPT: &str = "sandbox.json";
/// Largest kept result.
const MAX_KEPT: u64 = 64 << 10;

/// Why a call cannot be confined.
#[derive(Debug, thiserror::Error)]
pub enum StrengthError {
    /// The trials themselves failed.
    #[error("what this machine allows cannot be found out: {0}")]
    Probe(io::Error),
    /// The result cannot be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nothing at all can be held here.
    #[error("this kernel or container holds nothing: not even filters on system calls")]
    Nothing,
    /// Weaker than the policy wants.
    #[error("only `{had}` can be had here and the policy wants at least `{wanted}`: {missing} is missing")]
    TooWeak {
        /// What can be had.
        had: &'static str,
        /// What is wanted.
        wanted: &'static str,
        /// The first layer that is not there.
        missing: String,
    },
}

/// What was found in this boot; found out now if nobody has yet.
pub fn features(store: &Store) -> Result<Features, StrengthError> {
    if let Some(kept) = kept(&store.root().join(KEPT)) {
        return Ok(kept);
    }
    let features = Features::probe().map_err(StrengthError::Probe)?;
    store.keep(KEPT, json::to_canonical(&features).as_bytes())?;
    Ok(features)
}

fn kept(path: &Path) -> Option<Features> {
    let bytes = regular_file::read(path, MAX_KEPT).ok()?;
    json::from_slice::<Features>(&bytes).ok().filter(Features::still_hold)
}

/// The level that calls are held at.
pub fn level(features: &Features, wanted: Confine) -> Result<Level, StrengthError> {
    let level = features.level().ok_or(StrengthError::Nothing)?;
    if level.number() >= wanted.at_least {
        return Ok(level);
    }
    let levels = [Level::Filters, Level::Landlock, Level::Namespaces, Level::Full];
    let least = levels.into_iter().find(|level| level.number() == wanted.at_least).unwrap_or(Level::Full);
    let missing = features.missing(least).first().map_or_else(String::new, ToString::to_string);
    Err(StrengthError::TooWeak { had: word(level), wanted: word(least), missing })
}

/// As a policy writes it.
pub fn word(level: Level) -> &'static str {
    json::word(&level)
}
