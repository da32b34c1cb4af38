//! The packages of a repository: its top, and each folder below it that a workspace may hold.
//!
//! npm, pnpm, yarn, Cargo, Go, uv, Gradle and Maven each list their members in a format of their own, with globs and defaults;
//! all members have a manifest, so the manifests are looked for instead. Bounded: what lies deeper is not found.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

/// How far below the top a package may lie.
const DEPTH: usize = 4;
/// Most folders that are looked at.
const MOST: usize = 2_000;
/// Folders that hold what others wrote, or what a build made.
const SKIPPED: &[&str] = &[
    "node_modules",
    "target",
    "dist",
    "build",
    "out",
    "vendor",
    "venv",
    "site-packages",
    "__pycache__",
    "Pods",
    "coverage",
    "bin",
    "obj",
];

/// The folders that packages may be in, the top first.
pub fn folders(root: &Path) -> Vec<PathBuf> {
    let mut found = vec![root.to_owned()];
    let mut waiting = VecDeque::from([(root.to_owned(), 0)]);
    while let Some((folder, depth)) = waiting.pop_front() {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut below: Vec<PathBuf> = entries
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter(|entry| is_own(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path())
            .collect();
        below.sort();
        for path in below {
            if found.len() >= MOST {
                return found;
            }
            found.push(path.clone());
            if depth + 1 < DEPTH {
                waiting.push_back((path, depth + 1));
            }
        }
    }
    found
}

fn is_own(name: &str) -> bool {
    !name.starts_with('.') && !SKIPPED.contains(&name)
}
