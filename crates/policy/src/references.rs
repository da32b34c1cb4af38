//! Other policies that a policy names: the one that it tightens (`extends`) and those of sub-agents (`sublayouts`).
//!
//! Owns what a document says of them, in the order in which it says it; reads no file and asks no network. Invariant: the live
//! resolution and its verification walk this same list, so that neither can pass over a layer. Page: `spec/layers.md`.

use writ_core::Digest;
use writ_core::json::{self, Object, Value};

use crate::limits::Limit;
use crate::policy::Policy;
use crate::schema;
use crate::semantics;

/// A policy that another one names.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// Where it is named: `/extends`, `/sublayouts/0/policy`.
    pub pointer: String,
    /// What stands there.
    pub policy: Named,
    /// What else is said of a sub-agent's policy; `None` for `extends`.
    pub child: Option<Child>,
}

/// Where the policy is that is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// A path or an address.
    At(String),
    /// Written out on the spot: these bytes, an object's in canonical form.
    Here(String),
}

/// Who may sign a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Functionary {
    /// Whoever has a key.
    Key {
        /// Its id, with or without `sha256:`.
        id: String,
    },
    /// Whoever has a certificate: both names as a whole.
    X509 {
        /// Its issuer.
        issuer: String,
        /// Its subject.
        subject: String,
    },
    /// An identity that Sigstore vouches for: both texts as a whole.
    Keyless {
        /// The OIDC issuer.
        issuer: String,
        /// The identity.
        subject: String,
    },
}

/// A sub-agent's policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// The sub-agent's type.
    pub agent: String,
    /// The digest that the policy has to have, if that is said. `Err` names the algorithms where none is SHA-256.
    pub digest: Option<Result<Digest, String>>,
    /// Who may sign it, where that is said.
    pub functionaries: Option<Vec<Functionary>>,
    /// Goes before the names of its attestations.
    pub prefix: Option<String>,
    /// Its limits beside those of its policy.
    pub limits: Vec<(String, f64)>,
    /// The same, as what is used is held against them.
    pub held: Vec<Limit>,
}

impl Policy {
    /// The policies that this one names, in the order of the document: the parent first.
    pub fn references(&self) -> Vec<Reference> {
        let document = self.document();
        let parent = document.get("extends").and_then(Value::as_str).map(|text| Reference {
            pointer: "/extends".to_owned(),
            policy: Named::At(text.to_owned()),
            child: None,
        });
        let children = document.get("sublayouts").and_then(Value::as_array).unwrap_or_default();
        let child = |(at, child): (usize, &Value)| {
            Some(Reference {
                pointer: format!("/sublayouts/{at}/policy"),
                policy: named(child.get("policy")?)?,
                child: Some(Child::read(child)),
            })
        };
        parent.into_iter().chain(children.iter().enumerate().filter_map(child)).collect()
    }

    /// The functionaries that it names; `None` where it names none.
    pub fn functionaries(&self) -> Option<Vec<Functionary>> {
        functionaries(self.document().get("functionaries"))
    }

    /// The numbers of its limits, by name.
    pub fn limit_values(&self) -> Vec<(String, f64)> {
        limit_values(self.document().get("limits"))
    }
}

fn named(policy: &Value) -> Option<Named> {
    match policy {
        Value::String(text) => Some(match semantics::inline(text) {
            Some(inline) => Named::Here(inline.to_owned()),
            None => Named::At(text.clone()),
        }),
        Value::Object(_) => Some(Named::Here(json::canonical(policy))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    }
}

impl Child {
    fn read(child: &Value) -> Self {
        let text = |name| child.get(name).and_then(Value::as_str).map(str::to_owned);
        Self {
            agent: text("name").unwrap_or_default(),
            digest: child.get("policyDigest").map(pinned),
            functionaries: functionaries(child.get("functionaries")),
            prefix: text("attestationPrefix").filter(|prefix| !prefix.is_empty()),
            limits: limit_values(child.get("limits")),
            held: Limit::read_all(child),
        }
    }
}

/// The SHA-256 among digests.
fn pinned(digests: &Value) -> Result<Digest, String> {
    let sha256 = digests.get("sha256").and_then(Value::as_str);
    let bare = sha256.and_then(|text| Digest::from_hex(&text.rsplit(':').next()?.to_ascii_lowercase()).ok());
    bare.ok_or_else(|| {
        let known = digests.as_object().into_iter().flat_map(Object::iter).map(|(name, _)| name.to_owned());
        known.collect::<Vec<_>>().join(", ")
    })
}

fn limit_values(limits: Option<&Value>) -> Vec<(String, f64)> {
    let members = limits.and_then(Value::as_object).into_iter().flat_map(Object::iter);
    members.filter_map(|(name, limit)| Some((name.to_owned(), schema::limit(limit)?))).collect()
}

fn functionaries(list: Option<&Value>) -> Option<Vec<Functionary>> {
    let list = list.and_then(Value::as_array).filter(|list| !list.is_empty())?;
    let one = |one: &Value| {
        let text = |name| one.get(name).and_then(Value::as_str).map(str::to_owned);
        match one.get("type").and_then(Value::as_str)? {
            "publickey" => Some(Functionary::Key { id: text("publickeyid")? }),
            "x509" => Some(Functionary::X509 { issuer: text("issuer")?, subject: text("subject")? }),
            "keyless" => Some(Functionary::Keyless { issuer: text("issuer")?, subject: text("subject")? }),
            _ => None,
        }
    };
    Some(list.iter().filter_map(one).collect())
}
