//! Control groups that a run may make below the caller's own.
//!
//! Owns finding them; refuses to leave the caller's group, whose limits go on holding. Its invariant: nothing is made to find out; a run
//! that needs a group and cannot make it does not begin.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};

/// Where groups can be made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cgroups {
    /// Folder of the caller's group that limits memory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub memory: Option<PathBuf>,
    /// Folder of the caller's group that limits processes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub processes: Option<PathBuf>,
    /// Which interface they have.
    pub controllers: Controllers,
}

/// Which interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Controllers {
    /// None can be written.
    #[default]
    None,
    /// One hierarchy a controller (version 1).
    Version1,
    /// One hierarchy, delegated (version 2).
    Version2,
}

impl Cgroups {
    /// Looks.
    pub fn find() -> Self {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let second = folder(&own, &mounts, "").filter(|folder| delegates(folder, "memory"));
        if let Some(group) = second.filter(|group| writable(group)) {
            return Self {
                processes: delegates(&group, "pids").then(|| group.clone()),
                memory: Some(group),
                controllers: Controllers::Version2,
            };
        }
        let first = |controller| folder(&own, &mounts, controller).filter(|group| writable(group));
        let (memory, processes) = (first("memory"), first("pids"));
        let found = memory.is_some() || processes.is_some();
        let controllers = if found { Controllers::Version1 } else { Controllers::None };
        Self { memory, processes, controllers }
    }
}

/// The caller's group in a controller's hierarchy; with no name in the one of version 2.
fn folder(own: &str, mounts: &str, controller: &str) -> Option<PathBuf> {
    let group = own.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|name| name == controller).then_some(path)
    })?;
    mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (root, folder) = (place.next()?, place.next()?);
        let (kind, rest) = kind.split_once(' ')?;
        let options = rest.split_once(' ')?.1;
        let hit = match controller {
            "" => kind == "cgroup2",
            name => kind == "cgroup" && options.split(',').any(|option| option == name),
        };
        let below = Path::new(group).strip_prefix(root).ok()?;
        hit.then(|| Path::new(folder).join(below))
    })
}

/// Whether a group of version 2 may hand a controller on.
fn delegates(group: &Path, controller: &str) -> bool {
    let listed = fs::read_to_string(group.join("cgroup.subtree_control")).unwrap_or_default();
    listed.split_whitespace().any(|name| name == controller)
}

fn writable(group: &Path) -> bool {
    let may = |path: &Path| access(path, Access::WRITE_OK).is_ok();
    may(group) && may(&group.join("cgroup.procs"))
}
