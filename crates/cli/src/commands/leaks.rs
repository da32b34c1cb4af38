//! Secrets in a lock: what servers and files say of themselves goes into it, and may hold any.

use writ_agentfile::directive::Source;
use writ_agentfile::{Agent, Lock};
use writ_core::secret;

/// Shortest value of a secret that is looked for.
const SHORTEST: usize = 6;

/// What of a lock is a secret's value, or looks like one: what servers and files say of themselves may hold any.
pub fn leaks(lock: &Lock, agent: &Agent) -> Option<String> {
    let bytes = lock.to_bytes();
    let text = String::from_utf8_lossy(&bytes);
    for (_, cred) in agent.creds() {
        if let Source::Env { variable } = &cred.source
            && let Some(value) = std::env::var(variable).ok().filter(|value| value.len() >= SHORTEST)
            && text.contains(value.as_str())
        {
            return Some(format!("it holds the value of the secret `{}`", cred.name));
        }
    }
    let line = text.lines().find(|line| secret::has_token(line))?;
    let member = line.trim().split_once(':').map_or("a line", |(name, _)| name);
    Some(format!("{member} looks like a secret's value"))
}
