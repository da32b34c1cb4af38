//! Secrets of an agent that lie in a vault, fetched before it runs.
//!
//! Owns the one way in which their values reach the run: Writ begins anew with a variable for each, as if its caller had set it, and from there
//! on they are as `env:` secrets: known to the proxy, and to nothing inside. Refuses where a vault says no. Invariant: no value is written to
//! a file, a row or a message. Page: `spec/agentfile.md`, "A run".

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use writ_agentfile::Agent;
use writ_agentfile::directive::Source;
use writ_agentfile::placed::vault_variable;
use writ_engine::Home;
use writ_service::Vault;
use zeroize::Zeroizing;

/// Fetches what is not there yet. It comes back only where nothing had to be fetched, or with the line that could not be. The folder of the
/// run is `room`.
pub fn fetch(agent: &Agent, home: &Home, room: Option<&Path>) -> Result<(), String> {
    let set = |name: &str| home.variable(name).filter(|value| !value.is_empty());
    let (Some(address), Some(token)) = (set("VAULT_ADDR"), set("VAULT_TOKEN")) else { return Ok(()) };
    let text = |value: OsString| value.to_string_lossy().into_owned();
    let vault = Vault { address: text(address), token: Zeroizing::new(text(token)) };
    let mut values = Vec::new();
    for (entry, cred) in agent.creds() {
        let (Source::Vault { path, key }, variable) = (&cred.source, vault_variable(&cred.name)) else { continue };
        if set(&variable).is_none() {
            let value =
                vault.value(path, key).map_err(|why| format!("{}: `{}`: {why}", entry.line(), entry.quoted()))?;
            values.push((variable, value));
        }
    }
    if values.is_empty() {
        return Ok(());
    }
    let program = home.program.clone().ok_or_else(|| " where Writ's own program is cannot be found out".to_owned())?;
    // It is made again.
    room.into_iter().for_each(|room| drop(fs::remove_dir_all(room)));
    let mut again = Command::new(program);
    again.args(std::env::args_os().skip(1));
    again.envs(values.iter().map(|(name, value)| (name, value.as_str())));
    Err(format!(" it cannot begin anew: {}", again.exec()))
}
