//! A repository without its settings: a folder of our own that git takes for it.
//!
//! Owns the folder, whose entries lead to the repository's but for what has git run programs: settings, hooks. Refuses settings that git
//! itself cannot list. Invariant: whatever is written to the repository's settings, at any moment, git runs none of the programs that they
//! name; those of the user's own settings stay. Page: `spec/claims.md`.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use writ_core::regular_file;

use super::Limits;
use super::git::{self, GitError, Repository};

/// Settings that say how files are compared, and nothing else.
const KEPT: [&str; 19] = [
    "core.attributesfile",
    "core.autocrlf",
    "core.bigfilethreshold",
    "core.checkstat",
    "core.eol",
    "core.excludesfile",
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.repositoryformatversion",
    "core.safecrlf",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.symlinks",
    "core.trustctime",
    "extensions.compatobjectformat",
    "extensions.objectformat",
    "extensions.refstorage",
    "index.sparse",
];
/// Which commit is the work tree's.
const HEAD: &str = "HEAD";
/// Largest such file.
const MAX_HEAD: u64 = 4096;
/// Most entries of such a folder: split indexes and tools leave some tens there.
const MAX_ENTRIES: usize = 10_000;
/// What is not led to: settings, what leads elsewhere, programs.
const LEFT_OUT: [&str; 6] = ["config", "config.worktree", "commondir", "gitdir", "hooks", "modules"];

/// The folder, as long as it is needed.
pub struct Aside {
    _folder: TempDir,
    /// For `GIT_DIR`.
    pub git: PathBuf,
    /// For `GIT_WORK_TREE`.
    pub tree: PathBuf,
}

impl Aside {
    /// Makes it.
    pub fn of(repository: &Repository, limits: &Limits) -> Result<Self, GitError> {
        let folder = tempfile::Builder::new().prefix("writ-git-").tempdir()?;
        let common = folder.path().join("common");
        lead(&repository.common, &common)?;
        let mut settings = settings(&repository.common.join("config"), &repository.root, limits)?;
        let linked = repository.private != repository.common;
        let git = if linked { folder.path().join("private") } else { common.clone() };
        if linked {
            lead(&repository.private, &git)?;
            fs::write(git.join("commondir"), "../common\n")?;
        }
        // Where nothing says that it counts it is not there.
        settings.push_str(&self::settings(&repository.private.join("config.worktree"), &repository.root, limits)?);
        fs::write(common.join("config"), settings)?;
        Ok(Self { _folder: folder, git, tree: repository.root.clone() })
    }
}

/// Fills a folder with what leads to the entries of another.
fn lead(from: &Path, to: &Path) -> Result<(), GitError> {
    fs::create_dir(to)?;
    for (number, entry) in fs::read_dir(from)?.enumerate() {
        let name = entry?.file_name();
        if number >= MAX_ENTRIES {
            return Err(io::Error::other("its own folder holds more entries than any repository's does").into());
        }
        let is_lock = Path::new(&name).extension() == Some(OsStr::new("lock"));
        if name == HEAD {
            // git follows no link of this name but to a reference.
            let reference = fs::read_link(from.join(HEAD)).ok();
            match reference {
                Some(reference) => symlink(reference, to.join(HEAD))?,
                None => fs::write(to.join(HEAD), regular_file::read(&from.join(HEAD), MAX_HEAD)?)?,
            }
        } else if !is_lock && !LEFT_OUT.iter().any(|left_out| *left_out == name) {
            symlink(from.join(&name), to.join(&name))?;
        }
    }
    Ok(())
}

/// What is kept of a file of settings, which may not be there. No other file that it names is read.
fn settings(file: &Path, tree: &Path, limits: &Limits) -> Result<String, GitError> {
    let mut kept = String::new();
    if !file.is_file() {
        return Ok(kept);
    }
    let listed = git::settings(file, tree, limits)?;
    for setting in listed.split(|byte| *byte == 0) {
        let Ok(setting) = std::str::from_utf8(setting) else { continue };
        let (name, value) = setting.split_once('\n').unwrap_or((setting, "true"));
        if let Some((section, key)) = name.split_once('.').filter(|_| KEPT.contains(&name)) {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            // Writing to a text cannot fail.
            writeln!(kept, "[{section}]\n\t{key} = \"{value}\"").unwrap_or_default();
        }
    }
    Ok(kept)
}
