//! What is enforced: the environment's switches and the policy's `claims`, joined.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use writ_claims::Enforcement;
use writ_policy::Claims;

/// The main agent's name among agent types, and its key.
pub const MAIN: &str = "main";

/// The switches the caller took from its environment (`spec/claims.md`).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimSettings {
    /// `ATTEST_ENFORCE=1`
    pub enforce: bool,
    /// `ATTEST_ENFORCE_AGENTS`
    pub agents: Vec<String>,
    /// `ATTEST_MAX_RETRIES`
    pub max_retries: Option<u64>,
    /// `ATTEST_SESSION_BLOCK_CEILING`
    pub session_ceiling: Option<u64>,
    /// `ATTEST_MAX_HASH_BYTES`
    pub max_hash_bytes: Option<u64>,
    /// `ATTEST_CAPTURE=1`: where payloads and transcripts are copied to.
    pub capture: Option<PathBuf>,
    /// `CAST_DB_PATH`, or where that database usually is.
    pub cast: Option<PathBuf>,
}

impl ClaimSettings {
    /// Reads a list of agent types: `a, b`.
    pub fn kinds(list: &str) -> Vec<String> {
        list.split(',').map(str::trim).filter(|kind| !kind.is_empty()).map(str::to_owned).collect()
    }

    /// What holds together with a policy. Either may turn enforcement on; a number from the environment wins, so that the
    /// kill switch works.
    pub fn with(&self, claims: Option<&Claims>) -> Enforcement {
        let default = Enforcement::default();
        let policy = claims.filter(|claims| claims.enforce);
        let agents = match policy {
            Some(policy) if !self.enforce => policy.agents.clone().unwrap_or_default(),
            Some(policy) if !self.agents.is_empty() => {
                [policy.agents.clone().unwrap_or_default(), self.agents.clone()].concat()
            }
            Some(_) | None => self.agents.clone(),
        };
        Enforcement {
            on: self.enforce || policy.is_some(),
            agents,
            max_retries: self
                .max_retries
                .or(claims.and_then(|claims| claims.max_retries))
                .unwrap_or(default.max_retries),
            session_ceiling: self
                .session_ceiling
                .or(claims.and_then(|claims| claims.session_ceiling))
                .unwrap_or(default.session_ceiling),
        }
    }

    /// Whether the main agent's stops are judged, too.
    pub fn includes_main(&self, claims: Option<&Claims>) -> bool {
        let named = |agents: &[String]| agents.iter().any(|kind| kind == MAIN);
        named(&self.agents) || claims.and_then(|claims| claims.agents.as_deref()).is_some_and(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_and_policy_join() {
        let policy = |agents: Option<&[&str]>| Claims {
            enforce: true,
            agents: agents.map(|agents| agents.iter().map(|&kind| kind.to_owned()).collect()),
            max_retries: Some(3),
            ..Claims::default()
        };
        let off = ClaimSettings::default();
        let on = ClaimSettings {
            enforce: true,
            agents: vec!["a".to_owned()],
            max_retries: Some(0),
            ..ClaimSettings::default()
        };
        assert_eq!(off.with(None), Enforcement::default());
        assert!(!off.with(Some(&Claims::default())).on);
        let both = on.with(Some(&policy(Some(&["b"]))));
        assert_eq!((both.on, both.agents.len(), both.max_retries), (true, 2, 0));
        assert_eq!(off.with(Some(&policy(Some(&["b"])))).agents, ["b"]);
        assert_eq!(on.with(None).agents, ["a"]);
        assert!(off.includes_main(Some(&policy(Some(&["main"])))) && !on.includes_main(None));
    }
}
