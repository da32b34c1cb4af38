//! The real file system, as a policy asks about it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use writ_policy::{Entry, Resolved, World};

/// Most symlinks on the way to one path; the kernel's own limit.
const MAX_LINKS: usize = 40;

/// This machine's disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl World for Disk {
    /// Follows symlinks as the kernel does, component by component; what does not exist is kept as text, and `..` after it
    /// is folded. A loop resolves to the path as written, which then meets the rules as it stands.
    fn resolve(&self, path: &str) -> Resolved {
        let real = follow(Path::new(path)).unwrap_or_else(|| PathBuf::from(path));
        Resolved { is_dir: real.is_dir(), path: real.to_string_lossy().into_owned() }
    }

    fn list(&self, dir: &str) -> Option<Vec<Entry>> {
        let entries = fs::read_dir(dir).ok()?.flatten().map(|entry| Entry {
            name: entry.file_name().to_string_lossy().into_owned(),
            is_dir: entry.file_type().is_ok_and(|kind| kind.is_dir()),
        });
        Some(entries.collect())
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
        let resolve = |path: &str| Disk.resolve(&root.join(path).to_string_lossy()).path;
        let at = |path: &str| root.join(path).to_string_lossy().into_owned();
        assert_eq!(resolve("link/../x"), at("real/x"));
        assert_eq!(resolve("link/new/file"), at("real/deep/new/file"));
        assert_eq!(resolve("none/../y"), at("y"));
        assert_eq!(resolve("loop/z"), at("loop/z"));
    }
}
