//! What this kernel and container allow.
//!
//! Owns the levels of strength and what each needs. Refuses to believe a version: each thing is tried in a child (`trials`). Its invariant: a
//! feature that is said to be there was seen to work, as this user, since this boot.

mod cgroups;
mod trials;

use std::fmt;
use std::fs;
use std::io;

use landlock::ABI;
use serde::{Deserialize, Serialize};

pub use cgroups::{Cgroups, Controllers};

/// What was found. It holds for one boot and one user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Features {
    /// The kernel's release.
    pub kernel: String,
    /// The machine's architecture.
    pub architecture: String,
    /// Which boot it was tried in.
    pub boot: String,
    /// In which surroundings.
    #[serde(default)]
    pub around: String,
    /// As which user.
    pub user: u32,
    /// Landlock's version, 0 where it refuses nothing.
    pub landlock: u32,
    /// Landlock's corrections, one bit each.
    pub landlock_errata: u32,
    /// Filters on system calls.
    pub filters: bool,
    /// System calls that another process answers.
    pub notifications: bool,
    /// User namespaces in which something can be mounted.
    pub mounts: bool,
    /// Namespaces of processes.
    pub processes: bool,
    /// `/proc` mounted in one of them.
    pub fresh_proc: bool,
    /// Networks of their own, with a loopback.
    pub networks: bool,
    /// Namespaces of shared memory, names and control groups.
    pub others: bool,
    /// Overlays.
    pub overlay: bool,
    /// Mounts that show other owners.
    pub mapped_owners: bool,
    /// Control groups.
    pub cgroups: Cgroups,
}

/// How strong a confinement can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Level {
    /// 1: system calls are filtered; files and network are as open as for anybody.
    Filters,
    /// 2: Landlock and filters, without namespaces.
    Landlock,
    /// 3: namespaces, Landlock and filters; names of other processes can be seen.
    Namespaces,
    /// 4: everything.
    Full,
}

impl Level {
    /// From 1 to 4.
    pub fn number(self) -> u8 {
        match self {
            Self::Filters => 1,
            Self::Landlock => 2,
            Self::Namespaces => 3,
            Self::Full => 4,
        }
    }
}

/// One layer of a confinement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Layer {
    /// Filters on system calls.
    Filters,
    /// System calls that another process answers.
    Notifications,
    /// Landlock.
    Landlock,
    /// Mounts in a user namespace.
    Mounts,
    /// A namespace of processes.
    Processes,
    /// A network namespace.
    Networks,
    /// Namespaces of shared memory, names and control groups.
    Others,
    /// A fresh `/proc`.
    FreshProc,
    /// Mounts that show other owners.
    MappedOwners,
    /// A control group that limits memory.
    Memory,
    /// Folders whose changes go to a layer.
    Overlay,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Filters => "a filter on system calls (seccomp)",
            Self::Notifications => "answers to system calls (seccomp's user notification)",
            Self::Landlock => "Landlock",
            Self::Mounts => "a mount in a user namespace",
            Self::Processes => "a namespace of processes",
            Self::Networks => "a network namespace",
            Self::Others => "a namespace of shared memory and names",
            Self::FreshProc => "a fresh `/proc`",
            Self::MappedOwners => "a mount with mapped owners",
            Self::Memory => "a control group that limits memory",
            Self::Overlay => "an overlay in a user namespace",
        })
    }
}

impl Features {
    /// Tries everything. It takes some tens of milliseconds.
    pub fn probe() -> io::Result<Self> {
        let filters = trials::filters();
        let landlock = if trials::landlock() { crate::sys::landlock::version() } else { 0 };
        Ok(Self {
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")?.trim_end().to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            boot: boot()?,
            around: around(),
            user: rustix::process::geteuid().as_raw(),
            landlock,
            landlock_errata: crate::sys::landlock::errata(),
            filters,
            notifications: filters && trials::notifications(),
            mounts: trials::mounts(),
            processes: trials::processes(),
            fresh_proc: trials::fresh_proc(),
            networks: trials::networks(),
            others: trials::others(),
            overlay: trials::overlay(),
            mapped_owners: trials::mapped_owners(),
            cgroups: Cgroups::find(),
        })
    }

