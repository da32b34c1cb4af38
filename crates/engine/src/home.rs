//! The user's side of the machine: where state lives and which client settings are theirs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use writ_clients::settings::Places;
use writ_clients::{CLIENTS, Client};
use writ_core::{Digest, Timestamp};

use crate::claim_settings::ClaimSettings;
use crate::keeper::Keeper;

/// Reads the variables of the process that asks.
pub type Environment = fn() -> Vec<(OsString, OsString)>;

/// Where a Workload API is, and how it is asked.
#[derive(Clone, Debug)]
pub struct Workload {
    /// As `SPIFFE_ENDPOINT_SOCKET` has it: `unix:///run/spire/agent.sock`.
    pub address: String,
    /// Asks it once.
    pub fetch: fn(&str) -> Result<Svid, String>,
}

/// What it gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Svid {
    /// The SPIFFE id of the first SVID.
    pub id: String,
    /// SHA-256 of its certificate's DER.
    pub certificate: Digest,
    /// When that ends.
    pub expires: Timestamp,
    /// The user at the socket's other end, as the kernel tells; `None` of one over TCP.
    pub peer: Option<u32>,
}

/// Folders the caller took from its environment. The engine itself never reads environment variables.
#[derive(Clone, Debug, Default)]
pub struct Home {
    /// Writ's state folder; `None` when neither a variable nor a home directory says where.
    pub state: Option<PathBuf>,
    /// The user's home directory.
    pub user: Option<PathBuf>,
    /// The clients' own folders by the clients' names, where a variable moves them.
    pub folders: BTreeMap<&'static str, PathBuf>,
    /// Writ's own program.
    pub program: Option<PathBuf>,
    /// Where programs are looked up.
    pub search: Vec<PathBuf>,
    /// The folder that the client was started in, where it says so.
    pub project: Option<PathBuf>,
    /// Names of variables whose values are secrets, by their names: no sandbox gets them.
    pub secret_variables: Vec<String>,
    /// The variables of the process that asks, read only where a secret's value is among them.
    pub environment: Option<Environment>,
    /// The process that the call comes from.
    pub asker: Asker,
    /// Where the notary of another user is asked, if there is one for this user.
    pub notary: Option<PathBuf>,
    /// The key of this process, where it has one: a notary. Else the machine's, in its file.
    pub keeper: Option<Arc<Keeper>>,
    /// The Workload API that gives this process its identity, where there is one.
    pub workload: Option<Workload>,
    /// Sockets of container engines, which tell what a container was made from.
    pub engines: Vec<PathBuf>,
    /// What is enforced of claims.
    pub claims: ClaimSettings,
    /// Whether the client runs its shell lines with zsh, as far as the environment says.
    pub zsh: bool,
}

/// The process that asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asker {
    /// This one.
    #[default]
    This,
    /// One at the other end of a socket, as the kernel tells.
    Process(u32),
    /// The client itself, as the kernel tells: it posts its hooks.
    Client(u32),
    /// One that nothing tells of.
    Unknown,
}

impl Asker {
    /// Its number.
    pub fn id(self) -> Option<u32> {
        match self {
            Self::This => Some(std::process::id()),
            Self::Process(id) | Self::Client(id) => Some(id),
            Self::Unknown => None,
        }
    }
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

    /// Every variable of the process that asks.
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        self.environment.map(|read| read()).unwrap_or_default()
    }

    /// The value of one.
    pub fn variable(&self, name: &str) -> Option<OsString> {
        self.variables().into_iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }

    /// The home directory as text, for `~` in patterns and shell words.
    pub fn user_text(&self) -> Option<String> {
        self.user.as_deref().map(|path| path.to_string_lossy().into_owned())
    }

    /// A client's own folder, where a variable moves it.
    pub fn folder(&self, client: &dyn Client) -> Option<&Path> {
        self.folders.get(client.name()).map(PathBuf::as_path)
    }

    /// Where a client has its settings for a project; `None` when it has none, or nobody knows the user's home.
    pub fn places(&self, client: &dyn Client, project: &Path) -> Option<Places> {
        let folder = self.folder(client);
        let user = self.user.as_deref().or(folder)?;
        Some(client.settings()?.places(project, user, folder))
    }

    /// The same of every client.
    pub fn all_places(&self, project: &Path) -> impl Iterator<Item = (&'static dyn Client, Places)> {
        CLIENTS.into_iter().filter_map(move |client| Some((client, self.places(client, project)?)))
    }
}
