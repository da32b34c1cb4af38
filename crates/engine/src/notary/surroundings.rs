//! What a hook tells of its surroundings, so that the notary decides as the hook would have.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use writ_core::Custody;

use crate::Home;
use crate::claim_settings::ClaimSettings;

/// Where a hook runs, and what its environment says. The state folder is not among it: that is the notary's own.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Surroundings {
    /// The folder it runs in.
    pub cwd: PathBuf,
    user: Option<PathBuf>,
    folders: BTreeMap<String, PathBuf>,
    search: Vec<PathBuf>,
    project: Option<PathBuf>,
    secret_variables: Vec<String>,
    claims: ClaimSettings,
    zsh: bool,
}

impl Surroundings {
    /// Those of a hook; `None` where a path is no text, which nothing here could say.
    pub fn of(home: &Home, cwd: &Path) -> Option<Self> {
        let paths = home.folders.values().chain(&home.search).map(PathBuf::as_path);
        let single = [
            home.user.as_deref(),
            home.project.as_deref(),
            home.claims.capture.as_deref(),
            home.claims.cast.as_deref(),
        ];
        let mut paths = paths.chain(single.into_iter().flatten()).chain([cwd]);
        if paths.any(|path| path.to_str().is_none()) {
            return None;
        }
        Some(Self {
            cwd: cwd.to_owned(),
            user: home.user.clone(),
            folders: home.folders.iter().map(|(client, folder)| ((*client).to_owned(), folder.clone())).collect(),
            search: home.search.clone(),
            project: home.project.clone(),
            secret_variables: home.secret_variables.clone(),
            claims: home.claims.clone(),
            zsh: home.zsh,
        })
    }

    /// The folders that the engine answers with: the hook's, with the state and the program of the notary.
    pub fn home(self, notary: &Home) -> Home {
        let folders = self.folders.into_iter();
        let folders = folders.filter_map(|(client, folder)| Some((writ_clients::named(&client)?.name(), folder)));
        let mut claims = self.claims;
        if notary.keeper.as_ref().is_some_and(|keeper| keeper.custody() == Custody::OtherUser) {
            // What another user names is not written to, and not opened, with this user's rights.
            (claims.capture, claims.cast) = (None, None);
        }
        Home {
            user: self.user,
            folders: folders.collect(),
            search: self.search,
            project: self.project,
            secret_variables: self.secret_variables,
            claims,
            zsh: self.zsh,
            // What the notary itself was started with is nobody else's.
            environment: None,
            workload: None,
            ..notary.clone()
        }
    }
}
