//! The policy of a session: the one it begins under, and how its file stands to it since (R82).

use std::path::{Path, PathBuf};

use serde::Serialize;
use writ_core::{Digest, SessionId};
use writ_evidence::row::Row;
use writ_store::Store;

use super::state::State;
use super::{Blocked, Session, SessionError};
use crate::governing::in_force::{self, InForce, Open, Told};
use crate::governing::layers::Caller;
use crate::governing::{self, Governing, Trust, kept};

impl Session<'_> {
    /// The policy as a human last accepted it and what became of its file, or what stands in its way. Looked at once.
    pub fn policy(&self) -> Result<&InForce, &Blocked> {
        let look = || {
            let accepted = self.state.policy.as_ref().ok_or(Blocked::Ungoverned)?;
            let trust = Trust::open(self.home.state.as_deref());
            in_force::of(accepted, &self.store.folder(&self.id), &trust).map_err(Blocked::Unusable)
        };
        self.in_force.get_or_init(look).as_ref()
    }

    /// Records it once when the policy's file is no longer the accepted one, or is again. Gives what the human is to be told.
    pub fn notice(&mut self) -> Result<Option<String>, SessionError> {
        let Some(policy) = self.state.policy.clone() else { return Ok(None) };
        // Most events need no more than to know that nothing changed.
        let same = || in_force::is_unchanged(&policy, &self.store.folder(&self.id));
        if self.in_force.get().is_none() && self.state.told.is_none() && !self.state.pending && same() {
            return Ok(None);
        }
        let Ok(in_force) = self.policy() else { return Ok(None) };
        let told = in_force.told();
        let key = in_force::key(&told);
        if key == self.state.told {
            let pending = self.fresh && self.state.pending;
            return Ok(pending.then(|| format!("writ: {}", in_force::pending(&policy.path))));
        }
        let message = in_force.tell().map(|text| format!("writ: {text}"));
        for layer in in_force.changes.iter().filter_map(|changed| changed.change.layer()) {
            self.keep_file(layer.file, &layer.bytes)?;
        }
        let repository = in_force::repository(policy.root());
        let event = if key.is_some() { "policy-changed" } else { "policy-restored" };
        if key.is_some() {
            let open = Open { path: policy.path.clone(), file: Digest::of(&kept::whole(&in_force.accepted)) };
            self.store.leave_open(repository, &open.to_bytes())?;
        } else if !self.state.pending {
            self.store.settle(repository)?;
        }
        let draft = self.event(event, Found { changes: &told });
        self.state.told = key;
        self.append(draft)?;
        Ok(message)
    }
}

/// What became of the policy's files: nothing where all are the accepted ones again.
#[derive(Serialize)]
struct Found<'a> {
    changes: &'a [Told],
}

/// The policy that a new session begins under, and whether a human has to settle something first (R82). Where an earlier
/// session's policy changed or vanished, one that nobody has accepted here does not begin a session: the accepted one does.
pub fn first_policy(store: &Store, cwd: &Path, trust: &Trust) -> Result<(Governing, bool), SessionError> {
    let repository = in_force::repository(cwd);
    let left = in_force::left_open(store, cwd)?;
    let found = governing::find(cwd);
    let opened = match (&found, &left) {
        (Some(path), _) => Some(governing::open(path, None, trust)),
        (None, Some(_)) => None,
        (None, None) => return Err(SessionError::Vanished),
    };
    if let Some(Ok(governing)) = &opened {
        let whole = kept::whole(governing);
        if left.is_none() || store.accepted(repository, Digest::of(&whole))?.is_some() {
            store.keep_accepted(repository, Digest::of(&whole), &whole)?;
            return Ok((governing.clone(), false));
        }
    }
    let kept = match &left {
        Some(open) => store.accepted(repository, open.file)?.map(|bytes| (open, bytes)),
        None => None,
    };
    match (kept, opened) {
        (Some((open, bytes)), _) => Ok((kept::open_whole(&open.path, bytes, trust)?, true)),
        (None, Some(opened)) => Ok((opened?, left.is_some())),
        (None, None) => Err(SessionError::Vanished),
    }
}

/// The policy that a human named for a new session. Where an earlier one left something open, that stays open.
pub fn named_policy(store: &Store, cwd: &Path, path: &Path, trust: &Trust) -> Result<(Governing, bool), SessionError> {
    let governing = governing::open(path, None, trust)?;
    let repository = in_force::repository(cwd);
    let whole = kept::whole(&governing);
    let digest = Digest::of(&whole);
    let open = in_force::left_open(store, cwd)?.is_some() && store.accepted(repository, digest)?.is_none();
    if !open {
        store.keep_accepted(repository, digest, &whole)?;
    }
    Ok((governing, open))
}

/// The work tree of a session whose calls are confined: git is asked about no other, whose settings a call may have written. Where
/// that cannot be found out, the one it would be.
pub fn confined_repository(store: &Store, id: &SessionId) -> Option<PathBuf> {
    let row = store.last_row(id).ok()??;
    let accepted = State::from_detail(&row.detail)?.policy?;
    let governing = kept::open(&accepted, &store.folder(id), &Trust::open(None));
    let confines =
        |governing: &Governing| governing.policies(Caller::Untold).iter().any(|policy| policy.confine().is_some());
    let confined = governing.map_or(true, |governing| confines(&governing));
    confined.then(|| governing::repository(accepted.root()).to_owned())
}

/// The policy that a row was decided under, with its layers, as the session keeps them.
pub fn kept_policy(store: &Store, id: &SessionId, row: &Row) -> Option<Governing> {
    let accepted = State::from_detail(&row.detail)?.policy?;
    kept::open(&accepted, &store.folder(id), &Trust::open(None)).ok()
}

/// Which policy a human wants a new session to begin under.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'a> {
    /// The one that governs.
    Found,
    /// This file.
    File(&'a Path),
    /// What was made for one run alone, as if it stood at a path.
    Own(&'a [u8], &'a Path),
}

/// How a session stands to its policy: `None` where it runs under the file as it is.
pub fn stands(store: &Store, id: &SessionId, trust: &Trust) -> Option<String> {
    let row = store.last_row(id).ok()??;
    let state = State::from_detail(&row.detail)?;
    let policy = state.policy?;
    let pending = state.pending.then(|| in_force::pending(&policy.path));
    match in_force::of(&policy, &store.folder(id), trust) {
        Ok(in_force) => in_force.tell().or(pending),
        Err(error) => Some(format!("{error}: every call is denied")),
    }
}
