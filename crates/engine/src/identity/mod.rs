//! Who an agent is: model, environment, tools, policy, parent (R21).
//!
//! Owns the parts, how each is known, and their hash; keeps the parts in the session's folder, where rows name them by digest.
//! Refuses to fill in what nothing tells: an unknown model is `null`. Invariant: the hash is that of the canonical JSON of the
//! parts, and of nothing else. Page: `spec/identity.md`.

mod answer;
pub mod environment;
pub mod image;
mod model;
mod parents;
pub mod shown;
pub mod workload;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use writ_core::json::{self, Value};
use writ_core::{Agent, Digest, Event};
use writ_policy::{Known, Policy};

use crate::governing::in_force::InForce;
use crate::governing::layers::Caller;
use crate::session::rows::IdentityRef;
use crate::session::{Session, SessionError, drawn};
use environment::{Environment, MEMBER, Seen, Standing};
use image::Image;

/// The tools that clients have, by their canonical names.
const TOOLS: [&str; 8] = ["Bash", "Edit", "Read", "Search", "Task", "WebFetch", "WebSearch", "Write"];
/// The trust domain of an identity that no authority vouches for.
pub const TRUST_DOMAIN: &str = "writ.local";

/// What an agent is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parts {
    /// Its model; `None` where that is not known.
    pub model: Option<String>,
    /// Where it runs.
    pub environment: Environment,
    /// The tools that its policies leave it, sorted.
    pub tools: Vec<String>,
    /// Digest of its policy; of the digests of all, where several speak on its calls.
    pub policy_digest: Digest,
    /// Its parent's identity, if it is a sub-agent.
    pub parent_identity: Option<Digest>,
}

impl Parts {
    /// The identity.
    pub fn hash(&self) -> Digest {
        Digest::of(json::to_canonical(self).as_bytes())
    }

    /// The same as a SPIFFE id: `spiffe://DOMAIN/agent/MODEL/VERSION/FIRST-16-DIGITS`.
    pub fn spiffe(&self, domain: &str) -> String {
        let (model, version) = self.model.as_deref().map_or(("unknown".to_owned(), "0".to_owned()), versioned);
        let short: String = self.hash().hex().chars().take(16).collect();
        format!("spiffe://{domain}/agent/{model}/{version}/{short}")
    }
}

/// A model's name and version: `claude-opus-4-5-20251101` is `claude-opus` of `4.5`. Other characters than a SPIFFE path has are `_`.
fn versioned(model: &str) -> (String, String) {
    let is_number = |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_digit());
    let words: Vec<&str> = model.split('-').collect();
    let name: Vec<&str> = words.iter().take_while(|word| !is_number(word)).copied().collect();
    let numbers: Vec<&str> = words.iter().filter(|word| is_number(word) && word.len() < 8).copied().collect();
    let plain = |text: String| -> String {
        let text: String =
            text.chars().map(|c| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '_' }).collect();
        if text.is_empty() || text == "." || text == ".." { "unknown".to_owned() } else { text }
    };
    let version = if numbers.is_empty() { "0".to_owned() } else { numbers.join(".") };
    (plain(name.join("-")), plain(version))
}

/// What is kept of an identity: its parts, and how each is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// What it is made of.
    pub parts: Parts,
    /// How each part is known.
    pub standing: BTreeMap<String, Standing>,
}

impl Document {
    /// The document as it is kept.
    pub fn to_bytes(&self) -> Vec<u8> {
        json::to_canonical(self).into_bytes()
    }

    /// Reads one; its bytes are what `digest` names.
    pub fn parse(bytes: &[u8], digest: Digest) -> Option<Self> {
        if Digest::of(bytes) == digest { json::from_slice(bytes).ok() } else { None }
    }
}

/// Where the document of that digest is kept, in the session's folder.
pub fn file_name(document: Digest) -> String {
    format!("identities/{}.json", document.hex())
}

