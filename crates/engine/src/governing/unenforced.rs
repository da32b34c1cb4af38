//! What stands in the policies of a session and nothing in it enforces (R75).
//!
//! Owns the one list that `policy check`, `status`, the start of a session and `writ verify` tell: what the policies' own words come
//! to, whose signature made `functionaries` bind, and what a client does not tell Writ. Invariant: a field is left out only
//! where something acts on it. Page: `spec/verify.md`.

use std::collections::BTreeSet;

use writ_clients::Client;
use writ_policy::Policy;

use super::layers::LayerRef;
use super::open::Governing;

/// The word of a policy that a functionary signed.
const TRUSTED: &str = "trusted";

/// The fields, as pointers: of the root by these alone, of its layers with their names in front. `signed` is whose word the root is;
/// `client` is the session's, where it is known.
pub fn fields(
    root: &Policy,
    signed: &str,
    layers: &[(&LayerRef, &Policy)],
    client: Option<&dyn Client>,
) -> Vec<String> {
    let list: Vec<&LayerRef> = layers.iter().map(|(at, _)| *at).collect();
    // Policies share their labels.
    let policies = std::iter::once(root).chain(layers.iter().map(|(_, policy)| *policy));
    let given: BTreeSet<&str> = policies.flat_map(|policy| policy.flow().given()).collect();
    let mut out = idle(root, None, signed == TRUSTED, &list);
    out.extend(untold(root, client));
    out.extend(root.flow().idle(&given).map(str::to_owned));
    for (at, (layer, policy)) in layers.iter().enumerate() {
        let mut own = idle(policy, Some(at), layer.signed == TRUSTED, &list);
        own.extend(untold(policy, client));
        own.extend(of_the_root(policy));
        own.extend(policy.flow().idle(&given).map(str::to_owned));
        own.sort_unstable();
        own.dedup();
        out.extend(own.into_iter().map(|pointer| format!("{}:{pointer}", layer.name)));
    }
    out.dedup();
    out
}

/// The same of policies that are open.
pub fn of(governing: &Governing, client: Option<&dyn Client>) -> Vec<String> {
    let layers: Vec<_> = governing.layers.iter().map(|layer| (&layer.at, &layer.policy)).collect();
    fields(&governing.policy, governing.signed.as_str(), &layers, client)
}

/// What is idle in one policy, whoever the client is. Who may sign binds where one of them did.
fn idle(policy: &Policy, own: Option<usize>, trusted: bool, list: &[&LayerRef]) -> Vec<String> {
    let signed = |pointer: &str| {
        let child = pointer.strip_suffix("/functionaries").map(|child| format!("{child}/policy"));
        let named = |layer: &&&LayerRef| layer.of == own && Some(&layer.pointer) == child.as_ref();
        list.iter().find(named).is_some_and(|layer| layer.signed == TRUSTED)
    };
    let binds = |pointer: &String| pointer == "/functionaries" && trusted || signed(pointer);
    policy.not_enforced().into_iter().filter(|pointer| !binds(pointer)).collect()
}

/// What of a layer nothing acts on, for it is read in the root's policy.
fn of_the_root(policy: &Policy) -> Option<String> {
    policy.document().get("attestationDir").map(|_| "/attestationDir".to_owned())
}

/// What a client gives nothing to hold with: one that tells of single calls alone has no turns, no stops and no sub-agents.
fn untold(policy: &Policy, client: Option<&dyn Client>) -> Vec<String> {
    if client.is_none_or(Client::tells_of_turns) {
        return Vec::new();
    }
    let document = policy.document();
    let there = |pointer: &&&str| {
        let mut parts = pointer.split('/').skip(1);
        parts.try_fold(document, |at, part| at.get(part)).is_some()
    };
    ["/attestationDir", "/claims", "/limits/maxTurns", "/materialsFrom", "/sublayouts"]
        .iter()
        .filter(there)
        .map(|pointer| (*pointer).to_owned())
        .collect()
}

/// What each client gives nothing to hold with, beyond what nobody enforces: its name, and the fields.
pub fn by_client(governing: &Governing) -> Vec<(&'static str, Vec<String>)> {
    let anyway = of(governing, None);
    let more = |client: &&'static dyn Client| {
        let mut fields = of(governing, Some(*client));
        fields.retain(|field| !anyway.contains(field));
        (client.name(), fields)
    };
    writ_clients::CLIENTS.iter().map(more).filter(|(_, fields)| !fields.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use writ_clients::{generic::Generic, mcp::Mcp};

    fn policy(more: &str) -> Policy {
        let text = format!(r#"{{"version":"1.0","name":"x"{more}}}"#);
        Policy::parse(text.as_bytes(), &Path::new("/w").to_string_lossy()).unwrap()
    }

    #[test]
    fn who_may_sign_binds_where_one_of_them_did() {
        let key = "a".repeat(64);
        let root = policy(&format!(r#","functionaries":[{{"type":"publickey","publickeyid":"{key}"}}]"#));
        for (signed, expected) in
            [("trusted", &[] as &[&str]), ("unsigned", &["/functionaries"]), ("no-functionary", &["/functionaries"])]
        {
            assert_eq!(fields(&root, signed, &[], None), expected, "{signed}");
        }
    }

    #[test]
    fn a_flow_of_what_no_policy_labels_is_not_enforced() {
        let flow = |labels: &str, rule: &str| {
            policy(&format!(r#","dataFlow":{{"classify":{{{labels}}},"flowRules":[{{"deny":"{rule}"}}]}}"#))
        };
        let given = r#""secret":["**/.env"],"public":["WebFetch"]"#;
        for (labels, rule, expected) in [
            (given, "secret->public", &[] as &[&str]),
            (given, "secrets->public", &["/dataFlow/flowRules/0"]),
            (r#""secret":["**/.env"],"public":[]"#, "secret->public", &["/dataFlow/flowRules/0"]),
        ] {
            assert_eq!(fields(&flow(labels, rule), "unsigned", &[], None), expected, "{labels} {rule}");
        }
        let layer = format!(
            r#"{{"name":"base","file":"{0}","digest":"{0}","signed":"unsigned","pointer":"/extends"}}"#,
            writ_core::Digest::of(b"")
        );
        let layer: LayerRef = writ_core::json::from_value(&writ_core::json::parse(layer.as_bytes()).unwrap()).unwrap();
        let (root, base) =
            (flow(r#""public":["WebFetch"]"#, "secret->public"), flow(r#""secret":["**/.env"]"#, "a->b"));
        let told = fields(&root, "unsigned", &[(&layer, &base)], None);
        assert_eq!(told, ["base:/dataFlow/flowRules/0"]);
    }

    #[test]
    fn what_a_client_does_not_tell_is_not_enforced_with_it() {
        let root = policy(r#","claims":{"enforce":true},"limits":{"maxTurns":3,"maxToolCalls":3}"#);
        assert_eq!(fields(&root, "unsigned", &[], Some(&Generic)), [] as [String; 0]);
        assert_eq!(fields(&root, "unsigned", &[], Some(&Mcp)), ["/claims", "/limits/maxTurns"]);
        assert_eq!(fields(&policy(""), "unsigned", &[], Some(&Mcp)), [] as [String; 0]);
    }
}
