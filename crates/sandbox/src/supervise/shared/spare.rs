//! Mounts for runs, made while nobody waits for them.
//!
//! Owns one set that nobody has yet, for a run like the last: overlays, and a tree of its own. Refuses one whose folders are no longer those
//! that it was made of. Its invariant: none is lent twice, and each shows its folder as it was when nothing of it had been looked at.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use writ_core::Digest;

use super::super::hear::Hearing;
use super::super::identity::{self, Who};
use super::super::{RunError, Sandbox, hand, outside, prepare, temporary};
use super::lease::Overlays;
use crate::confinement::Layered;
use crate::inside::{self, Lending};
use crate::plan::{Plan, WORK};
use crate::sys::process::{Forked, clone};

/// Who makes them.
pub struct Maker {
    user: OwnedFd,
    owners: Option<OwnedFd>,
    who: Who,
    count: AtomicU64,
    spare: Mutex<Option<Spare>>,
    /// The last tree that a run had to make itself, in words.
    wanted: Mutex<Option<Vec<u8>>>,
}

/// Overlays, and the folders that the kernel works in for them: removed with it, unless a run has them. And a tree.
pub struct Spare {
    layered: Vec<Layered>,
    /// Which folders they lie over.
    over: Vec<Option<(u64, u64)>>,
    overlays: Overlays,
    /// By the digest of its words.
    tree: Option<(Digest, OwnedFd)>,
    lent: bool,
}

impl Maker {
    /// For a user, in a namespace of users.
    pub fn new(user: OwnedFd, owners: Option<OwnedFd>, who: Who) -> Self {
        Self { user, owners, who, count: AtomicU64::new(0), spare: Mutex::default(), wanted: Mutex::default() }
    }

    /// What is there, or new overlays; a tree a run makes as fast itself.
    pub fn take(&self, layered: &[Layered]) -> Result<Spare, RunError> {
        let spare = self.spare().take();
        match spare.filter(|spare| spare.layered == layered && spare.is_still_so()) {
            Some(spare) => Ok(spare),
            None => self.make(layered, None),
        }
    }

    /// The next run's tree is probably this one.
    pub fn want(&self, words: Vec<u8>) {
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = Some(words);
    }

    /// Makes what the next run needs.
    pub fn provide(&self, layered: &[Layered]) {
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if (wanted.is_some() || !layered.is_empty()) && self.spare().is_none() {
            // Where that fails, it is tried again when the next run asks.
            *self.spare() = self.make(layered, wanted.as_deref()).ok();
        }
    }

    /// Removes what the kernel worked in for runs that have ended.
    pub fn rest(&self) {
        let layered = self.spare().as_ref().map(|spare| spare.layered.clone());
        for layered in layered.iter().flatten() {
            temporary::sweep_works(layered.layer.as_path(), 0);
        }
    }

    fn make(&self, layered: &[Layered], wanted: Option<&[u8]>) -> Result<Spare, RunError> {
        let work = format!("{WORK}{}-{}", std::process::id(), self.count.fetch_add(1, Ordering::Relaxed));
        let over = layered.iter().map(over).collect();
        hand::make_works(layered, &self.who, &work)?;
        let overlays = Overlays { work, trees: Vec::new() };
        let mut spare = Spare { layered: layered.to_vec(), over, overlays, tree: None, lent: false };
        if wanted.is_none() && layered.is_empty() {
            return Ok(spare);
        }
        let mut mounts = self.mount(layered, &spare.overlays.work, wanted.and_then(Plan::of_words))?;
        let tree = mounts.split_off(layered.len().min(mounts.len())).pop();
        spare.tree = wanted.map(Digest::of).zip(tree);
        spare.overlays.trees = mounts;
        Ok(spare)
    }

    /// The overlays, and the tree where it could be made.
    fn mount(&self, layered: &[Layered], work: &str, tree: Option<Plan>) -> Result<Vec<OwnedFd>, RunError> {
        let plan = Plan::of_layers(layered, work)?;
        let lent = identity::lent(&self.who, &plan);
        let trees = identity::lend_trees(&self.who, &plan, &lent, self.owners.as_ref())?;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(outside("make a socket"))?;
        hand::send_trees(&trees, &ours).map_err(outside("lend trees"))?;
        let slots = |plan: &Plan| plan.taken.iter().map(|_| None).collect();
        let mut lending = Lending {
            slots: slots(&plan),
            layers: plan.layers.iter().map(|_| None).collect(),
            tree: tree.map(|tree| (slots(&tree), tree)),
            plan,
            lent,
            become_user: self.who.other.then_some((self.who.uid, self.who.gid)),
        };
        let maker = match clone(0).map_err(outside("start a process"))? {
            Forked::Child => inside::lend(&mut lending, &self.user, &theirs),
            Forked::Parent(child) => Sandbox::new(child),
        };
        drop(theirs);
        let explain = |failure| prepare::explain(failure, &lending.plan, &"".into());
        let made = Hearing::new(&ours, &explain).await_ready();
        maker.wait();
        made
    }

    fn spare(&self) -> MutexGuard<'_, Option<Spare>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spare {
    /// The overlays: what their folders are called, and what stands for them.
    pub fn overlays(&self) -> (&str, Vec<BorrowedFd<'_>>) {
        (&self.overlays.work, self.overlays.trees.iter().map(AsFd::as_fd).collect())
    }

    /// The tree, by the digest of its words.
    pub fn tree(&self) -> Option<(Digest, BorrowedFd<'_>)> {
        self.tree.as_ref().map(|(of, tree)| (*of, tree.as_fd()))
    }

    /// A run with these mounts has them.
    pub fn lent(mut self, mounts: u64) {
        for layered in &self.layered {
            // What cannot be noted stays as long as this process.
            drop(temporary::note_mounts(layered.layer.as_path(), &self.overlays.work, mounts));
        }
        self.lent = true;
    }

    /// Whether they lie over what is there now, and the kernel still has where it works.
    fn is_still_so(&self) -> bool {
        let works = self.layered.iter().map(|layered| layered.layer.as_path().join(&self.overlays.work));
        self.layered.iter().map(over).eq(self.over.iter().copied()) && works.into_iter().all(|work| work.is_dir())
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        if !self.lent {
            self.overlays.trees.clear();
            self.layered.iter().for_each(|layered| temporary::end_work(layered.layer.as_path(), &self.overlays.work));
        }
    }
}

/// Which folder it is.
fn over(layered: &Layered) -> Option<(u64, u64)> {
    fs::metadata(layered.path.as_path()).ok().map(|found| (found.dev(), found.ino()))
}
