//! One secret of a HashiCorp Vault, or of what speaks as one.
//!
//! Owns the question and how its answer is read. Refuses to ask in the clear but on this machine. Invariant: no error holds a value or the
//! token. Page: `spec/agentfile.md`, "A run".

use std::io::Read;
use std::time::Duration;

use writ_core::json::{self, Limits, Value};
use writ_package::reference::is_local;
use zeroize::Zeroizing;

use crate::network::{agent, authorities};

/// How long it may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Largest answer.
const MOST: u64 = 1 << 20;

/// Where a vault is, and what lets in.
#[derive(Clone)]
pub struct Vault {
    /// `https://vault.example:8200`.
    pub address: String,
    /// The token.
    pub token: Zeroizing<String>,
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vault").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Vault {
    /// The value of a key at a path of its API: `secret/data/github`.
    pub fn value(&self, path: &str, key: &str) -> Result<Zeroizing<String>, String> {
        let address = self.address.trim_end_matches('/');
        let host = address.strip_prefix("http://");
        if host.is_some_and(|host| !is_local(host)) {
            return Err(format!("{address}: a vault on another machine is asked by HTTPS alone"));
        }
        let failed = |error: &dyn std::fmt::Display| format!("{address}: {error}");
        let asked = agent(authorities(), TIMEOUT).get(format!("{address}/v1/{path}"));
        let asked = asked.header("X-Vault-Token", self.token.as_str()).header("X-Vault-Request", "true");
        let mut answer = asked.call().map_err(|error| failed(&error))?;
        let status = answer.status().as_u16();
        if status != 200 {
            return Err(format!("{address} answers {status} for `{path}`"));
        }
        let mut bytes = Zeroizing::new(Vec::new());
        answer.body_mut().as_reader().take(MOST).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
        let read = json::parse_with(&bytes, Limits::FOREIGN).map_err(|_error| failed(&"its answer is no JSON"))?;
        let data = read.get("data");
        // The second version of its store has a layer more, with what it knows of the version.
        let newer = data.and_then(|data| data.get("data"));
        let value = newer.or(data).and_then(|data| data.get(key)).and_then(Value::as_str);
        value.map(|value| Zeroizing::new(value.to_owned())).ok_or_else(|| format!("`{path}` has no text `{key}`"))
    }
}
