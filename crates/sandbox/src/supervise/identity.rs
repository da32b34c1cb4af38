//! Who the command is.
//!
//! Owns the map of users of its user namespace: one user, one group, each as itself. Refuses uid 0: what a root without capabilities owns
//! it could still read. Its invariant: no number inside stands for another outside.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;

use rustix::process::{Pid, getegid, geteuid};

use super::RunError;
use crate::confinement::{Confinement, Identity};

/// Who, and whether the caller has to become that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    pub uid: u32,
    pub gid: u32,
    pub other: bool,
}

/// Decides.
pub fn of(confinement: &Confinement) -> Result<Who, RunError> {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let folder = confinement.folder.as_path();
    match confinement.identity {
        Identity::User { uid: 0, .. } => Err(RunError::Root(folder.to_owned())),
        Identity::User { uid: wanted, gid: group } if uid == 0 => Ok(Who { uid: wanted, gid: group, other: true }),
        Identity::User { uid: wanted, gid: group } if (wanted, group) == (uid, gid) => {
            Ok(Who { uid, gid, other: false })
        }
        Identity::User { .. } => Err(RunError::OtherUser),
        Identity::Owner if uid != 0 => Ok(Who { uid, gid, other: false }),
        Identity::Owner => {
            let owner = fs::metadata(folder).map_err(|error| RunError::Outside("see who owns the folder", error))?;
            match owner.uid() {
                0 => Err(RunError::Root(folder.to_owned())),
                uid => Ok(Who { uid, gid: owner.gid(), other: true }),
            }
        }
    }
}

/// Writes the maps of a process's user namespace.
pub fn map(pid: Pid, who: &Who) -> Result<(), RunError> {
    let pid = pid.as_raw_nonzero();
    let write = |name: &str, text: &str| {
        let file = OpenOptions::new().write(true).open(format!("/proc/{pid}/{name}"));
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| RunError::Outside("map users of the sandbox", error))
    };
    if !who.other {
        // Asked of everybody but root before groups are mapped.
        write("setgroups", "deny")?;
    }
    write("gid_map", &format!("{0} {0} 1", who.gid))?;
    write("uid_map", &format!("{0} {0} 1", who.uid))
}
