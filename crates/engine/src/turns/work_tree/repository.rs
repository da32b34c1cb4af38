//! Where a repository keeps what, and which of its settings change a tree's hash.

use std::fs;
use std::path::{Path, PathBuf};

use writ_core::regular_file;
use writ_policy::Config;

use super::hash::Function;
use super::{TreeError, root};

/// Largest settings file, list of references or index that is read.
const MAX_FILE: u64 = 256 << 20;

/// A repository and its work tree.
pub struct Layout {
    /// The work tree's root.
    pub work: PathBuf,
    git: PathBuf,
    common: PathBuf,
    /// How its objects are named.
    pub function: Function,
    /// Whether the executable bit counts.
    pub modes: bool,
    /// Whether a setting has git change line ends, or names attributes for all repositories.
    pub filtered: bool,
    /// Lists of what is left out that lie outside the work tree, the farthest first.
    pub lists: Vec<PathBuf>,
}

impl Layout {
    /// The repository around a folder.
    pub fn around(folder: &Path, home: Option<&Path>) -> Result<Self, TreeError> {
        let work = root(folder).ok_or_else(|| TreeError::NoRepository(folder.to_owned()))?.to_owned();
        let git = git_folder(&work).ok_or_else(|| TreeError::NoRepository(folder.to_owned()))?;
        let common = pointed(&git.join("commondir"), "", &git).unwrap_or_else(|| git.clone());
        let own = config(&common.join("config"));
        // A submodule's settings name its own work tree.
        let elsewhere = |tree: &str| {
            let (tree, work) = (git.join(tree).canonicalize().ok(), work.canonicalize().ok());
            tree.is_none() || tree != work
        };
        if own.last("core.worktree").is_some_and(elsewhere) || own.last("core.bare").is_some_and(is_true) {
            return Err(TreeError::Kind(
                "the repository's work tree is elsewhere: `core.worktree` or `core.bare` is set",
            ));
        }
        let configured = home.map(|home| home.join(".config/git"));
        let user = [Some(PathBuf::from("/etc/gitconfig")), configured.as_ref().map(|at| at.join("config"))];
        let user = user.into_iter().chain([home.map(|home| home.join(".gitconfig"))]).flatten();
        // The nearest comes last and holds.
        let mut all: Vec<Config> = user.map(|path| config(&path)).collect();
        all.push(own);
        all.push(config(&git.join("config.worktree")));
        let last = |name: &str| all.iter().rev().find_map(|config| config.last(name).map(str::to_owned));
        let home_path = |text: String| match (text.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => work.join(text),
        };
        let ignored = last("core.excludesfile").map(home_path);
        let ignored = ignored.or_else(|| configured.as_ref().map(|at| at.join("ignore")));
        let attributes = last("core.attributesfile").map(home_path);
        let attributes = attributes.or_else(|| configured.as_ref().map(|at| at.join("attributes")));
        let attributes = attributes.into_iter().chain([common.join("info/attributes")]);
        let line_ends =
            last("core.autocrlf").is_some_and(|value| value.eq_ignore_ascii_case("input") || is_true(&value));
        let filtered = line_ends || attributes.into_iter().any(|path| filters(&path));
        let function = if all.iter().any(Config::is_sha256) { Function::Sha256 } else { Function::Sha1 };
        let modes = last("core.filemode").is_none_or(|value| is_true(&value));
        let lists = ignored.into_iter().chain([common.join("info/exclude")]).collect();
        Ok(Self { work, git, common, function, modes, filtered, lists })
    }

    /// The index's bytes and when it was written; `None` where there is none.
    pub fn index(&self) -> Result<Option<(Vec<u8>, fs::Metadata)>, TreeError> {
        let path = self.git.join("index");
        let failed = |source| TreeError::Io { path: path.clone(), source };
        match path.metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
            Ok(found) => Ok(Some((regular_file::read(&path, MAX_FILE).map_err(failed)?, found))),
        }
    }

    /// The branch that is checked out.
    pub fn branch(&self) -> Option<String> {
        let head = text(&self.git.join("HEAD"))?;
        Some(head.trim().strip_prefix("ref:")?.trim().strip_prefix("refs/heads/")?.to_owned())
    }

    /// The commit that is checked out.
    pub fn head(&self) -> Option<Vec<u8>> {
        let head = text(&self.git.join("HEAD"))?;
        let Some(name) = head.trim().strip_prefix("ref:").map(str::trim) else { return self.id(head.trim()) };
        let plain = Path::new(name).components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let loose = [&self.git, &self.common].into_iter().find_map(|at| text(&at.join(name)).filter(|_| plain));
        if let Some(loose) = loose {
            return self.id(loose.trim());
        }
        let packed = text(&self.common.join("packed-refs"))?;
        let found = packed.lines().find_map(|line| line.split_once(' ').filter(|(_, other)| *other == name))?;
        self.id(found.0)
    }

    fn id(&self, hex: &str) -> Option<Vec<u8>> {
        let (pairs, []) = hex.as_bytes().as_chunks::<2>() else { return None };
        let digits = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let id: Option<Vec<u8>> = pairs.iter().map(digits).collect();
        id.filter(|id| id.len() == self.function.length())
    }
}

/// The folder that `.git` is, or names.
fn git_folder(work: &Path) -> Option<PathBuf> {
    let git = work.join(".git");
    if git.metadata().ok()?.is_dir() { Some(git) } else { pointed(&git, "gitdir:", work) }
}

/// The folder that a file names, behind a sign.
fn pointed(file: &Path, sign: &str, base: &Path) -> Option<PathBuf> {
    Some(base.join(text(file)?.trim().strip_prefix(sign)?.trim()))
}

fn text(path: &Path) -> Option<String> {
    regular_file::read(path, MAX_FILE).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn config(path: &Path) -> Config {
    Config::parse(&text(path).unwrap_or_default())
}

fn is_true(value: &str) -> bool {
    ["true", "yes", "on", "1"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// Whether an attributes file has git keep other bytes than a file has.
pub fn filters(path: &Path) -> bool {
    let names = ["text", "eol", "crlf", "filter", "ident", "working-tree-encoding"];
    let sets = |word: &str| !word.starts_with(['-', '!']) && names.contains(&word.split('=').next().unwrap_or(word));
    let own = |line: &str| !line.trim_start().starts_with('#') && line.split_whitespace().skip(1).any(sets);
    text(path).is_some_and(|text| text.lines().any(own))
}