/// Finds out who makes a call, where a policy that speaks on it asks: then it is judged, and its row names it.
pub fn of_call(session: &mut Session<'_>, input: &Event) -> Result<(), SessionError> {
    let caller = Caller::of(input.agent.as_ref());
    let asks =
        session.policy().is_ok_and(|in_force| in_force.policies(caller).iter().any(|policy| policy.identity().asks()));
    if !asks {
        return Ok(());
    }
    // In a conversation that cannot be brought up to date another model may speak by now.
    let behind = drawn::refresh(session.client, input.transcript.as_deref()).is_err();
    let untold = behind.then(|| Event { transcript: None, ..input.clone() });
    let input = untold.as_ref().unwrap_or(input);
    let seen = seen(session);
    session.named = identify(session, input, &seen)?;
    let named = session.named.and_then(|named| read(session, named.document));
    let of = |wanted| {
        let names = seen.names().into_iter().filter(move |(_, standing)| *standing == wanted);
        names.map(|(name, _)| name).collect()
    };
    let model = named.and_then(|document| document.parts.model);
    session.agent = Some(Known { model, observed: of(Standing::Observed), reported: of(Standing::Reported) });
    Ok(())
}

/// Who the agent of an event is, kept, as the event's row is to name it; `None` where no policy is in force.
pub fn of_event(session: &Session<'_>, input: &Event) -> Result<Option<IdentityRef>, SessionError> {
    identify(session, input, &seen(session))
}

/// Where the agent runs, with what an engine told of its container when its client started.
fn seen(session: &Session<'_>) -> Seen {
    let seen = environment::see(session.home.asker);
    match image::kept(&session.store.folder(&session.id), seen.environment.container.as_deref()) {
        Some(Image { image, image_digest, standing, .. }) => {
            seen.made_from(image, image_digest.map(|digest| digest.to_string()), standing)
        }
        None => seen,
    }
}

fn read(session: &Session<'_>, document: Digest) -> Option<Document> {
    let path = session.store.folder(&session.id).join(file_name(document));
    Document::parse(&writ_store::regular_file::read(&path, 1 << 20).ok()?, document)
}

fn identify(session: &Session<'_>, input: &Event, seen: &Seen) -> Result<Option<IdentityRef>, SessionError> {
    let Ok(in_force) = session.policy() else { return Ok(None) };
    let (above, standing) = parents::of(session, input);
    let (mut named, mut parent): (_, Option<Parts>) = (None, None);
    for agent in std::iter::once(None).chain(above.iter().map(Some)).chain(input.agent.as_ref().map(Some)) {
        let model = model::of_agent(session, input, agent);
        let document = document(in_force, agent, (parent.as_ref(), standing), model, seen);
        named = Some(keep(session, &document)?);
        parent = Some(document.parts);
    }
    Ok(named)
}

/// What is known of an agent.
fn document(
    in_force: &InForce,
    agent: Option<&Agent>,
    (parent, parent_standing): (Option<&Parts>, Standing),
    model: Option<String>,
    seen: &Seen,
) -> Document {
    let speaking = in_force.speaking(Caller::of(agent));
    let policies: Vec<&Policy> = speaking.iter().map(|speaks| speaks.policy).collect();
    let mut tools = tools(&in_force.policies(Caller::Main), &policies);
    tools.retain(|tool| parent.is_none_or(|parent| parent.tools.contains(tool)));
    let parts = Parts {
        model,
        environment: seen.environment.clone(),
        tools,
        policy_digest: policy_of(in_force, Caller::of(agent)),
        parent_identity: parent.map(Parts::hash),
    };
    let mut standing: BTreeMap<String, Standing> = BTreeMap::new();
    if parts.model.is_some() {
        standing.insert("model".to_owned(), Standing::Reported);
    }
    for (name, known) in seen.members() {
        standing.insert(format!("{MEMBER}{name}"), known);
    }
    for (name, known) in
        [("tools", Standing::Observed), ("policyDigest", Standing::Observed), ("parentIdentity", parent_standing)]
    {
        standing.insert(name.to_owned(), known);
    }
    Document { parts, standing }
}

