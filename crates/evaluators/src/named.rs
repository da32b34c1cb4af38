//! The evaluators that a policy names, as they stand in its document.

use writ_core::json::Value;

/// The model that judges where a policy names none.
pub const DEFAULT_MODEL: &str = "claude-sonnet-4-20250514";

/// A Rego rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rego {
    /// Its name.
    pub name: String,
    /// Its pointer in the policy: `/evaluators/rego/0/policy`.
    pub pointer: String,
    /// The module, or the path of its file.
    pub policy: String,
}

impl Rego {
    /// The path of its file, from the policy's folder, where it is not written out.
    pub fn file(&self) -> Option<&str> {
        let text = self.policy.trim();
        (!text.contains('\n') && text.ends_with(".rego")).then_some(text)
    }
}

/// A judgement by a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ai {
    /// Its name.
    pub name: String,
    /// What PASS and FAIL mean.
    pub prompt: String,
    /// The model.
    pub model: String,
}

/// A judgement by a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grpc {
    /// Its name.
    pub name: String,
    /// `host:port`, or an address with `http://` or `https://`.
    pub endpoint: String,
}

/// All of a policy's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Rego rules.
    pub rego: Vec<Rego>,
    /// Models.
    pub ai: Vec<Ai>,
    /// Services.
    pub grpc: Vec<Grpc>,
}

impl Named {
    /// Those of a policy's document, which was checked.
    pub fn of(policy: &Value) -> Self {
        let kind = |kind: &str| {
            let list = policy.get("evaluators").and_then(|all| all.get(kind)).and_then(Value::as_array);
            list.unwrap_or_default().iter().enumerate()
        };
        let text = |one: &Value, name: &str| one.get(name).and_then(Value::as_str).map(str::to_owned);
        let rego = kind("rego").filter_map(|(at, one)| {
            let pointer = format!("/evaluators/rego/{at}/policy");
            Some(Rego { name: text(one, "name")?, pointer, policy: text(one, "policy")? })
        });
        let ai = kind("ai").filter_map(|(_, one)| {
            let model = text(one, "model").unwrap_or_else(|| DEFAULT_MODEL.to_owned());
            Some(Ai { name: text(one, "name")?, prompt: text(one, "prompt")?, model })
        });
        let grpc = kind("grpc")
            .filter_map(|(_, one)| Some(Grpc { name: text(one, "name")?, endpoint: text(one, "endpoint")? }));
        Self { rego: rego.collect(), ai: ai.collect(), grpc: grpc.collect() }
    }

    /// Whether it names none.
    pub const fn is_empty(&self) -> bool {
        self.rego.is_empty() && self.ai.is_empty() && self.grpc.is_empty()
    }
}
