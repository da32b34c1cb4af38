//! Where a change that a process is about to make lands.
//!
//! Owns the way from the words of a call to a path without links, looked up in the process's own root. Refuses to guess: what only the
//! process itself can look up is [`Landing::Unclear`]. Invariant: a path that is answered was the one meant when it was looked up.

use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, open, openat2, statat};
use rustix::io::Errno;
use rustix::process::Pid;

/// Where a change lands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Landing {
    /// There.
    At {
        /// Without links.
        path: PathBuf,
        /// Whether a folder is there.
        folder: bool,
    },
    /// At no name.
    Nowhere,
    /// Nobody else can tell.
    Unclear,
}

const FLAGS: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
/// What leads elsewhere below a process's folder in `/proc`.
const LEADING: [&str; 5] = ["cwd", "root", "fd", "task", "map_files"];

/// Looks up an absolute path, with its links and `..`. `follows` says that a link at its end is followed.
pub fn landing(process: Pid, path: &Path, follows: bool) -> Landing {
    if let Some(number) = descriptor(path) {
        return of_descriptor(process, number);
    }
    if path.starts_with("/proc") {
        let leads = path.iter().any(|part| LEADING.iter().any(|name| part == *name));
        return if leads { Landing::Unclear } else { Landing::Nowhere };
    }
    // What most programs open.
    if path == Path::new("/dev/null") {
        return Landing::Nowhere;
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Landing::Nowhere };
    let Ok(root) = open(format!("/proc/{}/root", process.as_raw_nonzero()), FLAGS, Mode::empty()) else {
        return Landing::Unclear;
    };
    let parent = match below(&root, parent, ResolveFlags::NO_SYMLINKS) {
        Err(Errno::LOOP) => below(&root, parent, ResolveFlags::empty()),
        // No link lies before what is not there: the call fails too, or somebody makes it first.
        Err(_) => return Landing::At { path: folded(path), folder: false },
        found => found,
    };
    let Ok(parent) = parent else { return Landing::Unclear };
    let kind = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).map(|found| FileType::from_raw_mode(found.st_mode));
    if follows && kind == Ok(FileType::Symlink) {
        let found = below(&root, path, ResolveFlags::empty()).ok();
        return found
            .and_then(|found| named(&found))
            .map_or(Landing::Unclear, |path| Landing::At { path, folder: false });
    }
    let folder = kind == Ok(FileType::Directory);
    named(&parent).map_or(Landing::Unclear, |parent| Landing::At { path: parent.join(name), folder })
}

/// Opens a path as the process would, but for the links of `/proc` that lead elsewhere by themselves.
fn below(root: &OwnedFd, path: &Path, more: ResolveFlags) -> Result<OwnedFd, Errno> {
    let path = path.strip_prefix("/").unwrap_or(path);
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    openat2(root, path, FLAGS, Mode::empty(), ResolveFlags::IN_ROOT | more)
}

/// The name of what was opened.
fn named(opened: &impl AsFd) -> Option<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", opened.as_fd().as_raw_fd())).ok()
}

/// The descriptor that a path means, where it means one of the process's own.
fn descriptor(path: &Path) -> Option<u32> {
    let name = path.file_name().and_then(OsStr::to_str)?;
    match path.parent()?.to_str()? {
        "/dev" => {
            ["stdin", "stdout", "stderr"].iter().zip(0..).find(|(own, _)| **own == name).map(|(_, number)| number)
        }
        "/dev/fd" | "/proc/self/fd" | "/proc/thread-self/fd" => name.parse().ok(),
        _ => None,
    }
}

fn of_descriptor(process: Pid, number: u32) -> Landing {
    match fs::read_link(format!("/proc/{}/fd/{number}", process.as_raw_nonzero())) {
        Ok(path) if path.is_absolute() => Landing::At { path, folder: false },
        // A pipe or a socket.
        Ok(_) => Landing::Nowhere,
        Err(_) => Landing::Unclear,
    }
}

/// Without `..`, as text.
pub fn folded(path: &Path) -> PathBuf {
    let mut whole = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::ParentDir => drop(whole.pop()),
            Component::Normal(name) => whole.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn at(path: PathBuf, folder: bool) -> Landing {
        Landing::At { path, folder }
    }

    #[test]
    fn links_and_what_follows_them_are_looked_up() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("deep/dir/below")).unwrap();
        fs::create_dir(root.join("decoy")).unwrap();
        symlink("../deep/dir", root.join("decoy/link")).unwrap();
        symlink("deep/file", root.join("link")).unwrap();
        symlink("/proc/self/cwd", root.join("here")).unwrap();
        let own = rustix::process::getpid();
        let landing = |path: &str, follows| super::landing(own, &root.join(path), follows);
        assert_eq!(landing("decoy/link/../new", true), at(root.join("deep/new"), false));
        assert_eq!(landing("decoy/link/below", true), at(root.join("deep/dir/below"), true));
        assert_eq!(landing("link", false), at(root.join("link"), false));
        assert_eq!(landing("link", true), Landing::Unclear, "it leads to what is not there yet");
        fs::write(root.join("deep/file"), "").unwrap();
        assert_eq!(landing("link", true), at(root.join("deep/file"), false));
        assert_eq!(landing("none/new", true), at(root.join("none/new"), false));
        assert_eq!(landing("here/new", true), Landing::Unclear);
        assert_eq!(super::landing(own, Path::new("/proc/self/cwd/new"), true), Landing::Unclear);
        assert_eq!(super::landing(own, Path::new("/proc/self/comm"), true), Landing::Nowhere);
        let opened = fs::File::open(root.join("deep/file")).unwrap();
        let path = format!("/dev/fd/{}", opened.as_raw_fd());
        assert_eq!(super::landing(own, Path::new(&path), true), at(root.join("deep/file"), false));
        let path = format!("/dev/fd/{}/new", opened.as_raw_fd());
        assert_eq!(super::landing(own, Path::new(&path), true), Landing::Unclear);
    }
}
