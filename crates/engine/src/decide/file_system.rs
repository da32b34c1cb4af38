//! The real file system, as a policy asks about it.

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use writ_policy::{Entry, PROGRAM, Protected, Resolved, Setting, World};
use writ_sandbox::is_reserve;

use super::authored;

/// Most symlinks on the way to one path; the kernel's own limit.
const MAX_LINKS: usize = 40;

/// This machine's disk. A second name of a protected file leads to the first.
#[derive(Clone, Debug, Default)]
pub struct FileSystem<'a> {
    /// What is protected.
    protected: &'a [Protected],
    /// Device, number and path of the protected files that are there and have more than one name. They are looked for when a file is found
    /// that has more than one itself: no other can be a second name of one of them.
    guarded: OnceCell<Vec<(u64, u64, &'a str)>>,
    /// The session's folder, which knows what the agent wrote.
    session: Option<PathBuf>,
    /// Writ's own program.
    program: Option<PathBuf>,
}

impl<'a> FileSystem<'a> {
    /// The disk, with an eye on what is protected.
    pub fn guarding(setting: &'a Setting) -> Self {
        let program = setting.protected.iter().find(|protected| protected.what == PROGRAM);
        let program = program.map(|protected| PathBuf::from(&protected.path));
        Self { protected: &setting.protected, guarded: OnceCell::new(), session: None, program }
    }

    /// The same, remembering what the agent of a session wrote.
    #[must_use]
    pub fn remembering(self, session: Option<&Path>) -> Self {
        Self { session: session.map(Path::to_owned), ..self }
    }

    fn first_name(&self, found: &Metadata) -> Option<&'a str> {
        if !found.is_file() || found.nlink() < 2 {
            return None;
        }
        let of = |protected: &'a Protected| {
            let found = fs::metadata(&protected.path).ok().filter(|found| found.is_file() && found.nlink() > 1)?;
            Some((found.dev(), found.ino(), protected.path.as_str()))
        };
        let guarded = self.guarded.get_or_init(|| self.protected.iter().filter_map(of).collect());
        let same = |(dev, ino, _): &&(u64, u64, &str)| (*dev, *ino) == (found.dev(), found.ino());
        guarded.iter().find(same).map(|(_, _, path)| *path)
    }
}

impl World for FileSystem<'_> {
    /// Follows symlinks as the kernel does, component by component; what does not exist is kept as text, and `..` after it
    /// is folded. A loop resolves to the path as written, which then meets the rules as it stands.
    fn resolve(&self, path: &str) -> Resolved {
        let real = follow(Path::new(path)).unwrap_or_else(|| PathBuf::from(path));
        let found = fs::metadata(&real).ok();
        if let Some(first) = found.as_ref().and_then(|found| self.first_name(found)) {
            return Resolved { is_dir: false, path: first.to_owned() };
        }
        let is_dir = found.is_some_and(|found| found.is_dir());
        Resolved { is_dir, path: real.to_string_lossy().into_owned() }
    }

    fn list(&self, dir: &str) -> Option<Vec<Entry>> {
        let entries = fs::read_dir(dir).ok()?.flatten();
        // What only keeps a name while a call runs is not there.
        let is_there =
            |entry: &fs::DirEntry| !entry.file_type().is_ok_and(|kind| kind.is_socket()) || !is_reserve(&entry.path());
        let entries = entries.filter(is_there).map(|entry| Entry {
            name: entry.file_name().to_string_lossy().into_owned(),
            is_dir: entry.file_type().is_ok_and(|kind| kind.is_dir()),
            is_link: entry.file_type().is_ok_and(|kind| kind.is_symlink()),
        });
        Some(entries.collect())
    }

    fn is_missing(&self, path: &str) -> bool {
        fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
    }

    fn authored(&self, path: &str) -> Option<String> {
        authored::text(self.session.as_deref()?, Path::new(path))
    }

    fn has_authored(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.join(authored::FOLDER).exists())
    }

    fn authored_files(&self) -> Vec<String> {
        self.session.as_deref().map(authored::files).unwrap_or_default()
    }

    /// Compares pieces from within the program: bytes put behind a copy, or changed in its head, make it no other program.
    fn is_copy_of_program(&self, path: &str) -> bool {
        const PIECE: usize = 4096;
        let Some(program) = self.program.as_deref().and_then(Path::to_str) else { return false };
        let size = |path: &str| fs::metadata(path).ok().filter(Metadata::is_file).map(|found| found.len());
        let (Some(own), Some(other)) = (size(program), size(path)) else { return false };
        let same = |part: u64| {
            let at = own / 4 * part;
            let piece = self.read(program, at, PIECE).filter(|piece| piece.len() == PIECE);
            piece.is_some() && piece == self.read(path, at, PIECE)
        };
        other >= own / 2 && (1..4).any(same)
    }

    fn read(&self, path: &str, from: u64, most: usize) -> Option<Vec<u8>> {
        if !fs::metadata(path).ok()?.is_file() {
            return None;
        }
        let mut file = fs::File::open(path).ok()?;
        if from > 0 {
            file.seek(SeekFrom::Start(from)).ok()?;
        }
        let mut bytes = Vec::new();
        file.take(u64::try_from(most).ok()?).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
}

