//! Files that a run was refused, in words for the agent and as the row has them.
//!
//! Owns which of them are worth a word: what a rule of the policy names always is, the rest where the command failed. Invariant: a rule is
//! named only where the policy in force says that very thing of the path.

use std::path::Path;

use serde::Serialize;
use writ_core::visible;
use writ_sandbox::Refused;

use crate::copy::later;
use crate::governing::layers::Caller;
use crate::session::Session;

/// Most that a row holds.
const KEPT: usize = 16;
/// Most that the agent is told.
const TOLD: usize = 5;

/// What a row says of them.
#[derive(Debug, Default, Serialize)]
pub struct Refusals {
    /// How many different ones; what came after 64 was not counted.
    refused: usize,
    /// The first of them.
    first: Vec<Refusal>,
}

/// One.
#[derive(Clone, Debug, Serialize)]
struct Refusal {
    path: String,
    change: bool,
    /// The rule that says so; none is needed outside of what the policy gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
}

impl Refusals {
    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.refused == 0
    }

    /// With the rules of the policies in force.
    pub fn of(refused: &[Refused], session: &Session<'_>) -> Self {
        if refused.is_empty() {
            // The policies in force are read for a reason alone.
            return Self::default();
        }
        let layers = session.policy().ok().map_or_else(Vec::new, |in_force| in_force.speaking(Caller::Untold));
        let home = session.setting.home.as_deref();
        let rule = |refused: &Refused| {
            let path = refused.path.to_str()?;
            layers.iter().find_map(|speaks| Some(speaks.rule(speaks.policy.keeps(path, home, refused.change)?)))
        };
        let refusal = |refused: &Refused| Refusal {
            path: refused.path.to_string_lossy().into_owned(),
            change: refused.change,
            rule: rule(refused),
        };
        let mut first: Vec<Refusal> = refused.iter().map(refusal).collect();
        // What a rule names comes first.
        first.sort_by_key(|refusal| !refusal.is_named());
        first.truncate(KEPT);
        Self { refused: refused.len(), first }
    }

    /// In words, with paths as they look from a folder.
    pub fn words(&self, folder: &Path, failed: bool) -> Vec<String> {
        let told: Vec<&Refusal> = self.first.iter().filter(|refusal| failed || refusal.is_named()).collect();
        let mut words: Vec<String> = told.iter().take(TOLD).map(|refusal| refusal.words(folder)).collect();
        if told.len() > TOLD {
            words.push(format!("and {} more files were denied", told.len() - TOLD));
        }
        words
    }
}

impl Refusal {
    /// Whether a rule names it, or it is kept. That a list does not name it is no word to those who ask for what they do without.
    fn is_named(&self) -> bool {
        self.rule.as_deref().is_some_and(|rule| rule != "/files/allow") || self.is_kept()
    }

    /// Whether it is kept for who obeys it, which git takes badly: it ends well and half done.
    fn is_kept(&self) -> bool {
        let path = Path::new(&self.path);
        self.rule.is_none() && self.change && (later::is_obeyed_by_others(path) || is_of_git(path))
    }

    fn words(&self, folder: &Path) -> String {
        let path = Path::new(&self.path);
        let path = path.strip_prefix(folder).unwrap_or(path).to_string_lossy();
        let path = if path.is_empty() { ".".into() } else { path };
        if self.is_kept() {
            let path = visible::line(&path);
            return format!(
                "kept `{path}` as it is: shells, editors, clients or git obey it, so a human changes it; what git was to do with it is not done"
            );
        }
        let act = if self.change { "change" } else { "open" };
        let why = self.rule.as_deref().unwrap_or("outside of what its sandbox gives: `writ sandbox plan`");
        format!("denied to {act} `{}` ({})", visible::line(&path), visible::line(why))
    }
}

/// Whether git runs what it says: its settings, and its hooks.
fn is_of_git(path: &Path) -> bool {
    path.ancestors().any(|at| at.ends_with(".git/config") || at.ends_with(".git/hooks"))
}
