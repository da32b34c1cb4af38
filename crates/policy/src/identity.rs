//! Who an agent has to be: which model, where it runs, which tools it must have.
//!
//! Owns the rules of `identity` and what they are held against; what is so is found out elsewhere, each part with its standing.
//! Refuses to take what is not known for what is allowed. Page: `spec/identity.md`.

use serde::{Deserialize, Serialize};
use writ_core::json::Value;

use crate::glob::Glob;

/// The rules of a policy.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// The models that may run, if not any.
    pub(crate) models: Option<Vec<Glob>>,
    /// The environments that may run it, if not any.
    pub(crate) environments: Option<Vec<Glob>>,
    /// The tools that it must have, each with its pointer.
    pub(crate) required: Vec<(String, String)>,
    /// Whether only what was observed counts.
    pub(crate) observed: bool,
}

/// What is known of the agent that makes a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Its model, as its client's transcript tells; `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Names of its environment that the kernel tells: `host:build-7`, `user:ci-bot`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed: Vec<String>,
    /// Names that files in the environment tell: `container:ghcr.io/org/agent`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reported: Vec<String>,
}

impl Identity {
    /// Reads a checked document.
    pub(crate) fn read(document: &Value) -> Self {
        let member = |name: &str| document.get("identity").and_then(|identity| identity.get(name));
        let texts = |name: &str| {
            let items = member(name).and_then(Value::as_array)?;
            Some(items.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>())
        };
        // Each is a good pattern: others do not get here.
        let globs = |name: &str| texts(name).map(|all| all.iter().filter_map(|text| Glob::parse(text).ok()).collect());
        let pointed = |(at, text): (usize, String)| (format!("/identity/requiredTools/{at}"), text);
        Self {
            models: globs("allowedModels"),
            environments: globs("allowedEnvironments"),
            required: texts("requiredTools").unwrap_or_default().into_iter().enumerate().map(pointed).collect(),
            observed: member("standing").and_then(Value::as_str) == Some("observed"),
        }
    }

    /// Whether it asks who the agent is.
    pub const fn asks(&self) -> bool {
        self.models.is_some() || self.environments.is_some()
    }

    /// Whether it asks for its model.
    pub const fn asks_model(&self) -> bool {
        self.models.is_some()
    }

    /// Whether the model is one that may run; `None` where that is not known.
    pub(crate) fn allows_model(&self, known: &Known) -> Option<bool> {
        let Some(models) = &self.models else { return Some(true) };
        let model = known.model.as_ref().filter(|_| !self.observed)?;
        Some(models.iter().any(|allowed| allowed.matches(model)))
    }

    /// Whether the environment may run it only if what is reported counted.
    pub(crate) fn is_only_reported(&self, known: &Known) -> bool {
        let would = Self { observed: false, ..self.clone() };
        !self.allows_environment(known) && would.allows_environment(known)
    }

    /// Whether the environment is one that may run it.
    pub(crate) fn allows_environment(&self, known: &Known) -> bool {
        let Some(environments) = &self.environments else { return true };
        let reported = if self.observed { [].as_slice() } else { known.reported.as_slice() };
        let mut names = known.observed.iter().chain(reported);
        names.any(|name| environments.iter().any(|allowed| allowed.matches(name)))
    }
}
