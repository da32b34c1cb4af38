//! Folders that commands wrote, seen from outside.
//!
//! Owns how they are opened and removed though whoever wrote them, or the kernel, closed them. Refuses to follow a link on the way.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};

/// A folder on whose way no link lies.
pub fn folder(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()
}

/// The path of what was opened.
pub fn of(folder: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", folder.as_raw_fd()).into()
}

/// Gives the owner of a folder its rights back.
pub fn open_up(path: &Path) {
    let Some(folder) = folder(path) else { return };
    if let Ok(found) = fs::metadata(of(&folder)) {
        // Somebody else's stays as it is.
        fs::set_permissions(of(&folder), Permissions::from_mode(found.permissions().mode() & 0o7777 | 0o700)).ok();
    }
}

/// Removes a folder and all in it, those without any right too: the command's own, and what an overlay leaves where it works.
pub fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::remove_dir_all(path) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            open_all(path);
            fs::remove_dir_all(path)
        }
        removed => removed,
    };
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn open_all(path: &Path) {
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        open_up(&folder);
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(entries.filter(|at| at.file_type().is_ok_and(|kind| kind.is_dir())).map(|at| at.path()));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn closed_folders_are_removed_and_links_are_not_followed() {
        let top = tempfile::tempdir().unwrap();
        let (layer, other) = (top.path().join("layer"), top.path().join("other"));
        fs::create_dir_all(layer.join("work/work/deep")).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(layer.join("work/work/deep/file"), "x").unwrap();
        symlink(&other, layer.join("work/work/link")).unwrap();
        fs::set_permissions(&other, Permissions::from_mode(0o500)).unwrap();
        for closed in ["work/work/deep", "work/work", "work"] {
            fs::set_permissions(layer.join(closed), Permissions::from_mode(0o0)).unwrap();
        }
        // What root does anyway, too.
        open_all(&layer);
        assert_eq!(fs::metadata(layer.join("work/work/deep")).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(&other).unwrap().permissions().mode() & 0o777, 0o500);
        remove(&layer).unwrap();
        assert!(!layer.exists() && other.is_dir());
        remove(&layer).unwrap();
    }
}
