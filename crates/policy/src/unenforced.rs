//! What stands in a policy and nothing acts on, at whatever depth it stands (R75).
//!
//! Owns the list of it, made from the same table that parsing uses; says nothing of how a session went. Invariant: what is not
//! on the list is acted on in every session under the policy whose client tells what it needs. Page: `spec/verify.md`.

use writ_core::json::{Object, Value};

use crate::enforce::Confine;
use crate::schema::{ROOT, join};

/// Pointers of the members of a document that are there and that nothing acts on. What no rule could ever match is its reader's to say.
pub fn members(document: &Value) -> Vec<String> {
    let members = document.as_object().into_iter().flat_map(Object::iter);
    let pending = |name: &str| ROOT.iter().any(|field| field.name == name && !field.enforced);
    let each = |(name, value): (&str, &Value)| match (name, value.as_object()) {
        ("grants", Some(grants)) => grants.iter().flat_map(|(grant, _)| idle_grants(document, grant)).collect(),
        ("sublayouts", _) => idle_children(value),
        // Only a sandbox holds these.
        ("enforce", Some(enforce)) if Confine::read(document).is_none() => {
            there("/enforce", enforce, &["atLeast", "network", "limits"])
        }
        // It says how what is attested looks.
        ("consequences", Some(wanted)) if wanted.get("attest").and_then(Value::as_bool) != Some(true) => {
            there("/consequences", wanted, &["attestHashOnly"])
        }
        // It says how well something has to be known.
        ("identity", Some(wanted))
            if wanted.get("allowedModels").is_none() && wanted.get("allowedEnvironments").is_none() =>
        {
            there("/identity", wanted, &["standing"])
        }
        // Which attestations rules see matters where there are rules.
        ("attestationsFrom", _) if document.get("evaluators").is_none() => vec!["/attestationsFrom".to_owned()],
        _ if pending(name) => vec![join("", name)],
        _ => Vec::new(),
    };
    members.flat_map(each).collect()
}

fn there(place: &str, object: &Object, names: &[&str]) -> Vec<String> {
    names.iter().filter(|name| object.get(name).is_some()).map(|name| join(place, name)).collect()
}

/// What stands beside sub-agents' policies: who may sign binds where somebody did.
fn idle_children(children: &Value) -> Vec<String> {
    let children = children.as_array().unwrap_or_default().iter().enumerate();
    let idle = |(at, child): (usize, &Value)| {
        let place = format!("/sublayouts/{at}");
        child.as_object().map(|child| there(&place, child, &["functionaries"])).unwrap_or_default()
    };
    children.flat_map(idle).collect()
}

/// Values of secrets that are bound go through sandboxes alone.
fn idle_grants(document: &Value, grant: &str) -> Option<String> {
    let secrets = document.get("grants").and_then(|grants| grants.get("secrets")).filter(|_| grant == "secrets");
    let bound = secrets.is_some_and(|secrets| secrets.get("bind").is_some());
    (bound && Confine::read(document).is_none()).then(|| "/grants/secrets/bind".to_owned())
}
