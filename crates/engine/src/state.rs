//! The session's state, which lives in the last row's `detail.state` (R43): there is no second file to disagree with.
//!
//! Owns the shape of that member and its reading; refuses to guess — a state that does not read is an error, and an
//! error denies (R6). Format page: `spec/ledger.md`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use writ_core::json::{self, Object, Value};
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

/// What an approval is for: another value of any of these is another action (R71).
#[derive(Clone, Copy, Debug)]
pub struct Action<'a> {
    /// The session.
    pub session: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// Digest of the canonical tool input.
    pub input: Digest,
    /// The folder it would run in.
    pub cwd: &'a str,
    /// The subagent, if it is one's.
    pub agent: Option<&'a str>,
    /// Digest of the accepted policy's file.
    pub policy: Option<Digest>,
    /// Digest of the changed file that is judged too.
    pub layer: Option<Digest>,
}

impl Action<'_> {
    /// SHA-256 of the canonical JSON of all members.
    pub fn digest(&self) -> Digest {
        let text = |digest: Option<Digest>| digest.map(|digest| digest.to_string());
        let mut out = Object::new();
        out.push("session", Value::from(self.session));
        out.push("tool", Value::from(self.tool));
        out.push("input", Value::from(self.input.to_string()));
        out.push("cwd", Value::from(self.cwd));
        out.push("agent", Value::from(self.agent));
        out.push("policy", Value::from(text(self.policy)));
        out.push("layer", Value::from(text(self.layer)));
        Digest::of(json::canonical(&Value::Object(out)).as_bytes())
    }
}

/// One human yes: this action, once, until then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The tool.
    pub tool: String,
    /// Digest of the canonical tool input.
    pub input: Digest,
    /// The whole action's digest: the one that counts.
    pub action: Digest,
    /// After this moment the grant is void.
    pub until: Timestamp,
}

impl Grant {
    /// The grant as JSON.
    pub fn to_json(&self) -> Value {
        let mut out = Object::new();
        out.push("tool", Value::from(self.tool.as_str()));
        out.push("input", Value::from(self.input.to_string()));
        out.push("action", Value::from(self.action.to_string()));
        out.push("until", Value::from(self.until.to_string()));
        Value::Object(out)
    }

    /// The name `writ approve` takes.
    pub fn name(&self) -> String {
        short(self.action)
    }

    /// Reads a grant.
    pub fn from_json(value: &Value) -> Option<Self> {
        let text = |name| value.get(name).and_then(Value::as_str);
        Some(Self {
            tool: text("tool")?.to_owned(),
            input: Digest::parse(text("input")?).ok()?,
            action: Digest::parse(text("action")?).ok()?,
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
    /// What became of the policy's file, as the human was last told: a digest, or `lost`.
    pub told: Option<String>,
    /// It began while an earlier session's change of policy was not settled: every call asks until a human settles it.
    pub pending: bool,
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
            told: None,
            pending: false,
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
        if let Some(told) = &self.told {
            out.push("told", Value::from(told.as_str()));
        }
        if self.pending {
            out.push("pending", Value::from(true));
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
            told: state.get("told").and_then(Value::as_str).map(str::to_owned),
            pending: state.get("pending").and_then(Value::as_bool).unwrap_or(false),
        })
    }

    /// Whether a human has granted exactly this action, at this moment.
    pub fn granted(&self, action: Digest, now: Timestamp) -> bool {
        self.grants.iter().any(|grant| grant.action == action && now <= grant.until)
    }

    /// Takes one grant for this action away.
    pub fn spend(&mut self, action: Digest) {
        if let Some(at) = self.grants.iter().position(|grant| grant.action == action) {
            self.grants.remove(at);
        }
    }
}
