//! Overlays for runs, made while nobody waits for them.
//!
//! Owns one set that nobody has yet, for a run like the last. Refuses one whose folders are no longer those that it was made of. Its
//! invariant: none is lent twice, and each shows its folder as it was when nothing of it had been looked at.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

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
    spare: Mutex<Option<Made>>,
}

/// Overlays, and the folders that the kernel works in for them: removed with it, unless a run has them.
pub struct Made {
    layered: Vec<Layered>,
    /// Which folders they lie over.
    over: Vec<Option<(u64, u64)>>,
    overlays: Overlays,
    lent: bool,
}

impl Maker {
    /// For a user, in a namespace of users.
    pub fn new(user: OwnedFd, owners: Option<OwnedFd>, who: Who) -> Self {
        Self { user, owners, who, count: AtomicU64::new(0), spare: Mutex::default() }
    }

    /// Those that are there, or new ones.
    pub fn take(&self, layered: &[Layered]) -> Result<Made, RunError> {
        let spare = self.spare().take();
        match spare.filter(|made| made.layered == layered && made.is_still_so()) {
            Some(made) => Ok(made),
            None => self.make(layered),
        }
    }

    /// Makes those for the next run.
    pub fn provide(&self, layered: &[Layered]) {
        if !layered.is_empty() && self.spare().is_none() {
            // Where that fails, it is tried again when the next run asks.
            *self.spare() = self.make(layered).ok();
        }
    }

    /// Removes what the kernel worked in for runs that have ended.
    pub fn rest(&self) {
        let layered = self.spare().as_ref().map(|made| made.layered.clone());
        for layered in layered.iter().flatten() {
            temporary::sweep_works(layered.layer.as_path(), 0);
        }
    }

    fn make(&self, layered: &[Layered]) -> Result<Made, RunError> {
        let work = format!("{WORK}{}-{}", std::process::id(), self.count.fetch_add(1, Ordering::Relaxed));
        let over = layered.iter().map(over).collect();
        hand::make_works(layered, &self.who, &work)?;
        let overlays = Overlays { work, trees: Vec::new() };
        let mut made = Made { layered: layered.to_vec(), over, overlays, lent: false };
        made.overlays.trees = self.mount(layered, &made.overlays.work)?;
        Ok(made)
    }

    fn mount(&self, layered: &[Layered], work: &str) -> Result<Vec<OwnedFd>, RunError> {
        let plan = Plan::of_layers(layered, work)?;
        let lent = identity::lent(&self.who, &plan);
        let trees = identity::lend_trees(&self.who, &plan, &lent, self.owners.as_ref())?;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(outside("make a socket"))?;
        hand::send_trees(&trees, &ours).map_err(outside("lend trees"))?;
        let mut lending = Lending {
            slots: plan.taken.iter().map(|_| None).collect(),
            layers: plan.layers.iter().map(|_| None).collect(),
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

    fn spare(&self) -> MutexGuard<'_, Option<Made>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Made {
    /// What they are called, and what stands for them.
    pub fn parts(&self) -> (&str, Vec<BorrowedFd<'_>>) {
        (&self.overlays.work, self.overlays.trees.iter().map(AsFd::as_fd).collect())
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

impl Drop for Made {
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
