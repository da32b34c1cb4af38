//! Policies by what they may speak on.
//!
//! Owns which of them have to be asked about an action on a resource. Invariant: of every other one the head is false, so that it neither
//! decides nor errs.

use std::collections::HashMap;

use cedar_policy::{ActionConstraint, EntityUid, Policy, PolicySet, ResourceConstraint};

use super::schema::{ACTIONS, Action};

/// The policies that may speak on an action.
#[derive(Debug, Default)]
struct Speaking {
    /// On more than one resource.
    any: PolicySet,
    /// On one resource alone, by that.
    one: HashMap<EntityUid, PolicySet>,
}

/// Policies by what they may speak on: of all others, the head is false.
#[derive(Debug, Default)]
pub(super) struct ByAction(HashMap<&'static str, Speaking>);

impl ByAction {
    /// Sorts them.
    pub(super) fn of(all: &PolicySet) -> Self {
        let of_action = |action: &Action| {
            let mut speaking = Speaking::default();
            for policy in all.policies().filter(|policy| speaks(policy, action.name)) {
                let set = match policy.resource_constraint() {
                    ResourceConstraint::Eq(uid) => speaking.one.entry(uid).or_default(),
                    _ => &mut speaking.any,
                };
                set.add(policy.clone()).ok()?;
            }
            Some((action.name, speaking))
        };
        // An action that is not among them has all policies asked.
        Self(ACTIONS.iter().filter_map(of_action).collect())
    }

    /// Those that are asked about an action on a resource.
    pub(super) fn asked<'a>(
        &'a self,
        all: &'a PolicySet,
        action: &str,
        resource: &EntityUid,
    ) -> impl Iterator<Item = &'a PolicySet> {
        let known = self.0.get(action);
        let one = known.and_then(|speaking| speaking.one.get(resource));
        std::iter::once(known.map_or(all, |speaking| &speaking.any)).chain(one)
    }
}

/// Whether a policy may speak on an action.
pub(super) fn speaks(policy: &Policy, action: &str) -> bool {
    let is = |uid: &EntityUid| uid.id().unescaped() == action;
    match policy.action_constraint() {
        ActionConstraint::Any => true,
        ActionConstraint::Eq(uid) => is(&uid),
        ActionConstraint::In(uids) => uids.iter().any(is),
    }
}
