//! What policies forbid of paths and hosts whatever a request's context says: lists can hold that, and a sandbox.
//!
//! Owns which policies those are. Refuses to guess at conditions: what depends on a call is asked call by call. Page: `spec/agentfile.md`, "A
//! session under an Agentfile".

use cedar_policy::{Effect, EntityUid, Policy, PrincipalConstraint, ResourceConstraint};

use super::by_action::speaks;
use super::rules::{Rules, id_of};

/// Paths and hosts, as policies call them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Forbidden {
    /// What may not be read.
    pub read: Vec<Which>,
    /// What may not be written.
    pub written: Vec<Which>,
    /// What may not be reached.
    pub hosts: Vec<Which>,
}

/// Of what a policy speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// All of them.
    All,
    /// One.
    One(String),
    /// One, and what is in it.
    Within(String),
}

impl Rules {
    /// What is forbidden to agents of these names without a condition.
    pub(crate) fn forbidden(&self, names: &[&str]) -> Forbidden {
        let mut out = Forbidden::default();
        let forbids = self.all.policies().filter(|policy| policy.effect() == Effect::Forbid);
        for policy in forbids.filter(|policy| !policy.has_non_scope_constraint() && is_for(policy, names)) {
            for (action, kind, list) in [
                ("filesystem.read", "Path", &mut out.read),
                ("filesystem.write", "Path", &mut out.written),
                ("network.egress", "Host", &mut out.hosts),
            ] {
                let which = which(policy, kind).filter(|_| speaks(policy, action));
                list.extend(which.filter(|which| !list.contains(which)));
            }
        }
        out
    }
}

fn is_for(policy: &Policy, names: &[&str]) -> bool {
    let named = |uid: &EntityUid| id_of(uid, "Agent").is_some_and(|id| names.contains(&id.as_str()));
    match policy.principal_constraint() {
        PrincipalConstraint::Any | PrincipalConstraint::Is(_) => true,
        PrincipalConstraint::Eq(uid) | PrincipalConstraint::In(uid) | PrincipalConstraint::IsIn(_, uid) => named(&uid),
    }
}

fn which(policy: &Policy, kind: &str) -> Option<Which> {
    match policy.resource_constraint() {
        ResourceConstraint::Any => Some(Which::All),
        ResourceConstraint::Is(named) => named.to_string().ends_with(&format!("::{kind}")).then_some(Which::All),
        ResourceConstraint::Eq(uid) => id_of(&uid, kind).map(Which::One),
        ResourceConstraint::In(uid) | ResourceConstraint::IsIn(_, uid) => id_of(&uid, kind).map(Which::Within),
    }
}
