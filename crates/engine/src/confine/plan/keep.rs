//! What a plan keeps as it is in folders that can be written: what runs or is obeyed outside.
//!
//! Owns which repositories and names that are. Refuses nothing. Invariant: what git runs or obeys of a repository that was there when the
//! session began is read-only; of one that the session's calls made, what is left is looked at when each call ends ([`super::super::left`]).

use std::path::Path;

use writ_core::{Digest, json};
use writ_policy::Reach;

use super::{PlanError, Walk, host};
use crate::confine::git;
use crate::confine::places::{KEPT, KEPT_IF_THERE};
use crate::confine::tracked::Git;

impl Walk<'_> {
    /// What shells, editors and clients obey in the folders that people and agents work in. Below those it is a file as others are.
    pub(super) fn keep_names(&mut self, folder: &Path, is_top: bool) -> Result<(), PlanError> {
        let at_home = self.home().is_some_and(|home| folder == Path::new(home));
        if !is_top && !at_home && (folder != self.ground.folder || self.is_made(folder)) {
            return Ok(());
        }
        // Names that are not there yet are kept at the top.
        let names = KEPT.iter().map(|name| (name, is_top)).chain(KEPT_IF_THERE.iter().map(|name| (name, at_home)));
        for (name, also_absent) in names {
            if also_absent || folder.join(name.trim_end_matches('/')).symlink_metadata().is_ok() {
                self.confinement.read_only.push(host(&folder.join(name))?);
            }
        }
        Ok(())
    }

    /// Whether a repository was there before the session's calls.
    pub(super) fn was_there(&self, git: &Path) -> bool {
        self.ground.begun.is_none_or(|begun| begun.had(git))
    }

    /// Whether a folder is in a work tree that a call made.
    fn is_made(&self, folder: &Path) -> bool {
        let mut trees = folder.ancestors().map(|above| above.join(".git"));
        trees.any(|git| !self.was_there(&git) && git.symlink_metadata().is_ok())
    }

    /// Keeps what git runs or obeys of a repository.
    pub(super) fn keep(&mut self, git: &Path) -> Result<(), PlanError> {
        let (home, begun) = (self.home().map(Path::new), self.ground.begun);
        let kept = git::kept(git, home, |tree| begun.is_none_or(|begun| begun.had(tree)));
        for path in kept {
            self.confinement.read_only.push(host(&path)?);
        }
        Ok(())
    }

    /// A nested repository's hooks run outside, whoever wrote them.
    pub(super) const fn may_hold_repositories(&self, own: Reach) -> bool {
        matches!(own, Reach::Write)
    }

    /// Git's own files: it works in them, and what it runs or obeys is kept.
    pub(super) fn repository(&mut self, git: &Path, is_folder: bool, around: Reach) -> Result<(), PlanError> {
        if self.most < Reach::Write {
            return Ok(());
        }
        if !is_folder {
            self.confinement.read_only.push(host(git)?);
            for folder in Git::of(git).iter().flat_map(Git::folders) {
                self.keep(folder)?;
            }
            return Ok(());
        }
        match around {
            Reach::Read => self.confinement.writable.push(host(git)?),
            Reach::Unnamed if self.below(git) == Reach::Write => self.confinement.writable.push(host(git)?),
            // What git does not see it takes for removed: it would record that.
            Reach::Unnamed => {
                self.confinement.readable.push(host(git)?);
                self.confinement.read_only.push(host(git)?);
            }
            Reach::Write | Reach::Denied => {}
        }
        self.keep(git)
    }

    /// What git keeps of a file that is denied is denied too, and its objects cannot be told apart.
    pub(super) fn hide_objects(&mut self, git: &Path) -> Result<(), PlanError> {
        let (layers, work) = (self.ground.layers, git.parent().unwrap_or(git));
        let Some(found) = Git::of(git).filter(|_| layers.iter().any(|policy| policy.hides_files())) else {
            return Ok(());
        };
        let policies: Vec<Digest> = layers.iter().map(|policy| policy.digest()).collect();
        let policies = Digest::of(json::to_canonical(&(policies, self.ground.approved, self.home())).as_bytes());
        let is_denied = |path: &str| self.reach(&work.join(path)) == Reach::Denied;
        let Some(file) = found.denied(self.ground.state, policies, is_denied) else { return Ok(()) };
        for objects in found.objects() {
            let help = "stop tracking it, or take it back with `!` in the rule's list";
            self.said.hidden.push(format!("{}: git tracks `{file}`, which is denied: {help}", objects.display()));
            self.confinement.masked.push(host(&objects)?);
        }
        // Else the next plan would be made from what a call wrote there.
        self.confinement.read_only.push(host(&found.index())?);
        Ok(())
    }
}
