//! A human's word about the policy of a running session: it governs as it is now, or none does.

use serde::Serialize;
use writ_core::{Digest, SessionId, Timestamp};
use writ_store::Store;

use super::ApprovalError;
use crate::Home;
use crate::governing::in_force::{self, PolicyRef};
use crate::governing::{self, Governing, Trust, kept};
use crate::session::{Rules, Session, SessionError, agents};

/// What the row of an accepted policy says.
#[derive(Serialize)]
struct Accepted {
    /// Digest of the file that was accepted before.
    from: Digest,
    /// Its rules in files of their own.
    #[serde(skip_serializing_if = "Rules::is_empty")]
    rules: Rules,
}

/// Accepts the policy as it stands now for a running session.
pub fn accept(store: &Store, id: &SessionId, home: &Home) -> Result<Governing, ApprovalError> {
    let mut session = Session::resume(store, id, home, Timestamp::now())?;
    let policy = session.state.policy.clone().ok_or(SessionError::Ungoverned)?;
    let path = policy.path;
    let governing = governing::open(&path, None, &Trust::open(home.state.as_deref())).map_err(SessionError::from)?;
    let rules = session.keep_policy(&governing)?;
    let repository = in_force::repository(policy_root(&governing));
    let whole = kept::whole(&governing);
    store.keep_accepted(repository, Digest::of(&whole), &whole)?;
    store.settle(repository)?;
    let before = session.policy().ok().map(|in_force| in_force.accepted.clone());
    session.state.policy = Some(PolicyRef::to(&governing));
    // What was approved was approved under the policy before.
    session.state.grants.clear();
    session.state.forget_limits(&before.as_ref().map(limiting).unwrap_or_default(), &limiting(&governing));
    session.state.relabel();
    (session.state.told, session.state.pending) = (None, false);
    let draft = session.event("policy-accepted", Accepted { from: policy.file, rules });
    session.append(draft)?;
    Ok(governing)
}

/// The layers that limit sub-agents of one type.
fn limiting(governing: &Governing) -> Vec<agents::Limits<'_>> {
    governing.of_agents().map(|(_, own)| agents::Limits { agent: own.agent, layer: own.layer }).collect()
}

/// Accepts a policy that a human changed: the next session in its repository begins under it. Returns whether it does: where what it was
/// before was not accepted there, or something else than `after` is there now, nobody has seen all of it.
pub fn accept_edited(store: &Store, before: &Governing, after: &str, home: &Home) -> Result<bool, ApprovalError> {
    let repository = in_force::repository(policy_root(before));
    if store.accepted(repository, Digest::of(&kept::whole(before)))?.is_none() {
        return Ok(false);
    }
    let trust = Trust::open(home.state.as_deref());
    let governing = governing::open(&before.path, None, &trust).map_err(SessionError::from)?;
    let layers = |of: &Governing| of.layers.iter().map(|layer| layer.at.file).collect::<Vec<_>>();
    if governing.file != Digest::of(after.as_bytes()) || layers(&governing) != layers(before) {
        return Ok(false);
    }
    let whole = kept::whole(&governing);
    store.keep_accepted(repository, Digest::of(&whole), &whole)?;
    Ok(true)
}

/// Settles that a policy that governed here is gone: new sessions run without one.
pub fn accept_none(store: &Store, cwd: &std::path::Path) -> Result<(), ApprovalError> {
    Ok(store.settle(in_force::repository(cwd))?)
}

fn policy_root(governing: &Governing) -> &std::path::Path {
    governing.path.parent().unwrap_or(std::path::Path::new("/"))
}
