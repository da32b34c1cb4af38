//! The plan where there are no namespaces: Landlock's rights alone.
//!
//! Owns what Landlock can say: a right on a folder is a right on all below it. Refuses a confinement that needs more: something masked or
//! kept below something granted, something shown elsewhere. Its invariant: nothing that was asked for is left out in silence.

use std::path::{Path, PathBuf};

use landlock::{ABI, Access, AccessFs};

use super::places::{look, present};
use super::{Plan, PlanError, bytes, of_a_file, reading, text, writing};
use crate::confinement::{Confinement, Reading};
use crate::host_path::HostPath;

/// Lays out the rights.
pub fn plan(confinement: &Confinement, abi: ABI) -> Result<Plan, PlanError> {
    let mut plan = Plan { folder: text(&look(confinement.folder.as_path())?.path)?, ..Plan::default() };
    let open = confinement.reading == Reading::Open;
    let mut readable = if open { vec![PathBuf::from("/")] } else { vec![PathBuf::from("/proc")] };
    if !open {
        // Not the folder it starts in: a right on it would be one on all below it. To enter it needs none.
        for path in confinement.readable.iter().map(HostPath::as_path) {
            let resolved = look(path)?;
            let folder = present(path, &resolved)?;
            let rights = if folder { reading() } else { of_a_file(reading(), abi) };
            plan.rights.push((text(&resolved.path)?, rights.bits()));
            readable.push(resolved.path);
        }
    }
    let mut writable = Vec::new();
    for path in confinement.writable.iter().map(HostPath::as_path) {
        let resolved = look(path)?;
        let folder = present(path, &resolved)?;
        let rights = reading() | writing(abi);
        let rights = if folder { rights } else { of_a_file(rights, abi) };
        plan.rights.push((text(&resolved.path)?, rights.bits()));
        writable.push(resolved.path);
    }
    for (paths, granted) in
        [(&confinement.masked, [&readable, &writable]), (&confinement.read_only, [&writable, &writable])]
    {
        for path in paths {
            let path = look(path.as_path())?.path;
            if granted.into_iter().flatten().any(|folder| path.starts_with(folder)) {
                return Err(PlanError::NeedsMounts(path));
            }
        }
    }
    let shown = confinement.binds.iter().map(|bind| &bind.target).chain(&confinement.devices);
    let shown =
        shown.chain(&confinement.temporary_folder).chain(confinement.home.as_ref().map(|home| &home.target)).next();
    if let Some(path) = shown {
        return Err(PlanError::NeedsMounts(path.as_path().to_owned()));
    }
    if open {
        plan.rights.push((bytes("/".as_ref())?, reading().bits()));
    }
    let change = (AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev) & AccessFs::from_all(abi);
    for path in ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"] {
        if Path::new(path).exists() {
            plan.rights.push((bytes(path.as_ref())?, (of_a_file(reading(), abi) | change).bits()));
        }
    }
    // What can be written there changes other processes of the same user, too.
    plan.rights.push((bytes("/proc".as_ref())?, reading().bits()));
    Ok(plan)
}
