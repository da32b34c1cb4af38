//! The client's settings while a session runs: a change that would loosen Writ's hooks is refused.
//!
//! Owns the comparison of what the settings files held when the session began with what they hold now. Refuses nothing by
//! itself: the client asks before it takes changed settings over (`ConfigChange`), and keeps the old ones when it is told no
//! (measured with 2.1.329). Page: `spec/clients/claude-code.md`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use writ_clients::Client;
use writ_clients::settings::{Installed, Start};
use writ_core::json::{self, Value};
use writ_core::regular_file;

use crate::{Home, governing};

/// Largest settings file.
const MAX_SETTINGS: u64 = 4 << 20;

/// A settings file that installed Writ's hooks when the session began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hooks {
    /// The file.
    #[serde(with = "json::path")]
    pub path: PathBuf,
    /// The programs it started.
    pub starts: Vec<Start>,
    /// The shell it had the client run.
    pub shell: Option<String>,
}

/// The settings files that install Writ's hooks for a folder.
pub fn installed(home: &Home, client: &dyn Client, cwd: &Path) -> Vec<Hooks> {
    let found = files(home, client, cwd).into_iter().filter_map(|path| Some((look(client, &path).ok()?, path)));
    let hooks = found.map(|(found, path)| Hooks { path, starts: found.starts, shell: found.shell });
    hooks.filter(|hooks| !hooks.starts.is_empty()).collect()
}

/// Reads what the genesis row keeps of them.
pub fn recorded(genesis: &Value) -> Vec<Hooks> {
    let hooks = genesis.get("hooks").and_then(Value::as_array).unwrap_or_default();
    hooks.iter().filter_map(|hooks| json::from_value(hooks).ok()).collect()
}

/// Why the settings as they are now would hold the session less than those it began with; `None` when they would not.
/// `hooks` are the files that installed the hooks then.
pub fn weakened(
    home: &Home,
    client: &dyn Client,
    cwd: &Path,
    hooks: &[Hooks],
    changed: Option<&Path>,
) -> Option<String> {
    for hook in hooks {
        let shown = hook.path.display();
        match look(client, &hook.path) {
            Err(why) => return Some(format!("{shown} no longer installs Writ's hooks: {why}")),
            Ok(found) => {
                let (starts, shell) = (hook.starts.clone(), hook.shell.clone());
                let before = Installed { starts, shell, ..Installed::default() };
                if let Some(why) = found.weaker_than(&before) {
                    return Some(format!("{shown} {why}"));
                }
            }
        }
    }
    // Another file cannot take entries away, but it can switch hooks off or move what they look for.
    let others = files(home, client, cwd)
        .into_iter()
        .chain(changed.map(Path::to_owned))
        .filter(|path| hooks.iter().all(|hook| hook.path != *path));
    for path in others {
        let Ok(found) = look(client, &path) else { continue };
        let plain = Installed { starts: found.starts.clone(), missing: found.missing.clone(), ..Installed::default() };
        let plain = Installed { fails_open: found.fails_open.clone(), hurried: found.hurried.clone(), ..plain };
        let plain = Installed { narrowed: found.narrowed.clone(), rejected: found.rejected.clone(), ..plain };
        if let Some(why) = found.weaker_than(&plain) {
            return Some(format!("{} {why}", path.display()));
        }
    }
    None
}

fn files(home: &Home, client: &dyn Client, cwd: &Path) -> Vec<PathBuf> {
    home.places(client, governing::repository(cwd)).map(|places| places.settings).unwrap_or_default()
}

fn look(client: &dyn Client, path: &Path) -> Result<Installed, String> {
    let settings = client.settings().ok_or("this client has no settings")?;
    let bytes = regular_file::read(path, MAX_SETTINGS).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
    settings.inspect(Some(&text)).map_err(|error| error.to_string())
}
