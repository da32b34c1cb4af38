//! The process's surroundings, read once: the only place that looks at environment variables.

use std::env;
use std::path::PathBuf;

use writ_engine::Home;

use crate::exit::Failure;

/// Where Writ keeps its state: `$WRIT_STATE_DIR`, else `$XDG_STATE_HOME/writ`, else `~/.local/state/writ`.
pub fn home() -> Home {
    let user = absolute("HOME");
    let state = absolute("WRIT_STATE_DIR")
        .or_else(|| absolute("XDG_STATE_HOME").map(|dir| dir.join("writ")))
        .or_else(|| user.as_ref().map(|dir| dir.join(".local/state/writ")));
    Home { state, user, claude_config: absolute("CLAUDE_CONFIG_DIR") }
}

/// The directory the process runs in, absolute.
pub fn cwd() -> Result<PathBuf, Failure> {
    env::current_dir().map_err(|error| Failure::could_not(format!("cannot tell the current directory: {error}")))
}

/// A variable that holds an absolute path; anything else there is as if unset.
fn absolute(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The folders of `$PATH`.
pub fn search_path() -> Vec<PathBuf> {
    env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default()
}