fn follow(path: &Path) -> Option<PathBuf> {
    let mut done = PathBuf::from("/");
    let mut todo: VecDeque<OsString> = names(path);
    let mut links = 0;
    while let Some(name) = todo.pop_front() {
        if name == ".." {
            done.pop();
            continue;
        }
        let next = done.join(&name);
        if let Some(own) = descriptor(&next, &todo).or_else(|| process(&next, &todo)) {
            return Some(own);
        }
        match fs::read_link(&next) {
            Ok(target) => {
                links += 1;
                if links > MAX_LINKS {
                    return None;
                }
                if target.is_absolute() {
                    done = PathBuf::from("/");
                }
                let mut rest = names(&target);
                rest.append(&mut todo);
                todo = rest;
            }
            // No link, and so there: what follows may be one.
            Err(error) if error.kind() == ErrorKind::InvalidInput => done = next,
            // What is not there has nothing below it that could be a link; only `..` leads out of it again.
            Err(_) if !todo.iter().any(|name| name == "..") => {
                done = next;
                done.extend(todo);
                return Some(done);
            }
            Err(_) => done = next,
        }
    }
    Some(done)
}

/// A descriptor of whoever opens it, which is not this process: its name is all that is known.
fn descriptor(at: &Path, rest: &VecDeque<OsString>) -> Option<PathBuf> {
    let rest: Vec<&str> = rest.iter().map(|name| name.to_str()).collect::<Option<_>>()?;
    let number = match (at.to_str()?, rest.as_slice()) {
        ("/dev/fd", [number]) | ("/proc/self", ["fd", number]) => number,
        _ => return None,
    };
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| Path::new("/dev/fd").join(number))
}

/// The folder of this process, or a folder that it has open: whoever comes by a link to its own is not this process.
fn process(at: &Path, rest: &VecDeque<OsString>) -> Option<PathBuf> {
    let parts: Vec<&str> = at.to_str()?.strip_prefix("/proc/")?.split('/').collect();
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (process, link) = match parts.as_slice() {
        [process, "task", thread, link @ ..] if is_number(thread) => (process, link),
        [process, link @ ..] => (process, link),
        [] => return None,
    };
    let is_own = *process == std::process::id().to_string();
    // Where another process is now can be looked up.
    let own = match link {
        ["cwd"] if is_own => PathBuf::from("/proc/self/cwd"),
        ["fd", number] if is_own => PathBuf::from("/dev/fd").join(number),
        _ => return None,
    };
    Some(rest.iter().fold(own, |path, name| path.join(name)))
}

fn names(path: &Path) -> VecDeque<OsString> {
    let name = |part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn follows_links_and_folds_after_them() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("real/deep")).unwrap();
        symlink("real/deep", root.join("link")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let resolve = |path: &str| FileSystem::default().resolve(&root.join(path).to_string_lossy()).path;
        let at = |path: &str| root.join(path).to_string_lossy().into_owned();
        assert_eq!(resolve("link/../x"), at("real/x"));
        assert_eq!(resolve("link/new/file"), at("real/deep/new/file"));
        assert_eq!(resolve("none/../y"), at("y"));
        assert_eq!(resolve("loop/z"), at("loop/z"));
        // Another process's descriptors are not this one's.
        assert_eq!((resolve("/dev/fd/63"), resolve("/proc/self/fd/7")), ("/dev/fd/63".into(), "/dev/fd/7".into()));
        assert_eq!(resolve("/dev/fd/../fd/0"), "/dev/fd/0");
        // Nor is the folder that this one is in.
        for path in ["/dev/fd/../cwd/x", "/proc/self/../self/cwd/x", "/proc/thread-self/../../cwd/x"] {
            assert_eq!(resolve(path), "/proc/self/cwd/x", "{path}");
        }
        symlink("/proc/self/cwd", root.join("here")).unwrap();
        assert_eq!((resolve("here/x"), resolve("/dev/stdin/x")), ("/proc/self/cwd/x".into(), "/dev/fd/0/x".into()));
    }
}