/// The digest of the policies that speak on an agent's calls now, as its identity tells it.
pub fn policy_of(in_force: &InForce, caller: Caller<'_>) -> Digest {
    let files: Vec<Digest> = in_force.speaking(caller).iter().skip(1).map(|speaks| speaks.file).collect();
    policy_digest(in_force.accepted.file, &files)
}

/// The digest of the file of the policy that governs; with layers, that of the canonical list of all files' digests.
pub fn policy_digest(root: Digest, layers: &[Digest]) -> Digest {
    if layers.is_empty() {
        return root;
    }
    let all: Vec<Digest> = std::iter::once(root).chain(layers.iter().copied()).collect();
    Digest::of(json::to_canonical(&all).as_bytes())
}

/// The tools that policies leave an agent, of those that clients have and of those that the main agent's policies name.
fn tools(main: &[&Policy], policies: &[&Policy]) -> Vec<String> {
    let named = |policy: &&Policy| {
        let tools = policy.document().get("tools").and_then(|tools| tools.get("allow")).and_then(Value::as_array);
        let names = tools.unwrap_or_default().iter().filter_map(Value::as_str);
        names.map(|name| name.split(':').next().unwrap_or(name).to_owned()).collect::<Vec<_>>()
    };
    let all: BTreeSet<String> = TOOLS.map(str::to_owned).into_iter().chain(main.iter().flat_map(named)).collect();
    all.into_iter().filter(|tool| !policies.iter().any(|policy| policy.never_allows(tool))).collect()
}

/// Keeps a document once.
fn keep(session: &Session<'_>, document: &Document) -> Result<IdentityRef, SessionError> {
    let bytes = document.to_bytes();
    let named = IdentityRef { hash: document.parts.hash(), document: Digest::of(&bytes) };
    let name = file_name(named.document);
    if !session.store.folder(&session.id).join(&name).exists() {
        session.keep(&name, &bytes)?;
    }
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_the_hash_of_its_parts() {
        let parts = Parts {
            model: Some("claude-opus-4-5-20251101".to_owned()),
            environment: Environment { host: Some("h".to_owned()), ..Environment::default() },
            tools: vec!["Bash".to_owned(), "Read".to_owned()],
            policy_digest: Digest::of(b"p"),
            parent_identity: None,
        };
        let text = format!(
            r#"{{"environment":{{"host":"h"}},"model":"claude-opus-4-5-20251101","parentIdentity":null,"policyDigest":"{}","tools":["Bash","Read"]}}"#,
            Digest::of(b"p")
        );
        assert_eq!(parts.hash(), Digest::of(text.as_bytes()), "R21");
        let short: String = parts.hash().hex().chars().take(16).collect();
        assert_eq!(parts.spiffe("aflock.ai"), format!("spiffe://aflock.ai/agent/claude-opus/4.5/{short}"));
        for other in [
            Parts { model: None, ..parts.clone() },
            Parts { tools: vec!["Bash".to_owned()], ..parts.clone() },
            Parts { environment: Environment::default(), ..parts.clone() },
            Parts { policy_digest: Digest::of(b"q"), ..parts.clone() },
            Parts { parent_identity: Some(parts.hash()), ..parts.clone() },
        ] {
            assert_ne!(other.hash(), parts.hash());
        }
    }

    #[test]
    fn models_have_names_and_versions() {
        for (model, name, version) in [
            ("claude-opus-4-5-20251101", "claude-opus", "4.5"),
            ("claude-sonnet-5", "claude-sonnet", "5"),
            ("gpt", "gpt", "0"),
            ("a/b c", "a_b_c", "0"),
            ("4-x", "unknown", "4"),
            ("..", "unknown", "0"),
        ] {
            assert_eq!(versioned(model), (name.to_owned(), version.to_owned()), "{model}");
        }
    }
}
