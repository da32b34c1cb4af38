//! Members of a policy that are no lists of rules, as they are acted on.

use writ_core::json::Value;

use crate::error::Found;

/// The `consequences` member: tiers whose verdicts ask or deny. Absent members are `None`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Consequences {
    /// Ask from this tier's verdict on.
    pub ask: Option<u8>,
    /// Deny from this tier's verdict on.
    pub deny: Option<u8>,
    /// Terraform applies only a plan file that has an attested verdict, of this tier at worst.
    pub attested_apply: Option<u8>,
    /// Every evaluation is attested.
    pub attest: bool,
    /// These attestations show digests alone.
    pub hash_only: bool,
}

impl Consequences {
    pub(crate) fn read(document: &Value, found: &mut Vec<Found>) -> Self {
        let mut tier = |name: &str| {
            let value = document.get("consequences")?.get(name)?.as_u64()?;
            let tier = u8::try_from(value).ok().filter(|tier| (1..=5).contains(tier));
            if tier.is_none() {
                let pointer = format!("/consequences/{name}");
                found.push(
                    Found::value(&pointer, format!("there is no tier {value}"), "a tier from 1 to 5").rule("bad-tier"),
                );
            }
            tier
        };
        let (ask, deny, attested_apply) = (tier("ask"), tier("deny"), tier("attestedApply"));
        let truth = |name: &str| document.get("consequences")?.get(name)?.as_bool();
        let (attest, hash_only) = (truth("attest").unwrap_or(false), truth("attestHashOnly").unwrap_or(false));
        Self { ask, deny, attested_apply, attest, hash_only }
    }

    /// Whether anything is asked of evaluations.
    pub const fn any(&self) -> bool {
        self.ask.is_some() || self.deny.is_some() || self.attest
    }
}

/// What stands for every subagent in `claims.agents`.
const EVERY_SUBAGENT: &str = "all";

/// The `claims` member: what an agent's DONE is worth. Absent members are `None`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Claims {
    /// Whether an agent whose DONE is false is sent back.
    pub enforce: bool,
    /// The agent types it is about.
    pub agents: Option<Vec<String>>,
    /// How often one agent is sent back.
    pub max_retries: Option<u64>,
    /// How often agents of a session are.
    pub session_ceiling: Option<u64>,
    /// Whether false claims about tests count, too.
    pub tests: bool,
}

impl Claims {
    pub(crate) fn read(document: &Value) -> Self {
        let member = |name| document.get("claims").and_then(|claims| claims.get(name));
        let truth = |name| member(name).and_then(Value::as_bool).unwrap_or(false);
        let agents = member("agents").and_then(Value::as_array);
        let texts = |items: &[Value]| items.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        Self {
            enforce: truth("enforce"),
            agents: agents.map(texts),
            max_retries: member("maxRetries").and_then(Value::as_u64),
            session_ceiling: member("sessionCeiling").and_then(Value::as_u64),
            tests: truth("tests"),
        }
    }
}

impl Claims {
    /// Of several layers: what one enforces is enforced, about all agents that any names, as often as the most patient asks.
    pub fn strictest<'a>(layers: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut layers: Vec<&Self> = layers.into_iter().collect();
        if let [only] = layers.as_slice() {
            return (*only).clone();
        }
        if layers.iter().any(|claims| claims.enforce) {
            layers.retain(|claims| claims.enforce);
        }
        let mut agents: Vec<String> = Vec::new();
        let listed = layers.iter().any(|claims| claims.agents.is_some());
        for claims in &layers {
            // Whoever names no agents means every subagent.
            match &claims.agents {
                None => agents.push(EVERY_SUBAGENT.to_owned()),
                Some(named) => agents.extend(named.iter().cloned()),
            }
        }
        agents.sort_unstable();
        agents.dedup();
        let most = |of: fn(&Self) -> Option<u64>, absent: u64| {
            let any = layers.iter().any(|claims| of(claims).is_some());
            layers.iter().map(|claims| of(claims).unwrap_or(absent)).max().filter(|_| any)
        };
        Self {
            enforce: layers.iter().any(|claims| claims.enforce),
            agents: listed.then_some(agents),
            max_retries: most(|claims| claims.max_retries, 1),
            session_ceiling: most(|claims| claims.session_ceiling, 10),
            tests: layers.iter().any(|claims| claims.tests),
        }
    }
}
