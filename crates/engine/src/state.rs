//! The session's state, which lives in the last row's `detail.state` (R43): there is no second file to disagree with.
//!
//! Owns the shape of that member and its reading; refuses to guess — a state that does not read is an error, and an
//! error denies (R6). Format page: `spec/ledger.md`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use writ_core::json::{Object, Value};
use writ_core::{Digest, Timestamp};

use crate::call::short;
use crate::governing::Governing;

/// The policy a session runs under, as a human last accepted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRef {
    /// The file, absolute.
    pub path: PathBuf,
    /// The policy's own name.
    pub name: String,
    /// Digest of the file (the envelope, when there is one).
    pub file: Digest,
    /// Digest of the policy document itself.
    pub digest: Digest,
    /// `unsigned`, `unknown-key` or `trusted`.
    pub signed: String,
}

impl PolicyRef {
    /// The reference to a policy that was just opened.
    pub fn to(governing: &Governing) -> Self {
        Self {
            path: governing.path.clone(),
            name: governing.policy.name().to_owned(),
            file: governing.file,
            digest: governing.policy.digest(),
            signed: governing.signed.as_str().to_owned(),
        }
    }

    /// The folder relative patterns hang off.
    pub fn root(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    fn to_json(&self) -> Value {
        let mut out = Object::new();
        out.push("path", Value::from(self.path.to_string_lossy().as_ref()));
        out.push("name", Value::from(self.name.as_str()));
        out.push("file", Value::from(self.file.to_string()));
        out.push("digest", Value::from(self.digest.to_string()));
        out.push("signed", Value::from(self.signed.as_str()));
        Value::Object(out)
    }

    fn from_json(value: &Value) -> Option<Self> {
        let text = |name| value.get(name).and_then(Value::as_str);
        Some(Self {
            path: PathBuf::from(text("path")?),
            name: text("name")?.to_owned(),
            file: Digest::parse(text("file")?).ok()?,
            digest: Digest::parse(text("digest")?).ok()?,
            signed: text("signed")?.to_owned(),
        })
    }
}

/// One human yes: this input, once, until then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The tool.
    pub tool: String,
    /// Digest of the canonical tool input.
    pub input: Digest,
    /// After this moment the grant is void.
    pub until: Timestamp,
}

impl Grant {
    /// The grant as JSON.
    pub fn to_json(&self) -> Value {
        let mut out = Object::new();
        out.push("tool", Value::from(self.tool.as_str()));
        out.push("input", Value::from(self.input.to_string()));
        out.push("until", Value::from(self.until.to_string()));
        Value::Object(out)
    }

    /// The name `writ approve` takes.
    pub fn name(&self) -> String {
        short(self.input)
    }

    /// Reads a grant.
    pub fn from_json(value: &Value) -> Option<Self> {
        let text = |name| value.get(name).and_then(Value::as_str);
        Some(Self {
            tool: text("tool")?.to_owned(),
            input: Digest::parse(text("input")?).ok()?,
            until: Timestamp::parse(text("until")?).ok()?,
        })
    }
}

/// Everything the next decision needs to know of the session so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The accepted policy; `None` where none governs and only claims are on record.
    pub policy: Option<PolicyRef>,
    /// Calls that were allowed. Denied calls do not count as tool calls (R17).
    pub calls: u64,
    /// Calls that were asked about.
    pub asked: u64,
    /// Calls that were denied.
    pub denied: u64,
    /// Calls that ran and would have been stopped, had the policy not only observed.
    pub observed: u64,
    /// Human prompts so far.
    pub turns: u64,
    /// Human approvals not used yet.
    pub grants: Vec<Grant>,
    /// How often each agent was sent back to work because of a false DONE.
    pub blocks: BTreeMap<String, u64>,
}

/// A last row whose state does not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "row {sequence} of the ledger holds no readable state: move the session's folder away, then start a new session"
)]
pub struct StateError {
    /// The row.
    pub sequence: u64,
}

impl State {
    /// A fresh session under `policy`, if there is one.
    pub const fn fresh(policy: Option<PolicyRef>) -> Self {
        Self {
            policy,
            calls: 0,
            asked: 0,
            denied: 0,
            observed: 0,
            turns: 0,
            grants: Vec::new(),
            blocks: BTreeMap::new(),
        }
    }

    /// How policy is called, for people.
    pub fn policy_name(&self) -> &str {
        self.policy.as_ref().map_or("none", |policy| policy.name.as_str())
    }

    /// The state as JSON.
    pub fn to_json(&self) -> Value {
        let mut out = Object::new();
        out.push("policy", self.policy.as_ref().map_or(Value::Null, PolicyRef::to_json));
        out.push("calls", Value::from(self.calls));
        out.push("asked", Value::from(self.asked));
        out.push("denied", Value::from(self.denied));
        if self.observed > 0 {
            out.push("observed", Value::from(self.observed));
        }
        out.push("turns", Value::from(self.turns));
        out.push("grants", Value::Array(self.grants.iter().map(Grant::to_json).collect()));
        if !self.blocks.is_empty() {
            let mut blocks = Object::new();
            self.blocks.iter().for_each(|(agent, count)| blocks.push(agent.as_str(), Value::from(*count)));
            out.push("blocks", Value::Object(blocks));
        }
        Value::Object(out)
    }

    /// Reads `detail.state`.
    pub fn from_detail(detail: &Value) -> Option<Self> {
        let state = detail.get("state")?;
        let count = |name| state.get(name).and_then(Value::as_u64);
        let policy = match state.get("policy")? {
            Value::Null => None,
            policy => Some(PolicyRef::from_json(policy)?),
        };
        let blocks = state.get("blocks").and_then(Value::as_object);
        let blocks = blocks.into_iter().flat_map(Object::iter);
        Some(Self {
            policy,
            calls: count("calls")?,
            asked: count("asked")?,
            denied: count("denied")?,
            observed: count("observed").unwrap_or_default(),
            turns: count("turns")?,
            grants: state.get("grants")?.as_array()?.iter().map(Grant::from_json).collect::<Option<_>>()?,
            blocks: blocks.map(|(agent, count)| Some((agent.to_owned(), count.as_u64()?))).collect::<Option<_>>()?,
        })
    }

    /// Whether a human has granted exactly this call, at this moment.
    pub fn granted(&self, tool: &str, input: Digest, now: Timestamp) -> bool {
        self.grants.iter().any(|grant| grant.tool == tool && grant.input == input && now <= grant.until)
    }

    /// Takes one grant for this call away.
    pub fn spend(&mut self, tool: &str, input: Digest) {
        if let Some(at) = self.grants.iter().position(|grant| grant.tool == tool && grant.input == input) {
            self.grants.remove(at);
        }
    }
}