    /// Whether it was found in this boot, as this user and in the same surroundings.
    pub fn still_hold(&self) -> bool {
        let same = boot().is_ok_and(|boot| boot == self.boot) && rustix::process::geteuid().as_raw() == self.user;
        same && around() == self.around
    }

    /// The highest level that can be had.
    pub fn level(&self) -> Option<Level> {
        [Level::Full, Level::Namespaces, Level::Landlock, Level::Filters]
            .into_iter()
            .find(|level| self.missing(*level).is_empty())
    }

    /// What a level needs and was not found.
    pub fn missing(&self, level: Level) -> Vec<Layer> {
        let landlock = (self.landlock > 0, Layer::Landlock);
        let filters = (self.filters, Layer::Filters);
        let namespaces = [
            (self.mounts, Layer::Mounts),
            (self.processes, Layer::Processes),
            (self.networks, Layer::Networks),
            (self.others, Layer::Others),
        ];
        let mut needed = vec![filters];
        match level {
            Level::Filters => {}
            Level::Landlock => needed.extend([landlock, (self.notifications, Layer::Notifications)]),
            Level::Namespaces => needed.extend([landlock].into_iter().chain(namespaces)),
            Level::Full => {
                needed.extend([landlock].into_iter().chain(namespaces));
                needed.push((self.fresh_proc, Layer::FreshProc));
            }
        }
        needed.into_iter().filter(|(found, _)| !found).map(|(_, layer)| layer).collect()
    }

    /// The same, without what a higher level has: to see what a lower one holds.
    #[must_use]
    pub fn at_most(mut self, level: Level) -> Self {
        if level < Level::Full {
            self.fresh_proc = false;
        }
        if level < Level::Namespaces {
            self.mounts = false;
        }
        if level < Level::Landlock {
            self.landlock = 0;
        }
        self
    }

    /// Landlock's version as far as it is known here.
    pub fn landlock_abi(&self) -> Option<ABI> {
        match self.landlock {
            0 => None,
            1 => Some(ABI::V1),
            2 => Some(ABI::V2),
            3 => Some(ABI::V3),
            4 => Some(ABI::V4),
            5 => Some(ABI::V5),
            6 => Some(ABI::V6),
            7 => Some(ABI::V7),
            8 => Some(ABI::V8),
            _ => Some(ABI::V9),
        }
    }
}

fn boot() -> io::Result<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|text| text.trim_end().to_owned())
}

/// What a container changes: its namespaces, the filter and the capabilities it leaves. A host's boot, user and home may be its own, too.
fn around() -> String {
    let space = |name: &str| fs::read_link(format!("/proc/self/ns/{name}")).unwrap_or_default();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line =
        |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned();
    let (pid, user) = (space("pid"), space("user"));
    format!("{} {} {} {}", pid.display(), user.display(), line("Seccomp:"), line("CapBnd:"))
}

#[cfg(test)]
mod tests {
    use writ_core::json;

    use super::*;

    #[test]
    fn what_was_found_comes_back_and_still_holds() {
        let features = Features::probe().unwrap();
        let text = json::to_canonical(&features);
        assert_eq!(json::from_slice::<Features>(text.as_bytes()).unwrap(), features);
        assert!(features.still_hold());
        assert!(!Features { around: String::new(), ..features.clone() }.still_hold());
        assert!(!Features { boot: String::new(), ..features }.still_hold());
    }

    #[test]
    fn a_level_names_what_it_lacks() {
        let features = Features::probe().unwrap();
        if features.level() != Some(Level::Full) {
            return;
        }
        for level in [Level::Namespaces, Level::Landlock, Level::Filters] {
            assert_eq!(features.clone().at_most(level).level(), Some(level));
        }
        assert_eq!(features.clone().at_most(Level::Namespaces).missing(Level::Full), [Layer::FreshProc]);
        let bare = Features { filters: false, ..features };
        assert_eq!((bare.level(), bare.missing(Level::Filters)), (None, vec![Layer::Filters]));
    }
}
