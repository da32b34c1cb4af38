//! The MCP servers that a client's files define: which program stands behind a server's name.

use std::path::{Path, PathBuf};

use writ_core::json::JsonError;

/// Largest file that is read, in bytes: a client keeps much else in the same file.
pub const MOST: u64 = 16 << 20;

/// A client whose files define MCP servers.
pub trait Servers {
    /// The files that may define servers for a session in `cwd`. `folder` is the user's own folder of this client, where a
    /// variable moves it.
    fn files(&self, cwd: &Path, user: &Path, folder: Option<&Path>) -> Vec<PathBuf>;

    /// Every definition of a server in one file, by the name that a call has for it.
    fn defined(&self, text: &str, name: &str) -> Result<Vec<Server>, JsonError>;
}

/// How the client starts a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its program; `None` where the client connects to one that runs already, or the definition is not read.
    pub command: Option<String>,
    /// The program's arguments.
    pub args: Vec<String>,
}
