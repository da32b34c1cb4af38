//! The user's side of the machine: where state lives and which client settings are theirs.

use std::path::{Path, PathBuf};

use crate::claims::Switches;

/// Folders the caller took from its environment. The engine itself never reads environment variables.
#[derive(Clone, Debug, Default)]
pub struct Home {
    /// Writ's state folder; `None` when neither a variable nor a home directory says where.
    pub state: Option<PathBuf>,
    /// The user's home directory.
    pub user: Option<PathBuf>,
    /// The client's configuration folder, when a variable moves it away from `~/.claude`.
    pub claude_config: Option<PathBuf>,
    /// Writ's own program.
    pub program: Option<PathBuf>,
    /// Where programs are looked up.
    pub search: Vec<PathBuf>,
    /// The folder that the client was started in, where it says so.
    pub project: Option<PathBuf>,
    /// What is enforced of claims.
    pub claims: Switches,
    /// Whether the client runs its shell lines with zsh, as far as the environment says.
    pub zsh: bool,
}

/// There is nowhere to keep state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nowhere to keep state: set HOME or WRIT_STATE_DIR to an absolute path")]
pub struct NoStateDir;

impl Home {
    /// The state folder.
    pub fn state(&self) -> Result<&Path, NoStateDir> {
        self.state.as_deref().ok_or(NoStateDir)
    }

    /// The home directory as text, for `~` in patterns and shell words.
    pub fn user_text(&self) -> Option<String> {
        self.user.as_deref().map(|path| path.to_string_lossy().into_owned())
    }

    /// The client's configuration folder.
    pub fn claude_dir(&self) -> Option<PathBuf> {
        self.claude_config.clone().or_else(|| self.user.as_ref().map(|home| home.join(".claude")))
    }
}
