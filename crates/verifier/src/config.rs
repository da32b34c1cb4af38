//! What an operator sets (§7.8).

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use writ_core::json;

use crate::Instance;

/// How much a caller makes of attestations (§7.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Nothing is verified, nothing is recorded.
    #[default]
    Ignore,
    /// What came is recorded before anything happens; nothing is verified, nothing is fetched.
    Log,
    /// What came is verified; what did not come is a warning.
    Verify,
    /// No report counts without an attestation that verifies.
    Require,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 4] = [Self::Ignore, Self::Log, Self::Verify, Self::Require];

    /// The mode as `attestation_mode` spells it.
    pub fn as_str(self) -> &'static str {
        json::word(&self)
    }

    /// The mode of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The settings of §7.8. The default is theirs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// `attestation_mode`.
    pub mode: Mode,
    /// `trusted_instances`: the only ones whose attestations count. Empty means any instance.
    pub trusted_instances: Vec<Instance>,
    /// `key_cache_ttl`: how long a fetched registry serves before it is fetched again. Rollback protection does not end with it.
    pub key_cache_ttl: Duration,
    /// `cross_check`: whether the copy behind `attestation_uri` is fetched and compared (§7.5).
    pub cross_check: bool,
    /// How many more times a request is sent when the network failed. Nothing else is tried again (R32).
    pub retries: u8,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mode: Mode::Ignore,
            trusted_instances: Vec::new(),
            key_cache_ttl: Duration::from_secs(86_400),
            cross_check: false,
            retries: 2,
        }
    }
}
